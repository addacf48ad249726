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

/// Finds the item sizes of a server that does not use the sizes agreed in the protocol. A delta's
/// counts, keys and checksum contradict almost all wrong sizes.
namespace tw::inspect {

/// Limits the number of items that searches may read; reading an item takes some nanoseconds.
/// Without a limit, hostile traffic could start a search with each snapshot. The budget is refilled
/// over time, measured by the timestamps of the traffic.
class SearchBudget {
  public:
    /// The most items that one search reads. Reading them takes a few milliseconds.
    static constexpr std::int64_t kItemsPerSearch = 400'000;
    /// The most items that a search reads after its first solution, to find other solutions.
    static constexpr std::int64_t kItemsPerRivalSearch = 100'000;
    /// The most items that all searches read per second. Reading them takes a few hundredths of a
    /// core.
    static constexpr std::int64_t kItemsPerSecond = 2'000'000;
    /// The most items that all searches of one connection read: a few tenths of a second.
    static constexpr std::int64_t kItemsPerSession = 20'000'000;

    /// Starts a search at `time` (ns) that may read at most `most` items.
    void begin_search(std::int64_t time, std::int64_t most = kItemsPerSearch);

    [[nodiscard]] bool spend_items(std::int64_t items = 1) {
        items_left_ -= items;
        return items_left_ >= 0;
    }

    /// Limits the rest of the search to `most` items. Returns the number of items by which this
    /// shortens the search. The caller must pass this number to return_unread_items().
    [[nodiscard]] std::int64_t limit_remaining_items(std::int64_t most);

    void return_unread_items(std::int64_t rest) { items_left_ += rest; }

    /// Ends the search, and returns the unused part of its limit to the budget. Returns the number
    /// of items that the search read.
    std::int64_t end_search();

  private:
    std::int64_t available_items_ = kItemsPerSecond;
    std::int64_t items_at_search_start_ = 0;
    std::int64_t items_left_ = 0;
    std::optional<std::int64_t> last_search_time_;
};

/// A delta whose items may have unknown sizes.
struct DeltaWithUnknownSizes {
    std::span<const std::int32_t> ints; ///< all varints of the delta's body, decoded
    snapshot::SnapshotView base; ///< a verified snapshot; empty if the delta is a full snapshot
    std::int32_t crc = 0;        ///< the server's checksum of the resulting snapshot
};

/// Types below this number may have an agreed size. Types with a UUID never have one.
inline constexpr std::uint16_t kNumberedTypes = std::tuple_size_v<snapshot::AgreedSizes>;
using NumberedTypeSet = std::bitset<kNumberedTypes>;

/// The types of items found in a delta.
struct ItemTypeCounts {
    /// The number of items read, by type.
    std::array<std::uint16_t, kNumberedTypes> counts{};
    /// The id of the first item, by type.
    std::array<std::uint16_t, kNumberedTypes> first_ids{};

    void count_item(snapshot::ItemKey key) {
        if (key.type < counts.size() && counts[key.type]++ == 0) {
            first_ids[key.type] = key.id;
        }
    }
};

/// The sizes that are known before a search.
struct KnownSizes {
    snapshot::AgreedSizes sizes = snapshot::kAgreedSizes; ///< 0: deltas contain the type's size
    NumberedTypeSet certain_types;                 ///< types whose size in `sizes` is certain
    const record::ItemTypes* item_types = nullptr; ///< names of types with a UUID
};

/// Decodes a delta with these sizes. Returns the types of its items; nullopt if the delta does not
/// fit. A delta fits if it has the announced number of updates, valid and unique keys, the item
/// sizes of the base, no surplus ints, and the right checksum.
[[nodiscard]] std::optional<ItemTypeCounts>
count_types_if_sizes_fit(const DeltaWithUnknownSizes& delta, const snapshot::AgreedSizes& sizes);

/// Returns the snapshot that a delta encodes. Precondition: count_types_if_sizes_fit() accepts
/// the delta with these sizes.
[[nodiscard]] snapshot::Snapshot apply_delta_with_sizes(const DeltaWithUnknownSizes& delta,
                                                        const snapshot::AgreedSizes& sizes);

/// The most solutions that find_item_sizes() returns. It ignores further solutions.
inline constexpr std::size_t kMaxSizeSolutions = 8;

/// Finds solutions: sizes that count_types_if_sizes_fit() accepts. Returns the solutions that
/// differ from the known sizes for the fewest types. For a full snapshot, also returns the
/// solutions that differ for one more type. The simplest solution may be wrong, because ints that a
/// mod added to an item can look like a separate item. Returns an empty list if there is no
/// solution or the budget is used up.
[[nodiscard]] std::vector<snapshot::AgreedSizes>
find_item_sizes(const DeltaWithUnknownSizes& delta, const KnownSizes& known, SearchBudget& budget);

} // namespace tw::inspect
