#pragma once

#include "proxy/game/view.h"
#include "proxy/record/world.h"
#include "snapshot/objects.h"

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace tw::game {

/// Players that a view has no id for are drawn there as other things: a weapon that lies where the tee
/// is, and a laser from there for its hook, with ids of their own (views sheet, section 3).
class Phantoms {
  public:
    /// Looks at the views of a tick, in which no id is rewritten yet.
    void gather(std::span<const View> views, const record::TypeNames& types);

    /// Whether an item of a translated view is one: no view that knows all has it, and it is where a
    /// tee is. Only of a view that says that it lacks players: others fire real lasers.
    [[nodiscard]] bool has(const snapshot::ObjectSpec& object,
                           const snapshot::ItemView& item) const;

  private:
    using Place = std::pair<std::int32_t, std::int32_t>;
    using Entity = std::pair<snapshot::Family, std::uint16_t>; ///< and its id

    void learn(const snapshot::SnapshotView& items, bool translated,
               const record::TypeNames& types);

    std::vector<Place> tees_;   ///< of all views; sorted
    std::vector<Entity> known_; ///< of those that know all; sorted
};

} // namespace tw::game
