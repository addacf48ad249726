#pragma once

#include "map/tiles.h"
#include "proxy/record/findings.h"
#include "proxy/record/interface.h"
#include "proxy/record/stats.h"
#include "proxy/wire/message.h"
#include "snapshot/item.h"
#include "snapshot/objects.h"
#include "snapshot/snapshot.h"

#include <algorithm>
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
class PhysicsLayers;
} // namespace tw::map

namespace tw::record {

/// Why a character cannot be at a position; `none` if the position is possible.
enum class PositionFault : std::uint8_t { none, inside_solid, outside_map };

/// The map of a session. Finds the tiles at the positions of items.
class TileMap {
  public:
    explicit TileMap(std::shared_ptr<const map::PhysicsLayers> physics)
        : physics_{std::move(physics)} {}

    /// Returns the tiles at an item's position; nullopt if items of this type have no position.
    [[nodiscard]] std::optional<map::Location> tiles_at(const snapshot::ObjectSpec& object,
                                                        std::span<const std::int32_t> data) const;
    /// Returns why the centre of a character cannot be at the position; `none` if it can.
    [[nodiscard]] PositionFault check_position(int x, int y) const;
    /// Returns the tiles at a character for which check_position() finds a fault. If the character
    /// is inside a wall, these are the tiles where it touches the wall, not those at its centre.
    [[nodiscard]] map::Location tiles_at_impossible_position(int x, int y) const;

  private:
    std::shared_ptr<const map::PhysicsLayers> physics_;
};

/// The position of an item in world units. Used in place of the tiles if the map is missing.
struct WorldPosition {
    double x = 0;
    double y = 0;
};

[[nodiscard]] std::optional<WorldPosition> world_position(const snapshot::ObjectSpec& object,
                                                          std::span<const std::int32_t> data);

/// Maps the type numbers of a server to UUIDs. The descriptor items of snapshots contain the UUIDs.
/// A number stands for the same UUID until the server process ends.
class ItemTypes {
  public:
    struct TypeInfo {
        std::uint16_t type = 0;
        snapshot::Uuid uuid{};
        const snapshot::ObjectSpec* object = nullptr; ///< null if the UUID is unknown
    };

    explicit ItemTypes(const snapshot::ObjectSet& objects = snapshot::ObjectSet::standard())
        : objects_{&objects} {}

    /// The maximum number of types. Further types are ignored. Servers use at most 64 types.
    static constexpr std::size_t kMaxTypes = 512;

    /// Reads the descriptor items of a snapshot. `learned`: a snapshot that was read before. If it
    /// has the same descriptor items, they are not read again.
    void learn_types(const snapshot::SnapshotView& items,
                     const snapshot::SnapshotView& learned = {});

    /// Forgets all types and sets the dialect of a new connection.
    void start_connection(snapshot::Dialect dialect) {
        dialect_ = dialect;
        allows_both_dialects_ = false;
        entries_.clear();
    }

    /// Allows snapshots with types of both dialects. From now on, a type number that is unknown in
    /// dialect() is looked up in the other dialect.
    void allow_both_dialects() { allows_both_dialects_ = true; }

    /// Returns the dialect of types without a UUID.
    [[nodiscard]] snapshot::Dialect dialect() const { return dialect_; }

    /// Returns the UUID and object of a type number; null if the number is unknown.
    [[nodiscard]] const TypeInfo* find(std::uint16_t type) const;
    [[nodiscard]] const snapshot::ObjectSpec* object(std::uint16_t type) const;

    [[nodiscard]] const snapshot::ObjectSet& objects() const { return *objects_; }

