#pragma once

#include "snapshot/arena.h"
#include "snapshot/error.h"
#include "snapshot/item.h"
#include "snapshot/objects.h"
#include "snapshot/snapshot.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace tw::snapshot {

/// Limit of ints in one delta body. 64 parts could contain 57,600 ints of one byte, but the reference
/// decodes them into a buffer of 64 KiB.
inline constexpr std::size_t kMaxDeltaInts = 16384;

/// Number of ints at the start of a delta body: num_deleted, num_updated and an unused int.
inline constexpr std::size_t kDeltaHeaderInts = 3;

/// One update of a delta: new or changed ints of an item.
struct DeltaUpdate {
    ItemKey key;
    std::uint32_t begin = 0; ///< index of the first int in the delta's ints
    std::uint32_t size = 0;  ///< number of ints

    friend bool operator==(const DeltaUpdate&, const DeltaUpdate&) = default;
};

/// A decoded delta body. Reused for each snapshot, so that decoding does not allocate.
struct Delta {
    RawVector<std::int32_t> ints;          ///< the whole body, as decoded varints
    std::span<const std::int32_t> deleted; ///< packed keys in the body's order; points into `ints`
    std::vector<DeltaUpdate> updates;      ///< in the body's order
    std::size_t surplus_ints = 0; ///< number of ints after the last update, which clients ignore
};

/// Unusual content of a delta that clients tolerate.
enum class DeltaWarning : std::uint8_t {
    /// A key is updated twice. The later update is used. It is relative to the base, not to the earlier
    /// update.
    duplicate_update,
    unknown_delete,      ///< a deleted key is not in the base
    duplicate_delete,    ///< a key is deleted twice
    deleted_and_updated, ///< a key is both deleted and updated; the update is relative to the base
};

/// A warning and its position in the delta.
struct DeltaWarningAt {
    DeltaWarning kind;
    ItemKey key;
    std::uint32_t int_index = 0; ///< index in the delta's ints
};

/// Collects the warnings of one delta without allocating. Warnings beyond kKept are only counted.
struct DeltaWarnings {
    static constexpr std::size_t kKept = 16;
    std::array<DeltaWarningAt, kKept> kept{};
    std::size_t count = 0;

    void add(const DeltaWarningAt& warning) {
        if (count < kKept) {
            kept[count] = warning;
        }
        ++count;
    }

    [[nodiscard]] std::span<const DeltaWarningAt> list() const {
        return std::span{kept}.first(count < kKept ? count : kKept);
    }
};

/// Decodes the body of a delta, reassembled from all parts. An empty body counts as "0 0 0".
///
/// Layout:  varints: num_deleted, num_updated, 0, the deleted keys, then for each update: type, id,
///          size (only for types without a size in `sizes`), ints.
/// Errors:  the error's offset is the index of the wrong or missing int; for `truncated` it is in
///          bytes. The error's `key` is the affected item, if known. After an error, `out` contains the
///          ints decoded so far, which are all ints if the varints are valid.
/// Source:  CSnapshotDelta::UnpackDelta.
[[nodiscard]] Result<void> decode_delta(std::span<const std::byte> body, Delta& out,
                                        const AgreedSizes& sizes);

/// Reads the update at ints[at] and sets `at` to the end of the update. Errors: as decode_delta.
[[nodiscard]] Result<DeltaUpdate> decode_update(std::span<const std::int32_t> ints, std::size_t& at,
                                                const AgreedSizes& sizes);

/// Rebuilds a snapshot from its base and a decoded delta. `base` must not be a view of `out`.
/// history.h has an overload that writes into a history.
///
/// Layout:  items sorted by key; at most kMaxItems items and kMaxSnapshotBytes bytes.
/// Errors:  size_change (offset of the size), too_many_items and too_many_bytes (offset of the first
///          new item that does not fit). The offset is an index in the delta's ints, and `key` is the
///          affected item. After an error, nothing was written.
/// Reports: unusual content, in `warnings`. Such content is applied as clients apply it.
/// Source:  CSnapshotDelta::UnpackDelta, CSnapshotBuilder.
[[nodiscard]] Result<void> apply_delta(const SnapshotView& base, const Delta& delta, Snapshot& out,
                                       DeltaWarnings& warnings);

/// Encodes the delta from one snapshot to another, without unchanged items. Deletions and updates are
/// in the order of keys.
/// Precondition: each item has the size in `sizes`, if its type has one there, and the same size in
/// both snapshots. Deltas cannot express anything else.
[[nodiscard]] std::vector<std::byte> encode_delta(const SnapshotView& from, const SnapshotView& to,
                                                  const AgreedSizes& sizes);

/// Finds the byte offsets of ints in a delta body. Reads the body once, from start to end.
class IntOffsets {
  public:
    explicit IntOffsets(std::span<const std::byte> body) : body_{body} {}

    /// Byte offset of the int with this index; the body's size if there is none. Indices must not
    /// decrease from call to call.
    [[nodiscard]] std::size_t byte_offset(std::size_t int_index);

  private:
    std::span<const std::byte> body_;
    std::size_t index_ = 0;
    std::size_t offset_ = 0;
};

/// Byte offset of one int in a delta body; the body's size if there is none.
[[nodiscard]] std::size_t byte_offset_of_int(std::span<const std::byte> body,
                                             std::size_t int_index);

} // namespace tw::snapshot
