#pragma once

#include "proxy/record/records.h"
#include "proxy/world/open_world.h"
#include "snapshot/item.h"
#include "snapshot/objects.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace tw::world {

/// Two views of a tick that show different values of an item's field, although servers send the
/// same value to all clients.
struct Difference {
    snapshot::ItemKey key{};
    const snapshot::ObjectSpec* object = nullptr;
    const snapshot::FieldSpec* field = nullptr;
    std::int32_t value = 0; ///< the value in the view of `session`
    std::int32_t other = 0; ///< the value in the view of `other_session`
    std::uint32_t session = 0;
    std::uint32_t other_session = 0;
};

/// Decides which differences between views are reported, and how:
///
/// - If views agreed on an item's field before, the difference is a fault and reported at once.
/// - If views never agreed on the field in repeated worlds, the field is per viewer: the server
///   sends each viewer its own value (mods draw random dots, or a timer for each player). This is
///   reported once per field.
/// - If views never agreed on the field, but it was in too few worlds to tell, the difference is
///   reported as a fault after kJudge ticks or at the end.
///
/// Once a field was found to be per viewer, its differences in new items are not reported.
/// Differences in items that views agreed on for kSteady ticks are reported nevertheless. So a
/// server cannot hide faults by sending one item with different values, or by alternating.
class DifferenceLog {
  public:
    struct Report {
        Difference difference{};
        snapshot::Tick tick = 0; ///< tick of the difference
        /// The first tick in which the views differed on this field of the item.
        snapshot::Tick since = 0;
        std::uint32_t confirmed = 0; ///< number of worlds in which the views differed
        /// No fault: the server sends each viewer its own value of this field.
        bool per_viewer = false;
    };

    /// Starts a new run of the server. Precondition: finish() was called.
    void reset();

    /// Examines a world that was merged from `views`, with the differences that merging found. Returns
    /// the differences to report now; the span is valid until the next call.
    [[nodiscard]] std::span<const Report> examine(const record::WorldRecord& world,
                                                  std::span<const View> views,
                                                  std::span<const Difference> differences);
    /// To be called after the last world of the run. Returns the differences to report now, as
    /// examine() does.
    [[nodiscard]] std::span<const Report> finish();

    /// Memory use in bytes; limited by kMaxOpen and kMaxSteady.
    [[nodiscard]] std::size_t bytes() const {
        return open_.size() * kOpenBytes + steady_.size() * sizeof(AgreedItem);
    }

  private:
    /// A difference that was not seen for this many ticks has ended. An item that was not in
    /// several views for this many ticks is forgotten, because servers reuse entity ids after this
    /// time.
    static constexpr snapshot::Tick kOver = 250;
    /// The limit of differences tracked at the same time. Further ones are not reported, because so
    /// many have a common cause.
    static constexpr std::size_t kMaxOpen = 1024;
    static constexpr std::size_t kMaxSteady = 4096;
    /// Views that agree on an item for this many ticks do not agree by coincidence.
    static constexpr snapshot::Tick kSteady = 10;
    /// The items on which views agree are copied to steady_ once in this many ticks.
    static constexpr snapshot::Tick kNote = 10;
    /// The difference in a field counts as lasting if views differed on it, for one item, in this many
    /// worlds, spread over at least kOftenTicks.
    static constexpr std::uint32_t kOften = 10;
    static constexpr snapshot::Tick kOftenTicks = 25;
    /// A difference is classified after this many ticks.
    static constexpr snapshot::Tick kJudge = 100;
    /// Items may exist too briefly for kOften. Their field is classified after this many worlds with a
    /// difference.
    static constexpr std::uint32_t kOftenShort = 25;

    static constexpr std::size_t kOpenBytes = 160;

    using Key = std::pair<std::uint32_t, std::uint8_t>; ///< key of the item, offset of the field

    enum class State : std::uint8_t {
        pending,    ///< not yet classified
        reported,   ///< reported as a fault
        per_viewer, ///< no fault: the server sends each viewer its own value
    };

    /// An item's field on which views differ.
    struct OpenDifference {
        Difference first{};
        snapshot::Tick since = 0;
        snapshot::Tick last = 0;
        std::uint32_t times = 1; ///< number of worlds in which the views differed
        /// Number of worlds in which several views agreed, since the last difference.
        std::uint32_t agreed = 0;
        State state = State::pending;
    };

    struct FieldHistory {
        std::uint16_t type = 0;  ///< type id of the last item on which views differed
        snapshot::Tick last = 0; ///< tick of that difference
        /// Number of worlds with a difference on an item on which views never agreed.
        std::uint32_t differed = 0;
        /// Number of later worlds in which the views agreed on an item of this type.
        std::uint32_t agreed = 0;
        bool lasting = false; ///< views differed repeatedly on an item that exists for long
        bool told = false;
    };

    using Fields = std::map<std::pair<const snapshot::ObjectSpec*, std::uint8_t>, FieldHistory>;

    /// An item on which the views agree.
    struct AgreedItem {
        std::uint32_t key = 0;
        snapshot::Tick first = 0;
        snapshot::Tick last = 0;
    };

    /// Tells whether several views that must agree contain an item, given by its index in the world.
    class CommonItems {
      public:
        CommonItems(const record::SeenBy& sightings, std::span<const View> views);
        [[nodiscard]] bool operator()(std::size_t item) const;

      private:
        const record::SeenBy* seen_by_;
        SeenMasks masks_; ///< for each version class, the sessions of its views
    };

    [[nodiscard]] static bool has_ended(const OpenDifference& open, snapshot::Tick tick);
    [[nodiscard]] OpenDifference* find_open(Key key, snapshot::Tick tick);
    [[nodiscard]] bool make_room(snapshot::Tick tick);
    /// Tracks a difference. Differences on the same item and field between several pairs of sessions
    /// count once.
    void track_difference(const Difference& difference, snapshot::Tick tick);
    [[nodiscard]] FieldHistory& history_of(const OpenDifference& open);
    [[nodiscard]] bool differs_now(Key key, snapshot::Tick tick) const;
    /// Counts the worlds in which views agree on items on which they differed before.
    void count_agreement(const record::SnapshotRecord& shown, const CommonItems& common);
    void note_agreed_items(const record::SnapshotRecord& shown, const CommonItems& common);
    /// Classifies the pending differences that are old enough; with `is_last`, all of them.
    void classify_pending(snapshot::Tick tick, bool is_last);
    [[nodiscard]] bool agreed_before(std::uint32_t key, snapshot::Tick tick) const;
    [[nodiscard]] static bool is_per_viewer_field(const FieldHistory& field);
    void report(OpenDifference& open);

    std::map<Key, OpenDifference> open_;
    Fields fields_; ///< kept for later runs: a new map does not change which fields are per viewer
    std::vector<AgreedItem> steady_;        ///< sorted by key
    std::vector<AgreedItem> noting_;        ///< a member only to reuse its memory
    std::optional<snapshot::Tick> noted_{}; ///< tick of the last update of steady_
    std::optional<snapshot::Tick> full_{};  ///< last tick in which open_ was full
    /// Indices of the tick's items that differ but had no room in open_.
    std::vector<std::uint32_t> untracked_;
    std::vector<Report> told_;
};

} // namespace tw::world
