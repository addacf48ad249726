#pragma once

#include "proxy/record/records.h"
#include "proxy/record/stats.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <tuple>

/// The building blocks of record schemas. A schema is a constexpr list of rows. A row has a key, a
/// getter of the value (a member of the record or a function) and a description of one sentence.
/// The type of the value determines how it is written and compared; records.h declares the special
/// types. If the value is an empty optional, the key is left out.
namespace tw::record {

/// Whether a key exists in JSON records, in filters or in both.
enum class KeyUse : std::uint8_t {
    everywhere,
    filter_only, ///< the key exists in filters only
};

/// The text of a key as the JSON writer needs it: `,"name":`. It is computed at compile time.
template <std::size_t Length>
class KeyText {
  public:
    // NOLINTNEXTLINE(google-explicit-constructor,*-avoid-c-arrays): takes string literals
    constexpr KeyText(const char (&name)[Length]) {
        text_[0] = ',';
        text_[1] = '"';
        std::copy_n(name, Length - 1, text_.begin() + 2);
        text_[Length + 1] = '"';
        text_[Length + 2] = ':';
    }

    [[nodiscard]] constexpr std::string_view name() const { return {text_.data() + 2, Length - 1}; }

    /// Returns the key's text in JSON, with a comma before it and a colon after it.
    [[nodiscard]] constexpr std::string_view json() const { return {text_.data(), text_.size()}; }

  private:
    std::array<char, Length + 3> text_{};
};

/// A row of a schema: a key and the getter of its value.
template <typename Get, std::size_t Length>
struct KeyRow {
    KeyText<Length> key;
    Get get;
    std::string_view sentence;
    KeyUse use = KeyUse::everywhere;
};

/// A row of a schema for a key whose value is an object with its own schema.
template <typename Get, std::size_t Length, typename Schema>
struct ObjectRow {
    KeyText<Length> key;
    Get get; ///< returns a pointer to the object; null to leave out the key
    std::string_view sentence;
    const Schema* schema;
};

/// A row of a schema for all cells (members) of a struct of totals. Each cell has its own key.
template <template <typename> class Totals, typename Cell, typename Row>
struct TotalsRow {
    using CellType = Cell;

    /// Returns the cells of `source`. A struct derived from Totals<Cell> may be passed, too.
    static constexpr auto get = [](const Totals<Cell>& source) {
        return members_as_array<Totals>(source);
    };

