#pragma once

#include "proxy/inspect/connection/connection.h"
#include "proxy/inspect/map_tracker.h"
#include "proxy/record/roster.h"
#include "snapshot/history.h"
#include "snapshot/item.h"
#include "snapshot/parts.h"
#include "snapshot/snapshot.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace tw::inspect {

/// What one observer knows of a session when another one continues it: enough to rebuild the
/// snapshots of the server's next deltas and to locate them on the map.
struct SessionCheckpoint {
    /// Layout:  `block` as SnapshotView has it.
    struct Snapshot {
        snapshot::Tick tick = 0;
        std::uint32_t num_items = 0;
        std::vector<std::int32_t> block;

        /// Whether keys, sizes and order form a valid snapshot. view() must not be called before
        /// this was checked for external data.
        [[nodiscard]] bool is_sound() const;

        [[nodiscard]] snapshot::SnapshotView view() const {
            return snapshot::SnapshotView::of_block(block, num_items,
                                                    block.size() - 2 * std::size_t{num_items});
        }
    };

    /// A received part of an incomplete snapshot.
    struct Part {
        snapshot::Part head; ///< the part without its data
        std::vector<std::byte> data;

        [[nodiscard]] snapshot::Part view() const {
            snapshot::Part part = head;
            part.data = data;
            return part;
        }
    };

    std::optional<MapAnnouncement> map; ///< the current map; nullopt if unknown
    std::vector<Snapshot> snapshots{};  ///< sorted by tick
    snapshot::Dialect dialect = snapshot::Dialect::six;
    record::Roster roster{}; ///< who plays; 0.7 only, which tells it by messages
    std::vector<Part> parts{};
    std::optional<std::int32_t> client_version{}; ///< as DDNet counts them
    /// Token form of the connection; if unknown, packets will tell.
    TokenForm form = TokenForm::unknown;
    std::optional<wire::Token> token{}; ///< 0.6 only
    bool translated = false;            ///< 0.7 only: translated by a DDNet server

    [[nodiscard]] bool is_sound() const;
};

/// The received parts of incomplete snapshots.
[[nodiscard]] std::vector<SessionCheckpoint::Part> open_parts(const snapshot::PartAssembler& parts);

/// The snapshots of a history from tick `oldest` on.
[[nodiscard]] std::vector<SessionCheckpoint::Snapshot>
snapshots_from(const snapshot::History& history, snapshot::Tick oldest);

/// Size limit of an encoded checkpoint; the oldest snapshots are left out to keep it. Typical
/// checkpoints have some ten thousand bytes.
inline constexpr std::size_t kMaxEncodedCheckpoint = std::size_t{4} << 20U;

/// Encodes a checkpoint for another observer, now or years later, on any machine.
///
/// Layout:  varints; texts and data with their length before them. The version, the dialect; the
///          connection's form, token, client version; the map; who plays; parts; then snapshots,
///          the
///          newest first, each as it differs from the one before: the step back in ticks (the
///          first:
///          the tick itself plus one; 0: there are no more), the number of items, and of each the
///          step
///          to its key, then 0 where it is as it was, or one more than its size and its ints, less
///          those that an item of this key and size had.
[[nodiscard]] std::vector<std::byte> encode_checkpoint(const SessionCheckpoint& checkpoint);

/// Decodes a checkpoint; nullopt if the bytes have another version or are malformed. The result is
/// sound and takes at most about 16 MiB.
[[nodiscard]] std::optional<SessionCheckpoint> decode_checkpoint(std::span<const std::byte> bytes);

} // namespace tw::inspect
