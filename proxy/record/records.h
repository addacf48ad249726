#pragma once

#include "proxy/record/findings.h"
#include "proxy/record/interface.h"
#include "proxy/record/stats.h"
#include "proxy/wire/message.h"
#include "snapshot/item.h"
#include "snapshot/objects.h"
#include "snapshot/snapshot.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace tw::map {
class Physics;
} // namespace tw::map

namespace tw::record {

/// A tile of a DDNet layer whose tiles have numbers: teleporters, switches or tune zones.
struct NumberedTile {
    std::string_view type{}; ///< tile name; empty if unknown
    std::uint8_t index = 0;
    std::uint8_t number = 0;
};

struct SwitchPlace {
    NumberedTile tile{};
    std::uint8_t delay = 0;
};

struct SpeedupPlace {
    std::uint8_t force = 0;
    std::uint8_t max_speed = 0;
    std::int16_t angle = 0; ///< in degrees
};

struct FrontPlace {
    std::string_view type{};
    std::uint8_t index = 0;
};

/// The tiles at a position on the map. A layer's member is empty if the map has no such layer, or if the
/// layer's tile is air.
struct WorldPlace {
    int x = 0; ///< in world units, 32 per tile
    int y = 0;
    int tile_x = 0;
    int tile_y = 0;
    std::uint8_t index = 0;  ///< index of the game layer's tile
    std::string_view game{}; ///< name of the game layer's tile; empty if unknown
    std::optional<FrontPlace> front{};
    std::optional<NumberedTile> tele{};
    std::optional<SpeedupPlace> speedup{};
    std::optional<SwitchPlace> switch_tile{};
    std::optional<NumberedTile> tune{};
};

/// Whether the position of a character is impossible, and for which reason.
enum class PositionFault : std::uint8_t { no, inside_solid, outside_map };

/// The map of a session. Finds the tiles at the positions in snapshots.
class TileMap {
  public:
    explicit TileMap(std::shared_ptr<const map::Physics> physics) : physics_{std::move(physics)} {}

    /// Returns the tiles at an item's position; nullopt if items of this type have no position.
    [[nodiscard]] std::optional<WorldPlace> place(const snapshot::ObjectSpec& object,
                                                  std::span<const std::int32_t> data) const;
    /// Returns whether the position is impossible as the centre of a character, and why.
    [[nodiscard]] PositionFault check_position(int x, int y) const;
    /// Returns the tiles at a misplaced character. If the character is inside a wall, that is the wall
    /// tile that it touches, which need not be the tile at its centre.
    [[nodiscard]] WorldPlace misplaced_at(int x, int y) const;

  private:
    std::shared_ptr<const map::Physics> physics_;
};

/// The position of an item in world units. Used if the map is missing.
struct WorldPosition {
    double x = 0;
    double y = 0;
};

[[nodiscard]] std::optional<WorldPosition> world_position(const snapshot::ObjectSpec& object,
                                                          std::span<const std::int32_t> data);

/// The UUIDs that a server's type numbers stand for. They are learned from the descriptor items of a
/// connection's snapshots. The numbers keep their meaning while the server process lives.
class TypeNames {
  public:
    struct Entry {
        std::uint16_t type = 0;
        snapshot::Uuid uuid{};
        const snapshot::ObjectSpec* object = nullptr; ///< null if the UUID is unknown
    };

    explicit TypeNames(const snapshot::ObjectSet& objects = snapshot::ObjectSet::standard())
        : objects_{&objects} {}

    /// The limit of known types; servers use at most 64. Further types stay unnamed.
    static constexpr std::size_t kMaxTypes = 512;

    /// Reads the descriptor items of a snapshot. `learned`: a snapshot that was already read; descriptors
    /// that are equal there are skipped.
    void learn(const snapshot::SnapshotView& items, const snapshot::SnapshotView& learned = {});

    /// Starts a new connection with this dialect.
    void begin(snapshot::Dialect dialect) {
        dialect_ = dialect;
        mixed_ = false;
        entries_.clear();
    }

    /// From now on, snapshots may contain types of both dialects. A type number that is unknown in this
    /// dialect then belongs to the other one.
    void mix() { mixed_ = true; }

    /// The dialect of the numbered types.
    [[nodiscard]] snapshot::Dialect dialect() const { return dialect_; }