  private:
    const snapshot::ObjectSet* objects_;
    snapshot::Dialect dialect_ = snapshot::Dialect::six;
    bool allows_both_dialects_ = false;
    std::vector<TypeInfo> entries_; ///< sorted by type
};

class Roster;

/// A time in nanoseconds since 1970-01-01 UTC.
using Timestamp = std::int64_t;
inline constexpr Timestamp kNanosecondsPerSecond = 1'000'000'000;
inline constexpr Timestamp kTickDuration = kNanosecondsPerSecond / 50;
/// The latest time that is accepted from a file, in seconds since 1970 (in the year 2255). It is
/// far below the limit of Timestamp, because inspection adds to times.
inline constexpr std::int64_t kLastInputSecond = 9'000'000'000;

/// A time as records show it, split into its parts.
struct SecondAndNanosecond {
    std::int64_t second = 0;
    std::int64_t nanosecond = 0; ///< after the start of the second
};

/// Splits a time for a record. A time before 1970, which only damaged captures contain, becomes a
/// time in the first second of 1970.
[[nodiscard]] constexpr SecondAndNanosecond split_time(Timestamp time) {
    const std::int64_t rest = time % kNanosecondsPerSecond;
    return {std::max<std::int64_t>(time / kNanosecondsPerSecond, 0),
            rest < 0 ? rest + kNanosecondsPerSecond : rest};
}

/// The common first fields of all records. The views in a record are valid only during the call of
/// RecordSink::on_record() that passes the record.
struct RecordHeader {
    Timestamp time = 0;
    std::uint32_t session = 0; ///< session number, from 1; 0 if the record is about all sessions
    std::optional<wire::Direction> direction{};
    /// The server's name in the configuration, valid until the program ends; empty if the server
    /// has no name.
    std::string_view server_name{};
};

enum class SessionEvent : std::uint8_t { open, established, close };

/// The `reason` of a close event after which the session continues with the same number, because
/// its client has reconnected.
inline constexpr std::string_view kReconnected = "reconnected";

/// An event of a session: its first datagram, the established connection, or its end.
struct SessionRecord {
    RecordHeader head{};
    SessionEvent event = SessionEvent::open;
    std::string_view client{};
    std::string_view server{};
    /// "0.6", "0.6+token", "0.6+ddnet", "0.7" or "0.7+ddnet"; empty while unknown.
    std::string_view protocol{};
    std::string_view reason{}; ///< why the session was closed; empty for other events
    bool again = false;        ///< an earlier segment of the recording contains this record, too
    bool resumed = false;      ///< the session was restored from the previous process's checkpoint
};

/// The layer of the protocol that carries a message.
enum class MessageLayer : std::uint8_t { chunk, control, connless };

/// A message that a client or server sent.
struct MessageRecord {
    RecordHeader head{};
    MessageLayer layer = MessageLayer::chunk;
    std::string_view name{}; ///< the message's name; empty if unknown
    bool system = false;
    bool vital = false;
    std::uint16_t sequence = 0; ///< sequence number; set for vital chunks only
    std::size_t size = 0;       ///< size of the message in bytes, including its id
    std::uint16_t number = 0;   ///< the message's id on the wire
    std::optional<snapshot::Uuid> uuid{};
    std::span<const wire::FieldValue> values{};
    std::span<const std::byte> raw{}; ///< the body of an unknown message
    /// All bytes of a message in a chunk; empty for other messages. Not written to JSON.
    std::span<const std::byte> payload{};
    wire::Secrecy secrecy = wire::Secrecy::open; ///< whether `raw` must be hidden
};

/// The map that a server announced.
struct MapRecord {
    RecordHeader head{};
    std::string_view name{};
    std::uint32_t crc = 0;
    std::int64_t size = 0;
    std::optional<std::array<std::uint8_t, 32>> sha256{};
    std::string_view source{}; ///< where the map was found: "folder", "wire", "demo" or "none"
    int width = 0;             ///< in tiles; 0 while the map is missing
    int height = 0;            ///< in tiles; 0 while the map is missing
    /// The bytes of the map file; null if the map source does not store them. Not written to JSON.
    std::shared_ptr<const std::vector<std::byte>> file{};
    bool again = false; ///< an earlier segment of the recording contains this record, too
};

/// Who assigned a client id in a world.
enum class IdKind : std::uint8_t {
    server,  ///< the server: this is the player's client id at the server
    views,   ///< the clients' snapshots have this id; the client id at the server may differ
    twscope, ///< twscope: the clients' snapshots disagree and the id at the server is unknown
};

inline constexpr std::array<std::string_view, 3> kIdKinds{"server", "views", "twscope"};

[[nodiscard]] constexpr std::string_view id_kind_name(IdKind kind) {
    return kIdKinds[static_cast<std::size_t>(kind)];
}

/// A client that has the id `number` in a session's snapshots, and another id, `id`, in the world.
struct RenumberedClient {
    std::uint32_t session = 0;
    std::uint16_t number = 0;
    std::uint16_t id = 0;

