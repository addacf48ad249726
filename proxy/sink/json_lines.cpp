#include "proxy/sink/json_lines.h"

#include "proxy/base/clock.h"
#include "proxy/record/json.h"
#include "proxy/record/schema.h"
#include "proxy/sink/split_lines.h"
#include "proxy/wire/secrets.h"

#include <cstring>
#include <type_traits>
#include <utility>

#include <fmt/format.h>

namespace tw::sink {

OpenSessions::CurrentLines* OpenSessions::find_session(std::uint32_t number) {
    const auto found = sessions_.find(number);
    if (found != sessions_.end()) {
        return &found->second;
    }
    return sessions_.size() < kMaxSessions ? &sessions_[number] : nullptr;
}

void OpenSessions::append_stored_lines(JsonBuffer& out) const {
    for (const auto& [number, session] : sessions_) {
        for (const std::string* const line : {&session.open, &session.established, &session.map}) {
            if (!line->empty()) {
                out.append(*line);
                out.append('\n');
            }
        }
    }
}

bool OpenSessions::is_first_snapshot(const record::Record& record, std::uint32_t segment) {
    if (std::holds_alternative<const record::WorldRecord*>(record)) {
        return std::exchange(last_full_world_segment_, segment) != segment;
    }
    const auto* const* const snapshot = std::get_if<const record::SnapshotRecord*>(&record);
    if (snapshot == nullptr || !(*snapshot)->rebuilt) {
        return false;
    }
    CurrentLines* const session = find_session((*snapshot)->head.session);
    return session != nullptr && std::exchange(session->last_full_segment, segment) != segment;
}

void OpenSessions::store_line(const record::Record& record, std::string_view line) {
    line.remove_suffix(1);
    if (const auto* const* const event = std::get_if<const record::SessionRecord*>(&record)) {
        on_session_event(**event, line);
    } else if (const auto* const* const map = std::get_if<const record::MapRecord*>(&record)) {
        if (CurrentLines* const session = find_session((*map)->head.session)) {
            session->map = record::as_repeated_record(line);
        }
    }
}

void OpenSessions::on_session_event(const record::SessionRecord& event, std::string_view line) {
    const bool ends =
        event.event == record::SessionEvent::close && event.reason != record::kReconnected;
    CurrentLines* const session = ends ? nullptr : find_session(event.head.session);
    if (session == nullptr) {
        sessions_.erase(event.head.session);
    } else if (event.event == record::SessionEvent::open) {
        session->open = record::as_repeated_record(line);
    } else if (event.event == record::SessionEvent::established) {
        session->established = record::as_repeated_record(line);
    } else { // the client reconnected in the same session
        session->established.clear();
        session->map.clear();
    }
}

using wire::FieldValue;

namespace {

/// The closing brackets of the JSON arrays and objects that are open while a flat list of fields is
/// written.
class BracketStack {
  public:
    void push(FieldValue::Kind kind) {
        if (kind == FieldValue::Kind::array_begin) {
            open_.push_back(']');
        } else if (kind == FieldValue::Kind::object_begin) {
            open_.push_back('}');
        }
    }

    char pop() {
        const char bracket = open_.back();
        open_.pop_back();
        return bracket;
    }

    [[nodiscard]] bool in_array() const { return open_.find(']') != std::string::npos; }

