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

/// A field that differs between the views.
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
    std::uint64_t both = 0;              ///< ticks that both views have
    std::uint64_t different = 0;         ///< ticks in `both` whose items differ
    std::array<std::uint64_t, 2> only{}; ///< ticks that only one view has
    std::uint64_t left_out = 0;          ///< snapshots dropped because they waited too long
};

/// Compares two views of games tick by tick. The snapshots of each pair and view come in the order
/// of their ticks. If the caller feeds the view returned by behind(), few snapshots have to wait.
class GameComparison {
  public:
    /// The most snapshots that wait for their tick in the other view. Beyond this number the
    /// longest waiting snapshots of the current pair are dropped. With 64 players, a thousand
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

    /// The view that has to be fed next; nullopt if either may be.
    [[nodiscard]] std::optional<std::size_t> behind() const;

    /// True if the views have common ticks and all of these are equal.
    [[nodiscard]] bool equal() const;

    [[nodiscard]] const PairTotals& pair(std::size_t index) const { return pairs_[index].totals; }

    [[nodiscard]] PairTotals totals() const;

    /// The difference with the lowest tick.
    [[nodiscard]] const std::optional<GameDifference>& first() const { return first_; }

    [[nodiscard]] const Counts& counts() const { return counts_; }

    /// Differences beyond kMaxCounted objects and fields.
    [[nodiscard]] std::uint64_t uncounted() const { return uncounted_; }

    /// Items for which one view has only raw ints and the other only named fields.
    [[nodiscard]] std::uint64_t unlike() const { return unlike_; }

    /// Items that only 0.7 demos have in place of messages, if the other view is no demo.
    [[nodiscard]] std::uint64_t of_demos() const { return of_demos_; }

  private:
    struct Waiting {
        snapshot::Tick tick = 0;
        std::shared_ptr<const RecordedItems> items;
    };

    struct Pair {
        PairTotals totals;
        std::deque<Waiting> waiting; ///< snapshots of one view only
        std::size_t waits = 0;       ///< that view
    };

    void pop(Pair& pair);
    void compare_snapshots(std::size_t index, snapshot::Tick tick, const RecordedItems& a,
                           const RecordedItems& b);
    /// Compares two items; `a` or `b` is null if its view has no such item. Returns true if they
    /// differ.
    bool compare(std::size_t index, snapshot::Tick tick, const RecordedItem* a,
                 const RecordedItem* b);
    void count(const GameDifference& difference);

    std::vector<Pair> pairs_;
    std::array<std::size_t, 2> waiting_{};
    std::optional<GameDifference> first_;
    Counts counts_;
    std::uint64_t uncounted_ = 0;
    std::uint64_t unlike_ = 0;
    std::uint64_t of_demos_ = 0;
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
