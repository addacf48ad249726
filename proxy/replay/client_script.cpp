#include "proxy/replay/client_script.h"

#include "snapshot/cursor.h"

#include <algorithm>

namespace tw::replay {

namespace {

/// The maximum number of ticks by which an input may be ahead of the newest snapshot. Real clients
/// are a few ticks ahead. Inputs that are further ahead would only wait at the server.
constexpr std::int32_t kMaxLeadTicks = 50;
constexpr std::int32_t kDefaultLead = 5;

/// Returns by how many ticks an input is ahead of the newest snapshot, from 1 to kMaxLeadTicks.
/// Returns kDefaultLead if there is no snapshot yet.
std::int32_t input_lead(std::int32_t intended, std::optional<snapshot::Tick> newest) {
    if (!newest) {
        return kDefaultLead;
    }
    return static_cast<std::int32_t>(
        std::clamp<std::int64_t>(std::int64_t{intended} - std::int64_t{*newest}, 1, kMaxLeadTicks));
}

/// Returns the first string of a message body, with the NUL.
std::span<const std::byte> first_string(std::span<const std::byte> body) {
    const auto end = std::ranges::find(body, std::byte{0});
    return end == body.end()
               ? std::span<const std::byte>{}
               : body.first(static_cast<std::size_t>(std::distance(body.begin(), end)) + 1);
}

using wire::Dialect;

constexpr std::int32_t kInputInts = 10;
/// The maximum number of bytes of a version text. Clients use 20, but captured data may have any
/// length.
constexpr std::size_t kMaxVersionBytes = 64;
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

void ClientScriptExtractor::on_datagram(const record::RecordHeader& head,
                                        std::span<const std::byte> /*datagram*/) {
    head_ = head;
    dialect_.reset();
}

void ClientScriptExtractor::on_packet(const wire::Packet& packet) {
    if (!packet.seven_header) {
        dialect_ = packet.dialect;
    }
}

ClientScriptExtractor::UnfinishedScript* ClientScriptExtractor::find_or_add_script() {
    const std::pair key{head_.session, *dialect_};
    const auto found = unfinished_.find(key);
    if (found != unfinished_.end()) {
        return &found->second;
    }
    if (unfinished_.size() >= kMaxScripts) {
        is_truncated_ = true;
        return nullptr;
    }
    return &unfinished_
                .emplace(key, UnfinishedScript{.script = {.session = head_.session,
                                                          .dialect = *dialect_}})
                .first->second;
}

void ClientScriptExtractor::on_chunk(const wire::Chunk& chunk, wire::VitalClass taken,
                                     const wire::MessageHeader* head) {
    if (!dialect_ || taken != wire::VitalClass::next || head == nullptr || head->spec == nullptr ||
        !head_.direction ||
        !wire::is_processed_by_receivers(*head->spec, head->system, *head_.direction,
                                         chunk.vital)) {
        return;
    }
    UnfinishedScript* const unfinished = find_or_add_script();
    if (unfinished == nullptr) {
        return;
    }
    if (*head_.direction == wire::Direction::s2c) {
        on_server_message(*head, *unfinished);
    } else if (head->system) {
        on_system_message(*head, chunk.payload, *unfinished);
    } else {
        on_game_message(chunk, *head, *unfinished);
    }
}

void ClientScriptExtractor::on_server_message(const wire::MessageHeader& head,
                                              UnfinishedScript& unfinished) {
    if (wire::is_snapshot(head.spec->id)) {
        if (const auto body = wire::decode_snapshot(head.spec->id, head.body)) {
            unfinished.newest_tick =
                std::max(unfinished.newest_tick.value_or(body->tick), body->tick);
        }
    } else if (head.spec->id == wire::MessageId::map_change) {
        unfinished.newest_tick.reset(); // ticks start again with each map
    }
}

void ClientScriptExtractor::on_system_message(const wire::MessageHeader& head,
                                              std::span<const std::byte> message,
                                              UnfinishedScript& unfinished) {
    ClientScript& script = unfinished.script;
    switch (head.spec->id) {
    case wire::MessageId::info: {
        const auto version = first_string(head.body); // the second string is the password
        script.info_version.assign(version.begin(), version.end());
        wire::decode_fields(*head.spec, head.body, fields_);
        for (const wire::FieldValue& value : fields_.values) {
            if (value.name == "client_version") {
                script.info_version_number = static_cast<std::int32_t>(value.integer);
            }
        }
        break;
    }
    case wire::MessageId::client_version:
        script.version_message.assign(message.begin(), message.end());
        break;
    case wire::MessageId::enter_game:
        // In 0.7, a message with this number and an int is DDNet's request for a map chunk.
        if (script.dialect == wire::Dialect::six || head.body.empty()) {
            unfinished.game_entry_time = unfinished.game_entry_time.value_or(head_.time);
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
                      .lead_ticks = input_lead(input->intended_tick, unfinished.newest_tick)},
                     head.body.subspan(ticks), unfinished);
        }
        break;
    case wire::MessageId::rcon_auth:
    case wire::MessageId::rcon_cmd:
        ++script.num_withheld_messages; // messages for the remote console are not replayed
        break;
    default:
        break; // the replaying client makes these messages itself
    }
}

