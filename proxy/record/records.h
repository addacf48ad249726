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

/// A numbered record of one of DDNet's layers at a tile.
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

/// Where a position lands on the map. Layers that are absent or air there are not set.
struct WorldPlace {
    int x = 0; ///< world units, 32 a tile
    int y = 0;
    int tile_x = 0;
    int tile_y = 0;
    std::uint8_t index = 0;  ///< of the game tile
    std::string_view game{}; ///< its name, empty if unknown
    std::optional<FrontPlace> front{};
    std::optional<NumberedTile> tele{};
    std::optional<SpeedupPlace> speedup{};
    std::optional<SwitchPlace> switch_tile{};
    std::optional<NumberedTile> tune{};
};

/// What stands at a character's position that no character can be in.
enum class Misplaced : std::uint8_t { no, inside_solid, outside_map };

/// A map in use by a session, seen as the place where snapshot positions land.
class World {
  public:
    explicit World(std::shared_ptr<const map::Physics> physics) : physics_{std::move(physics)} {}

    /// Place of an item with this description; nothing for what has no position.
    [[nodiscard]] std::optional<WorldPlace> place(const snapshot::ObjectSpec& object,
                                                  std::span<const std::int32_t> data) const;
    /// Whether a character's centre is somewhere it cannot be.
    [[nodiscard]] Misplaced misplaced(int x, int y) const;
    /// The place of a misplaced character: inside a wall the tile is the wall that it touches,
    /// which its centre need not be on.
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

/// Which UUID stands behind which type number, learned from the descriptor items of a connection's
/// snapshots; numbers stay the same as long as the server lives.
class TypeNames {
  public:
    struct Entry {
        std::uint16_t type = 0;
        snapshot::Uuid uuid{};
        const snapshot::ObjectSpec* object = nullptr; ///< null: a UUID nobody told us about
    };

    explicit TypeNames(const snapshot::ObjectSet& objects = snapshot::ObjectSet::standard())
        : objects_{&objects} {}

    /// Servers have at most 64; more than this stay unnamed.
    static constexpr std::size_t kMaxTypes = 512;

    /// Reads the descriptor items of a snapshot. `learned`: one whose were read already; most say
    /// the same again.
    void learn(const snapshot::SnapshotView& items, const snapshot::SnapshotView& learned = {});

    /// Another connection.
    void begin(snapshot::Dialect dialect) {
        dialect_ = dialect;
        mixed_ = false;
        entries_.clear();
    }

    /// What both dialects tell stands side by side from now on: numbers that this one does not have
    /// are the other's.
    void mix() { mixed_ = true; }

    /// Whose numbered types these are.
    [[nodiscard]] snapshot::Dialect dialect() const { return dialect_; }