    /// Returns the UUID and object of a type number; null if unknown.
    [[nodiscard]] const Entry* find(std::uint16_t type) const;
    [[nodiscard]] const snapshot::ObjectSpec* object(std::uint16_t type) const;

    [[nodiscard]] const snapshot::ObjectSet& objects() const { return *objects_; }

  private:
    const snapshot::ObjectSet* objects_;
    snapshot::Dialect dialect_ = snapshot::Dialect::six;
    bool mixed_ = false;
    std::vector<Entry> entries_; ///< sorted by type
};

class Roster;

/// A time in nanoseconds since 1970-01-01 UTC.
using Timestamp = std::int64_t;

/// The common head of all records. The views in a record are valid only during the call that passes
/// the record.
struct RecordHead {
    Timestamp time = 0;
    std::uint32_t session = 0; ///< session number, from 1; 0 if the record is about the whole run
    std::optional<wire::Direction> direction{};
    /// The server's name in the configuration, valid as long as the run; empty if it has none.
    std::string_view server_name{};
};

enum class SessionEvent : std::uint8_t { open, established, close };

/// The reason of a `close` if the client reconnects. The session number then stays the same.
inline constexpr std::string_view kReconnected = "reconnected";

struct SessionRecord {
    RecordHead head{};
    SessionEvent event = SessionEvent::open;
    std::string_view client{};
    std::string_view server{};
    /// "0.6", "0.6+token", "0.6+ddnet", "0.7", "0.7+ddnet"; empty while unknown.
    std::string_view protocol{};
    std::string_view reason{}; ///< why the session was closed; empty for other events
    bool again = false;        ///< repeats a record from an earlier segment of the recording
    bool resumed = false;      ///< the session continues from the previous process's checkpoint
};

/// Which layer of the protocol carries a message.
enum class MessageLayer : std::uint8_t { chunk, control, connless };

struct MessageRecord {
    RecordHead head{};
    MessageLayer layer = MessageLayer::chunk;
    std::string_view name{}; ///< the message's name; empty if unknown
    bool system = false;
    bool vital = false;
    std::uint16_t sequence = 0; ///< sequence number; only set for vital chunks
    std::size_t size = 0;       ///< size of the message in bytes, including its id
    std::uint16_t number = 0;   ///< the message's id on the wire
    std::optional<snapshot::Uuid> uuid{};
    std::span<const wire::FieldValue> values{};
    std::span<const std::byte> raw{}; ///< the body of an unknown message
    /// The whole message if it was in a chunk. Not written to JSON.
    std::span<const std::byte> payload{};
    wire::Secrecy secrecy = wire::Secrecy::open; ///< whether `raw` must be hidden
};

struct MapRecord {
    RecordHead head{};
    std::string_view name{};
    std::uint32_t crc = 0;
    std::int64_t size = 0;
    std::optional<std::array<std::uint8_t, 32>> sha256{};
    std::string_view source{}; ///< where the map was found: "folder", "wire", "demo" or "none"
    int width = 0;             ///< in tiles; 0 while the map is missing
    int height = 0;
    /// The bytes of the map file; null unless the map source keeps them. Not written to JSON.
    std::shared_ptr<const std::vector<std::byte>> file{};
    bool again = false; ///< repeats a record from an earlier segment of the recording
};

/// The origin of a client id in a world.
enum class IdKind : std::uint8_t {
    server, ///< the id is the server's client id
    views,  ///< the id is that in the clients' snapshots; the server's client id may differ
    twscope, ///< the id is made up, because the clients' snapshots disagree and the server's id is unknown
};

inline constexpr std::array<std::string_view, 3> kIdKinds{"server", "views", "twscope"};

[[nodiscard]] constexpr std::string_view id_kind_name(IdKind kind) {
    return kIdKinds[static_cast<std::size_t>(kind)];
}

/// A client whose number in a session's snapshots (`number`) is not the client's id in the world.
struct Renumbered {
    std::uint32_t session = 0;
    std::uint16_t number = 0;
    std::uint16_t id = 0;