  private:
    std::string open_; // always short enough to need no allocation
};

template <typename Value>
constexpr bool kOptional = false;
template <typename Value>
constexpr bool kOptional<std::optional<Value>> = true;

} // namespace

JsonLines::JsonLines(const JsonOptions& options, Output& output)
    : options_{options}, output_{&output}, items_{options.items, options.raw,
                                                  options.objects == nullptr
                                                      ? snapshot::ObjectSet::standard()
                                                      : *options.objects},
      segment_{output.current_segment()} {}

void JsonLines::on_record(const record::Record& record) {
    if (!options_.messages && std::holds_alternative<const record::MessageRecord*>(record)) {
        return;
    }
    if (output_->current_segment() != segment_) {
        begin_segment();
    }
    lists_all_items_ = segment_ != 0 && sessions_.is_first_snapshot(record, segment_);
    const std::size_t begin = out_.size();
    out_.append('{');
    std::visit(
        [&](const auto* concrete) {
            write_rows(record::TypedHeader{&concrete->head, record.index()}, record::kHeadSchema);
            write_rows(*concrete, record::schema_of(*concrete));
        },
        record);
    out_.append(std::string_view{"}\n"});
    if (segment_ != 0) {
        sessions_.store_line(record, out_.view().substr(begin));
    }
    if (options_.max_line_bytes != 0) {
        split_long_line(begin);
    }
    if (out_.size() >= kBlockBytes) {
        write_collected_lines();
    }
}

void JsonLines::flush() {
    if (output_->current_segment() != segment_) {
        begin_segment();
    }
    write_collected_lines();
}

void JsonLines::write_collected_lines() {
    if (!out_.empty()) {
        output_->write_to_segment(segment_, out_.view());
        passed_bytes_ += out_.size();
        out_.clear();
    }
}

void JsonLines::split_long_line(std::size_t begin) {
    std::string_view line = out_.view().substr(begin);
    line.remove_suffix(1);
    split_lines_.clear();
    if (split_line(line, options_.max_line_bytes, split_lines_)) {
        out_.truncate(begin);
        out_.append(split_lines_.view());
    }
}

void JsonLines::begin_segment() {
    write_collected_lines();
    segment_ = output_->current_segment();
    output_->advance_to_segment(segment_);
    sessions_.append_stored_lines(out_);
}

template <typename Source, typename Schema>
void JsonLines::write_rows(const Source& source, const Schema& schema) {
    record::for_each_row(schema, [&](const auto& row) { write_row(source, row); });
}

template <typename Source, typename Row>
void JsonLines::write_row(const Source& source, const Row& row) {
    if constexpr (record::kIsTotals<Row>) {
        const auto cells = row.get(source);
        for (std::size_t i = 0; i < cells.size(); ++i) {
            out_.append_key(row.rows()[i].key);
            put(cells[i]);
        }
    } else if constexpr (record::kIsInlined<Row>) {
        write_rows(*row.get(source), *row.schema);
    } else if constexpr (record::kIsObject<Row>) {
        if (const auto* object = row.get(source); object != nullptr) {
            put_key(row.key);
            out_.append('{');
            write_rows(*object, *row.schema);
            out_.append('}');
        }
    } else if (row.use != record::KeyUse::filter_only) {
        write_member(row.key, std::invoke(row.get, source));
    }
}

template <typename Key, typename Value>
void JsonLines::write_member(const Key& key, const Value& value) {
    if constexpr (kOptional<Value>) {
        if (value) {
            write_member(key, *value);
        }
    } else if constexpr (std::is_same_v<Value, record::ValueNames>) {
        put_names(key.name(), value);
    } else if constexpr (std::is_same_v<Value, record::SnapshotItems>) {
        items_.write_items(*value.record, lists_all_items_, out_);
    } else if constexpr (!std::is_same_v<Value, record::ItemWriterValue>) {
        put_key(key);
        put(value);
    }
}

template <std::size_t Length>
void JsonLines::put_key(const record::KeyText<Length>& key) {
    if (out_.back() == '{') {
        out_.append(key.json().substr(1));
    } else {
        out_.append(key.json());
    }
}

template <typename Value>
void JsonLines::put(const Value& value) {
    if constexpr (std::is_same_v<Value, bool>) {
        out_.append(value ? std::string_view{"true"} : std::string_view{"false"});
    } else if constexpr (std::is_same_v<Value, double>) {
        out_.append_three_decimals(value);
    } else if constexpr (std::is_integral_v<Value>) {
        constexpr bool kIsShort =
            sizeof value < sizeof(std::int32_t) || std::is_same_v<Value, std::int32_t>;
        using Int = std::conditional_t<kIsShort, std::int32_t, std::int64_t>;
        out_.append_int(static_cast<Int>(value));
    } else if constexpr (std::is_convertible_v<Value, std::string_view>) {
        out_.append_string(value);
    } else if constexpr (record::kIsWord<Value>) {
        out_.append_string(value.text);
    } else if constexpr (std::is_same_v<Value, record::Severity>) {
        out_.append_string(record::severity_name(value));
    } else if constexpr (std::is_same_v<Value, record::FindingId>) {
        out_.append_string(record::finding_info(value).name);
    } else if constexpr (std::is_same_v<Value, record::Hex32>) {
        out_.append_string(fmt::format("{:08x}", value.value));
    } else if constexpr (std::is_same_v<Value, snapshot::Uuid>) {
        const auto shown = snapshot::format_uuid(value);
        out_.append_string({shown.data(), shown.size()});
    } else if constexpr (std::is_same_v<Value, map::Location>) {
        ItemWriter::write_location(value, out_);
    } else {
        put_value(value);
    }
}

void JsonLines::put_value(record::UtcTime moment) {
    const record::SecondAndNanosecond parts = record::split_time(moment.time);
    if (parts.second != second_) {
        second_ = parts.second;
        second_text_ = '"' + base::format_utc(parts.second, base::kRecordTimeFormat) + '.';
    }
    out_.append(second_text_);
    const auto micros = static_cast<std::uint32_t>(parts.nanosecond / 1000);
    char* to = out_.reserve(kMaxPutIntBytes);
    to = put_three_digits(put_three_digits(to, micros / 1000), micros % 1000);
    *to++ = 'Z';
    *to++ = '"';
    out_.set_end(to);
}

void JsonLines::put_value(record::NumberOrNull number) {
    if (number.value) {
        out_.append_int(*number.value);
    } else {
        out_.append(std::string_view{"null"});
    }
}

void JsonLines::put_value(const record::Hex& hex) {
    if (hex.secrecy == wire::Secrecy::secret && !options_.show_secrets) {
        put(wire::kRedacted);
    } else {
        out_.append_hex(hex.bytes);
    }
}

void JsonLines::put_value(record::MessageFields fields) {
    out_.append('{');
    BracketStack open;
    for (const FieldValue& value : fields.values) {
        if (value.kind == FieldValue::Kind::end) {
            out_.append(open.pop());
            continue;
        }
        open.push(value.kind);
        if (!value.name.empty()) {
            out_.append_key(value.name);
        } else if (out_.back() != '[') {
            out_.append(',');
        }
        put_field(value);
    }
    out_.append('}');
}

void JsonLines::put_field(const FieldValue& value) {
    switch (value.kind) {
    case FieldValue::Kind::array_begin:
        out_.append('[');
        break;
    case FieldValue::Kind::object_begin:
        out_.append('{');
        break;
    case FieldValue::Kind::boolean:
        put(value.integer != 0);
        break;
    case FieldValue::Kind::integer:
        out_.append_int(value.integer);
        break;
    case FieldValue::Kind::string:
        if (value.secrecy == wire::Secrecy::secret && !options_.show_secrets) {
            put(std::string{wire::unredacted_part(value)}.append(wire::kRedacted));
        } else {
            put(wire::as_text(value.bytes));
        }
        break;
    case FieldValue::Kind::raw:
        put(record::Hex{value.bytes, value.secrecy});
        break;
    case FieldValue::Kind::uuid: {
        snapshot::Uuid uuid{};
        std::memcpy(uuid.data(), value.bytes.data(), std::min(uuid.size(), value.bytes.size()));
        put(uuid);
        break;
    }
    case FieldValue::Kind::end:
        break;
    }
}

void JsonLines::put_names(std::string_view key, record::ValueNames names) {
    bool any = false;
    BracketStack open;
    for (const FieldValue& value : names.values) {
        if (value.kind == FieldValue::Kind::end) {
            open.pop();
            continue;
        }
        open.push(value.kind);
        if (value.names == nullptr || value.kind != FieldValue::Kind::integer || open.in_array()) {
            continue;
        }
        const auto shown = static_cast<std::int32_t>(value.integer);
        const auto name = value.names->find(shown);
        if (!name && (!value.names->flags || shown == 0)) {
            continue;
        }
        if (!any) {
            out_.append_key(key);
            out_.append('{');
            any = true;
        }
        out_.append_key(value.name);
        if (value.names->flags) {
            write_flag_names(*value.names, shown, out_);
        } else {
            out_.append_string(*name);
        }
    }
    if (any) {
        out_.append('}');
    }
}

void JsonLines::put_value(const record::Distribution& distribution) {
    out_.append(std::string_view{R"({"count":)"});
    put(distribution.count);
    if (distribution.count != 0) {
        out_.append(std::string_view{R"(,"min":)"});
        put(distribution.min);
        out_.append(std::string_view{R"(,"mean":)"});
        put(distribution.mean());
        out_.append(std::string_view{R"(,"max":)"});
        put(distribution.max);
    }
    out_.append('}');
}

void JsonLines::put_value(record::CauseCandidates candidates) {
    out_.append('[');
    for (const record::CauseCandidate& each : candidates.list) {
        if (out_.back() != '[') {
            out_.append(',');
        }
        out_.append('{');
        write_rows(each, record::kCauseCandidateSchema);
        out_.append('}');
    }
    out_.append(']');
}

void JsonLines::put_value(record::FindingTotals findings) {
    out_.append('{');
    for (const record::FindingInfo& info : record::finding_table()) {
        const std::uint64_t count = (*findings.counts)[static_cast<std::size_t>(info.id)];
        if (count != 0) {
            out_.append_key(info.name);
            put(count);
        }
    }
    out_.append('}');
}

std::string json_line(const record::Record& record, const JsonOptions& options) {
    TextOutput line;
    JsonLines json{options, line};
    json.on_record(record);
    json.flush();
    return std::move(line.text);
}

} // namespace tw::sink