    [[nodiscard]] static const auto& rows() { return rows_describing<Totals, Row>(); }
};

/// A row of a schema that adds all keys of another object's schema to this object.
template <typename Get, typename Schema>
struct InlinedRow {
    Get get; ///< returns a pointer to the other object; never null
    const Schema* schema;
};

template <typename Row>
inline constexpr bool kIsTotals = requires {
    typename Row::CellType;
};

template <typename Row>
inline constexpr bool kIsObject = requires(Row row) {
    row.schema;
    row.sentence;
};

template <typename Row>
inline constexpr bool kIsInlined = requires(Row row) {
    row.schema;
}

&&!kIsObject<Row>;

// NOLINTBEGIN(*-avoid-c-arrays): string literals
template <std::size_t Length, typename Get>
constexpr KeyRow<Get, Length> key(const char (&name)[Length], std::string_view sentence, Get get) {
    return {name, get, sentence};
}

template <std::size_t Length, typename Get>
constexpr KeyRow<Get, Length> filter_key(const char (&name)[Length], std::string_view sentence,
                                         Get get) {
    return {name, get, sentence, KeyUse::filter_only};
}

template <std::size_t Length, typename Get, typename Schema>
constexpr ObjectRow<Get, Length, Schema>
object(const char (&name)[Length], std::string_view sentence, const Schema& schema, Get get) {
    return {name, get, sentence, &schema};
}

// NOLINTEND(*-avoid-c-arrays)

template <typename Get, typename Schema>
constexpr InlinedRow<Get, Schema> inlined(const Schema& schema, Get get) {
    return {get, &schema};
}

template <typename... Rows>
constexpr std::tuple<Rows...> schema(Rows... rows) {
    return {rows...};
}

/// Calls `visit(row)` for each row in order. The calls are unrolled at compile time.
template <typename... Rows, typename Visit>
constexpr void for_each_row(const std::tuple<Rows...>& schema, const Visit& visit) {
    std::apply([&](const auto&... row) { (visit(row), ...); }, schema);
}

// The keys of all record types, except those of totals (below). They determine the JSON lines, the
// filters and the tables in RECORDS.md.

/// A record's header and type. kHeadSchema has their keys.
struct TypedHeader {
    const RecordHeader* head;
    std::size_t type; ///< index of the record's type in the variant Record
};

/// Returns the text, or nullopt if the text is empty. A key whose value is nullopt is left out.
constexpr std::optional<std::string_view> text_unless_empty(std::string_view text) {
    return text.empty() ? std::nullopt : std::optional{text};
}

/// A getter of a text. If the text is empty, the key is left out.
template <auto kMember>
inline constexpr auto kGetNonEmptyText =
    [](const auto& record) { return text_unless_empty(record.*kMember); };

/// A getter of a flag. If the flag is false, the key is left out.
template <auto kMember>
inline constexpr auto kGetTrueFlag =
    [](const auto& record) { return record.*kMember ? std::optional{true} : std::nullopt; };

/// A getter of an optional object. If the optional is empty, the key is left out.
template <auto kMember>
inline constexpr auto kGetOptionalObject =
    [](const auto& record) { return record.*kMember ? &*(record.*kMember) : nullptr; };

/// The getter of a key whose value is computed by the writer of a snapshot's items.
inline constexpr auto kGetFromItemWriter = [](const auto& /*record*/) { return ItemWriterValue{}; };

/// Returns the word that stands for an enumerator.
template <const auto& kWords, typename Enum>
constexpr EnumWord<kWords> enum_word(Enum value) {
    return {kWords[static_cast<std::size_t>(value)]};
}

/// The keys at the start of every record.
inline constexpr auto kHeadSchema = schema(
    key("v", "1: the version of this page.", [](const TypedHeader&) { return 1; }),
    key("t", "When the datagram passed: RFC 3339, UTC, microseconds.",
        [](const TypedHeader& r) { return UtcTime{r.head->time}; }),
    key("type",
        "`session`, `message`, `map`, `snapshot`, `world`, `finding`, `summary`, "
        "`impairment`, `records_lost` or `segment`.",
        [](const TypedHeader& r) { return enum_word<kRecordTypes>(r.type); }),
    key("session", "Session number, from 1 in order of appearance; 0 for the run as a whole.",
        [](const TypedHeader& r) { return r.head->session; }),
    key("dir", "`c2s` or `s2c`; absent if the record is about the session.",
        [](const TypedHeader& r) -> std::optional<EnumWord<kDirectionNames>> {
            if (!r.head->direction) {
                return std::nullopt;
            }
            return enum_word<kDirectionNames>(*r.head->direction);
        }),
    key("server_name",
        "The server's name in the configuration (`-s NAME=HOST:PORT`); absent if servers "
        "have none.",
        [](const TypedHeader& r) { return text_unless_empty(r.head->server_name); }));

template <typename Value>
constexpr std::optional<Value> value_if(bool is_present, Value value) {
    return is_present ? std::optional{value} : std::nullopt;
}

inline constexpr auto kSessionSchema = schema(
    key("event",
        "`open` (first datagram), `established` (handshake done, or joined midway), `close`.",
        [](const SessionRecord& r) { return enum_word<kSessionEvents>(r.event); }),
    key("client", "The client's address; for a demo, the file's name.", &SessionRecord::client),
    key("server",
        "The server's address; for a demo, who recorded it: `client demo` or `server demo`.",
        &SessionRecord::server),
    key("protocol",
        "`0.6` (no token), `0.6+token` (vanilla 0.6.5), `0.6+ddnet`, `0.7`, `0.7+ddnet` (a server "
        "of DDNet, which translates for it); absent while unknown.",
        kGetNonEmptyText<&SessionRecord::protocol>),
    key("reason",
        "For a `close`: the text the peer sent, or `closed by the client`, `closed by the server`, "
        "`idle`, `reconnected`, `shutdown`, `handed over` (to the twscope that took over), "
        "`removed` (its server was removed), `displaced` (another session needed its place), "
        "`sides "
        "turned` (in a tap or a capture: what was taken for the server is the client, and a "
        "session with the right sides follows), `end of capture`, `end of demo`.",
        [](const SessionRecord& r) { return value_if(r.event == SessionEvent::close, r.reason); }),
    key("again",
        "True for a session that is already open when a segment, or a choice by time, begins: "
        "repeats its earlier record.",
        kGetTrueFlag<&SessionRecord::again>));

constexpr bool is_in_chunk(const MessageRecord& record) {
    return record.layer == MessageLayer::chunk;
}

inline constexpr auto kMessageSchema = schema(
    key("name",
        "DDNet's, in snake_case (`snap_single`, `sv_chat`); `unknown` if no table describes it.",
        [](const MessageRecord& r) {
            return r.name.empty() ? std::string_view{"unknown"} : r.name;
        }),
    key("system", "System message or game message.",
        [](const MessageRecord& r) { return value_if(is_in_chunk(r), r.system); }),
    key("vital", "Reliable. A duplicate or resent vital message has no record: it counts once.",
        [](const MessageRecord& r) { return value_if(is_in_chunk(r), r.vital); }),
    key("seq", "The sequence number of a vital message.",
        [](const MessageRecord& r) { return value_if(is_in_chunk(r) && r.vital, r.sequence); }),
    key("layer",
        "`control` (handshake, keepalive, close) or `connless` (server info); absent for messages "
        "in chunks.",
        [](const MessageRecord& r) -> std::optional<EnumWord<kMessageLayers>> {
            if (is_in_chunk(r)) {
                return std::nullopt;
            }
            return EnumWord<kMessageLayers>{kMessageLayers[static_cast<std::size_t>(r.layer) - 1]};
        }),
    key("size", "Bytes, including its id.", &MessageRecord::size),
    key("uuid", "UUID of an unknown message that has one.",
        [](const MessageRecord& r) { return r.name.empty() ? r.uuid : std::nullopt; }),
    key("id", "Number of any other unknown message.",
        [](const MessageRecord& r) {
            return value_if(r.name.empty() && !r.uuid && r.layer != MessageLayer::connless,
                            r.number);
        }),
    key("raw",
        "Bytes of an unknown message, as hex; for system messages, and those that may belong to "
        "the remote console, `[redacted]` unless `--show-secrets` is given.",
        [](const MessageRecord& r) {
            return value_if(r.name.empty(), Hex{r.raw, r.secrecy});
        }),
    key("fields",
        "Named values in order; strings as sent, raw bytes as hex, UUIDs as text. For a map chunk "
        "its `offset` in the map, for a snapshot part only its header: the `map` and `snapshot` "
        "records show their contents.",
        [](const MessageRecord& r) { return value_if(!r.name.empty(), MessageFields{r.values}); }),
    key("names", "The names of enum values and flag bits in `fields`, under the same keys.",
        [](const MessageRecord& r) { return value_if(!r.name.empty(), ValueNames{r.values}); }));

inline constexpr auto kMapSchema =
    schema(key("name", "As announced.", &MapRecord::name),
           key("crc", "Eight hex digits.", [](const MapRecord& r) { return Hex32{r.crc}; }),
           key("size", "Bytes, as announced.", &MapRecord::size),
           key("sha256", "As announced, or that of the file found.",
               [](const MapRecord& r) {
                   return r.sha256 ? std::optional{Hex{std::as_bytes(std::span{*r.sha256})}}
                                   : std::nullopt;
               }),
           key("source",
               "`folder` (found with `--maps`), `wire` (reassembled from the client's download), "
               "`demo` (embedded in the demo that was read), `none`.",
               [](const MapRecord& r) { return EnumWord<kMapSources>{r.source}; }),
           key("width", "Of the game layer, in tiles; only if the map is available.",
               [](const MapRecord& r) { return value_if(r.width != 0, r.width); }),
           key("height", "Of the game layer, in tiles.",
               [](const MapRecord& r) { return value_if(r.width != 0, r.height); }),
           key("again",
               "True if repeated at the beginning of a segment, or of a choice by time, for a "
               "session that is open.",
               kGetTrueFlag<&MapRecord::again>));

inline constexpr auto kSnapshotFull = key(
    "full",
    "True if `items` lists all of them: with `--items all`, in the first snapshot, in the first of "
    "a segment, and in every 250th.",
    kGetFromItemWriter);
inline constexpr auto kSnapshotItems =
    key("items",
        "With `--items changed`, those that are new or differ from the session's previous rebuilt "
        "snapshot; sorted by type and id.",
        [](const SnapshotRecord& r) { return value_if(r.rebuilt, SnapshotItems{&r}); });
inline constexpr auto kSnapshotRemoved =
    key("removed", "`[type_id, id]` of items in that previous snapshot that are not in this one.",
        kGetFromItemWriter);

inline constexpr auto kSnapshotSchema = schema(
    key("tick", "The tick it shows.", &SnapshotRecord::tick),
    key("delta_tick", "Tick of the snapshot it is based on; −1 for none.",
        &SnapshotRecord::delta_tick),
    key("crc_wanted", "The server's checksum; null for an empty delta, which has none.",
        [](const SnapshotRecord& r) { return NumberOrNull{r.crc_wanted}; }),
    key("crc_got", "The checksum of the rebuilt snapshot; null if it could not be rebuilt.",
        [](const SnapshotRecord& r) { return NumberOrNull{r.crc_got}; }),
    key("ok", "Rebuilt, and the checksums match.", &SnapshotRecord::rebuilt),
    key("num_items", "Items in the snapshot.",
        [](const SnapshotRecord& r) { return r.items.size(); }),
    key("bytes", "Bytes of the delta on the wire.", &SnapshotRecord::bytes),
    key("parts", "Parts that the delta arrived in.", &SnapshotRecord::parts),
    filter_key("size_bytes", "Counted as the server counts against its limit.",
               [](const SnapshotRecord& r) { return value_if(r.rebuilt, r.items.size_bytes()); }),
    kSnapshotFull, kSnapshotItems, kSnapshotRemoved);

inline constexpr auto kWorldRenumbered = key(
    "renumbered",
    "`[session, number, id]`: the session's client knows the player with this id by another "
    "number, "
    "which is the one in its messages. All of them, in a full world and when they changed; absent "
    "if there are none.",
    kGetFromItemWriter);

inline constexpr auto kWorldSchema = schema(
    key("tick", "The tick it shows.", &WorldRecord::tick),
    key("server", "The server's address.", &WorldRecord::server),
    key("run", "Counts the server's starts and map changes from 1; ticks restart with each.",
        &WorldRecord::run),
    key("map", "The name of the run's map, as announced; absent while unknown.",
        [](const WorldRecord& r) {
            return text_unless_empty(r.map == nullptr ? std::string_view{} : r.map->name);
        }),
    key("views", "Sessions whose snapshot of this tick is included.", &WorldRecord::views),
    key("complete", "Every session due a snapshot of this tick is included.",
        &WorldRecord::complete),
    key("num_items", "Items in the world.",
        [](const WorldRecord& r) { return r.merged.items.size(); }),
    filter_key("size_bytes", "Counted as the server counts against its limit.",
               [](const WorldRecord& r) { return r.merged.items.size_bytes(); }),
    key("full",
        "True if `items` lists all of them: with `--items all`, in the first of a run, and "
        "in every 250th.",
        kGetFromItemWriter),
    key("items",
        "As in a `snapshot`, with `seen_by`; with `--items changed`, those that are new or "
        "differ from the previous world.",
        [](const WorldRecord& r) { return SnapshotItems{&r.merged}; }),
    key("removed", "`[type_id, id]` of items in the previous world that are not in this one.",
        kGetFromItemWriter),
    kWorldRenumbered);

inline constexpr auto kFindingItemSchema =
    schema(key("type", "Its name; empty if unknown.", &FindingItem::type),
           key("type_id", "As on the wire.", &FindingItem::type_id),
           key("id", "As on the wire.", &FindingItem::id));

inline constexpr auto kCauseCandidateSchema =
    schema(object("item", "The item.", kFindingItemSchema,
                  [](const CauseCandidate& r) { return &r.item; }),
           key("field", "Its field; absent if the item as a whole is meant.",
               kGetNonEmptyText<&CauseCandidate::field>),
           key("value", "What the delta gave.", &CauseCandidate::value),
           key("expected", "What it must have been, if this is the wrong one.",
               &CauseCandidate::expected));

inline constexpr auto kCauseCandidateSummarySchema =
    schema(key("count", "How many there are.", &CauseCandidateSummary::count),
           key("likeliest",
               "The likeliest few, the likeliest first: `item`, `field`, `value` and `expected` as "
               "in the finding.",
               [](const CauseCandidateSummary& r) { return CauseCandidates{r.likeliest}; }));

inline constexpr auto kFindingSchema = schema(
    key("id", "From a closed table; `twscope explain` prints it with causes.", &FindingRecord::id),
    key("severity", "`info`, `warning` or `error`.",
        [](const FindingRecord& r) { return severity_of(r); }),
    key("tick", "Tick of the snapshot.", &FindingRecord::tick),
    key("delta_tick", "Tick of the snapshot it is based on.", &FindingRecord::delta_tick),
    key("offset",
        "Byte offset: in the datagram or payload, or in the `part` of a delta that `hex` shows.",
        &FindingRecord::offset),
    key("part", "Which 900-byte part of the delta, from 0.", &FindingRecord::part),
    object("item", "The item it is about.", kFindingItemSchema,
           kGetOptionalObject<&FindingRecord::item>),
    key("field", "The item's field; `int_4` for an int without a name, counted from 0.",
        kGetNonEmptyText<&FindingRecord::field>),
    object("candidates", "What it may be about, if that is not known.",
           kCauseCandidateSummarySchema, kGetOptionalObject<&FindingRecord::candidates>),
    key("crc_wanted", "The server's checksum.", &FindingRecord::crc_wanted),
    key("crc_got", "The checksum of what was rebuilt.", &FindingRecord::crc_got),
    key("since_tick", "The first tick of what lasts for several, such as unusable snapshots.",
        &FindingRecord::since_tick),
    key("lost", "How many snapshots, datagrams or records are lost or unusable so far.",
        &FindingRecord::lost),
    key("value", "A number the finding is about.", &FindingRecord::value),
    key("limit", "What that number may be.", &FindingRecord::limit),
    key("expected", "What the value must have been.", &FindingRecord::expected),
    key("confirmed", "How many snapshots or worlds confirm it.", &FindingRecord::confirmed),
    key("ddnet_code", "What a DDNet client prints for it (`delta unpack failed. error=-205`).",
        &FindingRecord::ddnet_code),
    key("name", "Name of the message, field, map or error.",
        kGetNonEmptyText<&FindingRecord::name>),
    key("what", "What it means, in one sentence.",
        [](const FindingRecord& r) { return finding_info(r.id).sentence; }),
    key("detail", "Further details.", kGetNonEmptyText<&FindingRecord::detail>),
    key("hex",
        "The bytes in question; `[redacted]` if they may contain a password, code or whisper (also "
        "if nothing could be decoded), unless `--show-secrets` is given.",
        [](const FindingRecord& r) {
            return value_if(!r.bytes.empty(), Hex{r.bytes, r.secrecy});
        }),
    key("at", "Position of a misplaced character; its tile is the wall that it touches.",
        &FindingRecord::place),
    key("other_session", "The other session involved.", &FindingRecord::other_session),
    key("left_out",
        "How many of this `id` and session (`snapshot.size_differs`: and type) were left out since "
        "the last one written.",
        &FindingRecord::left_out));

inline constexpr auto kLossSchema =
    schema(key("lost", "How many records are missing here.", &LossRecord::lost),
           key("since", "When the first of them was lost.",
               [](const LossRecord& r) { return UtcTime{r.since}; }),
           key("cause", "`disk_full`, `disk_error`, or `too_slow` where the disk is only slow.",
               [](const LossRecord& r) { return EnumWord<kLossCauses>{r.cause}; }));

inline constexpr auto kSegmentSchema =
    schema(key("name", "Name of the segment's file.", &SegmentRecord::name),
           key("number", "The segment's number, from 1.", &SegmentRecord::number));

// The keys of totals, summaries and impairments. The counters are declared in stats.h.

inline constexpr auto kDirectionSchema =
    schema(TotalsRow<DirectionCounters, std::uint64_t, CounterRow>{},
           TotalsRow<PerDirectionDistributions, Distribution, DistributionRow>{});

inline constexpr auto kSnapshotTotalsSchema =
    schema(TotalsRow<SnapshotCounters, std::uint64_t, CounterRow>{},
           TotalsRow<SnapshotDistributions, Distribution, DistributionRow>{});

inline constexpr auto kImpairmentTotalsSchema =
    schema(TotalsRow<ImpairmentCounters, std::uint64_t, CounterRow>{});

inline constexpr auto kWorldTotalsSchema =
    schema(TotalsRow<WorldCounters, std::uint64_t, CounterRow>{});

/// The keys of the object `impaired` in a summary of a run that simulated an impairment.
inline constexpr auto kImpairedSchema =
    schema(object("c2s", "From client to server.", kImpairmentTotalsSchema,
                  [](const std::array<ImpairmentStats, 2>& r) { return r.data(); }),
           object("s2c", "From server to client.", kImpairmentTotalsSchema,
                  [](const std::array<ImpairmentStats, 2>& r) { return &r[1]; }));

/// The keys of `SummaryRecord::stats`.
inline constexpr auto kStatsSchema =
    schema(object("c2s", "From client to server.", kDirectionSchema,
                  [](const SessionStats& r) { return r.directions.data(); }),
           object("s2c", "From server to client.", kDirectionSchema,
                  [](const SessionStats& r) { return &r.directions[1]; }),
           object("snapshots", "Totals of snapshots.", kSnapshotTotalsSchema,
                  [](const SessionStats& r) { return &r; }),
           TotalsRow<SessionDistributions, Distribution, DistributionRow>{},
           TotalsRow<SessionCounters, std::uint64_t, CounterRow>{},
           key("findings", "How often each finding occurred; those that did not are absent.",
               [](const SessionStats& r) { return FindingTotals{&r.findings}; }));

inline constexpr auto kSummarySchema = schema(
    key("sessions", "Number of sessions; only for the run.",
        [](const SummaryRecord& r) { return value_if(r.head.session == 0, r.sessions); }),
    inlined(kStatsSchema, [](const SummaryRecord& r) { return r.stats; }),
    object("impaired", "What became of datagrams on impaired lines; only for a run that had some.",
           kImpairedSchema, kGetOptionalObject<&SummaryRecord::impaired>),
    object("worlds", "Totals of worlds; only for a run that made some.", kWorldTotalsSchema,
           kGetOptionalObject<&SummaryRecord::worlds>));

inline constexpr auto kImpairedDirectionSchema = schema(
    key("delay_us", "Delay of every datagram, in microseconds.", &ImpairedDirection::delay_us),
    key("jitter_us", "Random variation of the delay, in microseconds.",
        &ImpairedDirection::jitter_us),
    key("loss_ppm", "Share that is lost, in millionths.", &ImpairedDirection::loss_ppm),
    key("dup_ppm", "Share that is sent twice, in millionths.", &ImpairedDirection::dup_ppm),
    key("reorder_ppm", "Share that is overtaken by later ones, in millionths.",
        &ImpairedDirection::reorder_ppm),
    key("burst", "Mean length of a loss, in datagrams; absent if not set.",
        &ImpairedDirection::burst),
    key("rate_bps", "Bits per second that pass; absent if not set.", &ImpairedDirection::rate_bps));

inline constexpr auto kImpairmentSchema = schema(
    key("settings", "As `--impair` takes them, or `none`.", &ImpairmentRecord::settings),
    key("seed", "From `--impair-seed`: the same seed and traffic give the same impairment.",
        &ImpairmentRecord::seed),
    object("c2s", "From client to server.", kImpairedDirectionSchema,
           [](const ImpairmentRecord& r) { return r.directions.data(); }),
    object("s2c", "From server to client.", kImpairedDirectionSchema,
           [](const ImpairmentRecord& r) { return &r.directions[1]; }),
    key("again", "True if it repeats, at the beginning of a segment, what was in force before.",
        kGetTrueFlag<&ImpairmentRecord::again>));

/// The schemas of all record types, in the order of Record.
inline constexpr std::tuple kSchemas{
    &kSessionSchema, &kMessageSchema,    &kMapSchema,  &kSnapshotSchema, &kFindingSchema,
    &kSummarySchema, &kImpairmentSchema, &kLossSchema, &kWorldSchema,    &kSegmentSchema};

template <typename T>
constexpr const auto& schema_of(const T& /*record*/) {
    return *std::get<Record{static_cast<const T*>(nullptr)}.index()>(kSchemas);
}

} // namespace tw::record