    friend bool operator==(const RenumberedClient&, const RenumberedClient&) = default;
};

/// Where a world's items come from: the sessions that received each item, the ints that no session
/// received, and who assigned the client ids.
struct ItemSightings {
    /// The sessions whose snapshots were merged into the world, in ascending order.
    std::span<const std::uint32_t> sessions{};
    /// For each item, one bit per session, set if the session received the item. The bits of item i
    /// begin at index `i * words_per_item`.
    std::span<const std::uint64_t> bits{};
    std::size_t words_per_item = 0; ///< in `bits`
    /// For each item, a bit mask of its first 32 ints. A bit is set if no session received the int,
    /// which is then 0, an empty text, or "no country".
    std::span<const std::uint32_t> missing_ints{};
    std::span<const IdKind> id_kinds{}; ///< index: client id; higher ids are IdKind::server
    std::span<const RenumberedClient> renumbered{}; ///< sorted by session, then by number
    bool has_new_renumbering = false; ///< `renumbered` differs from the previous world's list

    [[nodiscard]] IdKind id_kind(std::uint16_t client) const {
        return client < id_kinds.size() ? id_kinds[client] : IdKind::server;
    }

    /// Returns the int's bit in `missing_ints`; 0 for ints after the first 32, which have no bit.
    [[nodiscard]] static constexpr std::uint32_t int_bit(std::size_t offset) {
        constexpr std::size_t kBits = 32;
        return offset < kBits ? std::uint32_t{1} << offset : 0;
    }

    [[nodiscard]] std::span<const std::uint64_t> session_bits(std::size_t item) const {
        return bits.subspan(item * words_per_item, words_per_item);
    }

