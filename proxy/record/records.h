#pragma once

#include "proxy/record/findings.h"
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

/// A tile of a DDNet layer whose tiles have numbers: teleporters, switches, tune zones.
struct NumberedTile {
    std::string_view type{}; ///< tile name, empty if unknown
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
    std::int16_t angle = 0; ///< degrees
};

struct FrontPlace {
    std::string_view type{};
    std::uint8_t index = 0;
};

/// The tiles at a position on the map. Layers that are absent or air there are not set.
struct WorldPlace {
    int x = 0; ///< world units, 32 per tile
    int y = 0;
    int tile_x = 0;
    int tile_y = 0;
    std::uint8_t index = 0;  ///< index of the game tile
    std::string_view game{}; ///< name of the game tile, empty if unknown
    std::optional<FrontPlace> front{};
    std::optional<NumberedTile> tele{};
    std::optional<SpeedupPlace> speedup{};
    std::optional<SwitchPlace> switch_tile{};
    std::optional<NumberedTile> tune{};
};

/// Why a character cannot be at its position.
enum class Misplaced : std::uint8_t { no, inside_solid, outside_map };

/// The map of a session, which finds the tiles at snapshot positions.
class World {
  public:
    explicit World(std::shared_ptr<const map::Physics> physics) : physics_{std::move(physics)} {}

    /// The place of an item; nullopt if its type has no position.
    [[nodiscard]] std::optional<WorldPlace> place(const snapshot::ObjectSpec& object,
                                                  std::span<const std::int32_t> data) const;
    /// Whether, and how, a character with its centre at this position is misplaced.
    [[nodiscard]] Misplaced misplaced(int x, int y) const;
    /// The place of a misplaced character. Inside a wall, the tile is the wall tile it touches,
    /// which its centre may not be on.
    [[nodiscard]] WorldPlace misplaced_at(int x, int y) const;

  private:
    std::shared_ptr<const map::Physics> physics_;
};

/// Position of an item in world units without a map.
struct WorldPosition {
    double x = 0;
    double y = 0;
};

[[nodiscard]] std::optional<WorldPosition> world_position(const snapshot::ObjectSpec& object,
                                                          std::span<const std::int32_t> data);

/// The UUIDs behind type numbers, learned from the descriptor items of a connection's snapshots.
/// Numbers keep their meaning as long as the server process lives.
class TypeNames {
  public:
    struct Entry {
        std::uint16_t type = 0;
        snapshot::Uuid uuid{};
        const snapshot::ObjectSpec* object = nullptr; ///< null if the UUID is unknown
    };

    explicit TypeNames(const snapshot::ObjectSet& objects = snapshot::ObjectSet::standard())
        : objects_{&objects} {}

    /// Servers use at most 64 types; types beyond this limit stay unnamed.
    static constexpr std::size_t kMaxTypes = 512;

    /// Reads the descriptor items of a snapshot. `learned`: an earlier snapshot that was read
    /// already; equal descriptors are skipped.
    void learn(const snapshot::SnapshotView& items, const snapshot::SnapshotView& learned = {});

    /// A new connection with this dialect begins.
    void begin(snapshot::Dialect dialect) {
        dialect_ = dialect;
        mixed_ = false;
        entries_.clear();
    }

    /// Allows both dialects from now on: numbers unknown in this dialect belong to the other one.
    void mix() { mixed_ = true; }

    /// The dialect of the numbered types.
    [[nodiscard]] snapshot::Dialect dialect() const { return dialect_; }

