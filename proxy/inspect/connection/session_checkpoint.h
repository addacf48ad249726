#pragma once

#include "proxy/inspect/connection/connection.h"
#include "proxy/inspect/diagnosis/size_learner.h"
#include "proxy/inspect/map_tracker.h"
#include "proxy/record/roster.h"
#include "snapshot/item.h"
#include "snapshot/parts.h"
#include "snapshot/snapshot.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace tw::inspect {

/// The state of a session with which another observer process can continue the session. It contains
/// everything that is needed to rebuild snapshots from the server's next deltas, and to locate
/// their items on the map.
struct SessionCheckpoint {
    /// A snapshot on which the server's next deltas may be based.
    ///
    /// Layout:  `block` has the layout of SnapshotView's block.
    struct Snapshot {
        snapshot::Tick tick = 0;
        std::uint32_t num_items = 0;
        std::vector<std::int32_t> block;

        /// Whether the keys, sizes and order of the items are valid. For data from another process,
        /// this must be checked before view() is called.
        [[nodiscard]] bool is_consistent() const;

        [[nodiscard]] snapshot::SnapshotView view() const {
            return snapshot::SnapshotView::of_block(block, num_items,
                                                    block.size() - 2 * std::size_t{num_items});
        }

        friend bool operator==(const Snapshot&, const Snapshot&) = default;
    };

    /// A received part of an incomplete snapshot.
    struct Part {
        snapshot::Part part_without_data;
        std::vector<std::byte> data;

        [[nodiscard]] snapshot::Part view() const {
            snapshot::Part part = part_without_data;
            part.data = data;
            return part;
        }
    };

    std::optional<MapAnnouncement> map; ///< the current map; nullopt if unknown
    std::vector<Snapshot> snapshots{};  ///< sorted by tick
    snapshot::Dialect dialect = snapshot::Dialect::six;
    record::Roster roster{}; ///< the players; 0.7 only, because 0.6 snapshots contain the players
    std::vector<Part> parts{};
    std::optional<std::int32_t> client_version{}; ///< the client's DdnetVersion
    /// The token form of the connection. If it is unknown, the next packets show it.
    TokenForm token_form = TokenForm::unknown;
    std::optional<wire::Token> token{}; ///< the connection's token; 0.6 only
    /// 0.7 only: a DDNet server translates its 0.6 game for the client.
    bool is_translated_to_seven = false;
    std::vector<LearnedSize> learned_sizes{}; ///< learned item sizes, sorted by type
    /// The process that made the checkpoint has reported the connection's end; all other members
    /// are empty. An encoded checkpoint does not contain this flag.
    bool is_closed = false;

    /// Whether all snapshots are consistent, and their ticks are different and in ascending order.
    [[nodiscard]] bool is_consistent() const;
};

/// The largest encoded checkpoint in bytes. If a checkpoint is larger, its oldest snapshots are
/// left out.
inline constexpr std::size_t kMaxEncodedCheckpoint = std::size_t{4} << 20U;

/// Encodes a checkpoint. The encoding is the same on all machines. It contains the version of the
/// layout: 1 without learned sizes, otherwise 2.
///
/// Layout:  Varints; texts and data follow their length. In order: version; dialect; token form,
///          translation flag, token and client version of the connection; map; roster; in version
///          2, the learned sizes after their number; parts; snapshots, newest first. Each snapshot
///          is encoded as a difference to the newer snapshot before it. First comes the difference
///          of their ticks (for the first snapshot, its tick plus 1; 0 ends the list), then the
///          number of items, then each item. An item begins with the difference of its key to the
///          previous item's key. A 0 follows if the newer snapshot has an equal item. Otherwise,
///          the item's size plus 1 follows, then its ints. If the newer snapshot has an item with
///          this key and size, that item's ints are subtracted.
[[nodiscard]] std::vector<std::byte> encode_checkpoint(SessionCheckpoint checkpoint);

/// Decodes a checkpoint; nullopt if the bytes have another version or are malformed. All snapshots
/// of the result are consistent. The result takes at most about 16 MiB.
[[nodiscard]] std::optional<SessionCheckpoint> decode_checkpoint(std::span<const std::byte> bytes);

} // namespace tw::inspect
