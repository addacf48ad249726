#pragma once

#include "proxy/record/records.h"
#include "proxy/record/schema.h"
#include "proxy/record/values.h"

#include <optional>
#include <string_view>

/// The keys of every record type but those that count (totals_schema.h). JSON lines, filters and
/// the tables of RECORDS.md are made from these.
namespace tw::record {

/// The head of a record, and which type of record it is of.
struct TypedHead {
    const RecordHead* head;
    std::size_t type; ///< index in Record
};

/// A text that is absent when there is none.
constexpr std::optional<std::string_view> some(std::string_view text) {
    return text.empty() ? std::nullopt : std::optional{text};
}

/// What stands in front of every record.
inline constexpr auto kHeadSchema =
    schema(key(
               "v", [](const TypedHead&) { return 1; }, "1: the version of this page."),
           key(
               "t", [](const TypedHead& r) { return Moment{r.head->time}; },
               "When the datagram passed: RFC 3339, UTC, microseconds."),
           key(
               "type", [](const TypedHead& r) { return Word<kRecordTypes>{kRecordTypes[r.type]}; },
               "`session`, `message`, `map`, `snapshot`, `world`, `finding`, `summary`, "
               "`impairment` or `records_lost`."),
           key(
               "session", [](const TypedHead& r) { return r.head->session; },
               "Which session, from 1 in order of appearance; 0: the run as a whole."),
           key(
               "dir",
               [](const TypedHead& r) -> std::optional<Word<kDirectionNames>> {
                   if (!r.head->direction) {
                       return std::nullopt;
                   }
                   return Word<kDirectionNames>{
                       kDirectionNames[static_cast<std::size_t>(*r.head->direction)]};
               },
               "`c2s` or `s2c`; absent where the record is about the session."),
           key(
               "server_name", [](const TypedHead& r) { return some(r.head->server_name); },
               "The server's name in the configuration (`-s NAME=HOST:PORT`); absent where servers "
               "have none."));

template <typename Value>
constexpr std::optional<Value> only_if(bool there, Value value) {
    return there ? std::optional{value} : std::nullopt;
}

inline constexpr auto kSessionSchema = schema(
    key(
        "event",
        [](const SessionRecord& r) {
            return Word<kSessionEvents>{kSessionEvents[static_cast<std::size_t>(r.event)]};
        },
        "`open` (first datagram), `established` (handshake done, or joined midway), `close`."),
    key("client", &SessionRecord::client, "The client's address; of a demo the file's name."),
    key("server", &SessionRecord::server,
        "The server's address; of a demo who recorded it: `client demo` or `server demo`."),
    key(
        "protocol", [](const SessionRecord& r) { return some(r.protocol); },
        "`0.6` (no token), `0.6+token` (vanilla 0.6.5), `0.6+ddnet`, `0.7`, `0.7+ddnet` (a server "
        "of DDNet, which translates for it); absent while unknown."),
    key(
        "reason",
        [](const SessionRecord& r) { return only_if(r.event == SessionEvent::close, r.reason); },
        "Of a `close`: the text the peer sent, or `closed by the client`, `closed by the server`, "
        "`idle`, `reconnected`, `shutdown`, `handed over` (to the twscope that took over), "
        "`removed` (its server was taken out), `displaced` (of a tap or a capture: a connection "
        "needed its place), `sides turned` (of these: what was taken for the server is the client, "
        "and a session with the right sides follows), `end of capture`, `end of demo`."),
    key(
        "again", [](const SessionRecord& r) { return only_if(r.again, true); },
        "True of a session that is open while a segment begins: what was written of it before, as "
        "it stood there."));

constexpr bool in_chunk(const MessageRecord& record) {
    return record.layer == MessageLayer::chunk;
}

inline constexpr auto kMessageSchema = schema(
    key(
        "name",
        [](const MessageRecord& r) {
            return r.name.empty() ? std::string_view{"unknown"} : r.name;
        },
        "DDNet's, in snake_case (`snap_single`, `sv_chat`); `unknown` for what no table "
        "describes."),
    key(
        "system", [](const MessageRecord& r) { return only_if(in_chunk(r), r.system); },
        "System message or game message."),
    key(
        "vital", [](const MessageRecord& r) { return only_if(in_chunk(r), r.vital); },
        "Reliable. A duplicate or resent vital message has no record: it counts once."),
    key(
        "seq", [](const MessageRecord& r) { return only_if(in_chunk(r) && r.vital, r.sequence); },
        "The sequence number of a vital message."),
    key(
        "layer",
        [](const MessageRecord& r) -> std::optional<Word<kMessageLayers>> {
            if (in_chunk(r)) {
                return std::nullopt;
            }
            return Word<kMessageLayers>{kMessageLayers[static_cast<std::size_t>(r.layer) - 1]};
        },
        "`control` (handshake, keepalive, close) or `connless` (server info); absent for messages "
        "in chunks."),
    key("size", &MessageRecord::size, "Bytes, its id included."),
    key(
        "uuid", [](const MessageRecord& r) { return r.name.empty() ? r.uuid : std::nullopt; },
        "Of an unknown message that has one: its UUID."),
    key(
        "id",
        [](const MessageRecord& r) {
            return only_if(r.name.empty() && !r.uuid && r.layer != MessageLayer::connless,
                           r.number);
        },
        "Of another unknown message: its number."),
    key(
        "raw",
        [](const MessageRecord& r) {
            return only_if(r.name.empty(), Hex{r.raw, r.secrecy});
        },
        "Of an unknown message: its bytes as hex; of a system message, and of what may be one of "
        "the remote console, `[redacted]` unless `--show-secrets` is given."),
    key(
        "fields", [](const MessageRecord& r) { return only_if(!r.name.empty(), Fields{r.values}); },
        "Named values in order; strings as sent, raw bytes as hex, UUIDs as text. Of a map chunk "
        "its `offset` in the map, of a snapshot part nothing but its head: the `map` and "
        "`snapshot` records show what is in them."),
    key(
        "names",
        [](const MessageRecord& r) { return only_if(!r.name.empty(), FieldNames{r.values}); },
        "The names of enum values and flag bits in `fields`, under the same keys."));

inline constexpr auto kMapSchema =
    schema(key("name", &MapRecord::name, "As announced."),
           key(
               "crc", [](const MapRecord& r) { return Hex32{r.crc}; }, "Eight hex digits."),
           key("size", &MapRecord::size, "Bytes, as announced."),
           key(
               "sha256",
               [](const MapRecord& r) {
                   return r.sha256 ? std::optional{Hex{std::as_bytes(std::span{*r.sha256})}}
                                   : std::nullopt;
               },
               "As announced, or of the file found."),
           key(
               "source", [](const MapRecord& r) { return Word<kMapSources>{r.source}; },
               "`folder` (found with `--maps`), `wire` (reassembled from the client's download), "
               "`demo` (embedded in the demo that was read), `none`."),
           key(
               "width", [](const MapRecord& r) { return only_if(r.width != 0, r.width); },
               "Of the game layer, in tiles; only when the map is there."),
           key(
               "height", [](const MapRecord& r) { return only_if(r.width != 0, r.height); },
               "Of the game layer, in tiles."),
           key(
               "again", [](const MapRecord& r) { return only_if(r.again, true); },
               "True where it stands at the beginning of a segment, for a session that is open."));

inline constexpr auto kSnapshotFull = key(
    "full", [](const SnapshotRecord&) { return WithItems{}; },
    "True when `items` lists all of them: with `--items all`, on the first snapshot, on the first "
    "of a segment, and on every 250th.");
inline constexpr auto kSnapshotItems = key(
    "items", [](const SnapshotRecord& r) { return only_if(r.rebuilt, Items{&r}); },
    "With `--items changed` what is new or differs from the session's previous rebuilt snapshot; "
    "sorted by type and id.");
inline constexpr auto kSnapshotRemoved = key(
    "removed", [](const SnapshotRecord&) { return WithItems{}; },
    "`[type_id, id]` of what that previous snapshot had and this one has not.");

inline constexpr auto kSnapshotSchema =
    schema(key("tick", &SnapshotRecord::tick, "The tick it shows."),
           key("delta_tick", &SnapshotRecord::delta_tick,
               "Tick of the snapshot it builds on; −1: on nothing."),
           key(
               "crc_wanted", [](const SnapshotRecord& r) { return OrNull{r.crc_wanted}; },
               "The server's checksum; null for an empty delta, which has none."),
           key(
               "crc_got", [](const SnapshotRecord& r) { return OrNull{r.crc_got}; },
               "The checksum of what was rebuilt; null when nothing could be."),
           key("ok", &SnapshotRecord::rebuilt, "Rebuilt, and the checksums agree."),
           key(
               "num_items", [](const SnapshotRecord& r) { return r.items.size(); },
               "Items in the snapshot."),
           key("bytes", &SnapshotRecord::bytes, "Bytes of the delta on the wire."),
           key("parts", &SnapshotRecord::parts, "Parts that the delta came in."),
           filter_key(
               "size_bytes",
               [](const SnapshotRecord& r) { return only_if(r.rebuilt, r.items.size_bytes()); },
               "Counted as the server counts against its limit."),
           kSnapshotFull, kSnapshotItems, kSnapshotRemoved);

inline constexpr auto kWorldSchema = schema(
    key("tick", &WorldRecord::tick, "The tick it shows."),
    key("server", &WorldRecord::server, "The server's address."),
    key("run", &WorldRecord::run,
        "Counts the server's starts and map changes from 1; ticks begin anew with each."),
    key("views", &WorldRecord::views, "Sessions whose snapshot of this tick is in it."),
    key("complete", &WorldRecord::complete,
        "Each session that the server had to send this tick is in it."),
    key(
        "num_items", [](const WorldRecord& r) { return r.shown.items.size(); },
        "Items in the world."),
    filter_key(
        "size_bytes", [](const WorldRecord& r) { return r.shown.items.size_bytes(); },
        "Counted as the server counts against its limit."),
    key(
        "full", [](const WorldRecord&) { return WithItems{}; },
        "True when `items` lists all of them: with `--items all`, on the first of a run, and on "
        "every 250th."),
    key(
        "items", [](const WorldRecord& r) { return Items{&r.shown}; },
        "As of a `snapshot`, with `seen_by`; with `--items changed` what is new or differs from "
        "the "
        "world before."),
    key(
        "removed", [](const WorldRecord&) { return WithItems{}; },
        "`[type_id, id]` of what the world before had and this one has not."));

inline constexpr auto kFindingItemSchema =
    schema(key("type", &FindingItem::type, "Its name; empty if unknown."),
           key("type_id", &FindingItem::type_id, "As on the wire."),
           key("id", &FindingItem::id, "As on the wire."));

inline constexpr auto kFindingSchema = schema(
    key("id", &FindingRecord::id, "From a closed table; `twscope findings` prints it with causes."),
    key(
        "severity", [](const FindingRecord& r) { return finding_info(r.id).severity; },
        "`info`, `warning` or `error`."),
    key("tick", &FindingRecord::tick, "Tick of the snapshot."),
    key("delta_tick", &FindingRecord::delta_tick, "Tick of the snapshot it builds on."),
    key("offset", &FindingRecord::offset,
        "Where, in bytes: in the datagram or payload, or in the `part` of a delta that `hex` "
        "shows."),
    key("part", &FindingRecord::part, "Which 900-byte part of the delta, from 0."),
    object(
        "item", [](const FindingRecord& r) { return r.item ? &*r.item : nullptr; },
        "The item it is about.", kFindingItemSchema),
    key(
        "field", [](const FindingRecord& r) { return some(r.field); },
        "The item's field; `int_4` for an int without a name, counted from 0."),
    key("crc_wanted", &FindingRecord::crc_wanted, "The server's checksum."),
    key("crc_got", &FindingRecord::crc_got, "The checksum of what was rebuilt."),
    key("since_tick", &FindingRecord::since_tick, "The first of the unusable snapshots in a row."),
    key("lost", &FindingRecord::lost, "How many of these there are by now."),
    key("value", &FindingRecord::value, "A number the finding is about."),
    key("limit", &FindingRecord::limit, "What that number may be."),
    key("expected", &FindingRecord::expected, "What the value must have been."),
    key("confirmed", &FindingRecord::confirmed, "How many snapshots say so."),
    key("ddnet_code", &FindingRecord::ddnet_code,
        "What a DDNet client prints for it (`delta unpack failed. error=-205`)."),
    key(
        "name", [](const FindingRecord& r) { return some(r.name); },
        "Of the message, field, map or error."),
    key(
        "what", [](const FindingRecord& r) { return finding_info(r.id).sentence; },
        "What it means, in one sentence."),
    key(
        "detail", [](const FindingRecord& r) { return some(r.detail); }, "What else can be said."),
    key(
        "hex",
        [](const FindingRecord& r) {
            return only_if(!r.bytes.empty(), Hex{r.bytes, r.secrecy});
        },
        "The bytes in question; `[redacted]` where they may hold a password, code or whisper "
        "(also where nothing could be decoded), unless `--show-secrets` is given."),
    key("at", &FindingRecord::place,
        "Where a misplaced character stands; its tile is the wall that it touches."),
    key("other_session", &FindingRecord::other_session, "Another session that it is about."),
    key("left_out", &FindingRecord::left_out,
        "How many of this `id` and session came since the last one that is written, and are not."));

inline constexpr auto kLossSchema =
    schema(key("lost", &LossRecord::lost, "How many records are missing here."),
           key(
               "since", [](const LossRecord& r) { return Moment{r.since}; },
               "When the first of them was lost."),
           key(
               "cause", [](const LossRecord& r) { return Word<kLossCauses>{r.cause}; },
               "`disk_full`, `disk_error`, or `too_slow` where the disk is only slow."));

constexpr const auto& schema_of(const SessionRecord& /*unused*/) {
    return kSessionSchema;
}

constexpr const auto& schema_of(const MessageRecord& /*unused*/) {
    return kMessageSchema;
}

constexpr const auto& schema_of(const MapRecord& /*unused*/) {
    return kMapSchema;
}

constexpr const auto& schema_of(const SnapshotRecord& /*unused*/) {
    return kSnapshotSchema;
}

constexpr const auto& schema_of(const FindingRecord& /*unused*/) {
    return kFindingSchema;
}

constexpr const auto& schema_of(const LossRecord& /*unused*/) {
    return kLossSchema;
}

constexpr const auto& schema_of(const WorldRecord& /*unused*/) {
    return kWorldSchema;
}

} // namespace tw::record
