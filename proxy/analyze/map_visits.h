#pragma once

#include "snapshot/snapshot.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <boost/json.hpp>

namespace tw::analyze {

/// An item as a record shows it.
struct RecordedItem {
    std::string type;                                ///< its name, or its UUID; empty if unknown
    std::string fields;                              ///< named ones, as JSON; empty: it has none
    std::optional<std::vector<std::int64_t>> data{}; ///< raw ints, where the record has them

    /// Demos of 0.7 have it for what a session is told in messages.
    [[nodiscard]] bool of_demos() const { return type.starts_with("de_"); }
};

/// All items of a snapshot, by packed key.
using RecordedItems = std::vector<std::pair<std::uint32_t, std::shared_ptr<const RecordedItem>>>;

/// How much of what two stays showed at the same ticks is the same.
struct Likeness {
    std::uint64_t ticks = 0; ///< sampled in both
    std::uint64_t equal = 0; ///< of these: all items are the same
    double items = 0;        ///< share of the items that are the same, as an estimate; 0 to 1
};

/// A few of a stay's snapshots, as hashes, by which it is found again among others of the same game:
/// the first ones, and of the rest as many ticks as there is room for, spread over all of it. Two stays
/// choose the same ticks, or one of them every other one, and so on.
class StaySamples {
  public:
    /// Always kept: stays that were cut off early have no others in common with a long one.
    static constexpr std::size_t kFirst = 32;
    /// Besides these. 1,000 sessions take less than 4 MB.
    static constexpr std::size_t kMost = 256;

    /// Ticks ascend.
    void add(snapshot::Tick tick, const RecordedItems& items);

    [[nodiscard]] Likeness compare(const StaySamples& other) const;

    [[nodiscard]] std::size_t size() const { return samples_.size(); }

  private:
    struct Sample {
        snapshot::Tick tick = 0;
        std::uint32_t all = 0; ///< of all items
        std::uint32_t least =
            0; ///< the least hash of an item, which another tick makes of another one
    };

    std::vector<Sample> samples_;
    std::uint64_t every_ = 1; ///< one tick of so many is taken
};

/// What a session shows of one map, from the first snapshot to the last.
struct MapVisit {
    std::int64_t session = 0;
    std::string client; ///< its address; of a demo the file's name; of worlds the server's address
    std::string map;    ///< empty: nobody said
    std::string crc;    ///< of the map
    snapshot::Tick begin = 0;
    snapshot::Tick end = 0; ///< of the last snapshot
    std::uint64_t snapshots = 0;
    StaySamples samples{}; ///< of them
};

/// A snapshot of a stay, rebuilt from what its records say changed.
struct StaySnapshot {
    std::size_t stay = 0;
    snapshot::Tick tick = 0;
    std::shared_ptr<const RecordedItems> items;
};

/// Rebuilds what sessions saw, and the worlds of each server, from the lines of a recording, in their
/// order. Another connection, map or run of the server, a tick behind the last one when the map was
/// announced anew, or far behind it, begins another stay. A snapshot is taken from the first on that
/// lists all items, once for each tick.
class RecordedStays {
  public:
    /// More sessions, and more stays, are left out.
    static constexpr std::size_t kMaxSessions = 65536;

    /// A snapshot that can be compared, if the line makes one.
    [[nodiscard]] std::optional<StaySnapshot> on_line(std::string_view line);

    /// In the order in which they began.
    [[nodiscard]] const std::vector<MapVisit>& stays() const { return stays_; }

    /// Lines that are no records, of which nobody knows what they said.
    [[nodiscard]] std::uint64_t broken() const { return broken_; }

    /// Snapshots whose items are not known: none were recorded, or what they build on is missing.
    [[nodiscard]] std::uint64_t unusable() const { return unusable_; }

    /// Snapshots of a tick that was there, or a little behind it: they came late, or twice.
    [[nodiscard]] std::uint64_t behind() const { return behind_; }

  private:
    struct Session {
        std::string client;
        std::string map;
        std::string crc;
        std::int64_t run = 0;                       ///< of worlds
        std::shared_ptr<const RecordedItems> items; ///< null: not known
        std::optional<std::size_t> stay;
        snapshot::Tick tick = 0;
        bool announced = false; ///< its map was, since the last snapshot
    };

    /// What sessions show is not known until their next full snapshots. `session`: only of this one.
    void forget_items(std::optional<std::int64_t> session = std::nullopt);
    static void on_session(const boost::json::object& record, Session& session);
    static void on_map(const boost::json::object& record, Session& session);
    void on_world(const boost::json::object& record, Session& session) const;
    [[nodiscard]] std::optional<StaySnapshot> on_snapshot(const boost::json::object& record,
                                                          std::int64_t number, Session& session);

    /// A session's number; of worlds 0, and the server's address.
    using Number = std::pair<std::int64_t, std::string>;

    std::map<Number, Session> sessions_;
    std::vector<MapVisit> stays_;
    std::uint64_t unusable_ = 0;
    std::uint64_t behind_ = 0;
    std::uint64_t broken_ = 0;
};

/// Which stay of one view is which of the other.
struct StayPairs {
    std::vector<std::pair<std::size_t, std::size_t>> pairs;
    std::vector<std::size_t> only_a;
    std::vector<std::size_t> only_b;
};

/// Pairs first those that show the same: at half or more of the ticks that were sampled in both, all
/// items are equal. Then those of the same client and map, then those of the same map: each with the one
/// that has most of the same items, of the same ticks, and as many snapshots. Then the others, in the
/// order in which they appear. With a session only its stays count.
[[nodiscard]] StayPairs pair_stays(const std::vector<MapVisit>& a, const std::vector<MapVisit>& b,
                                   std::optional<std::int64_t> session_a,
                                   std::optional<std::int64_t> session_b);

} // namespace tw::analyze