    friend bool operator==(const Renumbered&, const Renumbered&) = default;
};

/// Which sessions saw each item of a world, and which ints of the items no session received.
struct SeenBy {
    /// The sessions whose snapshot is part of the world, in ascending order.
    std::span<const std::uint32_t> sessions{};
    /// One bit for each session. Item i has the words [i * words, (i + 1) * words).
    std::span<const std::uint64_t> bits{};
    std::size_t words = 0;
    /// For each item, a bit mask of its first 32 ints. A bit is set if no session received the int. The
    /// int then means nothing: it is 0, no text, or no country.
    std::span<const std::uint32_t> untold{};
    std::span<const IdKind> id_kinds{}; ///< by client id; ids beyond the end are the server's ids
    std::span<const Renumbered> renumbered{}; ///< sorted by session, then by number
    bool renumbered_anew = false; ///< `renumbered` differs from that of the previous world

    [[nodiscard]] IdKind id_kind(std::uint16_t client) const {
        return client < id_kinds.size() ? id_kinds[client] : IdKind::server;
    }

    /// Returns the bit of an int in `untold`; 0 for ints after the first 32, which are never marked.
    [[nodiscard]] static constexpr std::uint32_t bit(std::size_t offset) {
        constexpr std::size_t kBits = 32;
        return offset < kBits ? std::uint32_t{1} << offset : 0;
    }

    [[nodiscard]] std::span<const std::uint64_t> of(std::size_t item) const {
        return bits.subspan(item * words, words);
    }

