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

/// Two views of a tick that say different things of what is the same for everybody.
struct Difference {
    snapshot::ItemKey key{};
    const snapshot::ObjectSpec* object = nullptr;
    const snapshot::FieldSpec* field = nullptr;
    std::int32_t value = 0; ///< of `session`
    std::int32_t other = 0; ///< of `other_session`
    std::uint32_t session = 0;
    std::uint32_t other_session = 0;
};

/// Decides which differences between views are reported, and as what. What counts as evidence:
///
/// - Views agreed on an item's field before: the difference is a fault, and reported when it starts.
/// - They never agreed, again and again: it is the server's way to show each viewer its own value
///   (mods draw random dots, or a timer for each player). It is reported once for each field.
/// - They never agreed, but that was not often enough to tell: it is reported as a fault once that
///   is clear, after kJudge ticks or at the end.
///
/// A field that was found to be the viewer's own covers new items only. Items that views agreed on for
/// kSteady ticks are not covered, so a server that shows one item to each viewer in its own way cannot
/// hide what it does to others, and alternating hides nothing: whatever agreed counts from then on.
class DifferenceLog {
  public:
    struct Told {
        Difference difference{};
        snapshot::Tick tick = 0;     ///< of the difference
        snapshot::Tick since = 0;    ///< the first tick in which the item's field differed
        std::uint32_t confirmed = 0; ///< worlds in which it did
        bool per_viewer = false;     ///< the server's way
    };

    /// Another run of the server: items begin anew. Precondition: `finish` was called.
    void reset();

    /// Looks at a world, which the views with these differences were merged into. Returns what is to be
    /// reported; it lives until the next call.
    [[nodiscard]] std::span<const Told> look(const record::WorldRecord& world,
                                             std::span<const View> views,
                                             std::span<const Difference> differences);
    /// The same, when no more worlds of the run come.
    [[nodiscard]] std::span<const Told> finish();

    /// Keeps at most kMaxBytes.
    [[nodiscard]] std::size_t bytes() const {
        return open_.size() * kOpenBytes + steady_.size() * sizeof(Steady);
    }

  private:
    /// A difference that was not seen for so many ticks is over, and an item that was not seen by
    /// several is forgotten. Servers reuse ids of entities after as long.
    static constexpr snapshot::Tick kOver = 250;
    /// More at one time are one fault: they are not reported one by one.
    static constexpr std::size_t kMaxOpen = 1024;
    static constexpr std::size_t kMaxSteady = 4096;
    /// Views that agree on an item for so many ticks have agreed on it: more than chance.
    static constexpr snapshot::Tick kSteady = 10;
    /// How often the items that several views show are noted.
    static constexpr snapshot::Tick kNote = 10;
    /// An item that differs in so many worlds, in this time at least, differs again and again.
    static constexpr std::uint32_t kOften = 10;
    static constexpr snapshot::Tick kOftenTicks = 25;
    /// So long after a difference started it is known what it is.
    static constexpr snapshot::Tick kJudge = 100;
    /// Items that live too short to differ often are judged together, after so many worlds.
    static constexpr std::uint32_t kOftenShort = 25;

    static constexpr std::size_t kOpenBytes = 160;

    using Key = std::pair<std::uint32_t, std::uint8_t>; ///< item and field

    enum class State : std::uint8_t {
        pending,  ///< what it is will show
        reported, ///< a fault
        covered,  ///< the server's way
    };

    /// An item's field that differs.
    struct Open {
        Difference first{};
        snapshot::Tick since = 0;
        snapshot::Tick last = 0;
        std::uint32_t times = 1;  ///< worlds in which it differed
        std::uint32_t agreed = 0; ///< worlds in a row in which several views showed the same
        State state = State::pending;
    };

    /// What is known of a field of an object.
    struct Field {
        std::uint16_t type = 0;     ///< of the items that differed last
        snapshot::Tick last = 0;    ///< when they did
        std::uint32_t differed = 0; ///< worlds in which an item differed that never agreed
        std::uint32_t agreed = 0; ///< worlds in which one did not differ, since the first that did
        bool lasting = false;     ///< an item that lives long differed again and again
        bool told = false;
    };

    using Fields = std::map<std::pair<const snapshot::ObjectSpec*, std::uint8_t>, Field>;

    /// An item that several views show.
    struct Steady {
        std::uint32_t key = 0;
        snapshot::Tick first = 0;
        snapshot::Tick last = 0;
    };

    /// Whether several views that must agree show an item, by its place in the world.
    class Common {
      public:
        Common(const record::SeenBy& sightings, std::span<const View> views);
        [[nodiscard]] bool operator()(std::size_t item) const;

      private:
        const record::SeenBy* sightings_;
        std::vector<std::uint64_t> masks_; ///< the sessions of each kind of view, in words
    };

    [[nodiscard]] static bool is_over(const Open& open, snapshot::Tick tick);
    [[nodiscard]] Open* find_open(Key key, snapshot::Tick tick);
    [[nodiscard]] bool make_room(snapshot::Tick tick);
    /// One of the differences of a tick: those of several pairs of sessions are one.
    void take(const Difference& difference, snapshot::Tick tick);
    [[nodiscard]] Field& field_of(const Open& open);
    [[nodiscard]] bool differs_now(Key key, snapshot::Tick tick) const;
    /// Counts what several views show alike of what differed before.
    void see_agreement(const record::SnapshotRecord& shown, const Common& common);
    void note_steady(const record::SnapshotRecord& shown, const Common& common);
    /// Decides what is clear by now; with `is_last`, all that is left.
    void judge(snapshot::Tick tick, bool is_last);
    [[nodiscard]] bool agreed_before(std::uint32_t key, snapshot::Tick tick) const;
    [[nodiscard]] static bool is_servers_way(const Field& field);
    void report(Open& open);

    std::map<Key, Open> open_;
    Fields fields_;              ///< of all runs: what a server does, it does on every map
    std::vector<Steady> steady_; ///< by key
    std::vector<Steady> noting_; ///< kept for its memory
    std::optional<snapshot::Tick> noted_{}; ///< when steady_ was
    std::optional<snapshot::Tick> full_{};  ///< when room was made in open_
    std::vector<std::uint32_t> untracked_;  ///< items of a tick that differ, and had no room there
    std::vector<Told> told_;
};

} // namespace tw::world
