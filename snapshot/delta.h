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

/// The maximum number of ints in a delta body. 64 parts could contain 57,600 ints of one byte, but
/// game clients decode a body into a buffer of 64 KiB.
inline constexpr std::size_t kMaxDeltaInts = 16384;

/// The number of ints at the start of a delta body: num_deleted, num_updated and an unused int.
inline constexpr std::size_t kDeltaHeaderInts = 3;

/// One update of a delta: the ints of a new item, or the differences of a changed item.
struct DeltaUpdate {
    ItemKey key;
    std::uint32_t begin = 0; ///< index of the update's first int in Delta::ints
    std::uint32_t size = 0;  ///< number of ints

    friend bool operator==(const DeltaUpdate&, const DeltaUpdate&) = default;
};

/// A decoded delta body. If the caller reuses it for the next delta, decoding does not allocate.
struct Delta {
    RawVector<std::int32_t> ints;          ///< all decoded varints of the body
    std::span<const std::int32_t> deleted; ///< packed keys of the deleted items; points into `ints`
    std::vector<DeltaUpdate> updates;      ///< in the order of the body
    std::size_t surplus_ints = 0; ///< number of ints after the last update; clients ignore them
};

/// Unusual content of a delta that clients tolerate.
enum class DeltaWarning : std::uint8_t {
    /// A key is updated twice. Clients ignore the earlier update and apply the later one to the
    /// item of the base.
    duplicate_update,
    unknown_delete,      ///< a deleted key is not in the base
    duplicate_delete,    ///< a key is deleted twice
    deleted_and_updated, ///< a key is both deleted and updated; the update is relative to the base
};

/// A warning and its position in the delta.
struct DeltaWarningAt {
    DeltaWarning kind;
    ItemKey key;
    std::uint32_t int_index = 0; ///< index of the affected int in Delta::ints
};

/// Collects the warnings about one delta without allocating. Stores the first kMaxKept warnings and
/// counts all.
struct DeltaWarnings {
    static constexpr std::size_t kMaxKept = 16;
    std::array<DeltaWarningAt, kMaxKept> kept{};
    std::size_t count = 0;

    void add(const DeltaWarningAt& warning) {
        if (count < kMaxKept) {
            kept[count] = warning;
        }
        ++count;
    }

    [[nodiscard]] std::span<const DeltaWarningAt> list() const {
        return std::span{kept}.first(count < kMaxKept ? count : kMaxKept);
    }
};

/// Decodes the body of a delta, which was reassembled from all its parts. An empty body is decoded
/// like the three ints 0 0 0.
///
/// Layout:  varints: num_deleted, num_updated, 0, the deleted keys, then for each update: type, id,
///          size (only for types without a size in `sizes`), ints.
/// Errors:  the error's offset is the index of the wrong or missing int; for `truncated`, a byte
///          offset. The error's `key` is the affected item, if known. After an error, `out`
///          contains all ints up to the first invalid varint.
/// Source:  CSnapshotDelta::UnpackDelta.
[[nodiscard]] Result<void> decode_delta(std::span<const std::byte> body, Delta& out,
                                        const AgreedSizes& sizes);

/// Reads the update at ints[at] and sets `at` to the end of the update.
/// Errors: those of decode_delta.
[[nodiscard]] Result<DeltaUpdate> decode_update(std::span<const std::int32_t> ints, std::size_t& at,
                                                const AgreedSizes& sizes);

/// Builds a snapshot from its base and a decoded delta. `base` must not be a view of `out`.
/// history.h declares an overload that writes into a history.
///
/// Layout:  items sorted by key; at most kMaxItems items and kMaxSnapshotBytes bytes.
/// Errors:  size_change (offset of the size), too_many_items and too_many_bytes (offset of the
///          first new item that does not fit). The offset is an index in Delta::ints, and `key` is
///          the affected item. After an error, `out` is unchanged.
/// Reports: unusual content, in `warnings`. It is applied as clients apply it.
/// Source:  CSnapshotDelta::UnpackDelta, CSnapshotBuilder.
[[nodiscard]] Result<void> apply_delta(const SnapshotView& base, const Delta& delta, Snapshot& out,
                                       DeltaWarnings& warnings);

/// Encodes the delta from one snapshot to another, without unchanged items. Deletions and updates
/// are sorted by key.
/// Precondition: an item whose type has a size in `sizes` has this size, and every item has the
/// same size in both snapshots. Deltas cannot express anything else.
[[nodiscard]] std::vector<std::byte> encode_delta(const SnapshotView& from, const SnapshotView& to,
                                                  const AgreedSizes& sizes);

/// Finds the byte offsets of ints in a delta body, in one pass over the body.
class IntOffsets {
  public:
    explicit IntOffsets(std::span<const std::byte> body) : body_{body} {}

    /// Returns the byte offset of the int with the given index; the body's size if the body has no
    /// such int. The index must not be less than in the previous call.
    [[nodiscard]] std::size_t byte_offset(std::size_t int_index);

  private:
    std::span<const std::byte> body_;
    std::size_t index_ = 0;
    std::size_t offset_ = 0;
};

} // namespace tw::snapshot