void ClientScriptExtractor::on_game_message(const wire::Chunk& chunk,
                                            const wire::MessageHeader& head,
                                            UnfinishedScript& unfinished) {
    if (head.spec->id == wire::MessageId::cl_start_info) {
        unfinished.script.start_info_message.assign(chunk.payload.begin(), chunk.payload.end());
    } else if (!options_.includes_secrets && is_secret(head)) {
        ++unfinished.script.num_withheld_messages;
    } else {
        add_step({.kind = ScriptStep::Kind::message, .vital = chunk.vital}, chunk.payload,
                 unfinished);
    }
}

bool ClientScriptExtractor::is_secret(const wire::MessageHeader& head) {
    wire::decode_fields(*head.spec, head.body, fields_,
                        {.named_by_operator = options_.shown_commands});
    return std::ranges::any_of(fields_.values, [](const wire::FieldValue& value) {
        return value.secrecy == wire::Secrecy::secret;
    });
}

void ClientScriptExtractor::add_step(ScriptStep step, std::span<const std::byte> bytes,
                                     UnfinishedScript& unfinished) {
    ClientScript& script = unfinished.script;
    const std::size_t size = bytes.size() + sizeof step;
    if (size > options_.max_bytes - bytes_) {
        is_truncated_ = true;
        return;
    }
    bytes_ += size;
    // Without a captured enter_game message, the first step counts as the entry into the game.
    unfinished.game_entry_time = unfinished.game_entry_time.value_or(head_.time);
    const std::int64_t since = head_.time - *unfinished.game_entry_time;
    // The times of steps never decrease, even if the capture's clock was set back.
    step.time = std::max<std::int64_t>(since, script.duration());
    step.offset = script.bytes.size();
    step.size = bytes.size();
    script.bytes.insert(script.bytes.end(), bytes.begin(), bytes.end());
    script.steps.push_back(step);
}

std::vector<ClientScript> ClientScriptExtractor::take_scripts() {
    std::vector<ClientScript> scripts;
    for (auto& [key, unfinished] : std::exchange(unfinished_, {})) {
        if (!unfinished.script.steps.empty()) {
            scripts.push_back(std::move(unfinished.script));
        }
    }
    return scripts;
}

Bytes encode_message_id(std::string_view name, Dialect dialect) {
    const auto table = wire::message_table();
    const auto found = std::ranges::find_if(table, [&](const wire::MessageSpec& spec) {
        return spec.name == name && spec.dialect == dialect;
    });
    Bytes bytes;
    snapshot::encode_varint(found->number * 2 + (found->system ? 1 : 0), bytes);
    return bytes;
}

Bytes make_info_message(const ClientScript& script, std::string_view password) {
    Bytes bytes = encode_message_id("info", script.dialect);
    if (script.info_version.empty() || script.info_version.size() > kMaxVersionBytes) {
        append_text(bytes, script.dialect == Dialect::six ? "0.6 626fce9a778df4d4"
                                                          : "0.7 802f1be60a05665f");
    } else {
        bytes.insert(bytes.end(), script.info_version.begin(), script.info_version.end());
    }
    append_text(bytes, password);
    if (script.dialect == Dialect::seven) {
        snapshot::encode_varint(script.info_version_number, bytes);
    }
    return bytes;
}

Bytes make_start_info_message(const ClientScript& script) {
    if (!script.start_info_message.empty()) {
        return script.start_info_message;
    }
    Bytes bytes = encode_message_id("cl_start_info", script.dialect);
    append_text(bytes, "twscope");
    append_text(bytes, "");
    snapshot::encode_varint(-1, bytes);
    append_skin(bytes, script.dialect);
    return bytes;
}

Bytes make_idle_input() {
    Bytes bytes;
    snapshot::encode_varint(kInputInts * 4, bytes);
    for (int each = 0; each < kInputInts; ++each) {
        snapshot::encode_varint(each == 1 ? 1 : 0, bytes); // target_x is 1: aims to the right
    }
    return bytes;
}

} // namespace tw::replay
