#pragma once

#include "proxy/record/records.h"
#include "proxy/world/view.h"
#include "snapshot/item.h"
#include "snapshot/objects.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <utility>
#include <vector>

namespace tw::world {

/// Two different values of an item's field in two views (sessions' snapshots of a tick), although
/// servers should send the same value to all clients.
struct ViewDifference {
    snapshot::ItemKey key{};
    const snapshot::ObjectSpec* object = nullptr;
    const snapshot::FieldSpec* field = nullptr;
    std::int32_t value = 0;       ///< the value in the view of `session`
    std::int32_t other_value = 0; ///< the value in the view of `other_session`
    std::uint32_t session = 0;
    std::uint32_t other_session = 0;
};

/// Decides which differences between views (sessions' snapshots of a tick) are reported, and how:
///
/// - If views agreed on an item's field before, the difference is reported as a fault at once.
/// - If views differed in many ticks and never agreed on the field, the field is per viewer: the
///   server sends each viewer its own value (mods draw random dots, or a timer for each player).
///   Each such field is reported once.
/// - If views never agreed on the field, but differed in too few ticks, the difference is reported
///   as a fault after kMaxPendingTicks ticks or by flush_pending_differences().
///
/// Once a field was found to be per viewer, its differences in new items are not reported.
/// Differences in items that views agreed on for kAgreementTicks ticks are reported nevertheless,
/// so that a server cannot hide later faults by sending each viewer its own value for a while.
class DifferenceLog {
  public:
    /// Tracks the `differences` that were found when `views` were merged into `world`. Returns
    /// findings about the differences to report now. The caller sets the time of the findings.
    [[nodiscard]] std::vector<record::FindingRecord>
    track_differences(const record::WorldRecord& world, std::span<const View> views,
                      std::span<const ViewDifference> differences);
    /// Forgets all differences, for example before a map change. Returns findings about the
    /// differences that were still pending. The caller sets the time of the findings.
    [[nodiscard]] std::vector<record::FindingRecord> flush_pending_differences();

    /// Returns the memory use in bytes, which kMaxOpenDifferences and kMaxAgreedItems limit.
    [[nodiscard]] std::size_t memory_bytes() const {
        return differences_.size() * kOpenDifferenceBytes + agreed_items_.size() * kAgreedItemBytes;
    }

  private:
    /// A reported difference is forgotten after this many ticks without a difference, and a
    /// per-viewer difference after twice as many. An agreed item is forgotten if fewer than two
    /// views contain it for this many ticks, because the server may reuse its id for another item.
    static constexpr snapshot::Tick kForgetTicks = 250;
    /// The maximum number of entries in differences_. Further differences are not reported, because
    /// they probably have the same cause.
    static constexpr std::size_t kMaxOpenDifferences = 1024;
    static constexpr std::size_t kMaxAgreedItems = 4096; ///< maximum size of agreed_items_
    /// Views that agree on an item for this many ticks do not agree by coincidence.
    static constexpr snapshot::Tick kAgreementTicks = 10;
    /// agreed_items_ is updated once in this many ticks.
    static constexpr snapshot::Tick kAgreementInterval = 10;
    /// A field is per viewer if views differed on one item in at least kMinDifferingTicks ticks,
    /// spread over at least kMinDifferingSpan ticks (see FieldHistory::is_lasting).
    static constexpr std::uint32_t kMinDifferingTicks = 10;
    static constexpr snapshot::Tick kMinDifferingSpan = 25;
    /// A difference is reported as a fault this many ticks after its first tick, unless its field
    /// is per viewer.
    static constexpr snapshot::Tick kMaxPendingTicks = 100;
    /// A field is also per viewer if views differed on it in this many ticks and never agreed on
    /// it. A single item may exist for fewer than kMinDifferingTicks ticks.
    static constexpr std::uint32_t kPerViewerTicks = 25;

