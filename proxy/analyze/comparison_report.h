#pragma once

#include "proxy/analyze/map_visits.h"
#include "snapshot/snapshot.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace tw::analyze {

/// A field that differs between the views A and B.
struct FieldDifference {
    /// `int_4` for an int without a name, `(item)` for the whole item, `(type)` for its type
    std::string field;
    std::string a; ///< the field's value in view A as JSON
    std::string b;
};

/// Compares two items with the same identity: by their named fields, and by their raw ints if no
/// field shows a difference. Returns nullopt if one has only ints and the other only fields.
[[nodiscard]] std::optional<std::vector<FieldDifference>> compare_items(const RecordedItem& a,
                                                                        const RecordedItem& b);

/// The first difference between two views.
struct GameDifference {
    std::size_t pair = 0;
    snapshot::Tick tick = 0;
    std::string type; ///< name of the item's type
    snapshot::ItemKey key{};
    FieldDifference field;
};

/// The totals of one pair of map visits.
struct PairTotals {
    std::uint64_t common = 0;               ///< ticks that both views have
    std::uint64_t different = 0;            ///< common ticks whose items differ
    std::array<std::uint64_t, 2> only_in{}; ///< ticks that only view A or only view B has
    std::uint64_t left_out = 0;             ///< snapshots dropped because they waited too long
};

/// Compares two views of games tick by tick. Expects the snapshots of each pair and view in the order of
/// their ticks. If the caller always feeds the view that view_to_feed_next() returns, few snapshots wait.
class GameComparison {
  public:
    /// The most snapshots that wait for the snapshot of the same tick in the other view. Beyond this
    /// number, the oldest waiting snapshots of the current pair are dropped. With 64 players, a thousand
    /// snapshots take 20 MB.
    static constexpr std::size_t kMaxWaiting = 8192;
    /// The most fields with a count of their own. A game has about 300.
    static constexpr std::size_t kMaxCounted = 4096;

    struct Count {
        std::uint64_t items = 0;
        snapshot::Tick first = 0; ///< first tick
    };

    /// Counts by object and field.
    using Counts = std::map<std::pair<std::string, std::string>, Count>;

    explicit GameComparison(std::size_t pairs) : pairs_(pairs) {}

    /// `view`: 0 for A, 1 for B.
    void on_snapshot(std::size_t index, std::size_t view, snapshot::Tick tick,
                     std::shared_ptr<const RecordedItems> items);
    /// Ends the comparison. No snapshot may follow.
    void finish();

    /// The view that is behind and must be fed next; nullopt if no view is behind.
    [[nodiscard]] std::optional<std::size_t> view_to_feed_next() const;

    /// True if the views have common ticks and all of these are equal.
    [[nodiscard]] bool are_equal() const;

    [[nodiscard]] const PairTotals& pair(std::size_t index) const { return pairs_[index].totals; }

    [[nodiscard]] PairTotals totals() const;

    /// The difference with the lowest tick.
    [[nodiscard]] const std::optional<GameDifference>& first_difference() const { return first_; }

    [[nodiscard]] const Counts& counts() const { return counts_; }

    /// Differences beyond kMaxCounted objects and fields.
    [[nodiscard]] std::uint64_t uncounted_differences() const { return uncounted_; }

    /// Items for which one view has only raw ints and the other only named fields.
    [[nodiscard]] std::uint64_t incomparable_items() const { return incomparable_items_; }

    /// Items that only demos of 0.7 have, where the game has messages. They are not compared if the
    /// other view is not such a demo.
    [[nodiscard]] std::uint64_t demo_only_items() const { return demo_only_items_; }

  private:
    struct WaitingSnapshot {
        snapshot::Tick tick = 0;
        std::shared_ptr<const RecordedItems> items;
    };

    struct ComparedPair {
        PairTotals totals;
        std::deque<WaitingSnapshot> waiting; ///< snapshots of one view
        std::size_t waits = 0;               ///< the view of the waiting snapshots
    };

    void drop_oldest(ComparedPair& pair);
    void compare_snapshots(std::size_t index, snapshot::Tick tick, const RecordedItems& a,
                           const RecordedItems& b);
    /// Compares two items; `a` or `b` is null if its view has no such item. Returns true if they
    /// differ.
    bool compare(std::size_t index, snapshot::Tick tick, const RecordedItem* a,
                 const RecordedItem* b);
    void count_difference(const GameDifference& difference);

    std::vector<ComparedPair> pairs_;
    std::array<std::size_t, 2> waiting_{};
    std::optional<GameDifference> first_;
    Counts counts_;
    std::uint64_t uncounted_ = 0;
    std::uint64_t incomparable_items_ = 0;
    std::uint64_t demo_only_items_ = 0;
};

/// The result of comparing the views A and B.
struct ComparisonReport {
    std::array<std::string, 2> files;
    std::array<const MapVisitReader*, 2> readers{};
    const MapVisitPairs* pairs = nullptr;
    const GameComparison* comparison = nullptr;
};

/// Returns the report as text for users.
[[nodiscard]] std::string comparison_text(const ComparisonReport& report);
/// Returns the report as one JSON object and a newline.
[[nodiscard]] std::string comparison_json(const ComparisonReport& report);

} // namespace tw::analyze