    /// Calls `use(session)` for each session that saw the item, in ascending order, until a call
    /// returns true.
    template <typename Use>
    void each(std::size_t item, const Use& use) const {
        constexpr std::size_t kBits = 64;
        const auto seen = of(item);
        for (std::size_t i = 0; i < sessions.size(); ++i) {
            if ((seen[i / kBits] >> (i % kBits) & 1U) != 0 && use(sessions[i])) {
                return;
            }
        }
    }
};

/// A snapshot that was received completely. If it could not be rebuilt, the finding before this record
/// says why.
struct SnapshotRecord {
    RecordHead head{};
    snapshot::Tick tick = 0;
    snapshot::Tick delta_tick = snapshot::kNoBase;
    /// Checksum in the message; nullopt for snap_empty, which has none.
    std::optional<std::int32_t> crc_wanted{};
    /// Checksum of the rebuilt items; nullopt if they could not be rebuilt.
    std::optional<std::int32_t> crc_got{};
    std::size_t bytes = 0; ///< size of the delta
    std::int32_t parts = 0;
    /// True if `items` holds the snapshot and its checksum is right or unknown (snap_empty).
    bool rebuilt = false;
    snapshot::SnapshotView items{};
    /// The previous rebuilt snapshot of the session.
    std::optional<snapshot::SnapshotView> previous{};
    std::uint64_t ordinal = 0; ///< number of the connection's rebuilt snapshots before this one
    const TypeNames* types = nullptr;  ///< the UUIDs of the type numbers
    const TileMap* tile_map = nullptr; ///< null while the map is missing
    const Roster* roster = nullptr;    ///< the players, for 0.7 only; in 0.6 the items contain them
    /// The client's DDNet version. Not written to JSON.
    std::optional<std::int32_t> client_version{};
    /// Which sessions saw each item; null unless this is a world.
    const SeenBy* sightings = nullptr;
    bool of_demo = false; ///< the snapshot was read from a demo; not written to JSON
};

/// A world: the snapshots that all sessions of a server received for one tick, merged into one.
struct WorldRecord {
    RecordHead head{};
    snapshot::Tick tick = 0;
    std::string_view server{};      ///< the server's address
    std::uint32_t run = 1;          ///< number of starts and map changes of the server so far
    std::uint32_t views = 0;        ///< number of sessions whose snapshot of this tick is included
    bool complete = false;          ///< no session's snapshot of this tick is missing
    const MapRecord* map = nullptr; ///< the run's map; null while unknown
    SnapshotRecord shown{};         ///< the merged items, in the form of a snapshot
};

/// The item that a finding is about.
struct FindingItem {
    std::uint16_t type_id = 0;
    std::uint16_t id = 0;
    std::string_view type{}; ///< name of the type; empty if unknown
};

/// An item that may be the cause of a finding, and the value that may be wrong.
struct Candidate {
    FindingItem item{};
    std::string_view field{}; ///< the item's field; empty if the whole item is meant
    std::optional<std::int64_t> value{};
    std::optional<std::int64_t> expected{}; ///< the right value, in place of `value`
};

/// The possible causes of a finding whose cause is not certain.
struct CandidateList {
    std::uint64_t count = 0;
    std::span<const Candidate> likeliest{}; ///< the most likely causes, the likeliest first
};

struct FindingRecord {
    RecordHead head{};
    FindingId id = FindingId::count;
    std::optional<snapshot::Tick> tick{};
    /// Position of the problem, in bytes from the start of what the finding is about, by its id: the
    /// datagram, a message, a snapshot part, or the delta.
    std::optional<std::size_t> offset{};
    std::optional<FindingItem> item{};
    std::string_view field{}; ///< name of the item's affected field
    /// Set in place of `item` if the item is not certain.
    std::optional<CandidateList> candidates{};
    std::optional<snapshot::Tick> delta_tick{};
    std::optional<std::int32_t> crc_wanted{};
    std::optional<std::int32_t> crc_got{};
    /// For several unusable snapshots in a row: the tick of the first one.
    std::optional<snapshot::Tick> since_tick{};
    /// Number of unusable snapshots in a row, including this one.
    std::optional<std::uint64_t> lost{};
    std::optional<std::int64_t> value{};
    std::optional<std::int64_t> limit{};
    std::optional<std::int64_t> expected{};   ///< the right value, in place of `value`
    std::optional<std::uint64_t> confirmed{}; ///< number of snapshots that confirm the finding
    std::optional<int> part{};
    std::optional<int> ddnet_code{};             ///< the error code that a DDNet client prints
    std::string_view name{};                     ///< name of a message, field, map or error
    std::string_view detail{};                   ///< human-readable details
    std::span<const std::byte> bytes{};          ///< the affected bytes, which are written as hex
    wire::Secrecy secrecy = wire::Secrecy::open; ///< whether `bytes` must be hidden
    std::optional<WorldPlace> place{};
    std::optional<std::uint32_t> other_session{};
    /// In a recording: the number of findings with the same id and session that were not written,
    /// counted since the last one that was written.
    std::optional<std::uint64_t> left_out{};
};

struct SummaryRecord {
    RecordHead head{};
    const SessionStats* stats = nullptr;
    std::uint32_t sessions = 0; ///< number of sessions; only set in the summary of the run
    std::optional<std::array<ImpairmentStats, 2>>
        impaired{};                     ///< set if the run simulated an impairment
    std::optional<WorldStats> worlds{}; ///< set if the run merged views into worlds
};

/// The simulated impairment in one direction.
struct ImpairedDirection {
    std::int64_t delay_us = 0;
    std::int64_t jitter_us = 0;
    std::uint32_t loss_ppm = 0; ///< probability of loss, in millionths
    std::uint32_t dup_ppm = 0;
    std::uint32_t reorder_ppm = 0;
    std::optional<double> burst{}; ///< mean number of datagrams lost in a row; nullopt if not set
    std::optional<std::uint64_t> rate_bps{};
};

/// The simulated impairment of the network from the time of this record on.
struct ImpairmentRecord {
    RecordHead head{};
    std::string_view settings{}; ///< all settings in the syntax of --impair
    std::uint64_t seed = 0;
    std::array<ImpairedDirection, 2> directions{}; ///< c2s, s2c
    bool again = false; ///< repeats a record from an earlier segment of the recording
};

/// Takes the place of records that could not be written to the recording.
struct LossRecord {
    RecordHead head{};
    std::uint64_t lost = 0;
    Timestamp since = 0;      ///< time of the first lost record
    std::string_view cause{}; ///< one of kLossCauses
};

/// The first record of a segment of a recording. Because of it, no two segments begin with the same bytes.
struct SegmentRecord {
    RecordHead head{};
    std::string_view name{};  ///< name of the segment's file
    std::uint64_t number = 0; ///< number of the segment in its recording, from 1
};

using Record = std::variant<const SessionRecord*, const MessageRecord*, const MapRecord*,
                            const SnapshotRecord*, const FindingRecord*, const SummaryRecord*,
                            const ImpairmentRecord*, const LossRecord*, const WorldRecord*,
                            const SegmentRecord*>;

/// Receives records. An implementation must copy all data that it keeps after the call.
class RecordSink : public Interface {
  public:
    virtual void on_record(const Record& record) = 0;
};

// The types of a record's values, apart from numbers, bools and texts.

inline constexpr std::array<std::string_view, 2> kDirectionNames{"c2s", "s2c"};
inline constexpr std::array<std::string_view, 3> kSessionEvents{"open", "established", "close"};
/// The values of a message record's `layer`. Messages in chunks have no such key.
inline constexpr std::array<std::string_view, 2> kMessageLayers{"control", "connless"};
inline constexpr std::array<std::string_view, 4> kMapSources{"folder", "wire", "demo", "none"};
/// The value of `type` for each record type, in the order of Record.
inline constexpr std::array<std::string_view, std::variant_size_v<Record>> kRecordTypes{
    "session", "message",    "map",          "snapshot", "finding",
    "summary", "impairment", "records_lost", "world",    "segment"};
/// Possible causes of lost records.
inline constexpr std::array<std::string_view, 3> kLossCauses{"disk_full", "disk_error", "too_slow"};

/// A value that is one of a fixed list of words.
template <const auto& kWords>
struct Word {
    static constexpr std::span<const std::string_view> kAll{kWords};
    std::string_view text;
};

template <typename Value>
inline constexpr bool kIsWord = requires {
    Value::kAll;
};

/// An optional number that is written as null if it is empty. The keys of other empty optionals are left
/// out.
struct OrNull {
    std::optional<std::int32_t> value;
};

/// A time. It is written as RFC 3339, in UTC with microseconds.
struct Moment {
    Timestamp time;
};

/// Bytes. They are written as hex digits.
struct Hex {
    std::span<const std::byte> bytes;
    wire::Secrecy secrecy = wire::Secrecy::open;
};

/// A number. It is written as eight hex digits.
struct Hex32 {
    std::uint32_t value;
};

/// The named values of a message.
struct Fields {
    std::span<const wire::FieldValue> values;
};

/// The names of a message's enum values. The key is left out if no value has a name.
struct FieldNames {
    std::span<const wire::FieldValue> values;
};

/// The items of a snapshot or a world.
struct Items {
    const SnapshotRecord* record;
};

/// Two numbers. In JSON they are a list; in filters, they are two keys that end in `.x` and `.y`.
struct Pair {
    std::int32_t x;
    std::int32_t y;
};

/// The type of a key that is written together with `items` and not by its own row of the schema.
struct WithItems {};

/// A list of objects. Each one has the keys of kCandidateSchema.
struct Candidates {
    std::span<const Candidate> list;
};

/// The number of occurrences of each kind of finding. Kinds that did not occur are left out of the JSON.
struct FindingTotals {
    const FindingCounts* counts;
};

/// A message that a server sent to all players. It is passed once, after the world of its tick, however
/// many sessions received it.
struct WorldMessage {
    Timestamp time = 0;        ///< the time at which the first session received the message
    std::string_view server{}; ///< the server's address
    std::uint32_t run = 1;
    /// The message's layout in the dialect of the world; never null.
    const wire::MessageSpec* spec = nullptr;
    /// The message's fields, with the client ids of the world.
    std::span<const wire::FieldValue> values{};
    std::span<const std::byte> payload{}; ///< the message, encoded from these fields
};

/// Receives world messages. An implementation must copy all data that it keeps after the call.
class WorldMessageSink : public Interface {
  public:
    virtual void on_world_message(const WorldMessage& message) = 0;
};

/// Returns the severity of a finding. It is that of the finding's id, except that the end of a silence is
/// only information.
[[nodiscard]] Severity severity_of(const FindingRecord& record);

/// Describes a finding in one line that is safe for a terminal.
[[nodiscard]] std::string describe(const FindingRecord& record);

/// Describes in one line a snapshot.crc_mismatch together with its cause, which the later finding
/// `explained` (snapshot.explained) gives.
[[nodiscard]] std::string describe_explained(const FindingRecord& explained);

/// Returns the text shown for a client's address. If `key` is empty, that is the address and port,
/// unchanged. Otherwise it is a pseudonym that depends only on the key and on the address without its
/// port. Without the key, nobody can find the address.
[[nodiscard]] std::string shown_client(std::string address_and_port, const std::string& key);

} // namespace tw::record
