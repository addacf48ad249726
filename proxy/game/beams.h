#pragma once

#include "proxy/game/item_merge.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <tuple>
#include <vector>

namespace tw::game {

/// Gives the beams of draggers ids that hold in all views. DDNet shows the beam of the viewer's own
/// team under the dragger's id, and others under their own, so that one id is two things and one
/// thing has two ids (views sheet, section 5). A beam is told by where it begins and whose it is.
class Beams {
  public:
    /// Another run of the server: ids begin anew.
    void reset() { private_ids_.clear(); }

    /// `items`: by key, and so they are left. `differing`: draggers and beams under ids that stand for
    /// another thing in the first view. `words`: of who saw an item.
    void resolve(std::vector<MergedItem>& items, const std::vector<MergedItem>& differing,
                 const ItemMerge& merge, std::size_t words);

  private:
    using Beam = std::tuple<std::int32_t, std::int32_t, std::int32_t>; ///< from x, y; owner

    struct Found {
        MergedItem item{};
        std::set<std::uint16_t> ids{}; ///< that views have it under
    };

    void take(const MergedItem& item, const ItemMerge& merge, std::size_t words);
    [[nodiscard]] std::uint16_t choose_id(const Beam& beam, const Found& found,
                                          const std::set<std::uint16_t>& taken);

    std::map<Beam, Found> beams_;                 ///< of the tick at hand
    std::map<std::uint16_t, MergedItem> resting_; ///< draggers without one, by id
    std::map<Beam, std::uint16_t> private_ids_;   ///< of beams that have no other
    std::set<std::uint16_t> private_taken_;       ///< the same ids
    std::uint16_t next_private_id_ = 0;           ///< those above are taken
};

} // namespace tw::game