    /// Calls `visit(session)` for each session that received the item, in ascending order. Stops
    /// when `visit` returns true.
    template <typename Visit>
    void for_each_session(std::size_t item, const Visit& visit) const {
        constexpr std::size_t kBits = 64;
        const auto seen = session_bits(item);
        for (std::size_t i = 0; i < sessions.size(); ++i) {
            if ((seen[i / kBits] >> (i % kBits) & 1U) != 0 && visit(sessions[i])) {
                return;
            }
        }
    }
};

/// A snapshot of which all parts were received. If it could not be decoded, the finding before this
/// record tells the reason.
struct SnapshotRecord {
    RecordHeader head{};
    snapshot::Tick tick = 0;
    snapshot::Tick delta_tick = snapshot::kNoBase;
    /// The checksum that the message contains; nullopt for snap_empty, which does not contain one.
    std::optional<std::int32_t> crc_wanted{};
    /// The checksum of the decoded items; nullopt if the snapshot could not be decoded.
    std::optional<std::int32_t> crc_got{};
    std::size_t bytes = 0; ///< size of the delta
    std::int32_t parts = 0;
    /// True if `items` holds the decoded snapshot, and its checksum matches or is unknown
    /// (snap_empty).
    bool rebuilt = false;
    snapshot::SnapshotView items{};
    /// The previous decoded snapshot of the session; nullopt if there is none.
    std::optional<snapshot::SnapshotView> previous{};
    std::uint64_t ordinal = 0; ///< number of the connection's decoded snapshots before this one
    const ItemTypes* types = nullptr;  ///< the UUIDs of the type numbers
    const TileMap* tile_map = nullptr; ///< null while the map is missing
    const Roster* roster = nullptr;    ///< the players in 0.7; null in 0.6, where `items` has them
    /// The client's DDNet version. Not written to JSON.
    std::optional<std::int32_t> client_version{};
    /// The sessions that received each item of a world; null for the snapshot of one session.
    const ItemSightings* sightings = nullptr;
    bool is_from_demo = false; ///< true if the snapshot was read from a demo; not written to JSON
};

/// An item that is written as an element of a record's `items`.
struct RecordItem {
    const SnapshotRecord* record;
    snapshot::ItemView item;
    const snapshot::ObjectSpec* object; ///< null if the type is unknown
};

/// A world: the snapshots of all sessions of a server for one tick, merged into one snapshot.
struct WorldRecord {
    RecordHeader head{};
    snapshot::Tick tick = 0;
    std::string_view server{}; ///< the server's address
    std::uint32_t run = 1;     ///< number of starts and map changes of the server up to this tick
    std::uint32_t views = 0;   ///< number of sessions whose snapshots were merged
    bool complete = false;     ///< the snapshots of all sessions were merged
    const MapRecord* map = nullptr; ///< the server's map; null while unknown
    SnapshotRecord merged{};        ///< the merged snapshot
};

/// The item that a finding is about.
struct FindingItem {
    std::uint16_t type_id = 0;
    std::uint16_t id = 0;
    std::string_view type{}; ///< name of the type; empty if unknown
};

/// An item that may be the cause of a finding, and the value that may be wrong.
struct CauseCandidate {
    FindingItem item{};
    std::string_view field{}; ///< the name of the wrong field; empty if the whole item may be wrong
    std::optional<std::int64_t> value{};    ///< the received value of the field
    std::optional<std::int64_t> expected{}; ///< the value that would be right
};

/// The possible causes of a finding whose cause is not certain.
struct CauseCandidateSummary {
    std::uint64_t count = 0;                     ///< number of all possible causes
    std::span<const CauseCandidate> likeliest{}; ///< the most likely causes, the likeliest first
};

/// A finding: something unusual or wrong in the traffic.
struct FindingRecord {
    RecordHeader head{};
    FindingId id = FindingId::count;
    std::optional<snapshot::Tick> tick{};
    /// Position of the problem in bytes, from the start of the datagram, the message, the snapshot
    /// part or the delta. The kind of finding determines which of these.
    std::optional<std::size_t> offset{};
    std::optional<FindingItem> item{};
    std::string_view field{}; ///< name of the item's affected field
    /// The possible causes if the finding's item is not certain. `item` is then empty or the
    /// likeliest one.
    std::optional<CauseCandidateSummary> candidates{};
    std::optional<snapshot::Tick> delta_tick{};
    std::optional<std::int32_t> crc_wanted{};
    std::optional<std::int32_t> crc_got{};
    /// The first tick of a problem that lasts for several ticks, such as unusable snapshots.
    std::optional<snapshot::Tick> since_tick{};
    /// Number of lost or unusable snapshots or datagrams, depending on the kind of finding.
    std::optional<std::uint64_t> lost{};
    std::optional<std::int64_t> value{};
    std::optional<std::int64_t> limit{};
    std::optional<std::int64_t> expected{};   ///< the value that would be right instead of `value`
    std::optional<std::uint64_t> confirmed{}; ///< number of snapshots that confirm the finding
    std::optional<int> part{};
    std::optional<int> ddnet_code{};             ///< the error code that a DDNet client prints
    std::string_view name{};                     ///< name of a message, field, map or error
    std::string_view detail{};                   ///< human-readable details
    std::span<const std::byte> bytes{};          ///< the affected bytes; written as hex
    wire::Secrecy secrecy = wire::Secrecy::open; ///< whether `bytes` must be hidden
    std::optional<map::Location> place{};
    std::optional<std::uint32_t> other_session{};
    /// The number of findings with the same id and session that were left out of the recording
    /// just before this one.
    std::optional<std::uint64_t> left_out{};
};

/// The totals of a session at its end, or of the run at its end.
struct SummaryRecord {
    RecordHeader head{};
    const SessionStats* stats = nullptr;
    std::uint32_t sessions = 0; ///< number of sessions; set in the summary of the run only
    std::optional<std::array<ImpairmentStats, 2>>
        impaired{};                     ///< set if the run simulated an impairment
    std::optional<WorldStats> worlds{}; ///< set if the run merged snapshots into worlds
};

/// The settings of the simulated impairment for one direction.
struct ImpairedDirection {
    std::uint64_t delay_us = 0;
    std::uint64_t jitter_us = 0;
    std::uint64_t loss_ppm = 0;    ///< probability of loss, in millionths
    std::uint64_t dup_ppm = 0;     ///< probability of duplication, in millionths
    std::uint64_t reorder_ppm = 0; ///< probability of reordering, in millionths
    std::optional<double> burst{}; ///< mean number of datagrams lost in a row; nullopt if not set
    std::optional<std::uint64_t> rate_bps{};
};

/// The settings of the simulated impairment that apply from the time of this record on.
struct ImpairmentRecord {
    RecordHeader head{};
    std::string_view settings{}; ///< all settings in the syntax of --impair
    std::uint64_t seed = 0;
    std::array<ImpairedDirection, 2> directions{}; ///< c2s, s2c
    bool again = false; ///< an earlier segment of the recording contains this record, too
};

/// Marks the place in a recording where records could not be written.
struct LossRecord {
    RecordHeader head{};
    std::uint64_t lost = 0;   ///< number of lost records
    Timestamp since = 0;      ///< time of the first lost record
    std::string_view cause{}; ///< one of kLossCauses
};

/// The first record of a segment of a recording. It is different in every segment, so no two
/// segments begin with the same bytes.
struct SegmentRecord {
    RecordHeader head{};
    std::string_view name{};  ///< name of the segment's file
    std::uint64_t number = 0; ///< number of the segment in its recording, from 1
};

using Record = std::variant<const SessionRecord*, const MessageRecord*, const MapRecord*,
                            const SnapshotRecord*, const FindingRecord*, const SummaryRecord*,
                            const ImpairmentRecord*, const LossRecord*, const WorldRecord*,
                            const SegmentRecord*>;

/// Receives records. The data in a record is valid only until on_record() returns.
class RecordSink : public InterfaceBase {
  public:
    virtual void on_record(const Record& record) = 0;
};

// The types of values in records, except numbers, bools and texts.

inline constexpr std::array<std::string_view, 2> kDirectionNames{"c2s", "s2c"};
inline constexpr std::array<std::string_view, 3> kSessionEvents{"open", "established", "close"};
/// The values of the key `layer` in a message record. Messages in chunks do not have this key.
inline constexpr std::array<std::string_view, 2> kMessageLayers{"control", "connless"};
inline constexpr std::array<std::string_view, 4> kMapSources{"folder", "wire", "demo", "none"};
/// The values of the key `type`, in the order of the record types in Record.
inline constexpr std::array<std::string_view, std::variant_size_v<Record>> kRecordTypes{
    "session", "message",    "map",          "snapshot", "finding",
    "summary", "impairment", "records_lost", "world",    "segment"};
/// The possible causes of lost records (LossRecord::cause).
inline constexpr std::array<std::string_view, 3> kLossCauses{"disk_full", "disk_error", "too_slow"};

/// A value that is one of a fixed list of words.
template <const auto& kWords>
struct EnumWord {
    static constexpr std::span<const std::string_view> kAll{kWords};
    std::string_view text;
};

template <typename Value>
inline constexpr bool kIsWord = requires {
    Value::kAll;
};

/// An optional number. If it is empty, it is written as null, whereas the keys of other empty
/// optionals are left out.
struct NumberOrNull {
    std::optional<std::int32_t> value;
};

/// A time. It is written as RFC 3339, in UTC with microseconds.
struct UtcTime {
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
struct MessageFields {
    std::span<const wire::FieldValue> values;
};

/// The names of a message's enum values. If no value has a name, the key is left out.
struct ValueNames {
    std::span<const wire::FieldValue> values;
};

/// The items of a snapshot or a world.
struct SnapshotItems {
    const SnapshotRecord* record;
};

/// Two numbers. In JSON, they are a list. In filters, they are two keys that end in `.x` and `.y`.
struct NumberPair {
    std::int32_t x;
    std::int32_t y;
};

/// A placeholder that a getter returns if the writer of the items computes the value of the key.
struct ItemWriterValue {};

/// A list of candidates. Each is written as an object with the keys of kCauseCandidateSchema.
struct CauseCandidates {
    std::span<const CauseCandidate> list;
};

/// The counts of all kinds of findings. Kinds that did not occur are left out of the JSON.
struct FindingTotals {
    const FindingCounts* counts;
};

/// A message that a server sent to all players. It is passed to the sink once, after the world of
/// its tick, no matter how many sessions received it.
struct WorldMessage {
    Timestamp time = 0;        ///< the time at which the first session received the message
    std::string_view server{}; ///< the server's address
    std::uint32_t run = 1; ///< number of starts and map changes of the server up to this message
    /// The message's layout in the dialect of the world; never null.
    const wire::MessageSpec* spec = nullptr;
    /// The message's fields, with the client ids of the world.
    std::span<const wire::FieldValue> values{};
    std::span<const std::byte> payload{}; ///< the message, encoded from `values`
};

/// Receives world messages. The data in a message is valid only until on_world_message() returns.
class WorldMessageSink : public InterfaceBase {
  public:
    virtual void on_world_message(const WorldMessage& message) = 0;
};

/// Returns the severity of the finding's id; Severity::info if the finding reports that a server
/// answers again.
[[nodiscard]] Severity severity_of(const FindingRecord& record);

/// Returns the tick at which the fault that a finding reports began: for snapshot.size_differs, the
/// tick of the first snapshot with the server's size, if it is known; otherwise the finding's tick.
[[nodiscard]] std::optional<snapshot::Tick> fault_begin_tick(const FindingRecord& record);

/// Returns a description of a finding, in one line that is safe for a terminal.
[[nodiscard]] std::string describe_finding(const FindingRecord& record);

/// Returns a one-line description of a snapshot.crc_mismatch and its cause. `explained`: the
/// finding snapshot.explained that names the cause.
[[nodiscard]] std::string describe_explained_mismatch(const FindingRecord& explained);

/// Returns the text that stands for a client's address in the output. If `key` is empty, this is
/// the unchanged address and port. Otherwise it is a pseudonym of the address, and the unchanged
/// port. The pseudonym depends only on the key and the address. Without the key, the address cannot
/// be found.
[[nodiscard]] std::string client_address_text(std::string address_and_port, const std::string& key);

} // namespace tw::record
