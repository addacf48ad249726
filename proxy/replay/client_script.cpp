#include "proxy/replay/client_script.h"

#include "snapshot/cursor.h"

#include <algorithm>

namespace tw::replay {

namespace {

/// The maximum number of ticks by which an input may be ahead of the newest snapshot. Real clients
/// are a few ticks ahead. Inputs that are further ahead would only wait at the server.
constexpr std::int32_t kMaxLead = 50;
constexpr std::int32_t kUsualLead = 5;

/// Returns by how many ticks an input is ahead of the newest snapshot, from 1 to kMaxLead. Returns
/// kUsualLead if there is no snapshot yet.
std::int32_t input_lead(std::int32_t intended, std::optional<snapshot::Tick> newest) {
    if (!newest) {
        return kUsualLead;
    }
    return static_cast<std::int32_t>(
        std::clamp<std::int64_t>(std::int64_t{intended} - std::int64_t{*newest}, 1, kMaxLead));
}

/// Returns the first string of a message body, with the NUL.
std::span<const std::byte> first_string(std::span<const std::byte> body) {
    const auto end = std::ranges::find(body, std::byte{0});
    return end == body.end()
               ? std::span<const std::byte>{}
               : body.first(static_cast<std::size_t>(std::distance(body.begin(), end)) + 1);
}

} // namespace

void ScriptReader::on_datagram(const record::RecordHeader& head,
                               std::span<const std::byte> /*datagram*/) {
    head_ = head;
    dialect_.reset();
}

void ScriptReader::on_packet(const wire::Packet& packet) {
    if (!packet.seven_header) {
        dialect_ = packet.dialect;
    }
}

ScriptReader::ScriptInProgress* ScriptReader::find_script() {
    const std::pair key{head_.session, *dialect_};
    const auto found = readings_.find(key);
    if (found != readings_.end()) {
        return &found->second;
    }
    if (readings_.size() >= kMaxScripts) {
        is_truncated_ = true;
        return nullptr;
    }
    return &readings_
                .emplace(key, ScriptInProgress{.script = {.session = head_.session,
                                                          .dialect = *dialect_}})
                .first->second;
}

void ScriptReader::on_chunk(const wire::Chunk& chunk, wire::VitalClass taken,
                            const wire::MessageHeader* head) {
    if (!dialect_ || taken != wire::VitalClass::next || head == nullptr || head->spec == nullptr ||
        !head_.direction ||
        !wire::is_processed_by_receivers(*head->spec, head->system, *head_.direction,
                                         chunk.vital)) {
        return;
    }
    ScriptInProgress* const reading = find_script();
    if (reading == nullptr) {
        return;
    }
    if (*head_.direction == wire::Direction::s2c) {
        on_server_message(*head, *reading);
    } else if (head->system) {
        on_system_message(*head, chunk.payload, *reading);
    } else {
        on_game_message(chunk, *head, *reading);
    }
}

void ScriptReader::on_server_message(const wire::MessageHeader& head, ScriptInProgress& reading) {
    if (wire::is_snapshot(head.spec->id)) {
        if (const auto body = wire::decode_snapshot(head.spec->id, head.body)) {
            reading.newest = std::max(reading.newest.value_or(body->tick), body->tick);
        }
    } else if (head.spec->id == wire::MessageId::map_change) {
        reading.newest.reset(); // the ticks of the next map start again
    }
}

void ScriptReader::on_system_message(const wire::MessageHeader& head,
                                     std::span<const std::byte> whole, ScriptInProgress& reading) {
    ClientScript& script = reading.script;
    switch (head.spec->id) {
    case wire::MessageId::info: {
        const auto version = first_string(head.body); // the password follows
        script.info.assign(version.begin(), version.end());
        wire::decode_fields(*head.spec, head.body, fields_);
        for (const wire::FieldValue& value : fields_.values) {
            if (value.name == "client_version") {
                script.client_version = static_cast<std::int32_t>(value.integer);
            }
        }
        break;
    }
    case wire::MessageId::client_version:
        script.version.assign(whole.begin(), whole.end());
        break;
    case wire::MessageId::enter_game:
        // In 0.7, DDNet's client also requests map chunks with this message number, and an int.
        if (script.dialect == wire::Dialect::six || head.body.empty()) {
            reading.entered = reading.entered.value_or(head_.time);
        }
        break;
    case wire::MessageId::input:
        if (const auto input = wire::decode_input(head.body)) {
            std::size_t ticks = 0;
            for (int each = 0; each < 2; ++each) {
                std::int32_t ignored = 0;
                ticks += snapshot::decode_varint(head.body.data() + ticks, head.body.size() - ticks,
                                                 ignored);
            }
            add_step({.kind = ScriptStep::Kind::input,
                      .lead = input_lead(input->intended_tick, reading.newest)},
                     head.body.subspan(ticks), reading);
        }
        break;
    case wire::MessageId::rcon_auth:
    case wire::MessageId::rcon_cmd:
        ++script.withheld; // such messages are not sent to another server
        break;
    default:
        break; // the replaying client makes these messages itself
    }
}

void ScriptReader::on_game_message(const wire::Chunk& chunk, const wire::MessageHeader& head,
                                   ScriptInProgress& reading) {
    if (head.spec->id == wire::MessageId::cl_start_info) {
        reading.script.start_info.assign(chunk.payload.begin(), chunk.payload.end());
    } else if (!options_.secrets && is_secret(head)) {
        ++reading.script.withheld;
    } else {
        add_step({.kind = ScriptStep::Kind::message, .vital = chunk.vital}, chunk.payload, reading);
    }
}

bool ScriptReader::is_secret(const wire::MessageHeader& head) {
    wire::decode_fields(*head.spec, head.body, fields_,
                        {.named_by_operator = options_.shown_commands});
    return std::ranges::any_of(fields_.values, [](const wire::FieldValue& value) {
        return value.secrecy == wire::Secrecy::secret;
    });
}

void ScriptReader::add_step(ScriptStep step, std::span<const std::byte> bytes,
                            ScriptInProgress& reading) {
    ClientScript& script = reading.script;
    const std::size_t size = bytes.size() + sizeof step;
    if (size > options_.max_bytes - bytes_) {
        is_truncated_ = true;
        return;
    }
    bytes_ += size;
    // Without a captured enter_game message, the first step counts as the entry into the game.
    reading.entered = reading.entered.value_or(head_.time);
    const std::int64_t since = head_.time - *reading.entered;
    // The times of steps never decrease, even if the capture's clock was set back.
    step.at = std::max<std::int64_t>(since, script.duration());
    step.offset = script.bytes.size();
    step.size = bytes.size();
    script.bytes.insert(script.bytes.end(), bytes.begin(), bytes.end());
    script.steps.push_back(step);
}

std::vector<ClientScript> ScriptReader::take_scripts() {
    std::vector<ClientScript> scripts;
    for (auto& [key, reading] : std::exchange(readings_, {})) {
        if (!reading.script.steps.empty()) {
            scripts.push_back(std::move(reading.script));
        }
    }
    return scripts;
}

namespace {

using wire::Dialect;

constexpr std::int32_t kInputInts = 10;
/// The maximum number of bytes of a version text. Clients use 20, but captured data may have any
/// length.
constexpr std::size_t kMostInfo = 64;
constexpr int kSkinParts = 6;

void append_text(Bytes& out, std::string_view text) {
    const auto bytes = std::as_bytes(std::span{text});
    out.insert(out.end(), bytes.begin(), bytes.end());
    out.push_back(std::byte{0});
}

/// Appends a skin. In 0.6: a name and two colours. In 0.7: six parts, a flag for each part that has
/// a colour, and the colours.
void append_skin(Bytes& out, Dialect dialect) {
    if (dialect == Dialect::six) {
        append_text(out, "default");
        for (int each = 0; each < 3; ++each) {
            snapshot::encode_varint(0, out);
        }
        return;
    }
    for (const std::string_view part : {"standard", "", "", "standard", "standard", "standard"}) {
        append_text(out, part);
    }
    for (int each = 0; each < 2 * kSkinParts; ++each) {
        snapshot::encode_varint(0, out);
    }
}

} // namespace

Bytes begin_message(std::string_view name, Dialect dialect) {
    const auto table = wire::message_table();
    const auto found = std::ranges::find_if(table, [&](const wire::MessageSpec& spec) {
        return spec.name == name && spec.dialect == dialect;
    });
    Bytes bytes;
    snapshot::encode_varint(found->number * 2 + (found->system ? 1 : 0), bytes);
    return bytes;
}

Bytes info_message(const ClientScript& script, std::string_view password) {
    Bytes bytes = begin_message("info", script.dialect);
    if (script.info.empty() || script.info.size() > kMostInfo) {
        append_text(bytes, script.dialect == Dialect::six ? "0.6 626fce9a778df4d4"
                                                          : "0.7 802f1be60a05665f");
    } else {
        bytes.insert(bytes.end(), script.info.begin(), script.info.end());
    }
    append_text(bytes, password);
    if (script.dialect == Dialect::seven) {
        snapshot::encode_varint(script.client_version, bytes);
    }
    return bytes;
}

Bytes start_info_message(const ClientScript& script) {
    if (!script.start_info.empty()) {
        return script.start_info;
    }
    Bytes bytes = begin_message("cl_start_info", script.dialect);
    append_text(bytes, "twscope");
    append_text(bytes, "");
    snapshot::encode_varint(-1, bytes);
    append_skin(bytes, script.dialect);
    return bytes;
}

Bytes idle_input_message() {
    Bytes bytes;
    snapshot::encode_varint(kInputInts * 4, bytes);
    for (int each = 0; each < kInputInts; ++each) {
        snapshot::encode_varint(each == 1 ? 1 : 0, bytes); // the aim points to the right
    }
    return bytes;
}

} // namespace tw::replay
