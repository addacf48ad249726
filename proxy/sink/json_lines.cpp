#include "proxy/sink/json_lines.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <ctime>
#include <string>

#include <fmt/chrono.h>
#include <fmt/format.h>

namespace tw::sink {

using wire::Direction;
using wire::FieldValue;

namespace {

constexpr std::string_view kRedacted = "[redacted]";
constexpr std::int64_t kSecond = 1'000'000'000;

std::string_view event_name(record::SessionEvent event) {
    static constexpr std::array<std::string_view, 3> kNames{"open", "established", "close"};
    return kNames[static_cast<std::size_t>(event)];
}

std::string_view chars(std::span<const std::byte> bytes) {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// Which brackets of a flat list of values are open.
class BracketStack {
  public:
    void note(FieldValue::Kind kind) {
        if (kind == FieldValue::Kind::array_begin) {
            open_.push_back(']');
        } else if (kind == FieldValue::Kind::object_begin) {
            open_.push_back('}');
        }
    }

    char close() {
        const char bracket = open_.back();
        open_.pop_back();
        return bracket;
    }

    [[nodiscard]] bool in_array() const { return open_.find(']') != std::string::npos; }

  private:
    std::string open_; // a few characters: within the string's own room
};

} // namespace

JsonLines::JsonLines(const JsonOptions& options, Output& output)
    : options_{options}, output_{&output}, items_{options.items, options.raw,
                                                  options.objects == nullptr
                                                      ? snapshot::ObjectSet::standard()
                                                      : *options.objects} {}

void JsonLines::on_record(const record::Record& record) {
    std::visit([this](const auto* concrete) { write(*concrete); }, record);
    out_.append(std::string_view{"}\n"});
    if (out_.size() >= kBlockBytes) {
        flush();
    }
}

void JsonLines::flush() {
    if (!out_.empty()) {
        output_->write(out_.view());
        out_.clear();
    }
}

void JsonLines::time(record::Timestamp time) {
    std::int64_t second = time / kSecond;
    std::int64_t rest = time % kSecond;
    if (rest < 0) {
        rest += kSecond;
        --second;
    }
    if (second != second_) {
        second_ = second;
        // Years beyond four digits come only from damaged captures.
        constexpr std::int64_t kLast = 253402300799;
        const auto shown = static_cast<std::time_t>(std::clamp<std::int64_t>(second, 0, kLast));
        second_text_ = fmt::format(R"(,"t":"{:%Y-%m-%dT%H:%M:%S}.)", fmt::gmtime(shown));
    }
    out_.append(second_text_);
    std::array<char, 6> micros{};
    auto value = static_cast<std::uint32_t>(rest / 1000);
    for (std::size_t i = micros.size(); i-- > 0; value /= 10) {
        micros[i] = static_cast<char>('0' + value % 10);
    }
    out_.append(std::string_view{micros.data(), micros.size()});
    out_.append(std::string_view{"Z\""});
}

void JsonLines::head(std::string_view type, const record::RecordHead& head) {
    out_.append(std::string_view{R"({"v":1)"});
    time(head.time);
    out_.append(std::string_view{R"(,"type":")"});
    out_.append(type);
    out_.append(std::string_view{R"(","session":)"});
    out_.append_int(std::int64_t{head.session});
    if (head.direction) {
        out_.append(*head.direction == Direction::c2s ? std::string_view{R"(,"dir":"c2s")"}
                                                      : std::string_view{R"(,"dir":"s2c")"});
    }
}

void JsonLines::key(std::string_view name) {
    const char last = out_.back();
    out_.append(last == '{' || last == '[' ? std::string_view{"\""} : std::string_view{",\""});
    out_.append(name);
    out_.append(std::string_view{"\":"});
}

void JsonLines::text(std::string_view name, std::string_view value) {
    key(name);
    out_.append_string(value);
}

void JsonLines::number(std::string_view name, std::int64_t value) {
    key(name);
    out_.append_int(value);
}

void JsonLines::boolean(std::string_view name, bool value) {
    key(name);
    out_.append(value ? std::string_view{"true"} : std::string_view{"false"});
}

void JsonLines::write(const record::SessionRecord& record) {
    head("session", record.head);
    text("event", event_name(record.event));
    text("client", record.client);
    text("server", record.server);
    if (!record.protocol.empty()) {
        text("protocol", record.protocol);
    }
    if (record.event == record::SessionEvent::close) {
        text("reason", record.reason);
    }
}

void JsonLines::values(std::span<const FieldValue> values) {
    key("fields");
    out_.append('{');
    BracketStack open;
    for (const FieldValue& value : values) {
        if (value.kind == FieldValue::Kind::end) {
            out_.append(open.close());
            continue;
        }
        open.note(value.kind);
        if (!value.name.empty()) {
            key(value.name);
        } else if (out_.back() != '[') {
            out_.append(',');
        }
        const bool hidden = value.secrecy == wire::Secrecy::secret && !options_.show_secrets;
        switch (value.kind) {
        case FieldValue::Kind::array_begin:
            out_.append('[');
            break;
        case FieldValue::Kind::object_begin:
            out_.append('{');
            break;
        case FieldValue::Kind::boolean:
            out_.append(value.integer != 0 ? std::string_view{"true"} : std::string_view{"false"});
            break;
        case FieldValue::Kind::integer:
            out_.append_int(value.integer);
            break;
        case FieldValue::Kind::string:
            out_.append_string(hidden ? kRedacted : chars(value.bytes));
            break;
        case FieldValue::Kind::raw:
            if (hidden) {
                out_.append_string(kRedacted);
            } else {
                out_.append_hex(value.bytes);
            }
            break;
        case FieldValue::Kind::uuid: {
            snapshot::Uuid uuid{};
            std::memcpy(uuid.data(), value.bytes.data(), std::min(uuid.size(), value.bytes.size()));
            const auto shown = snapshot::format_uuid(uuid);
            out_.append_string({shown.data(), shown.size()});
            break;
        }
        case FieldValue::Kind::end:
            break;
        }
    }
    out_.append('}');
}

void JsonLines::write(const record::MessageRecord& record) {
    static constexpr std::array<std::string_view, 3> kLayers{"chunk", "control", "connless"};
    head("message", record.head);
    text("name", record.name.empty() ? "unknown" : record.name);
    if (record.layer == record::MessageLayer::chunk) {
        boolean("system", record.system);
        boolean("vital", record.vital);
        if (record.vital) {
            number("seq", record.sequence);
        }
    } else {
        text("layer", kLayers[static_cast<std::size_t>(record.layer)]);
    }
    number("size", static_cast<std::int64_t>(record.size));
    if (record.name.empty()) {
        if (record.uuid) {
            const auto uuid = snapshot::format_uuid(*record.uuid);
            text("uuid", {uuid.data(), uuid.size()});
        } else if (record.layer != record::MessageLayer::connless) {
            number("id", record.number);
        }
        key("raw");
        out_.append_hex(record.raw);
        return;
    }
    values(record.values);
    value_names(record.values);
}

void JsonLines::value_names(std::span<const FieldValue> values) {
    bool any = false;
    BracketStack open;
    for (const FieldValue& value : values) {
        if (value.kind == FieldValue::Kind::end) {
            open.close();
            continue;
        }
        open.note(value.kind);
        if (value.names == nullptr || value.kind != FieldValue::Kind::integer || open.in_array()) {
            continue;
        }
        const auto shown = static_cast<std::int32_t>(value.integer);
        const auto name = value.names->find(shown);
        if (!name && (!value.names->flags || shown == 0)) {
            continue;
        }
        if (!any) {
            key("names");
            out_.append('{');
            any = true;
        }
        key(value.name);
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

void JsonLines::write(const record::MapRecord& record) {
    head("map", record.head);
    text("name", record.name);
    text("crc", fmt::format("{:08x}", record.crc));
    number("size", record.size);
    if (record.sha256) {
        key("sha256");
        out_.append_hex(std::as_bytes(std::span{*record.sha256}));
    }
    text("source", record.source);
    if (record.width != 0) {
        number("width", record.width);
        number("height", record.height);
    }
}

void JsonLines::write(const record::SnapshotRecord& record) {
    head("snapshot", record.head);
    number("tick", record.tick);
    number("delta_tick", record.delta_tick);
    const auto checksum = [&](std::string_view name, std::optional<std::int32_t> value) {
        key(name);
        if (value) {
            out_.append_int(*value);
        } else {
            out_.append(std::string_view{"null"});
        }
    };
    checksum("crc_wanted", record.crc_wanted);
    checksum("crc_got", record.crc_got);
    boolean("ok", record.ok);
    number("num_items", static_cast<std::int64_t>(record.items.size()));
    number("bytes", static_cast<std::int64_t>(record.bytes));
    number("parts", record.parts);
    items_.write(record, out_);
}

void JsonLines::write(const record::FindingRecord& record) {
    const record::FindingInfo& info = record::finding_info(record.id);
    head("finding", record.head);
    text("id", info.name);
    text("severity", record::severity_name(info.severity));
    const auto optional = [&](std::string_view name, const auto& value) {
        if (value) {
            number(name, static_cast<std::int64_t>(*value));
        }
    };
    optional("tick", record.tick);
    optional("delta_tick", record.delta_tick);
    optional("offset", record.offset);
    optional("part", record.part);
    if (record.item) {
        key("item");
        out_.append('{');
        text("type", record.item->type);
        number("type_id", record.item->type_id);
        number("id", record.item->id);
        out_.append('}');
    }
    optional("crc_wanted", record.crc_wanted);
    optional("crc_got", record.crc_got);
    optional("since_tick", record.since_tick);
    optional("lost", record.lost);
    optional("value", record.value);
    optional("limit", record.limit);
    optional("ddnet_code", record.ddnet_code);
    if (!record.name.empty()) {
        text("name", record.name);
    }
    text("what", info.sentence);
    if (!record.detail.empty()) {
        text("detail", record.detail);
    }
    if (!record.bytes.empty()) {
        key("hex");
        if (record.secrecy == wire::Secrecy::secret && !options_.show_secrets) {
            out_.append_string(kRedacted);
        } else {
            out_.append_hex(record.bytes);
        }
    }
    if (record.place) {
        key("at");
        ItemWriter::write_place(*record.place, out_);
    }
}

} // namespace tw::sink