    /// The estimated memory, in bytes, of an entry of differences_ and of agreed_items_.
    static constexpr std::size_t kOpenDifferenceBytes = 160;
    static constexpr std::size_t kAgreedItemBytes = 48;

    /// The item's key and the field's offset in the item.
    using DifferenceKey = std::pair<std::uint32_t, std::uint8_t>;

    enum class DifferenceState : std::uint8_t {
        pending,    ///< not yet classified
        reported,   ///< reported as a fault
        per_viewer, ///< no fault: the server sends each viewer its own value
    };

    /// A field of one item on which views differ.
    struct OpenDifference {
        ViewDifference first_difference{};
        snapshot::Tick first_tick = 0;
        snapshot::Tick last_tick = 0;
        std::uint32_t num_differing_ticks = 1; ///< number of ticks in which the views differed
        /// Number of ticks since the latest difference in which at least two views had the item and
        /// agreed on it.
        std::uint32_t num_agreeing_ticks = 0;
        DifferenceState state = DifferenceState::pending;
    };

    /// The differences in one field of all items.
    struct FieldHistory {
        std::uint16_t type = 0;       ///< type id of the last item on which views differed
        snapshot::Tick last_tick = 0; ///< tick of the last difference
        /// Number of ticks in which views differed on the field of some item. Differences that were
        /// reported as faults do not count.
        std::uint32_t num_differing_ticks = 0;
        /// Number of ticks since the first difference in which views agreed on the field of some
        /// item.
        std::uint32_t num_agreeing_ticks = 0;
        bool is_lasting = false; ///< views differed on one item in kMinDifferingTicks ticks or more
        bool is_reported = false;
    };

    using FieldHistories =
        std::map<std::pair<const snapshot::ObjectSpec*, std::uint8_t>, FieldHistory>;

    struct AgreedItem {
        snapshot::Tick first_tick = 0;
        snapshot::Tick last_tick = 0;
    };

    /// Returns whether at least two views that must agree contain an item. The argument is the
    /// item's index in the merged snapshot.
    using IsSharedItem = std::function<bool(std::size_t item)>;

    [[nodiscard]] static bool can_be_forgotten(const OpenDifference& open, snapshot::Tick tick);
    /// Tracks a difference. If several pairs of sessions differ on one field of an item in a tick,
    /// only the first difference counts.
    void track_difference(const ViewDifference& difference, snapshot::Tick tick);
    [[nodiscard]] FieldHistory& history_of_field(const OpenDifference& open);
    /// Updates the numbers of ticks in which views differed or agreed, for each tracked difference
    /// and each field.
    void update_tick_counts(const record::SnapshotRecord& shown, const IsSharedItem& is_shared);
    void record_agreed_items(const record::SnapshotRecord& shown, const IsSharedItem& is_shared);
    /// Decides whether pending differences are per viewer or faults. A fault is reported after
    /// kMaxPendingTicks ticks, or at once if `is_last`.
    void classify_pending_differences(snapshot::Tick tick, bool is_last);
    [[nodiscard]] bool views_agreed_on_item(std::uint32_t key, snapshot::Tick tick) const;
    [[nodiscard]] static bool is_per_viewer_field(const FieldHistory& field);
    void report_difference(OpenDifference& open);

    std::map<DifferenceKey, OpenDifference> differences_;
    /// The key is the object and the field's offset. A map change does not remove the entries,
    /// because the same fields are per viewer on the next map.
    FieldHistories field_histories_;
    std::map<std::uint32_t, AgreedItem> agreed_items_; ///< by key
    std::optional<snapshot::Tick> last_recorded_{};    ///< tick of the last update of agreed_items_
    /// Keys of the current tick's items whose differences did not fit in differences_.
    std::set<std::uint32_t> untracked_keys_;
    std::vector<record::FindingRecord> findings_; ///< the findings not yet returned to the caller
};

} // namespace tw::world
