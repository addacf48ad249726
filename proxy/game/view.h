#pragma once

#include "proxy/game/shared_items.h"
#include "proxy/record/roster.h"
#include "snapshot/objects.h"
#include "snapshot/snapshot.h"

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace tw::game {

/// One session's snapshot of a tick, read as a view of the world.
struct View {
    std::uint32_t session = 0;
    std::int32_t version = 0; ///< of its client; 0: vanilla
    /// All its items; of a view that shares those of bases, the others.
    snapshot::SnapshotView items{};
    /// What views of a tick have in common; the first one is what most of them have.
    std::span<const snapshot::SnapshotView> bases{};
    std::span<const SharedRun> shared{};    ///< items of the bases that the view has, too; rising
    bool translated = false;                ///< its client ids are not the server's
    std::optional<std::uint16_t> own{};     ///< the client id it was made for
    std::optional<std::uint16_t> watched{}; ///< whom its client watches
    bool watches = false;                   ///< it looks elsewhere than where its own tee is
    bool scoreboard = false;                ///< its client looks at the scoreboard
    snapshot::Dialect dialect = snapshot::Dialect::six; ///< that its client speaks
    /// Who plays; null where the items tell: in 0.6, and in 0.7 that is told as 0.6 (SevenAsSix).
    const record::Roster* roster = nullptr;
    /// Of item i: bits of its ints that it does not tell, as in record::Sightings; empty: none.
    std::span<const std::uint32_t> untold{};

    /// Place of an item: an index into `items`, or with this bit a BasePlace.
    static constexpr std::uint32_t kOfBase = std::uint32_t{1} << 31U;

    /// Whether it is sure that no client is unknown to it, so that −1 is nobody. Of 0.7 that shows only
    /// where names were told.
    [[nodiscard]] bool knows_all() const {
        return !translated && dialect == snapshot::Dialect::six;
    }

    [[nodiscard]] bool shares() const { return !bases.empty(); }

    /// Place of the item with this key.
    [[nodiscard]] std::optional<std::uint32_t> find(snapshot::ItemKey key) const;

    [[nodiscard]] snapshot::ItemView at(std::uint32_t place) const {
        const std::uint32_t of_base = place & ~kOfBase;
        return place == of_base ? items[place]
                                : bases[BasePlace::base_of(of_base)][BasePlace::index_of(of_base)];
    }

    /// Places of the items of a type, by id.
    [[nodiscard]] std::vector<std::uint32_t> places_of(std::uint16_t type) const;
};

/// Reads whom a snapshot was made for. The ids are those of the snapshot.
[[nodiscard]] View read_view(std::uint32_t session, std::int32_t version,
                             const snapshot::SnapshotView& items);

/// The same of 0.7, where messages before it say some of it: `roster`, or null.
[[nodiscard]] View read_seven_view(std::uint32_t session, std::int32_t version,
                                   const snapshot::SnapshotView& items,
                                   const record::Roster* roster);

/// Whether `left` says more of the world than `right`: it is of 0.6, knows all players, is of a newer
/// version, or else has the lower number. A total order: no two views of a tick are of one session.
[[nodiscard]] bool says_more(const View& left, const View& right);

/// Servers make some objects in another way for clients before these versions (views sheet,
/// sections 4 and 5): only views of one class must agree.
[[nodiscard]] int version_class(std::int32_t version);

} // namespace tw::game
