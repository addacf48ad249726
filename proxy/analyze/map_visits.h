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

    /// True if only 0.7 demos contain items of this type, in place of messages.
    [[nodiscard]] bool is_demo_only() const { return type.starts_with("de_"); }
};

/// Identifies an item in all recordings of a game: the ints of its type's descriptor item (empty
/// for a type without a descriptor), the type number, and the id. The descriptor is needed because
/// each server process numbers the types with descriptors anew.
using ItemIdentity = std::tuple<std::vector<std::int64_t>, std::uint16_t, std::uint16_t>;

using RecordedItems = std::vector<std::pair<ItemIdentity, std::shared_ptr<const RecordedItem>>>;

/// Returns the items of a snapshot with their identities, sorted by identity.
[[nodiscard]] std::shared_ptr<const RecordedItems>
identify_items(const std::map<std::uint32_t, std::shared_ptr<const RecordedItem>>& by_key);

/// The type number and id of an item, as a record contains them.
using ItemTypeAndId = std::pair<std::int64_t, std::int64_t>;

/// Returns the items that a snapshot's record lists as removed. Ignores malformed elements.
[[nodiscard]] std::vector<ItemTypeAndId> removed_items(const boost::json::object& record);

/// Returns the number of a session that received an item of a merged snapshot; nullopt if the
/// record names none.
[[nodiscard]] std::optional<std::int64_t> find_receiving_session(const boost::json::object& world);

/// Identifies a session by its number and an empty text, or the merged snapshots of a server by 0
/// and its address.
using RecordedSessionKey = std::pair<std::int64_t, std::string>;

/// If a tick is more than this many ticks lower than the previous tick, another game began. Late
/// snapshots are only a few ticks late.
inline constexpr snapshot::Tick kNewGameTicks = 250;

/// The snapshots of a session on one map, from the first snapshot to the last.
struct MapVisit {
    std::int64_t session = 0;
    std::string name; ///< name of the session's own player; empty if unknown
    /// The client's address; for a demo, the file name; for merged snapshots, the server's address.
    std::string client;
    std::string map;          ///< map name; empty if unknown
    std::string crc;          ///< checksum of the map
    snapshot::Tick begin = 0; ///< tick of the first snapshot
    snapshot::Tick end = 0;   ///< tick of the last snapshot
    std::uint64_t num_snapshots = 0;
};

/// A snapshot of a map visit, rebuilt from the changes in records.
struct MapVisitSnapshot {
    std::size_t visit = 0; ///< index into MapVisitReader::visits()
    snapshot::Tick tick = 0;
    std::shared_ptr<const RecordedItems> items;
};

/// Rebuilds the snapshots of sessions, and the merged snapshots of servers, from the lines of a
/// recording. A new map visit begins when the client connects again, the map changes or the server
/// restarts. It also begins when the tick falls by more than kNewGameTicks, or falls after the map
/// was announced again. Late and repeated snapshots are ignored, and snapshots before a record that
/// lists all items.
class MapVisitReader {
  public:
    /// The most sessions, and the most map visits. Further sessions and visits are ignored.
    static constexpr std::size_t kMaxSessions = 65536;

    /// `makes_items`: false to return snapshots without items, if only visits() is needed.
    explicit MapVisitReader(bool makes_items = true) : makes_items_{makes_items} {}

    /// Reads the next line. Returns a snapshot if the line contains a usable snapshot.
    [[nodiscard]] std::optional<MapVisitSnapshot> on_line(std::string_view line);

    /// The map visits in the order in which they began.
    [[nodiscard]] const std::vector<MapVisit>& visits() const { return visits_; }

    /// The number of lines that are not records.
    [[nodiscard]] std::uint64_t invalid_line_count() const { return invalid_lines_; }

    /// The number of snapshots whose items are unknown, because the items were not recorded or an
    /// earlier line is missing.
    [[nodiscard]] std::uint64_t unusable_snapshot_count() const { return unusable_snapshots_; }

    /// The number of late or repeated snapshots: their tick is at most the previous tick, and not
    /// much lower.
    [[nodiscard]] std::uint64_t late_snapshot_count() const { return late_snapshots_; }

  private:
    struct Session {
        std::string player_name;
        std::string client_address;
        std::string map_name;
        std::string map_crc;
        std::int64_t run = 0; ///< for merged snapshots, number of the server's run; else 0
        /// The session's items by packed key; nullopt if they are unknown.
        std::optional<std::map<std::uint32_t, std::shared_ptr<const RecordedItem>>> items;
        std::optional<std::size_t> visit; ///< index of the current map visit
        snapshot::Tick tick = 0;          ///< tick of the last snapshot
        bool is_map_announced = false;    ///< the server announced the map after the last snapshot

        /// Applies a snapshot to `items`: sets new and changed items, and deletes removed items.
        /// `makes_items`: false if only the keys of the items are needed.
        void apply_item_changes(const boost::json::object& record, const boost::json::array& list,
                                bool makes_items);
    };

    /// Forgets the items of a session, or of all sessions, until a snapshot lists all items again.
    void forget_items(std::optional<std::int64_t> session = std::nullopt);
    static void on_session(const boost::json::object& record, Session& session);
    static void on_map(const boost::json::object& record, Session& session);
    void set_map_of_merged_snapshot(const boost::json::object& record, Session& session) const;
    [[nodiscard]] std::optional<MapVisitSnapshot>
    on_snapshot(const boost::json::object& record, std::int64_t number, Session& session);

    bool makes_items_;
    std::map<RecordedSessionKey, Session> sessions_;
    std::vector<MapVisit> visits_;
    std::uint64_t unusable_snapshots_ = 0;
    std::uint64_t late_snapshots_ = 0;
    std::uint64_t invalid_lines_ = 0;
};

/// Numbers the games of a recording from 0 in the order in which they began, and returns the game's
/// number for each visit. A game ends when the map changes or a session visits it again.
[[nodiscard]] std::vector<std::size_t> assign_game_numbers(const std::vector<MapVisit>& visits);

/// A map visit that is not compared, because it was not paired with a visit of the other recording.
struct UnpairedVisit {
    std::size_t visit = 0;     ///< index of the visit
    bool is_ambiguous = false; ///< several partners are possible; false: none is possible
};

/// The pairs of map visits of the recordings A and B that show the same game.
struct MapVisitPairs {
    /// The most possible pairs that are examined; they take 48 MB.
    static constexpr std::size_t kMaxCandidates = 4'000'000;

    std::vector<std::pair<std::size_t, std::size_t>> pairs; ///< index in A, index in B
    std::array<std::vector<UnpairedVisit>, 2> unpaired;     ///< visits of A, and visits of B
};

/// Pairs visits of A and B that have the same map, common ticks, and the same player name or
/// address. Names and addresses may differ if only one session of each recording is used. A visit
/// is paired with its best partner. The same name and address are best, then the same name, then
/// the same address. Among equal partners, the same first and last tick are best, then mostly the
/// same ticks. A visit with several best partners stays unpaired.
///
/// `session_a`, `session_b`: the only session of A or B whose visits are used; nullopt for all.
/// Returns nullopt if there are more than kMaxCandidates possible pairs.
[[nodiscard]] std::optional<MapVisitPairs> pair_map_visits(const std::vector<MapVisit>& a,
                                                           const std::vector<MapVisit>& b,
                                                           std::optional<std::int64_t> session_a,
                                                           std::optional<std::int64_t> session_b);

} // namespace tw::analyze
