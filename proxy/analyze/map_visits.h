#pragma once

#include "snapshot/item.h"
#include "snapshot/snapshot.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include <boost/json.hpp>

namespace tw::analyze {

/// An item as a record contains it.
struct RecordedItem {
    snapshot::ItemKey key{};
    std::string type;   ///< name or UUID of the item's type; empty if unknown
    std::string fields; ///< named fields as JSON; empty if the item has none
    /// The raw ints; nullopt if the record does not have them.
    std::optional<std::vector<std::int64_t>> data{};

    /// True if only 0.7 demos contain such items, which take the place of messages.
    [[nodiscard]] bool is_demo_only() const { return type.starts_with("de_"); }
};

/// Identifies an item in all recordings of a game: the ints of its type's descriptor (empty for a type
/// without one), the type number, and the id. The descriptor is needed because every server process gives
/// types with descriptors new numbers.
using ItemIdentity = std::tuple<std::vector<std::int64_t>, std::uint16_t, std::uint16_t>;

/// All items of a snapshot, sorted by identity.
using RecordedItems = std::vector<std::pair<ItemIdentity, std::shared_ptr<const RecordedItem>>>;

/// Returns the items of a snapshot with their identities, sorted.
[[nodiscard]] std::shared_ptr<const RecordedItems>
identify_items(const std::map<std::uint32_t, std::shared_ptr<const RecordedItem>>& by_key);

/// The time of a session on one map, from its first snapshot on the map to the last one.
struct MapVisit {
    std::int64_t session = 0;
    std::string name; ///< name of the session's own player; empty if unknown
    /// The client's address; for a demo, the file name; for merged snapshots, the server's address.
    std::string client;
    std::string map; ///< map name; empty if unknown
    std::string crc; ///< checksum of the map
    snapshot::Tick begin = 0;
    snapshot::Tick end = 0; ///< tick of the last snapshot
    std::uint64_t snapshots = 0;
};

/// A snapshot of a map visit, rebuilt from the changes in records.
struct MapVisitSnapshot {
    std::size_t visit = 0;
    snapshot::Tick tick = 0;
    std::shared_ptr<const RecordedItems> items;
};

/// Rebuilds the snapshots of sessions, and the merged snapshots of servers, from the lines of a recording
/// in order. A new map visit begins with another connection, map or run of the server, with a lower tick
/// after the map was announced again, or with a much lower tick. Snapshots before the first one that lists
/// all items are not used, and at most one snapshot is used for each tick.
class MapVisitReader {
  public:
    /// The limit of sessions, and that of map visits; further ones are ignored.
    static constexpr std::size_t kMaxSessions = 65536;

    /// `makes_items`: if false, snapshots have no items, because only visits() is needed.
    explicit MapVisitReader(bool makes_items = true) : makes_items_{makes_items} {}

    /// Reads a line. Returns a snapshot if the line contains a usable one.
    [[nodiscard]] std::optional<MapVisitSnapshot> on_line(std::string_view line);

    /// The map visits in the order of their beginning.
    [[nodiscard]] const std::vector<MapVisit>& visits() const { return visits_; }

    /// The number of lines that are not records.
    [[nodiscard]] std::uint64_t broken_lines() const { return broken_; }

    /// The number of snapshots whose items are unknown because they were not recorded or their base is
    /// missing.
    [[nodiscard]] std::uint64_t unusable_snapshots() const { return unusable_; }

    /// The number of snapshots that came late or twice: their tick is at or a little below the previous
    /// one.
    [[nodiscard]] std::uint64_t late_snapshots() const { return late_snapshots_; }

  private:
    struct Session {
        std::string name;
        std::string client;
        std::string map;
        std::string crc;
        std::int64_t run = 0; ///< run number, for merged snapshots
        /// The session's items by packed key; nullopt if they are unknown.
        std::optional<std::map<std::uint32_t, std::shared_ptr<const RecordedItem>>> items;
        std::optional<std::size_t> visit;
        snapshot::Tick tick = 0;
        bool announced = false; ///< the session's map was announced since its last snapshot

        /// Applies a snapshot to `items`: sets new and changed items, and removes those that are gone.
        void change_items(const boost::json::object& record, const boost::json::array& list);
    };

    /// Forgets the items of one session, or of all, until their next snapshots with all items.
    void forget_items(std::optional<std::int64_t> session = std::nullopt);
    static void on_session(const boost::json::object& record, Session& session);
    static void on_map(const boost::json::object& record, Session& session);
    void on_world(const boost::json::object& record, Session& session) const;
    [[nodiscard]] std::optional<MapVisitSnapshot>
    on_snapshot(const boost::json::object& record, std::int64_t number, Session& session);

    /// A session's number and an empty text; for merged snapshots, 0 and the server's address.
    using Number = std::pair<std::int64_t, std::string>;

    bool makes_items_;
    std::map<Number, Session> sessions_;
    std::vector<MapVisit> visits_;
    std::uint64_t unusable_ = 0;
    std::uint64_t late_snapshots_ = 0;
    std::uint64_t broken_ = 0;
};

/// A map visit without a partner, which is therefore not compared.
struct UnpairedVisit {
    std::size_t visit = 0;
    bool ambiguous = false; ///< true if several partners are possible; false if no partner is
};

/// The map visits of the two recordings A and B that belong together.
struct MapVisitPairs {
    /// The most possible pairs; they take 48 MB.
    static constexpr std::size_t kMaxCandidates = 4'000'000;

    std::vector<std::pair<std::size_t, std::size_t>> pairs;
    std::array<std::vector<UnpairedVisit>, 2> unpaired; ///< visits of A, and visits of B
};

/// Pairs visits of A and B on the same map at the same ticks: by the player's name and the address, or else
/// by the name, or else by the address. If both recordings have only one session, its name and address do
/// not matter. Among several partners, a visit with the same first and last tick is preferred, then a visit
/// that overlaps mostly. If several partners remain, the visit stays unpaired. If a session is given, only
/// its visits are used. Returns nullopt if there are more than kMaxCandidates possible pairs.
[[nodiscard]] std::optional<MapVisitPairs> pair_map_visits(const std::vector<MapVisit>& a,
                                                           const std::vector<MapVisit>& b,
                                                           std::optional<std::int64_t> session_a,
                                                           std::optional<std::int64_t> session_b);

} // namespace tw::analyze