    /// What is known of a type number; null if nothing is.
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

/// Nanoseconds since 1970-01-01 UTC: when the datagram passed.
using Timestamp = std::int64_t;

/// What every record says. Records hold views: they live as long as the call that hands them over.
struct RecordHead {
    Timestamp time = 0;
    std::uint32_t session = 0; ///< from 1 in order of appearance; 0: the run as a whole
    std::optional<wire::Direction> direction{};
    /// Of the configuration, where it names servers; lives as long as the run.
    std::string_view server_name{};
};

enum class SessionEvent : std::uint8_t { open, established, close };

/// Why a session closes that goes on under its number, with another connection.
inline constexpr std::string_view kReconnected = "reconnected";

struct SessionRecord {
    RecordHead head{};
    SessionEvent event = SessionEvent::open;
    std::string_view client{};
    std::string_view server{};
    /// "0.6", "0.6+token", "0.6+ddnet", "0.7", "0.7+ddnet"; empty while unknown.
    std::string_view protocol{};
    std::string_view reason{}; ///< why it closed
    bool again = false;        ///< was reported before, in an earlier segment
    bool resumed = false;      ///< goes on with what the process before knew of it
};

/// Where a named thing stands in a datagram.
enum class MessageLayer : std::uint8_t { chunk, control, connless };

struct MessageRecord {
    RecordHead head{};
    MessageLayer layer = MessageLayer::chunk;
    std::string_view name{}; ///< empty: unknown
    bool system = false;
    bool vital = false;
    std::uint16_t sequence = 0; ///< of vital chunks
    std::size_t size = 0;       ///< bytes of the message, its id included
    std::uint16_t number = 0;   ///< id on the wire
    std::optional<snapshot::Uuid> uuid{};
    std::span<const wire::FieldValue> values{};
    std::span<const std::byte> raw{};            ///< of an unknown message: its body
    std::span<const std::byte> payload{};        ///< of one in a chunk: all of it; not shown
    wire::Secrecy secrecy = wire::Secrecy::open; ///< of these bytes
};

struct MapRecord {
    RecordHead head{};
    std::string_view name{};
    std::uint32_t crc = 0;
    std::int64_t size = 0;
    std::optional<std::array<std::uint8_t, 32>> sha256{};
    std::string_view source{}; ///< "folder", "wire", "demo", "none"
    int width = 0;             ///< tiles; 0 while the map is not there
    int height = 0;
    /// The map's bytes, where somebody asked for them; not shown.
    std::shared_ptr<const std::vector<std::byte>> file{};
    bool again = false; ///< was reported before, in an earlier segment
};

/// Whose number a client id of a world is.
enum class IdKind : std::uint8_t {
    server,  ///< the server's own
    views,   ///< that of the clients' views; the server may have another
    twscope, ///< nobody's: made up where views have different ones and nobody knows the server's
};

inline constexpr std::array<std::string_view, 3> kIdKinds{"server", "views", "twscope"};

[[nodiscard]] constexpr std::string_view id_kind_name(IdKind kind) {
    return kIdKinds[static_cast<std::size_t>(kind)];
}

/// A number by which a session's view knows a client that has another id in the world.
struct Renumbered {
    std::uint32_t session = 0;
    std::uint16_t number = 0;
    std::uint16_t id = 0;

    friend bool operator==(const Renumbered&, const Renumbered&) = default;
};

/// Which sessions were shown each item of a world, and what of it nobody was.
struct SeenBy {
    std::span<const std::uint32_t> sessions{}; ///< of which a view is in the world, rising
    /// Of item i: words [i * words, (i + 1) * words), a bit for each of these sessions.
    std::span<const std::uint64_t> bits{};
    std::size_t words = 0;
    /// Of item i: a bit for each of its first 32 ints that nobody was told; what is there
    /// says nothing: 0, no text, or no country.
    std::span<const std::uint32_t> untold{};
    std::span<const IdKind> id_kinds{}; ///< by client id; those behind the last are the server's
    std::span<const Renumbered> renumbered{}; ///< by session and number
    bool renumbered_anew = false;             ///< not as in the world before

    [[nodiscard]] IdKind id_kind(std::uint16_t client) const {
        return client < id_kinds.size() ? id_kinds[client] : IdKind::server;
    }

    /// The bit of an int in `untold`. Ints behind the first 32 are all told.
    [[nodiscard]] static constexpr std::uint32_t bit(std::size_t offset) {
        constexpr std::size_t kBits = 32;
        return offset < kBits ? std::uint32_t{1} << offset : 0;
    }

    [[nodiscard]] std::span<const std::uint64_t> of(std::size_t item) const {
        return bits.subspan(item * words, words);
    }

