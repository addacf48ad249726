#pragma once

#include "proxy/record/roster.h"
#include "snapshot/objects.h"
#include "snapshot/snapshot.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace tw::world {

/// One session's snapshot of a tick with its context.
struct View {
    std::uint32_t session = 0;
    std::int32_t version = 0; ///< the client's version; 0: vanilla
    snapshot::SnapshotView items{};
    bool translated = false; ///< the server replaced its client ids by the view's own numbers
    std::optional<std::uint16_t> own{};     ///< client id of the viewer
    std::optional<std::uint16_t> watched{}; ///< client id that the viewer spectates
    bool watches = false;                   ///< the viewer's camera is not at its own tee
    bool scoreboard = false;                ///< the client shows the scoreboard
    snapshot::Dialect dialect = snapshot::Dialect::six; ///< the client's protocol
    /// The players; null if the items contain them, as in 0.6 and after SevenAsSix has translated a
    /// 0.7 view.
    const record::Roster* roster = nullptr;
    /// For each item, a bit mask of the ints whose value the view does not contain, as in
    /// record::SeenBy; empty if no int is missing.
    std::span<const std::uint32_t> untold{};

    /// Returns whether the view certainly has a client id for each player, so that the id −1 means
    /// "no player". Never certain for 0.7.
    [[nodiscard]] bool knows_all() const {
        return !translated && dialect == snapshot::Dialect::six;
    }
};

/// Bit masks, one for each item: bit i is set if the tick's session number i saw the item.
class SeenMasks {
  public:
    /// Removes all masks. Each mask added later has this many bits.
    void begin(std::size_t sessions) {
        words_ = (sessions + kBits - 1) / kBits;
        bits_.clear();
    }

    /// Adds an empty mask. Returns its index.
    std::size_t add() {
        bits_.resize(bits_.size() + words_);
        return size() - 1;
    }

    void set(std::size_t mask, std::size_t session) {
        bits_[mask * words_ + session / kBits] |= std::uint64_t{1} << (session % kBits);
    }

    /// Adds the sessions of the mask `other` to `mask`.
    void join(std::size_t mask, std::size_t other) {
        for (std::size_t i = 0; i < words_; ++i) {
            bits_[mask * words_ + i] |= bits_[other * words_ + i];
        }
    }

    [[nodiscard]] std::size_t size() const { return words_ == 0 ? 0 : bits_.size() / words_; }

    [[nodiscard]] std::size_t words() const { return words_; }

    [[nodiscard]] std::span<const std::uint64_t> of(std::size_t mask) const {
        return std::span{bits_}.subspan(mask * words_, words_);
    }

  private:
    static constexpr std::size_t kBits = 64;

    std::size_t words_ = 0; ///< number of words in a mask
    std::vector<std::uint64_t> bits_;
};

/// Calls `use(item)` for each item of a type, in ascending order of ids.
template <typename Use>
void each_of_type(const snapshot::SnapshotView& items, std::uint16_t type, const Use& use) {
    for (std::size_t i = items.lower_bound({.type = type, .id = 0});
         i < items.size() && items[i].key.type == type; ++i) {
        use(items[i]);
    }
}

/// Makes a view of a snapshot. The items say which client the snapshot was made for. Client ids in
/// the view are those of the snapshot.
[[nodiscard]] View read_view(std::uint32_t session, std::int32_t version,
                             const snapshot::SnapshotView& items);

/// Like read_view(), for 0.7. `roster`: the players, whom 0.7 sends in messages; null if unknown.
[[nodiscard]] View read_seven_view(std::uint32_t session, std::int32_t version,
                                   const snapshot::SnapshotView& items,
                                   const record::Roster* roster);

/// Returns whether `left` has more information than `right`, by the first of these that differs: 0.6
/// before 0.7, ids for all players, newer version, lower session number. This is a total order,
/// because a session has only one view per tick.
[[nodiscard]] bool has_more_information(const View& left, const View& right);

/// Returns the class of a client version. Servers build some objects differently for clients before
/// certain versions, so only views of the same class must agree.
[[nodiscard]] int version_class(std::int32_t version);

} // namespace tw::world
