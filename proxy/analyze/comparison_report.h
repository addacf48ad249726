#pragma once

#include "proxy/analyze/map_visits.h"

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

/// A field of an item whose values differ between the recordings A and B.
struct FieldDifference {
    /// The field's name; `int_4` for an int without a name, `(item)` if only one recording has the
    /// item, `(type)` for the item's type.
    std::string field;
    std::string a; ///< the field's value in A as JSON
    std::string b; ///< the field's value in B as JSON
};

/// Returns the differences of two items with the same identity: in their named fields, or in their
/// raw ints if no field differs. Returns nullopt if one item has only ints and the other only
/// fields.
[[nodiscard]] std::optional<std::vector<FieldDifference>> compare_items(const RecordedItem& a,
                                                                        const RecordedItem& b);

/// A difference between the recordings A and B.
struct GameDifference {
    std::size_t pair = 0; ///< index of the pair of map visits
    snapshot::Tick tick = 0;
    std::string type; ///< name of the item's type
    snapshot::ItemKey key{};
    FieldDifference field;
};

/// The totals of one pair of map visits.
struct VisitPairTotals {
    std::uint64_t common_ticks = 0;    ///< ticks with a snapshot in both A and B
    std::uint64_t different_ticks = 0; ///< common ticks whose items differ
    std::array<std::uint64_t, 2>
        unpaired_ticks{};                ///< ticks with a snapshot only in A, and only in B
    std::uint64_t dropped_snapshots = 0; ///< not compared; see kMaxWaitingSnapshots
};

struct DifferenceCount {
    std::uint64_t items = 0;       ///< number of items in which the field differs
    snapshot::Tick first_tick = 0; ///< tick of the first difference
};

struct GameDifferences {
    std::vector<VisitPairTotals> pairs;
    std::optional<GameDifference> first{}; ///< in the first game, at the lowest tick
    std::map<std::pair<std::string, std::string>, DifferenceCount> counts{}; ///< by type and field
    std::uint64_t uncounted_differences = 0; ///< differences beyond kMaxCountedFields
    /// Number of items for which one recording has only raw ints and the other only fields.
    std::uint64_t incomparable_items = 0;
    /// Number of items that were not compared because only 0.7 demos contain them (de_…) and the
    /// other recording is not a 0.7 demo.
    std::uint64_t demo_only_items = 0;

    [[nodiscard]] VisitPairTotals sum_pairs() const;
    /// True if A and B have snapshots of at least one common tick, and the items of all common
    /// ticks are equal.
    [[nodiscard]] bool are_games_equal() const;
};

/// Compares the snapshots of two recordings, A and B, tick by tick. For each pair of map visits,
/// the snapshots of A and those of B must be passed in the order of their ticks. A and B may
/// alternate in any way, but fewer snapshots are stored if A and B advance together.
class GameComparison {
  public:
    /// The most snapshots that wait for the other recording's snapshot of the same tick. If another
    /// snapshot arrives, the oldest snapshot of its pair of map visits is dropped. With 64 players,
    /// a thousand snapshots take 20 MB.
    static constexpr std::size_t kMaxWaitingSnapshots = 8192;
    static constexpr std::size_t kMaxLeadSnapshots = 256; ///< the limit for is_ahead()
    /// The most fields whose differences are counted separately. A game has about 300 fields.
    static constexpr std::size_t kMaxCountedFields = 4096;

    /// `num_pairs`: the number of pairs of map visits. `games`: for each pair, the number of its
    /// game (see assign_game_numbers()); empty if all pairs show one game.
    explicit GameComparison(std::size_t num_pairs, std::vector<std::size_t> games = {})
        : differences_{.pairs = std::vector<VisitPairTotals>(num_pairs)}, games_{std::move(games)},
          waiting_pairs_(num_pairs) {}

    /// Adds a snapshot. `pair`: index of the pair of map visits. `recording`: 0 for A, 1 for B.
    void on_snapshot(std::size_t pair, std::size_t recording, snapshot::Tick tick,
                     std::shared_ptr<const RecordedItems> items);
    /// Must be called after the last snapshot.
    void count_unpaired_ticks();

    /// True if many more snapshots of this recording are stored than of the other one. The caller
    /// should then pass snapshots of the other recording first.
    [[nodiscard]] bool is_ahead(std::size_t recording) const {
        return num_waiting_[recording] > num_waiting_[1 - recording] + kMaxLeadSnapshots;
    }

    [[nodiscard]] const GameDifferences& result() const { return differences_; }

  private:
    struct WaitingSnapshot {
        snapshot::Tick tick = 0;
        std::shared_ptr<const RecordedItems> items;
    };

    struct WaitingQueue {
        std::size_t recording = 0; ///< 0 for A
        std::deque<WaitingSnapshot> snapshots;
    };

    void drop_oldest_snapshot(WaitingQueue& waiting);
    void compare_snapshots(std::size_t pair, snapshot::Tick tick, const RecordedItems& a,
                           const RecordedItems& b);
    /// Compares an item of A and of B; null: the recording has no such item. Returns true if they
    /// differ.
    bool compare_item_pair(std::size_t pair, snapshot::Tick tick, const RecordedItem* a,
                           const RecordedItem* b);
    void count_difference(const GameDifference& difference);

    GameDifferences differences_;
    std::vector<std::size_t> games_; ///< number of the game, by pair; empty: one game
    std::vector<WaitingQueue>
        waiting_pairs_; ///< by pair; all snapshots of a pair are of one recording
    std::array<std::size_t, 2> num_waiting_{}; ///< number of stored snapshots, by recording
};

/// The result of comparing the recordings A and B.
struct ComparisonReport {
    std::array<std::string, 2> files;
    std::array<const MapVisitReader*, 2> readers{};
    const MapVisitPairs* pairs = nullptr;
    const GameDifferences* differences = nullptr;
    std::string_view worlds_command{}; ///< the command that makes worlds of a capture
};

[[nodiscard]] std::string comparison_text(const ComparisonReport& report);
/// Returns the report as one JSON object and a newline.
[[nodiscard]] std::string comparison_json(const ComparisonReport& report);

} // namespace tw::analyze
