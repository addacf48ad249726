// The keys of sessions, messages, maps, snapshots and findings.

#include "proxy/filter/tables.h"

#include <tuple>

namespace tw::filter {

using record::FindingRecord;
using record::ImpairedDirection;
using record::ImpairmentRecord;
using record::MapRecord;
using record::MessageRecord;
using record::Record;
using record::RecordHead;
using record::SessionRecord;
using record::SnapshotRecord;
using record::SummaryRecord;

namespace {

constexpr std::array<std::string_view, 3> kEvents{"open", "established", "close"};
constexpr std::array<std::string_view, 3> kLayers{"chunk", "control", "connless"};
constexpr std::array<std::string_view, 2> kDirections{"c2s", "s2c"};

template <auto kMember, typename Source>
Found number(const Source& source, Scratch& /*unused*/) {
    return number_value(source.*kMember);
}

template <auto kMember, typename Source>
Found text(const Source& source, Scratch& /*unused*/) {
    return Value::of(std::string_view{source.*kMember});
}

/// Text that is left out when empty.
template <auto kMember, typename Source>
Found some_text(const Source& source, Scratch& /*unused*/) {
    const std::string_view value = source.*kMember;
    return value.empty() ? std::nullopt : Found{Value::of(value)};
}

Found text_if(bool there, std::string_view text) {
    return there ? Found{Value::of(text)} : std::nullopt;
}

Value severity_value(record::Severity severity) {
    return {.text = record::severity_name(severity),
            .number = static_cast<std::int64_t>(severity),
            .word = true};
}

const RecordHead& head_of(const Record& record) {
    return std::visit([](const auto* each) -> const RecordHead& { return each->head; }, record);
}

constexpr std::array<KeyRow<Record>, 5> kHeadKeys{{
    {"v", KeyKind::number,
     [](const Record&, Scratch&) -> Found { return Value::of(std::int64_t{1}); }},
    {"t", KeyKind::text,
     [](const Record& r, Scratch& s) -> Found { return time_value(head_of(r).time, s); }},
    {"type", KeyKind::text,
     [](const Record& r, Scratch&) -> Found { return Value::of(kRecordTypes[r.index()]); }},
    {"session", KeyKind::number,
     [](const Record& r, Scratch&) { return number_value(head_of(r).session); }},
    {"dir", KeyKind::text,
     [](const Record& r, Scratch&) -> Found {
         const auto direction = head_of(r).direction;
         return direction ? Found{Value::of(kDirections[static_cast<std::size_t>(*direction)])}
                          : std::nullopt;
     }},
}};

constexpr std::array<KeyRow<SessionRecord>, 5> kSessionKeys{{
    {"event", KeyKind::text,
     [](const SessionRecord& r, Scratch&) -> Found {
         return Value::of(kEvents[static_cast<std::size_t>(r.event)]);
     }},
    {"client", KeyKind::text, text<&SessionRecord::client>},
    {"server", KeyKind::text, text<&SessionRecord::server>},
    {"protocol", KeyKind::text, some_text<&SessionRecord::protocol>},
    {"reason", KeyKind::text,
     [](const SessionRecord& r, Scratch&) {
         return text_if(r.event == record::SessionEvent::close, r.reason);
     }},
}};

bool in_chunk(const MessageRecord& record) {
    return record.layer == record::MessageLayer::chunk;
}

template <bool MessageRecord::*kMember>
Found chunk_flag(const MessageRecord& record, Scratch& /*unused*/) {
    return in_chunk(record) ? Found{Value::of(record.*kMember)} : std::nullopt;
}

constexpr std::array<KeyRow<MessageRecord>, 9> kMessageKeys{{
    {"name", KeyKind::text,
     [](const MessageRecord& r, Scratch&) -> Found {
         return Value::of(r.name.empty() ? std::string_view{"unknown"} : r.name);
     }},
    {"system", KeyKind::boolean, chunk_flag<&MessageRecord::system>},
    {"vital", KeyKind::boolean, chunk_flag<&MessageRecord::vital>},
    {"seq", KeyKind::number,
     [](const MessageRecord& r, Scratch&) {
         return in_chunk(r) && r.vital ? number_value(r.sequence) : std::nullopt;
     }},
    {"layer", KeyKind::text,
     [](const MessageRecord& r, Scratch&) {
         return text_if(!in_chunk(r), kLayers[static_cast<std::size_t>(r.layer)]);
     }},
    {"size", KeyKind::number, number<&MessageRecord::size>},
    {"uuid", KeyKind::text,
     [](const MessageRecord& r, Scratch& s) {
         return r.name.empty() && r.uuid ? Found{uuid_value(*r.uuid, s)} : std::nullopt;
     }},
    {"id", KeyKind::number,
     [](const MessageRecord& r, Scratch&) {
         const bool shown = r.name.empty() && !r.uuid && r.layer != record::MessageLayer::connless;
         return shown ? number_value(r.number) : std::nullopt;
     }},
    {"raw", KeyKind::text,
     [](const MessageRecord& r, Scratch& s) {
         return r.name.empty() ? Found{hex_value(r.raw, s)} : std::nullopt;
     }},
}};

template <int MapRecord::*kMember>
Found known_extent(const MapRecord& record, Scratch& /*unused*/) {
    return record.width != 0 ? number_value(record.*kMember) : std::nullopt;
}

constexpr std::array<KeyRow<MapRecord>, 7> kMapKeys{{
    {"name", KeyKind::text, text<&MapRecord::name>},
    {"crc", KeyKind::text,
     [](const MapRecord& r, Scratch& s) -> Found {
         std::array<std::byte, 4> bytes{};
         for (std::size_t i = 0; i < bytes.size(); ++i) {
             bytes[i] = static_cast<std::byte>(r.crc >> (24U - 8U * i));
         }
         return hex_value(bytes, s);
     }},
    {"size", KeyKind::number, number<&MapRecord::size>},
    {"sha256", KeyKind::text,
     [](const MapRecord& r, Scratch& s) {
         return r.sha256 ? Found{hex_value(std::as_bytes(std::span{*r.sha256}), s)} : std::nullopt;
     }},
    {"source", KeyKind::text, text<&MapRecord::source>},
    {"width", KeyKind::number, known_extent<&MapRecord::width>},
    {"height", KeyKind::number, known_extent<&MapRecord::height>},
}};

constexpr std::array<KeyRow<SnapshotRecord>, 9> kSnapshotKeys{{
    {"tick", KeyKind::number, number<&SnapshotRecord::tick>},
    {"delta_tick", KeyKind::number, number<&SnapshotRecord::delta_tick>},
    {"crc_wanted", KeyKind::number, number<&SnapshotRecord::crc_wanted>},
    {"crc_got", KeyKind::number, number<&SnapshotRecord::crc_got>},
    {"ok", KeyKind::boolean,
     [](const SnapshotRecord& r, Scratch&) -> Found { return Value::of(r.ok); }},
    {"num_items", KeyKind::number,
     [](const SnapshotRecord& r, Scratch&) { return number_value(r.items.size()); }},
    {"bytes", KeyKind::number, number<&SnapshotRecord::bytes>},
    {"parts", KeyKind::number, number<&SnapshotRecord::parts>},
    {"size_bytes", KeyKind::number,
     [](const SnapshotRecord& r, Scratch&) {
         return r.rebuilt ? number_value(r.items.size_bytes()) : std::nullopt;
     }},
}};

template <auto kMember>
Found item_number(const FindingRecord& record, Scratch& /*unused*/) {
    return record.item ? number_value((*record.item).*kMember) : std::nullopt;
}

constexpr std::array<KeyRow<FindingRecord>, 20> kFindingKeys{{
    {"id", KeyKind::text,
     [](const FindingRecord& r, Scratch&) -> Found {
         return Value::of(record::finding_info(r.id).name);
     }},
    {"severity", KeyKind::text,
     [](const FindingRecord& r, Scratch&) -> Found {
         return severity_value(record::finding_info(r.id).severity);
     }},
    {"tick", KeyKind::number, number<&FindingRecord::tick>},
    {"delta_tick", KeyKind::number, number<&FindingRecord::delta_tick>},
    {"offset", KeyKind::number, number<&FindingRecord::offset>},
    {"part", KeyKind::number, number<&FindingRecord::part>},
    {"item.type", KeyKind::text,
     [](const FindingRecord& r, Scratch&) {
         return r.item ? Found{Value::of(r.item->type)} : std::nullopt;
     }},
    {"item.type_id", KeyKind::number, item_number<&record::FindingItem::type_id>},
    {"item.id", KeyKind::number, item_number<&record::FindingItem::id>},
    {"crc_wanted", KeyKind::number, number<&FindingRecord::crc_wanted>},
    {"crc_got", KeyKind::number, number<&FindingRecord::crc_got>},
    {"since_tick", KeyKind::number, number<&FindingRecord::since_tick>},
    {"lost", KeyKind::number, number<&FindingRecord::lost>},
    {"value", KeyKind::number, number<&FindingRecord::value>},
    {"limit", KeyKind::number, number<&FindingRecord::limit>},
    {"ddnet_code", KeyKind::number, number<&FindingRecord::ddnet_code>},
    {"name", KeyKind::text, some_text<&FindingRecord::name>},
    {"what", KeyKind::text,
     [](const FindingRecord& r, Scratch&) -> Found {
         return Value::of(record::finding_info(r.id).sentence);
     }},
    {"detail", KeyKind::text, some_text<&FindingRecord::detail>},
    {"hex", KeyKind::text,
     [](const FindingRecord& r, Scratch& s) {
         return r.bytes.empty() ? std::nullopt : Found{hex_value(r.bytes, s)};
     }},
}};

template <std::size_t kIndex, auto kMember>
Found impaired(const ImpairmentRecord& record, Scratch& /*unused*/) {
    return number_value(record.directions[kIndex].*kMember);
}

template <std::size_t kIndex>
Found mean_burst(const ImpairmentRecord& record, Scratch& /*unused*/) {
    const auto burst = record.directions[kIndex].burst;
    return burst ? Found{Value::of(*burst)} : std::nullopt;
}

constexpr std::array<KeyRow<ImpairmentRecord>, 16> kImpairmentKeys{{
    {"settings", KeyKind::text, text<&ImpairmentRecord::settings>},
    {"seed", KeyKind::number, number<&ImpairmentRecord::seed>},
    {"c2s.delay_us", KeyKind::number, impaired<0, &ImpairedDirection::delay_us>},
    {"c2s.jitter_us", KeyKind::number, impaired<0, &ImpairedDirection::jitter_us>},
    {"c2s.loss_ppm", KeyKind::number, impaired<0, &ImpairedDirection::loss_ppm>},
    {"c2s.dup_ppm", KeyKind::number, impaired<0, &ImpairedDirection::dup_ppm>},
    {"c2s.reorder_ppm", KeyKind::number, impaired<0, &ImpairedDirection::reorder_ppm>},
    {"c2s.burst", KeyKind::number, mean_burst<0>},
    {"c2s.rate_bps", KeyKind::number, impaired<0, &ImpairedDirection::rate_bps>},
    {"s2c.delay_us", KeyKind::number, impaired<1, &ImpairedDirection::delay_us>},
    {"s2c.jitter_us", KeyKind::number, impaired<1, &ImpairedDirection::jitter_us>},
    {"s2c.loss_ppm", KeyKind::number, impaired<1, &ImpairedDirection::loss_ppm>},
    {"s2c.dup_ppm", KeyKind::number, impaired<1, &ImpairedDirection::dup_ppm>},
    {"s2c.reorder_ppm", KeyKind::number, impaired<1, &ImpairedDirection::reorder_ppm>},
    {"s2c.burst", KeyKind::number, mean_burst<1>},
    {"s2c.rate_bps", KeyKind::number, impaired<1, &ImpairedDirection::rate_bps>},
}};

/// All tables up to that of summaries, in the order of Record.
constexpr auto kTables =
    std::tie(kSessionKeys, kMessageKeys, kMapKeys, kSnapshotKeys, kFindingKeys);
constexpr std::size_t kSummaryIndex = std::tuple_size_v<decltype(kTables)>;
constexpr std::size_t kFindingIndex = kSummaryIndex - 1;
/// The one key of findings that may hold a secret, the last of its table.
constexpr std::size_t kHexRow = kFindingKeys.size() - 1;
static_assert(kFindingKeys[kHexRow].name == "hex");

constexpr std::size_t kImpairmentIndex = kSummaryIndex + 1;

void note_kind(Key& key, KeyKind kind, bool& found) {
    key.kind = found && key.kind != kind ? KeyKind::any : kind;
    found = true;
}

template <std::size_t I>
void find_row(Key& key, bool& found) {
    const auto& table = std::get<I>(kTables);
    key.rows[I] = row_of(table, key.name);
    if (key.rows[I] != Key::kNoRow) {
        note_kind(key, table[static_cast<std::size_t>(key.rows[I])].kind, found);
    }
}

template <std::size_t... I>
bool find_rows(Key& key, std::index_sequence<I...> /*unused*/) {
    bool found = false;
    (find_row<I>(key, found), ...);
    const auto summary = summary_keys();
    const auto at = std::find(summary.begin(), summary.end(), key.name);
    key.rows[kSummaryIndex] = Key::kNoRow;
    if (at != summary.end()) {
        key.rows[kSummaryIndex] = static_cast<std::int16_t>(at - summary.begin());
        note_kind(key, KeyKind::number, found);
    }
    const std::int16_t impairment = row_of(kImpairmentKeys, key.name);
    key.rows[kImpairmentIndex] = impairment;
    if (impairment != Key::kNoRow) {
        note_kind(key, kImpairmentKeys[static_cast<std::size_t>(impairment)].kind, found);
    }
    return found;
}

Found read_finding(const Key& key, const FindingRecord& record, bool show_secrets,
                   Scratch& scratch) {
    const std::int16_t row = key.rows[kFindingIndex];
    if (row == Key::kNoRow) {
        return std::nullopt;
    }
    const bool hidden = record.secrecy == wire::Secrecy::secret && !show_secrets;
    if (row == static_cast<std::int16_t>(kHexRow) && hidden && !record.bytes.empty()) {
        return Value::of(kRedacted);
    }
    return kFindingKeys[static_cast<std::size_t>(row)].read(record, scratch);
}

template <std::size_t I>
Found read_row(const Key& key, const Record& record, Scratch& scratch) {
    const std::int16_t row = key.rows[I];
    return row == Key::kNoRow ? std::nullopt
                              : std::get<I>(kTables)[static_cast<std::size_t>(row)].read(
                                    *std::get<I>(record), scratch);
}

} // namespace

bool find_record_rows(Key& key) {
    if (const std::int16_t row = row_of(kHeadKeys, key.name); row != Key::kNoRow) {
        key.common = true;
        key.rows.fill(row);
        key.kind = kHeadKeys[static_cast<std::size_t>(row)].kind;
        return true;
    }
    return find_rows(key, std::make_index_sequence<kSummaryIndex>{});
}

Found read_record(const Key& key, const Record& record, bool show_secrets, Scratch& scratch) {
    if (key.common) {
        return kHeadKeys[static_cast<std::size_t>(key.rows[0])].read(record, scratch);
    }
    switch (record.index()) {
    case 0:
        return read_row<0>(key, record, scratch);
    case 1:
        return read_row<1>(key, record, scratch);
    case 2:
        return read_row<2>(key, record, scratch);
    case 3:
        return read_row<3>(key, record, scratch);
    case 4:
        return read_finding(key, *std::get<4>(record), show_secrets, scratch);
    default:
        break;
    }
    const std::int16_t row = key.rows[record.index()];
    if (row == Key::kNoRow) {
        return std::nullopt;
    }
    const auto index = static_cast<std::size_t>(row);
    return record.index() == kSummaryIndex
               ? read_summary(*std::get<kSummaryIndex>(record), index)
               : kImpairmentKeys[index].read(*std::get<kImpairmentIndex>(record), scratch);
}

void add_record_keys(std::vector<std::string>& names) {
    const auto add = [&](const auto& table) {
        for (const auto& row : table) {
            names.emplace_back(row.name);
        }
    };
    add(kHeadKeys);
    std::apply([&](const auto&... table) { (add(table), ...); }, kTables);
    add(kImpairmentKeys);
    names.insert(names.end(), summary_keys().begin(), summary_keys().end());
}

std::vector<std::string_view> record_words(std::string_view key) {
    struct Words {
        std::string_view key;
        std::span<const std::string_view> words;
    };

    static constexpr std::array<std::string_view, 3> kSources{"folder", "wire", "none"};
    static constexpr std::array<std::string_view, 3> kSeverities{"info", "warning", "error"};
    static constexpr std::array<Words, 6> kClosed{
        {{"type", kRecordTypes},
         {"dir", kDirections},
         {"event", kEvents},
         {"layer", std::span{kLayers}.subspan(1)}, // "chunk" goes without saying
         {"source", kSources},
         {"severity", kSeverities}}};
    std::vector<std::string_view> words;
    for (const Words& closed : kClosed) {
        if (closed.key == key) {
            words.assign(closed.words.begin(), closed.words.end());
        }
    }
    if (key == "id") {
        for (const record::FindingInfo& info : record::finding_table()) {
            words.push_back(info.name);
        }
    }
    return words;
}

} // namespace tw::filter