    /// What is known of a type number; null if unknown.
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

/// Nanoseconds since 1970-01-01 UTC.
using Timestamp = std::int64_t;

/// The common head of all records. Records hold views, which are valid during the call that passes
/// them.
struct RecordHead {
    Timestamp time = 0;
    std::uint32_t session = 0; ///< numbered from 1; 0: the run as a whole
    std::optional<wire::Direction> direction{};
    /// Configured name of the server, valid as long as the run; empty if it has none.
    std::string_view server_name{};
};

enum class SessionEvent : std::uint8_t { open, established, close };

/// Close reason of a session whose client reconnects and keeps the session number.
inline constexpr std::string_view kReconnected = "reconnected";

struct SessionRecord {
    RecordHead head{};
    SessionEvent event = SessionEvent::open;
    std::string_view client{};
    std::string_view server{};
    /// "0.6", "0.6+token", "0.6+ddnet", "0.7", "0.7+ddnet"; empty while unknown.
    std::string_view protocol{};
    std::string_view reason{}; ///< set if the session closed
    bool again = false;        ///< repeated from an earlier segment
    bool resumed = false;      ///< continued from the previous process's checkpoint
};

/// Where a message is in a datagram.
enum class MessageLayer : std::uint8_t { chunk, control, connless };

struct MessageRecord {
    RecordHead head{};
    MessageLayer layer = MessageLayer::chunk;
    std::string_view name{}; ///< empty: unknown
    bool system = false;
    bool vital = false;
    std::uint16_t sequence = 0; ///< vital chunks only
    std::size_t size = 0;       ///< bytes of the message, including its id
    std::uint16_t number = 0;   ///< id on the wire
    std::optional<snapshot::Uuid> uuid{};
    std::span<const wire::FieldValue> values{};
    std::span<const std::byte> raw{};     ///< the body, if the message is unknown
    std::span<const std::byte> payload{}; ///< the whole message, if it is in a chunk; not written
    wire::Secrecy secrecy = wire::Secrecy::open; ///< secrecy of the bytes
};

struct MapRecord {
    RecordHead head{};
    std::string_view name{};
    std::uint32_t crc = 0;
    std::int64_t size = 0;
    std::optional<std::array<std::uint8_t, 32>> sha256{};
    std::string_view source{}; ///< "folder", "wire", "demo", "none"
    int width = 0;             ///< tiles; 0 while the map is missing
    int height = 0;
    /// The map file, if a consumer asked for it; not written.
    std::shared_ptr<const std::vector<std::byte>> file{};
    bool again = false; ///< repeated from an earlier segment
};

/// The origin of a client id in a world.
enum class IdKind : std::uint8_t {
    server,  ///< the server's client id
    views,   ///< the id in the clients' snapshots; the server's may differ
    twscope, ///< made up, because the clients' snapshots disagree and the server's id is unknown
};

inline constexpr std::array<std::string_view, 3> kIdKinds{"server", "views", "twscope"};

[[nodiscard]] constexpr std::string_view id_kind_name(IdKind kind) {
    return kIdKinds[static_cast<std::size_t>(kind)];
}

/// A client whose id in a session's snapshots (`number`) differs from its id in the world.
struct Renumbered {
    std::uint32_t session = 0;
    std::uint16_t number = 0;
    std::uint16_t id = 0;

    friend bool operator==(const Renumbered&, const Renumbered&) = default;
};

/// Which sessions saw each item of a world, and which of its ints no session saw.
struct SeenBy {
    /// Sessions whose snapshot is part of the world, ascending.
    std::span<const std::uint32_t> sessions{};
    /// For item i: words [i * words, (i + 1) * words), with one bit per session.
    std::span<const std::uint64_t> bits{};
    std::size_t words = 0;
    /// For item i: one bit for each of its first 32 ints, set if no session saw the int. Such an
    /// int has no meaning: 0, no text, or no country.
    std::span<const std::uint32_t> untold{};
    std::span<const IdKind> id_kinds{};       ///< by client id; ids beyond the end are the server's
    std::span<const Renumbered> renumbered{}; ///< sorted by session and number
    bool renumbered_anew = false;             ///< differs from the previous world

    [[nodiscard]] IdKind id_kind(std::uint16_t client) const {
        return client < id_kinds.size() ? id_kinds[client] : IdKind::server;
    }

    /// The bit of an int in `untold`; 0 for ints after the first 32, which are never marked.
    [[nodiscard]] static constexpr std::uint32_t bit(std::size_t offset) {
        constexpr std::size_t kBits = 32;
        return offset < kBits ? std::uint32_t{1} << offset : 0;
    }

    [[nodiscard]] std::span<const std::uint64_t> of(std::size_t item) const {
        return bits.subspan(item * words, words);
    }