    /// `use(session)` for each that was shown the item, rising; until one returns true.
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

/// A snapshot that came in full; when it could not be rebuilt, the finding before it says why.
struct SnapshotRecord {
    RecordHead head{};
    snapshot::Tick tick = 0;
    snapshot::Tick delta_tick = snapshot::kNoBase;
    std::optional<std::int32_t> crc_wanted{}; ///< null for an empty one
    std::optional<std::int32_t> crc_got{};    ///< null when nothing could be rebuilt
    std::size_t bytes = 0;                    ///< of the delta
    std::int32_t parts = 0;
    /// `items` holds the snapshot, and its checksum agreed or it has none.
    bool rebuilt = false;
    snapshot::SnapshotView items{};
    std::optional<snapshot::SnapshotView> previous{}; ///< the session's last rebuilt one
    std::uint64_t ordinal = 0;        ///< counts a connection's rebuilt snapshots from 0
    const TypeNames* types = nullptr; ///< which UUID stands behind which type number
    const World* world = nullptr;     ///< where positions land; null while no map is known
    const Roster* roster = nullptr;   ///< of 0.7: who plays; in 0.6 the items tell
    std::optional<std::int32_t> client_version{}; ///< as DDNet counts them; not shown
    const SeenBy* sightings = nullptr;            ///< only of a world
    bool of_demo = false;                         ///< it was read from one; not shown
};

/// What all sessions of a server were shown of one tick.
struct WorldRecord {
    RecordHead head{};
    snapshot::Tick tick = 0;
    std::string_view server{};      ///< its address
    std::uint32_t run = 1;          ///< counts the server's starts and map changes
    std::uint32_t views = 0;        ///< sessions whose snapshot of this tick is in it
    bool complete = false;          ///< all sessions that were due are
    const MapRecord* map = nullptr; ///< where the game is; null while it is not known; not shown
    SnapshotRecord shown{};         ///< the items, as if they were one snapshot
};

/// An item a finding is about.
struct FindingItem {
    std::uint16_t type_id = 0;
    std::uint16_t id = 0;
    std::string_view type{}; ///< name, empty if unknown
};

/// An item that a finding may be about, and what would be wrong with it.
struct Candidate {
    FindingItem item{};
    std::string_view field{}; ///< of the item; empty if the item as a whole
    std::optional<std::int64_t> value{};
    std::optional<std::int64_t> expected{}; ///< what that value must have been
};

/// All that a finding may be about, where it is not known.
struct CandidateList {
    std::uint64_t count = 0;
    std::span<const Candidate> likeliest{}; ///< the first few of them
};

struct FindingRecord {
    RecordHead head{};
    FindingId id = FindingId::count;
    std::optional<snapshot::Tick> tick{};
    std::optional<std::size_t> offset{}; ///< bytes: in the datagram, message, part or body
    std::optional<FindingItem> item{};
    std::string_view field{};                  ///< of the item
    std::optional<CandidateList> candidates{}; ///< instead of an item
    std::optional<snapshot::Tick> delta_tick{};
    std::optional<std::int32_t> crc_wanted{};
    std::optional<std::int32_t> crc_got{};
    std::optional<snapshot::Tick> since_tick{}; ///< first of the unusable snapshots in a row
    std::optional<std::uint64_t> lost{};        ///< how many there are, this one included
    std::optional<std::int64_t> value{};
    std::optional<std::int64_t> limit{};
    std::optional<std::int64_t> expected{};   ///< what that value must have been
    std::optional<std::uint64_t> confirmed{}; ///< snapshots that say so
    std::optional<int> part{};
    std::optional<int> ddnet_code{};             ///< what a DDNet client prints for it
    std::string_view name{};                     ///< of a message, field, map, error
    std::string_view detail{};                   ///< what else can be said, for people
    std::span<const std::byte> bytes{};          ///< the bytes in question, printed as hex
    wire::Secrecy secrecy = wire::Secrecy::open; ///< of these bytes
    std::optional<WorldPlace> place{};
    std::optional<std::uint32_t> other_session{};
    /// Of a recording: those of the same id and session since the last one in it.
    std::optional<std::uint64_t> left_out{};
};

struct SummaryRecord {
    RecordHead head{};
    const SessionStats* stats = nullptr;
    std::uint32_t sessions = 0;                         ///< only of the run
    std::optional<std::array<FateStats, 2>> impaired{}; ///< only of a run with impaired lines
    std::optional<WorldStats> worlds{};                 ///< only of a run that made worlds
};

/// How one direction of the line is made worse on purpose.
struct ImpairedDirection {
    std::int64_t delay_us = 0;
    std::int64_t jitter_us = 0;
    std::uint32_t loss_ppm = 0; ///< millionths
    std::uint32_t dup_ppm = 0;
    std::uint32_t reorder_ppm = 0;
    std::optional<double> burst{}; ///< mean length of a loss, in datagrams
    std::optional<std::uint64_t> rate_bps{};
};

/// From now on the line is as bad as this.
struct ImpairmentRecord {
    RecordHead head{};
    std::string_view settings{}; ///< as --impair takes them
    std::uint64_t seed = 0;
    std::array<ImpairedDirection, 2> directions{}; ///< c2s, s2c
    bool again = false;                            ///< it was so before this segment began
};

/// Records that could not be written stood here.
struct LossRecord {
    RecordHead head{};
    std::uint64_t lost = 0;
    Timestamp since = 0;      ///< when the first of them was lost
    std::string_view cause{}; ///< one of kLossCauses
};

using Record = std::variant<const SessionRecord*, const MessageRecord*, const MapRecord*,
                            const SnapshotRecord*, const FindingRecord*, const SummaryRecord*,
                            const ImpairmentRecord*, const LossRecord*, const WorldRecord*>;

/// Takes records; what it wants to keep, it copies.
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

// What can stand under a key of a record beside numbers, bools and texts.

inline constexpr std::array<std::string_view, 2> kDirectionNames{"c2s", "s2c"};
inline constexpr std::array<std::string_view, 3> kSessionEvents{"open", "established", "close"};
/// Messages in chunks are the usual ones: their records have no `layer`.
inline constexpr std::array<std::string_view, 2> kMessageLayers{"control", "connless"};
inline constexpr std::array<std::string_view, 4> kMapSources{"folder", "wire", "demo", "none"};
/// In the order of Record.
inline constexpr std::array<std::string_view, std::variant_size_v<Record>> kRecordTypes{
    "session", "message",    "map",          "snapshot", "finding",
    "summary", "impairment", "records_lost", "world"};
/// Why records are lost.
inline constexpr std::array<std::string_view, 3> kLossCauses{"disk_full", "disk_error", "too_slow"};

/// One of a closed set of words.
template <const auto& kWords>
struct Word {
    static constexpr std::span<const std::string_view> kAll{kWords};
    std::string_view text;
};

template <typename Value>
inline constexpr bool kIsWord = requires {
    Value::kAll;
};

/// A number that is null when there is none, instead of absent.
struct OrNull {
    std::optional<std::int32_t> value;
};

/// RFC 3339 in UTC, with microseconds.
struct Moment {
    Timestamp time;
};

/// Hex digits of bytes.
struct Hex {
    std::span<const std::byte> bytes;
    wire::Secrecy secrecy = wire::Secrecy::open;
};

/// Eight hex digits of a number.
struct Hex32 {
    std::uint32_t value;
};

/// The named values of a message.
struct Fields {
    std::span<const wire::FieldValue> values;
};

/// The names of those values that have some; absent when none has.
struct FieldNames {
    std::span<const wire::FieldValue> values;
};

/// The items of a snapshot or a world.
struct Items {
    const SnapshotRecord* record;
};

/// Two numbers: a list in JSON, the keys `.x` and `.y` for filters.
struct Pair {
    std::int32_t x;
    std::int32_t y;
};

/// Stands in or beside `items`, and is written and read by whoever does that with these.
struct WithItems {};

/// A list of objects, each with kCandidateSchema.
struct Candidates {
    std::span<const Candidate> list;
};

/// How often each finding occurred; those that did not are left out of the JSON.
struct FindingTotals {
    const FindingCounts* counts;
};

/// What a server told everybody, however many sessions it was told in. It belongs to the world that was
/// made last of this server and run.
struct WorldMessage {
    Timestamp time = 0;        ///< when the first session was told
    std::string_view server{}; ///< its address
    std::uint32_t run = 1;
    const wire::MessageSpec* spec = nullptr;    ///< of the world's dialect; never null
    std::span<const wire::FieldValue> values{}; ///< clients have the ids of the world
    std::span<const std::byte> payload{};       ///< the same as bytes
};

/// Takes them; what it wants to keep, it copies.
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

/// One line for a finding; safe on a terminal.
[[nodiscard]] std::string describe(const FindingRecord& record);

/// The line of a snapshot.crc_mismatch that a snapshot.explained explains: with what is known now.
[[nodiscard]] std::string describe_explained(const FindingRecord& explained);

} // namespace tw::record
