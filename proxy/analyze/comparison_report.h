#pragma once

#include "proxy/analyze/map_visits.h"
#include "snapshot/objects.h"
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

/// One of the two views of a game.
enum class View : std::uint8_t { a, b };

/// A field that is not the same in both.
struct FieldDifference {
    /// `int_4`: an int without a name; `(item)`: the whole of it; `(type)`: what it is
    std::string field;
    std::string a; ///< JSON
    std::string b;
};

/// What differs between two items of one key: by raw ints where both have them, else by named fields.
/// Nothing when one has only the former and the other only the latter. `type`: its number; 0.6 and
/// 0.7 have objects of one name with other fields.
[[nodiscard]] std::optional<std::vector<FieldDifference>>
compare_items(std::uint16_t type, const RecordedItem& a, const RecordedItem& b,
              const snapshot::ObjectSet& objects = snapshot::ObjectSet::standard());

/// Where two views differ first.
struct GameDifference {
    std::size_t pair = 0;
    snapshot::Tick tick = 0;
    std::string type; ///< name of the item's type
    std::uint16_t type_id = 0;
    std::uint16_t id = 0;
    FieldDifference field;
};

/// Of one pair of stays.
struct PairTotals {
    std::uint64_t both = 0;                  ///< ticks in both
    std::uint64_t different = 0;             ///< of these
    std::array<std::uint64_t, 2> only{};     ///< ticks in one of them
    std::array<std::uint64_t, 2> left_out{}; ///< snapshots that waited for too long
};

/// Compares two views of games tick by tick, as their snapshots come: those of one pair and view in the
/// order of their ticks. Who feeds the view that is behind keeps few of them waiting.
class GameComparison {
  public:
    /// Snapshots that may wait for their tick in the other view; then the longest waiting ones of the
    /// pair at hand are left out. At 64 players a thousand take 20 MB.
    static constexpr std::size_t kMaxWaiting = 8192;
    /// Objects and fields that are counted apart. A game has some 300.
    static constexpr std::size_t kMaxCounted = 4096;

    struct Count {
        std::uint64_t items = 0;
        snapshot::Tick first = 0; ///< tick
    };

    /// By object and field.
    using Counts = std::map<std::pair<std::string, std::string>, Count>;

    /// `objects`: what names the ints of items. Lives longer than this.
    explicit GameComparison(std::size_t pairs,
                            const snapshot::ObjectSet& objects = snapshot::ObjectSet::standard())
        : pairs_(pairs), objects_{&objects} {}

    void on_snapshot(std::size_t index, View view, snapshot::Tick tick,
                     std::shared_ptr<const RecordedItems> items);
    /// Nothing more comes.
    void finish();

    /// The view whose snapshots are waited for; nothing when it makes no difference.
    [[nodiscard]] std::optional<View> behind() const;

    /// All ticks that are in both hold the same, and there are some.
    [[nodiscard]] bool equal() const;

    [[nodiscard]] std::size_t size() const { return pairs_.size(); }

    [[nodiscard]] const PairTotals& pair(std::size_t index) const { return pairs_[index].totals; }

    [[nodiscard]] PairTotals totals() const;

    /// The one of the lowest tick.
    [[nodiscard]] const std::optional<GameDifference>& first() const { return first_; }

    [[nodiscard]] const Counts& counts() const { return counts_; }

    /// Differences beyond kMaxCounted objects and fields.
    [[nodiscard]] std::uint64_t uncounted() const { return uncounted_; }

    /// Items of which one view has only raw ints and the other only named fields.
    [[nodiscard]] std::uint64_t unlike() const { return unlike_; }

    /// Items that demos of 0.7 have for what a session is told in messages, where the other view is
    /// no demo.
    [[nodiscard]] std::uint64_t of_demos() const { return of_demos_; }

  private:
    struct Waiting {
        snapshot::Tick tick = 0;
        std::shared_ptr<const RecordedItems> items;
    };

    struct Pair {
        PairTotals totals;
        std::deque<Waiting> waiting; ///< of one view at a time
        View waits = View::a;
    };

    using Entry = RecordedItems::value_type;

    void pop(Pair& pair);
    /// `a` or `b` is null where the other view has no such item. Returns whether they differ.
    bool compare(std::size_t index, snapshot::Tick tick, const Entry* a, const Entry* b);
    void compare_snapshots(std::size_t index, snapshot::Tick tick, const RecordedItems& a,
                           const RecordedItems& b);
    /// The same where types of one number are the same.
    void compare_alike(std::size_t index, snapshot::Tick tick, const RecordedItems& a,
                       const RecordedItems& b);
    void count(const GameDifference& difference);

    std::vector<Pair> pairs_;
    const snapshot::ObjectSet* objects_;
    std::array<std::size_t, 2> waiting_{};
    std::optional<GameDifference> first_;
    Counts counts_;
    std::uint64_t uncounted_ = 0;
    std::uint64_t unlike_ = 0;
    std::uint64_t of_demos_ = 0;
};

/// What there is to say about two views of a game, A and B.
struct ComparisonReport {
    std::array<std::string, 2> files;
    std::array<const std::vector<MapVisit>*, 2> stays{};
    const StayPairs* pairs = nullptr;
    const GameComparison* comparison = nullptr;
    std::array<std::uint64_t, 2> unusable{}; ///< snapshots of which not all items are known
    std::array<std::uint64_t, 2> behind{};   ///< snapshots that came late, or twice
};

/// For people.
[[nodiscard]] std::string comparison_text(const ComparisonReport& report);
/// One object, with a line's end.
[[nodiscard]] std::string comparison_json(const ComparisonReport& report);

} // namespace tw::analyze