    /// Calls `use(session)` for each session that saw the item, ascending, until one call returns
    /// true.
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

/// A complete snapshot. If it could not be rebuilt, the finding before it says why.
struct SnapshotRecord {
    RecordHead head{};
    snapshot::Tick tick = 0;
    snapshot::Tick delta_tick = snapshot::kNoBase;
    std::optional<std::int32_t> crc_wanted{}; ///< null for an empty snapshot
    std::optional<std::int32_t> crc_got{};    ///< null if it could not be rebuilt
    std::size_t bytes = 0;                    ///< size of the delta
    std::int32_t parts = 0;
    /// Whether `items` holds the snapshot and its checksum is right or absent.
    bool rebuilt = false;
    snapshot::SnapshotView items{};
    std::optional<snapshot::SnapshotView> previous{}; ///< the session's previous rebuilt snapshot
    std::uint64_t ordinal = 0;        ///< counter of the connection's rebuilt snapshots, from 0
    const TypeNames* types = nullptr; ///< names of the type numbers
    const World* world = nullptr;     ///< the map; null while it is unknown
    const Roster* roster = nullptr;   ///< players, 0.7 only; in 0.6 the items contain them
    std::optional<std::int32_t> client_version{}; ///< DDNet version of the client; not written
    const SeenBy* sightings = nullptr;            ///< set for a world only
    bool of_demo = false;                         ///< read from a demo; not written
};

/// What all sessions of a server saw of one tick, merged.
struct WorldRecord {
    RecordHead head{};
    snapshot::Tick tick = 0;
    std::string_view server{};      ///< its address
    std::uint32_t run = 1;          ///< number of the server's starts and map changes so far
    std::uint32_t views = 0;        ///< sessions whose snapshot of this tick is included
    bool complete = false;          ///< all sessions that were due are included
    const MapRecord* map = nullptr; ///< the current map; null while unknown; not written
    SnapshotRecord shown{};         ///< the items, as if they were one snapshot
};

/// An item a finding is about.
struct FindingItem {
    std::uint16_t type_id = 0;
    std::uint16_t id = 0;
    std::string_view type{}; ///< name, empty if unknown
};

/// An item that may be the cause of a finding, and its suspected value.
struct Candidate {
    FindingItem item{};
    std::string_view field{}; ///< field of the item; empty if the whole item is meant
    std::optional<std::int64_t> value{};
    std::optional<std::int64_t> expected{}; ///< what that value must have been
};

/// All possible causes of a finding, if the cause is not unique.
struct CandidateList {
    std::uint64_t count = 0;
    std::span<const Candidate> likeliest{}; ///< the most likely ones
};

struct FindingRecord {
    RecordHead head{};
    FindingId id = FindingId::count;
    std::optional<snapshot::Tick> tick{};
    /// In bytes, from the start of the datagram, message, part or body.
    std::optional<std::size_t> offset{};
    std::optional<FindingItem> item{};
    std::string_view field{};                  ///< field of the item
    std::optional<CandidateList> candidates{}; ///< set instead of `item`
    std::optional<snapshot::Tick> delta_tick{};
    std::optional<std::int32_t> crc_wanted{};
    std::optional<std::int32_t> crc_got{};
    std::optional<snapshot::Tick> since_tick{}; ///< first of a row of unusable snapshots
    std::optional<std::uint64_t> lost{}; ///< number of snapshots in the row, including this one
    std::optional<std::int64_t> value{};
    std::optional<std::int64_t> limit{};
    std::optional<std::int64_t> expected{};   ///< what that value must have been
    std::optional<std::uint64_t> confirmed{}; ///< snapshots that confirm it
    std::optional<int> part{};
    std::optional<int> ddnet_code{};             ///< error code a DDNet client prints
    std::string_view name{};                     ///< name of a message, field, map or error
    std::string_view detail{};                   ///< human-readable details
    std::span<const std::byte> bytes{};          ///< the affected bytes, written as hex
    wire::Secrecy secrecy = wire::Secrecy::open; ///< secrecy of the bytes
    std::optional<WorldPlace> place{};
    std::optional<std::uint32_t> other_session{};
    /// In a recording: findings of the same id and session that were left out since the last one.
    std::optional<std::uint64_t> left_out{};
};

struct SummaryRecord {
    RecordHead head{};
    const SessionStats* stats = nullptr;
    std::uint32_t sessions = 0;                         ///< set for the run only
    std::optional<std::array<FateStats, 2>> impaired{}; ///< set if the network was impaired
    std::optional<WorldStats> worlds{};                 ///< set if the run made worlds
};

/// The simulated impairment of one direction.
struct ImpairedDirection {
    std::int64_t delay_us = 0;
    std::int64_t jitter_us = 0;
    std::uint32_t loss_ppm = 0; ///< millionths
    std::uint32_t dup_ppm = 0;
    std::uint32_t reorder_ppm = 0;
    std::optional<double> burst{}; ///< mean number of datagrams lost in a row
    std::optional<std::uint64_t> rate_bps{};
};

/// The simulated impairment from now on.
struct ImpairmentRecord {
    RecordHead head{};
    std::string_view settings{}; ///< in the syntax of --impair
    std::uint64_t seed = 0;
    std::array<ImpairedDirection, 2> directions{}; ///< c2s, s2c
    bool again = false;                            ///< repeated from an earlier segment
};

/// Marks the place of records that could not be written.
struct LossRecord {
    RecordHead head{};
    std::uint64_t lost = 0;
    Timestamp since = 0;      ///< when the first of them was lost
    std::string_view cause{}; ///< one of kLossCauses
};

using Record = std::variant<const SessionRecord*, const MessageRecord*, const MapRecord*,
                            const SnapshotRecord*, const FindingRecord*, const SummaryRecord*,
                            const ImpairmentRecord*, const LossRecord*, const WorldRecord*>;

/// Receives records. A sink copies what it keeps.
class RecordSink {
  public:
    RecordSink() = default;
    RecordSink(const RecordSink&) = delete;
    RecordSink& operator=(const RecordSink&) = delete;
    RecordSink(RecordSink&&) = delete;
    RecordSink& operator=(RecordSink&&) = delete;
    virtual ~RecordSink() = default;

