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

/// Finds the item sizes of a server that does not use the agreed sizes. A delta's counts, keys and
/// checksum contradict almost all wrong sizes.
namespace tw::inspect {

/// Limits the number of items that searches may read; reading an item takes some nanoseconds. The limit is
/// needed because hostile traffic can start a search with each snapshot. The timestamps of the traffic
/// refill the budget.
class SearchBudget {
  public:
    /// Limit of one search, in items. It corresponds to a few milliseconds.
    static constexpr std::int64_t kPerSearch = 400'000;
    /// After a solution was found, the search for other ones may read this many items of kPerSearch.
    static constexpr std::int64_t kPerRivalSearch = 100'000;
    /// Limit of all searches per second, in items. It corresponds to a few hundredths of a core.
    static constexpr std::int64_t kPerSecond = 2'000'000;
    /// Limit of all searches of one connection, in items. It corresponds to a few tenths of a second.
    static constexpr std::int64_t kPerSession = 20'000'000;

    /// Starts a search at `time` (ns). It may read at most `most` items.
    void begin(std::int64_t time, std::int64_t most = kPerSearch);

    [[nodiscard]] bool take(std::int64_t items = 1) {
        left_ -= items;
        return left_ >= 0;
    }

    /// Limits the rest of the search to `most` items. Returns the number of items by which this reduced the
    /// search's budget, for put_back().
    [[nodiscard]] std::int64_t set_aside(std::int64_t most);

    void put_back(std::int64_t rest) { left_ += rest; }

    /// Ends the search, and adds the items that it did not read to the budget again. Returns the number of
    /// items that it read.
    std::int64_t end();

  private:
    std::int64_t saved_ = kPerSecond;
    std::int64_t granted_ = 0;
    std::int64_t left_ = 0;
    std::optional<std::int64_t> time_;
};

/// A delta that may not fit the known sizes.
struct DeltaInts {
    std::span<const std::int32_t> ints; ///< the whole body of the delta, as decoded varints
    snapshot::SnapshotView base; ///< a verified snapshot; empty if the delta is a full snapshot
    std::int32_t crc = 0;        ///< the server's checksum of the resulting snapshot
};

/// A set of numbered types. Only these can have an agreed size.
using NumberedTypes = std::bitset<std::tuple_size_v<snapshot::AgreedSizes>>;

/// The types of items found in a delta.
struct TypesSeen {
    /// The number of items read, by type.
    std::array<std::uint16_t, std::tuple_size_v<snapshot::AgreedSizes>> count{};
    /// The id of the first item, by type.
    std::array<std::uint16_t, std::tuple_size_v<snapshot::AgreedSizes>> first_id{};

    void add(snapshot::ItemKey key) {
        if (key.type < count.size() && count[key.type]++ == 0) {
            first_id[key.type] = key.id;
        }
    }
};

/// What is known about sizes before a search.
struct SizesKnown {
    snapshot::AgreedSizes sizes = snapshot::kAgreedSizes; ///< 0: deltas contain the type's size
    NumberedTypes settled;                    ///< types whose size in `sizes` is certain
    const record::TypeNames* types = nullptr; ///< names of types with a UUID
};

/// Reads a delta strictly: it must have the announced number of updates, valid and unique keys, the item
/// sizes of the base, no surplus ints, and the right checksum. Returns nullopt if any of this fails.
[[nodiscard]] std::optional<TypesSeen> read_strictly(const DeltaInts& delta,
                                                     const snapshot::AgreedSizes& sizes);

/// The snapshot that a delta gives. Precondition: read_strictly() accepts the delta with these sizes.
[[nodiscard]] snapshot::Snapshot snapshot_of(const DeltaInts& delta,
                                             const snapshot::AgreedSizes& sizes);

/// The most solutions that find_sizes() returns. If there are more, it returns none.
inline constexpr std::size_t kMaxSizesFound = 8;

/// Finds solutions: sizes with which read_strictly() accepts the delta. Returns the solutions that differ
/// from the known sizes for the fewest types. For a full snapshot, also returns those that differ for
/// one more type, because the simplest solution is not always the true one: ints that a mod added can
/// look like a separate item. Empty if there is no solution or the budget is used up.
[[nodiscard]] std::vector<snapshot::AgreedSizes>
find_sizes(const DeltaInts& delta, const SizesKnown& known, SearchBudget& budget);

} // namespace tw::inspect
