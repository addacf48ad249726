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

/// An item as a record contains it.
struct RecordedItem {
    std::string type;                                ///< name or UUID of its type; empty if unknown
    std::string fields;                              ///< named fields as JSON; empty if it has none
    std::optional<std::vector<std::int64_t>> data{}; ///< raw ints, if the record has them

    /// True for an item that only 0.7 demos have, in place of messages.
    [[nodiscard]] bool of_demos() const { return type.starts_with("de_"); }
};

/// All items of a snapshot, by packed key.
using RecordedItems = std::vector<std::pair<std::uint32_t, std::shared_ptr<const RecordedItem>>>;

/// How similar two map visits are at their common ticks.
struct Likeness {
    std::uint64_t ticks = 0; ///< ticks sampled in both visits
    std::uint64_t equal = 0; ///< common ticks at which all items are equal
    double items = 0;        ///< estimated share of equal items, 0 to 1
};

/// Hashes of some snapshots of a map visit, by which it is recognised among other visits of the
/// same game: the first ones, and evenly spread ticks of the rest. Two visits choose the same
/// ticks, or one of them every second of these, every fourth, and so on.
class MapVisitSamples {
  public:
    /// The first snapshots, always sampled: a short visit has no other ticks in common with a long
    /// one.
    static constexpr std::size_t kFirst = 32;
    /// The most further samples. 1,000 sessions take less than 4 MB.
    static constexpr std::size_t kMost = 256;

    /// Adds a snapshot. Ticks have to ascend.
    void add(snapshot::Tick tick, const RecordedItems& items);

    [[nodiscard]] Likeness compare(const MapVisitSamples& other) const;

    [[nodiscard]] std::size_t size() const { return samples_.size(); }

  private:
    struct Sample {
        snapshot::Tick tick = 0;
        std::uint32_t all = 0; ///< hash of all items
        std::uint32_t least =
            0; ///< least hash of one item, mixed with the tick so that each tick picks another item
    };

    std::vector<Sample> samples_;
    std::uint64_t every_ = 1; ///< one of this many ticks is sampled
};

/// A session's time on one map, from its first snapshot to the last.
struct MapVisit {
    std::int64_t session = 0;
    /// Client address; for a demo the file name; for merged snapshots the server's address.
    std::string client;
    std::string map; ///< map name; empty if unknown
    std::string crc; ///< checksum of the map
    snapshot::Tick begin = 0;
    snapshot::Tick end = 0; ///< tick of the last snapshot
    std::uint64_t snapshots = 0;
    MapVisitSamples samples{}; ///< samples of the snapshots
};

/// A snapshot of a map visit, rebuilt from the changes in records.
struct MapVisitSnapshot {
    std::size_t stay = 0;
    snapshot::Tick tick = 0;
    std::shared_ptr<const RecordedItems> items;
};

/// Rebuilds the snapshots of sessions, and the merged snapshots of servers, from the lines of a
/// recording in their order. A new map visit begins with another connection, map or run of the
/// server, with a lower tick after the map was announced again, or with a much lower tick.
/// Snapshots are used from the first one that lists all items, one for each tick.
class MapVisitReader {
  public:
    /// The most sessions and the most map visits; more are ignored.
    static constexpr std::size_t kMaxSessions = 65536;

    /// Takes a line. Returns a snapshot if the line completes one that can be compared.
    [[nodiscard]] std::optional<MapVisitSnapshot> on_line(std::string_view line);

    /// The map visits, in the order in which they began.
    [[nodiscard]] const std::vector<MapVisit>& stays() const { return stays_; }

    /// Lines that are no records; their content is unknown.
    [[nodiscard]] std::uint64_t broken() const { return broken_; }

    /// Snapshots whose items are unknown, because they were not recorded or their base is missing.
    [[nodiscard]] std::uint64_t unusable() const { return unusable_; }

    /// Snapshots that came late or twice: their tick is not above the last one, but close to it.
    [[nodiscard]] std::uint64_t behind() const { return behind_; }

  private:
    struct Session {
        std::string client;
        std::string map;
        std::string crc;
        std::int64_t run = 0;                       ///< run number, for merged snapshots
        std::shared_ptr<const RecordedItems> items; ///< null if unknown
        std::optional<std::size_t> stay;
        snapshot::Tick tick = 0;
        bool announced = false; ///< the session's map was announced since its last snapshot
    };

    /// Forgets the items of all sessions, or of one, until their next full snapshots.
    void forget_items(std::optional<std::int64_t> session = std::nullopt);
    static void on_session(const boost::json::object& record, Session& session);
    static void on_map(const boost::json::object& record, Session& session);
    void on_world(const boost::json::object& record, Session& session) const;
    [[nodiscard]] std::optional<MapVisitSnapshot>
    on_snapshot(const boost::json::object& record, std::int64_t number, Session& session);

    /// The number of a session and an empty text; for merged snapshots 0 and the server's address.
    using Number = std::pair<std::int64_t, std::string>;

    std::map<Number, Session> sessions_;
    std::vector<MapVisit> stays_;
    std::uint64_t unusable_ = 0;
    std::uint64_t behind_ = 0;
    std::uint64_t broken_ = 0;
};

/// Which map visits of the two views belong together.
struct MapVisitPairs {
    std::vector<std::pair<std::size_t, std::size_t>> pairs;
    std::vector<std::size_t> only_a;
    std::vector<std::size_t> only_b;
};

/// Pairs map visits. First those with equal content: at half or more of the common ticks all items
/// are equal. Then those with the same client and map, then those with the same map; each is paired
/// with the visit that has the most equal items, equal ticks and as many snapshots. The rest is
/// paired in order of appearance. With a session given, only its visits are used.
[[nodiscard]] MapVisitPairs pair_map_visits(const std::vector<MapVisit>& a,
                                            const std::vector<MapVisit>& b,
                                            std::optional<std::int64_t> session_a,
                                            std::optional<std::int64_t> session_b);

} // namespace tw::analyze
