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
    struct Told {
        Difference difference{};
        snapshot::Tick tick = 0;     ///< tick of the difference
        snapshot::Tick since = 0;    ///< the first tick in which the item's field differed
        std::uint32_t confirmed = 0; ///< number of worlds with the difference
        bool per_viewer = false;     ///< the server sends each viewer its own value
    };

    /// Starts a new run of the server. Precondition: finish() was called.
    void reset();

    /// Examines a world that was merged from views with these differences. Returns the differences
    /// to report now; valid until the next call.
    [[nodiscard]] std::span<const Told> look(const record::WorldRecord& world,
                                             std::span<const View> views,
                                             std::span<const Difference> differences);
    /// To be called after the last world of the run. Returns the differences to report now, as
    /// look() does.
    [[nodiscard]] std::span<const Told> finish();

    /// Memory use; at most kMaxBytes.
    [[nodiscard]] std::size_t bytes() const {
        return open_.size() * kOpenBytes + steady_.size() * sizeof(Steady);
    }

  private:
    /// A difference that was not seen for this many ticks has ended. An item that was not in
    /// several views for this many ticks is forgotten, because servers reuse entity ids after this
    /// time.
    static constexpr snapshot::Tick kOver = 250;
    /// Limit of simultaneous differences. More of them have a common cause and are not reported one
    /// by one.
    static constexpr std::size_t kMaxOpen = 1024;
    static constexpr std::size_t kMaxSteady = 4096;
    /// If views agree on an item for this many ticks, that is no coincidence.
    static constexpr snapshot::Tick kSteady = 10;
    /// Items that several views show are noted in steady_ every so many ticks.
    static constexpr snapshot::Tick kNote = 10;
    /// An item that differs in this many worlds, over at least kOftenTicks, differs repeatedly.
    static constexpr std::uint32_t kOften = 10;
    static constexpr snapshot::Tick kOftenTicks = 25;
    /// The ticks after which a difference is classified.
    static constexpr snapshot::Tick kJudge = 100;
    /// For items too short-lived to be judged one by one, a field is classified after this many
    /// worlds.
    static constexpr std::uint32_t kOftenShort = 25;

    static constexpr std::size_t kOpenBytes = 160;

    using Key = std::pair<std::uint32_t, std::uint8_t>; ///< key of the item, offset of the field

    enum class State : std::uint8_t {
        pending,  ///< not yet classified
        reported, ///< reported as a fault
        covered,  ///< the server sends each viewer its own value
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
        snapshot::Tick last = 0;    ///< tick of that difference
        std::uint32_t differed = 0; ///< worlds in which an item differed that never agreed
        std::uint32_t agreed = 0;   ///< later worlds without such an item
        bool lasting = false;       ///< an item that exists for long differed repeatedly
        bool told = false;
    };

    using Fields = std::map<std::pair<const snapshot::ObjectSpec*, std::uint8_t>, Field>;

    /// An item that several views show.
    struct Steady {
        std::uint32_t key = 0;
        snapshot::Tick first = 0;
        snapshot::Tick last = 0;
    };

    /// Tells whether an item, given by its index in the world, is in several views that must agree.
    class Common {
      public:
        Common(const record::SeenBy& sightings, std::span<const View> views);
        [[nodiscard]] bool operator()(std::size_t item) const;

      private:
        const record::SeenBy* seen_by_;
        SeenMasks masks_; ///< for each version class, the sessions of its views
    };

    [[nodiscard]] static bool is_over(const Open& open, snapshot::Tick tick);
    [[nodiscard]] Open* find_open(Key key, snapshot::Tick tick);
    [[nodiscard]] bool make_room(snapshot::Tick tick);
    /// Notes a difference. Differences of the same item and field between several pairs of sessions
    /// count once.
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
    Fields fields_;              ///< kept for later runs: maps do not change what is per viewer
    std::vector<Steady> steady_; ///< sorted by key
    std::vector<Steady> noting_; ///< member only to reuse its memory
    std::optional<snapshot::Tick> noted_{}; ///< tick of the last update of steady_
    std::optional<snapshot::Tick> full_{};  ///< last tick in which open_ was full
    /// Indices of the tick's items that differ but had no room in open_.
    std::vector<std::uint32_t> untracked_;
    std::vector<Told> told_;
};

} // namespace tw::world
