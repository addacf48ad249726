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

/// What one observer knows of a session that another one goes on with: enough to rebuild the
/// snapshots that the server's next deltas lead to, and to place them.
struct SessionCheckpoint {
    /// Layout:  `block` as SnapshotView has it.
    struct Snapshot {
        snapshot::Tick tick = 0;
        std::uint32_t num_items = 0;
        std::vector<std::int32_t> block;

        /// Whether keys, sizes and order are those of a snapshot: before that view() must not be
        /// called for one that comes from elsewhere.
        [[nodiscard]] bool is_sound() const;

        [[nodiscard]] snapshot::SnapshotView view() const {
            return snapshot::SnapshotView::of_block(block, num_items,
                                                    block.size() - 2 * std::size_t{num_items});
        }
    };

    /// One of a snapshot that is not complete.
    struct Part {
        snapshot::Part head; ///< without its data
        std::vector<std::byte> data;

        [[nodiscard]] snapshot::Part view() const {
            snapshot::Part part = head;
            part.data = data;
            return part;
        }
    };

    std::optional<MapAnnouncement> map; ///< the connection's; nothing: it is not known
    std::vector<Snapshot> snapshots{};  ///< ticks ascending
    snapshot::Dialect dialect = snapshot::Dialect::six;
    record::Roster roster{}; ///< who plays; only of 0.7, where messages told it
    std::vector<Part> parts{};
    std::optional<std::int32_t> client_version{}; ///< as DDNet counts them
    TokenForm form = TokenForm::unknown;          ///< of the connection; unknown: packets tell it
    std::optional<wire::Token> token{};           ///< of 0.6
    bool translated = false;                      ///< of 0.7, by a server of DDNet

    [[nodiscard]] bool is_sound() const;
};

/// Those of snapshots that are not complete.
[[nodiscard]] std::vector<SessionCheckpoint::Part> open_parts(const snapshot::PartAssembler& parts);

/// Those of a history from that tick on.
[[nodiscard]] std::vector<SessionCheckpoint::Snapshot>
snapshots_from(const snapshot::History& history, snapshot::Tick oldest);

/// A checkpoint takes no more bytes than this: of more snapshots the oldest are left out. Usual are some
/// ten thousand.
inline constexpr std::size_t kMaxEncodedCheckpoint = std::size_t{4} << 20U;

/// Writes a checkpoint for another observer, of this run or of one in years, on any machine.
///
/// Layout:  varints; texts and data with their length before them. The version, the dialect; the
///          connection's form, token, client version; the map; who plays; parts; then snapshots, the
///          newest first, each as it differs from the one before: the step back in ticks (the first:
///          the tick itself plus one; 0: there are no more), the number of items, and of each the step
///          to its key, then 0 where it is as it was, or one more than its size and its ints, less
///          those that an item of this key and size had.
[[nodiscard]] std::vector<std::byte> encode_checkpoint(const SessionCheckpoint& checkpoint);

/// Nothing for bytes of another version, and for those that no encode_checkpoint wrote. What it gives is
/// sound, and takes some 16 MiB at most.
[[nodiscard]] std::optional<SessionCheckpoint> decode_checkpoint(std::span<const std::byte> bytes);

} // namespace tw::inspect