    virtual void on_record(const Record& record) = 0;
};

// Types of a record's values besides numbers, bools and texts.

inline constexpr std::array<std::string_view, 2> kDirectionNames{"c2s", "s2c"};
inline constexpr std::array<std::string_view, 3> kSessionEvents{"open", "established", "close"};
/// Messages in chunks are the default: their records have no `layer`.
inline constexpr std::array<std::string_view, 2> kMessageLayers{"control", "connless"};
inline constexpr std::array<std::string_view, 4> kMapSources{"folder", "wire", "demo", "none"};
/// In the order of Record.
inline constexpr std::array<std::string_view, std::variant_size_v<Record>> kRecordTypes{
    "session", "message",    "map",          "snapshot", "finding",
    "summary", "impairment", "records_lost", "world"};
/// Why records are lost.
inline constexpr std::array<std::string_view, 3> kLossCauses{"disk_full", "disk_error", "too_slow"};

/// One word of a closed set.
template <const auto& kWords>
struct Word {
    static constexpr std::span<const std::string_view> kAll{kWords};
    std::string_view text;
};

template <typename Value>
inline constexpr bool kIsWord = requires {
    Value::kAll;
};

/// A number that is written as null, instead of left out, if it is empty.
struct OrNull {
    std::optional<std::int32_t> value;
};

/// A time, written as RFC 3339 in UTC with microseconds.
struct Moment {
    Timestamp time;
};

/// Bytes, written as hex digits.
struct Hex {
    std::span<const std::byte> bytes;
    wire::Secrecy secrecy = wire::Secrecy::open;
};

/// A number, written as eight hex digits.
struct Hex32 {
    std::uint32_t value;
};

/// The named values of a message.
struct Fields {
    std::span<const wire::FieldValue> values;
};

/// The names of the message's enum values; absent if there are none.
struct FieldNames {
    std::span<const wire::FieldValue> values;
};

/// The items of a snapshot or a world.
struct Items {
    const SnapshotRecord* record;
};

/// Two numbers: a list in JSON, `.x` and `.y` in filters.
struct Pair {
    std::int32_t x;
    std::int32_t y;
};

/// Marks a value that the writer and the reader of `items` handle themselves.
struct WithItems {};

/// A list of objects, each with kCandidateSchema.
struct Candidates {
    std::span<const Candidate> list;
};

/// How often each finding occurred. Zero counts are left out of the JSON.
struct FindingTotals {
    const FindingCounts* counts;
};

/// A message that a server sent to all players, once regardless of the number of sessions. It
/// belongs to the newest world of this server and run.
struct WorldMessage {
    Timestamp time = 0;        ///< when the first session received it
    std::string_view server{}; ///< its address
    std::uint32_t run = 1;
    const wire::MessageSpec* spec = nullptr;    ///< in the world's dialect; never null
    std::span<const wire::FieldValue> values{}; ///< with client ids of the world
    std::span<const std::byte> payload{};       ///< the same message, encoded
};

/// Receives world messages. A sink copies what it keeps.
class WorldMessageSink {
  public:
    WorldMessageSink() = default;
    WorldMessageSink(const WorldMessageSink&) = delete;
    WorldMessageSink& operator=(const WorldMessageSink&) = delete;
    WorldMessageSink(WorldMessageSink&&) = delete;
    WorldMessageSink& operator=(WorldMessageSink&&) = delete;
    virtual ~WorldMessageSink() = default;

    virtual void on_world_message(const WorldMessage& message) = 0;
};

/// Describes a finding in one line that is safe for a terminal.
[[nodiscard]] std::string describe(const FindingRecord& record);

/// Describes a snapshot.crc_mismatch in one line, with the cause that a later snapshot.explained
/// found.
[[nodiscard]] std::string describe_explained(const FindingRecord& explained);

} // namespace tw::record
