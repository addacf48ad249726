#pragma once

#include "proxy/record/records.h"
#include "snapshot/objects.h"
#include "snapshot/snapshot.h"

#include <array>
#include <bitset>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

/// Finds item sizes that differ from the agreed ones. A delta's counts, keys and checksum leave
/// hardly any solution but the true one.
namespace tw::inspect {

/// Limits the items that searches may read; one item takes some nanoseconds. Hostile traffic can
/// start a search with each snapshot, so the limit grows with the traffic's own clock.
class SearchBudget {
  public:
    /// Limit of one search: a few milliseconds.
    static constexpr std::int64_t kPerSearch = 400'000;
    /// The part of kPerSearch that may be spent on the rivals of an explanation.
    static constexpr std::int64_t kPerRivalSearch = 100'000;
    /// Limit of all searches per second: a few hundredths of a core.
    static constexpr std::int64_t kPerSecond = 2'000'000;
    /// Limit of all searches of one connection: a few tenths of a second.
    static constexpr std::int64_t kPerSession = 20'000'000;

    /// Starts a search at `time` (ns). It may read at most `most` items.
    void begin(std::int64_t time, std::int64_t most = kPerSearch);

    [[nodiscard]] bool take(std::int64_t items = 1) {
        left_ -= items;
        return left_ >= 0;
    }

    /// Limits the rest of the search to `most` items. Returns the items set aside.
    [[nodiscard]] std::int64_t set_aside(std::int64_t most);

    void put_back(std::int64_t rest) { left_ += rest; }

    /// Ends the search and returns its unused items to the budget. Returns the number used.
    std::int64_t end();

  private:
    std::int64_t saved_ = kPerSecond;
    std::int64_t granted_ = 0;
    std::int64_t left_ = 0;
    std::optional<std::int64_t> time_;
};

/// A delta that may not fit the known sizes.
struct DeltaInts {
    std::span<const std::int32_t> ints; ///< the whole body, varints decoded
    snapshot::SnapshotView base; ///< a verified snapshot; empty if the delta is a full snapshot
    std::int32_t crc = 0;        ///< expected checksum of the resulting snapshot
};

/// Types that can have an agreed size.
using NumberedTypes = std::bitset<std::tuple_size_v<snapshot::AgreedSizes>>;

/// The types of items found in a delta.
struct TypesSeen {
    std::array<std::uint16_t, std::tuple_size_v<snapshot::AgreedSizes>> count{}; ///< items read
    std::array<std::uint16_t, std::tuple_size_v<snapshot::AgreedSizes>> first_id{};

    void add(snapshot::ItemKey key) {
        if (key.type < count.size() && count[key.type]++ == 0) {
            first_id[key.type] = key.id;
        }
    }
};

/// What is known about sizes before a search.
struct SizesKnown {
    snapshot::AgreedSizes sizes = snapshot::kAgreedSizes; ///< 0: the delta contains the size
    NumberedTypes settled;                    ///< types whose size in `sizes` is certain
    const record::TypeNames* types = nullptr; ///< names of the known types
};

/// Reads a delta strictly: the announced number of updates, valid and unique keys, the base's item
/// sizes, no ints left over, and the right checksum. nullopt if one does not hold.
[[nodiscard]] std::optional<TypesSeen> read_strictly(const DeltaInts& delta,
                                                     const snapshot::AgreedSizes& sizes);

/// The snapshot resulting from a delta. Precondition: read_strictly accepts the delta with these
/// sizes.
[[nodiscard]] snapshot::Snapshot snapshot_of(const DeltaInts& delta,
                                             const snapshot::AgreedSizes& sizes);

/// If more sizes explain one snapshot equally well, none is returned.
inline constexpr std::size_t kMaxSizesFound = 8;

/// Finds the sizes under which read_strictly accepts the delta and that differ for the fewest
/// types. For a full snapshot, solutions that differ for one more type follow: ints added by a mod
/// can look like an item of their own, so the simplest solution is not always the true one. Empty
/// if there is no solution or the budget is used up.
[[nodiscard]] std::vector<snapshot::AgreedSizes>
find_sizes(const DeltaInts& delta, const SizesKnown& known, SearchBudget& budget);

} // namespace tw::inspect
