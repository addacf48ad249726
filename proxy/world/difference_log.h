#pragma once

#include "proxy/record/records.h"
#include "proxy/world/view.h"
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

/// Two views of a tick that contradict each other about something that is the same for everybody.
struct Difference {
    snapshot::ItemKey key{};
    const snapshot::ObjectSpec* object = nullptr;
    const snapshot::FieldSpec* field = nullptr;
    std::int32_t value = 0; ///< in the view of `session`
    std::int32_t other = 0; ///< in the view of `other_session`
    std::uint32_t session = 0;
    std::uint32_t other_session = 0;
};

/// Decides which differences between views are reported, and how:
///
/// - If views agreed on an item's field before, the difference is a fault and reported at once.
/// - If they never agreed, repeatedly, the server sends each viewer its own value (mods draw random
/// dots, or a timer for each player). That is reported once per field.
/// - If they never agreed, but there are too few worlds to tell, it is reported as a fault after
/// kJudge ticks or at the end.
///
/// A field that was found to be per viewer excuses new items only. Items that views agreed on for
/// kSteady ticks are not excused, so a server with one per-viewer item cannot hide other faults,
/// nor can it by alternating.
class DifferenceLog {
  public:
    struct Told {
        Difference difference{};
        snapshot::Tick tick = 0;     ///< tick of the difference
        snapshot::Tick since = 0;    ///< the first tick in which the item's field differed
        std::uint32_t confirmed = 0; ///< number of worlds with the difference
        bool per_viewer = false;     ///< the server sends each viewer its own value
    };

    /// Starts a new run of the server. Precondition: finish() was called.
    void reset();

    /// Examines a world that was merged from views with these differences. Returns what to report;
    /// valid until the next call.
    [[nodiscard]] std::span<const Told> look(const record::WorldRecord& world,
                                             std::span<const View> views,
                                             std::span<const Difference> differences);
    /// As look(), after the last world of the run.
    [[nodiscard]] std::span<const Told> finish();

    /// Memory use; at most kMaxBytes.
    [[nodiscard]] std::size_t bytes() const {
        return open_.size() * kOpenBytes + steady_.size() * sizeof(Steady);
    }

  private:
    /// A difference that is not seen for this many ticks has ended, and an item that several views
    /// do not show is forgotten. Servers reuse entity ids after this time.
    static constexpr snapshot::Tick kOver = 250;
    /// More simultaneous differences are one fault; they are not reported one by one.
    static constexpr std::size_t kMaxOpen = 1024;
    static constexpr std::size_t kMaxSteady = 4096;
    /// Views that agree on an item for this many ticks agree by more than chance.
    static constexpr snapshot::Tick kSteady = 10;
    /// The interval at which items that several views show are noted.
    static constexpr snapshot::Tick kNote = 10;
    /// An item that differs in this many worlds, over at least kOftenTicks, differs repeatedly.
    static constexpr std::uint32_t kOften = 10;
    static constexpr snapshot::Tick kOftenTicks = 25;
    /// The ticks after which a difference is classified.
    static constexpr snapshot::Tick kJudge = 100;
    /// Short-lived items are judged together, after this many worlds.
    static constexpr std::uint32_t kOftenShort = 25;

    static constexpr std::size_t kOpenBytes = 160;

    using Key = std::pair<std::uint32_t, std::uint8_t>; ///< item key and field offset

    enum class State : std::uint8_t {
        pending,  ///< not yet classified
        reported, ///< reported as a fault
        covered,  ///< per viewer
    };

    /// A field of one item that differs.
    struct Open {
        Difference first{};
        snapshot::Tick since = 0;
        snapshot::Tick last = 0;
        std::uint32_t times = 1;  ///< number of worlds in which it differed
        std::uint32_t agreed = 0; ///< consecutive worlds in which several views agreed
        State state = State::pending;
    };

    /// What is known about a field of an object type.
    struct Field {
        std::uint16_t type = 0;     ///< type id of the last item that differed
        snapshot::Tick last = 0;    ///< when that was
        std::uint32_t differed = 0; ///< worlds with a difference in an item that never agreed
        std::uint32_t agreed = 0;   ///< worlds without one, since the first
        bool lasting = false;       ///< a long-lived item differed repeatedly
        bool told = false;
    };

    using Fields = std::map<std::pair<const snapshot::ObjectSpec*, std::uint8_t>, Field>;

    /// An item that several views show.
    struct Steady {
        std::uint32_t key = 0;
        snapshot::Tick first = 0;
        snapshot::Tick last = 0;
    };

    /// Whether an item, given by its index in the world, is shown by several views that must agree.
    class Common {
      public:
        Common(const record::SeenBy& sightings, std::span<const View> views);
        [[nodiscard]] bool operator()(std::size_t item) const;

      private:
        const record::SeenBy* seen_by_;
        std::vector<std::uint64_t> masks_; ///< for each class of views, its sessions as a bit mask
    };

    [[nodiscard]] static bool is_over(const Open& open, snapshot::Tick tick);
    [[nodiscard]] Open* find_open(Key key, snapshot::Tick tick);
    [[nodiscard]] bool make_room(snapshot::Tick tick);
    /// Notes a difference; those of several pairs of sessions count once.
    void take(const Difference& difference, snapshot::Tick tick);
    [[nodiscard]] Field& field_of(const Open& open);
    [[nodiscard]] bool differs_now(Key key, snapshot::Tick tick) const;
    /// Counts agreement of several views on items that differed before.
    void see_agreement(const record::SnapshotRecord& shown, const Common& common);
    void note_steady(const record::SnapshotRecord& shown, const Common& common);
    /// Classifies differences as far as possible; with `is_last`, all of them.
    void judge(snapshot::Tick tick, bool is_last);
    [[nodiscard]] bool agreed_before(std::uint32_t key, snapshot::Tick tick) const;
    [[nodiscard]] static bool is_servers_way(const Field& field);
    void report(Open& open);

    std::map<Key, Open> open_;
    Fields fields_;                         ///< kept over runs: a server behaves alike on every map
    std::vector<Steady> steady_;            ///< sorted by key
    std::vector<Steady> noting_;            ///< member only to reuse its memory
    std::optional<snapshot::Tick> noted_{}; ///< when steady_ was updated
    std::optional<snapshot::Tick> full_{};  ///< when open_ was last full
    /// Items of the tick that differ but had no room in open_.
    std::vector<std::uint32_t> untracked_;
    std::vector<Told> told_;
};

} // namespace tw::world
