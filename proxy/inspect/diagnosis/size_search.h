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

/// Sizes that a server uses and nobody agreed on, found from what it sends: the counts, the keys
/// and the checksum of a delta leave next to nothing but the truth.
namespace tw::inspect {

/// Items that searches may read; one is some nanoseconds. Hostile traffic can start a search with
/// every snapshot, so what a worker spends on all of them is bounded by the traffic's own clock.
class SearchBudget {
  public:
    /// One search never takes more: a few milliseconds.
    static constexpr std::int64_t kASearch = 400'000;
    /// Of that, what is spent on the rivals of an explanation that was found.
    static constexpr std::int64_t kARivalSearch = 100'000;
    /// All searches together, by the second: a few hundredths of a core.
    static constexpr std::int64_t kASecond = 2'000'000;
    /// All searches of one connection, however long it lasts: a few tenths of a second.
    static constexpr std::int64_t kASession = 20'000'000;

    /// A search begins at this time, in nanoseconds; it may take `most`.
    void begin(std::int64_t time, std::int64_t most = kASearch);

    [[nodiscard]] bool take(std::int64_t items = 1) {
        left_ -= items;
        return left_ >= 0;
    }

    /// From here on the search may take no more than this. Returns what it has beyond that.
    [[nodiscard]] std::int64_t set_aside(std::int64_t most);

    void put_back(std::int64_t rest) { left_ += rest; }

    /// What the search that began last has not taken goes back. Returns what it took.
    std::int64_t end();

  private:
    std::int64_t saved_ = kASecond;
    std::int64_t granted_ = 0;
    std::int64_t left_ = 0;
    std::optional<std::int64_t> time_;
};

/// A delta that may not fit the sizes it was read with.
struct DeltaInts {
    std::span<const std::int32_t> ints; ///< the whole body, varints decoded
    snapshot::SnapshotView base;        ///< known to be right; empty under a full snapshot
    std::int32_t crc = 0;               ///< of the snapshot that it makes
};

/// Types that can have an agreed size.
using NumberedTypes = std::bitset<std::tuple_size_v<snapshot::AgreedSizes>>;

/// What a delta was found to hold.
struct TypesSeen {
    std::array<std::uint16_t, std::tuple_size_v<snapshot::AgreedSizes>> count{}; ///< items read
    std::array<std::uint16_t, std::tuple_size_v<snapshot::AgreedSizes>> first_id{};

    void add(snapshot::ItemKey key) {
        if (key.type < count.size() && count[key.type]++ == 0) {
            first_id[key.type] = key.id;
        }
    }
};

/// What is known before a search.
struct SizesKnown {
    snapshot::AgreedSizes sizes = snapshot::kAgreedSizes; ///< 0: written in the delta
    NumberedTypes settled;                    ///< types whose size stands in `sizes` beyond doubt
    const record::TypeNames* types = nullptr; ///< which other types there are
};

/// Reads a delta as strictly as servers write: as many updates as announced, keys in range and once,
/// sizes as in the base, every int used, the checksum equal. Nothing when it does not fit.
[[nodiscard]] std::optional<TypesSeen> read_strictly(const DeltaInts& delta,
                                                     const snapshot::AgreedSizes& sizes);

/// The snapshot that a delta makes. Precondition: read_strictly reads it with these sizes.
[[nodiscard]] snapshot::Snapshot snapshot_of(const DeltaInts& delta,
                                             const snapshot::AgreedSizes& sizes);

/// More sizes that explain one snapshot equally well are no explanation.
inline constexpr std::size_t kMaxSizesFound = 8;

/// The sizes under which a delta reads strictly that differ for the fewest types, and behind them, of
/// a full snapshot, their rivals: those that differ for one more. A few ints that a mod adds can look
/// like an item of their own, so that the truth is not always the cheapest. Empty when nothing
/// explains the delta or the budget ends.
[[nodiscard]] std::vector<snapshot::AgreedSizes>
find_sizes(const DeltaInts& delta, const SizesKnown& known, SearchBudget& budget);

} // namespace tw::inspect
