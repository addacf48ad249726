#include "proxy/world/world_messages.h"

#include "proxy/record/client_ids.h"

#include <algorithm>
#include <array>
#include <utility>

namespace tw::world {

using snapshot::Dialect;
using wire::FieldValue;
using wire::MessageField;
using wire::MessageSpec;

namespace {

struct MessageRecipients {
    std::string_view message;
    Recipients recipients;
};

// Messages that are not listed are not sent to all players: messages about one player (motd,
// weapon_pickup, your_vote, record, race times, save codes, cooldowns), messages sent on joining
// (tuning, vote options, commands, settings, teams), and messages that differ between clients
// (sounds, votes).
constexpr std::array kRecipientsOfMessages{
    MessageRecipients{"sv_chat", Recipients::chat},
    MessageRecipients{"sv_kill_msg", Recipients::all_players},
    MessageRecipients{"sv_kill_msg_team", Recipients::all_players},
    MessageRecipients{"sv_race_finish", Recipients::all_players},
    MessageRecipients{"sv_emoticon", Recipients::all_players},
    MessageRecipients{"sv_broadcast", Recipients::all_or_one},
    MessageRecipients{"sv_game_msg", Recipients::all_or_one},
};

/// The name of an array in 0.7 messages. Another field says what the array contains, perhaps client
/// ids.
constexpr std::string_view kParametersName = "parameters";

constexpr std::int64_t kTeamOfPublicChat = 0; ///< value of `team` in 0.6's chat for everybody
constexpr std::int64_t kModeOfPublicChat = 1; ///< value of `mode` in 0.7's chat for everybody

const FieldValue* find_value(std::span<const FieldValue> values, std::string_view name) {
    const auto found = std::ranges::find(values, name, &FieldValue::name);
    return found == values.end() ? nullptr : &*found;
}

bool is_public_chat(const MessageSpec& spec, std::span<const FieldValue> values) {
    const bool seven = spec.dialect == Dialect::seven;
    const FieldValue* const whom = find_value(values, seven ? "mode" : "team");
    return whom != nullptr && whom->integer == (seven ? kModeOfPublicChat : kTeamOfPublicChat);
}

/// Returns the corresponding message of the dialect `world`; null if the dialect has none.
const MessageSpec* find_counterpart(const MessageSpec& spec, Dialect world) {
    if (spec.number == 0 || spec.dialect == world) {
        return &spec;
    }
    const auto table = wire::message_table();
    const auto found = std::ranges::find_if(table, [&](const MessageSpec& other) {
        return other.name == spec.name && (other.number == 0 || other.dialect == world);
    });
    return found == table.end() ? nullptr : &*found;
}

/// Converts the values of another dialect's message to the fields of `to`. Missing fields are 0.
std::vector<FieldValue> convert_values(const MessageSpec& to, std::span<const FieldValue> from) {
    std::vector<FieldValue> values;
    for (const MessageField& field : to.fields) {
        const FieldValue* const value = find_value(from, field.name);
        values.push_back(value != nullptr ? *value : FieldValue{.name = field.name});
    }
    return values;
}

/// Returns whether clients accept the values. Clients ignore messages with invalid values.
bool is_accepted_by_clients(const MessageSpec& spec, std::span<const FieldValue> values) {
    return std::ranges::all_of(values, [&](const FieldValue& value) {
        const auto field = std::ranges::find(spec.fields, value.name, &MessageField::name);
        const bool is_number =
            value.kind == FieldValue::Kind::integer || value.kind == FieldValue::Kind::boolean;
        return !is_number || field == spec.fields.end() ||
               (value.integer >= field->min && value.integer <= field->max);
    });
}

/// Replaces client numbers by client ids. Returns false if a client is unknown, or if the message
/// has an array that may contain client ids.
bool renumber_values(std::vector<FieldValue>& values, const ClientIds& ids) {
    for (FieldValue& value : values) {
        if (value.name == kParametersName) {
            return false;
        }
        if (record::is_client_id_field(value.name) && value.integer >= 0) {
            const auto id = find_client_id(ids, static_cast<std::int32_t>(value.integer));
            if (!id) {
                return false;
            }
            value.integer = *id;
        }
    }
    return true;
}

/// A message to all players, with client ids that are equal for all sessions.
struct Broadcast {
    const MessageSpec* spec = nullptr;
    std::vector<std::byte> bytes; ///< the encoded fields; equal for equal messages
    /// True if the message counts as sent to all only when a second session has received it.
    bool needs_second_recipient = false;
};

/// Converts a message that a session received. `world`: the dialect of the merged snapshots. `ids`:
/// the client ids of the session's client numbers; null if the numbers are the client ids. Returns
/// nullopt if the message is not for all players, is malformed, does not exist in the dialect
/// `world`, or is about a client that `ids` does not contain.
std::optional<Broadcast> read_broadcast(std::span<const std::byte> payload, Dialect dialect,
                                        Dialect world, const ClientIds* ids) {
    const auto head = wire::decode_message_header(payload, dialect);
    const MessageSpec* const spec = head ? head->spec : nullptr;
    const Recipients* const audience = spec == nullptr ? nullptr : find_recipients(spec->name);
    const MessageSpec* const to = audience == nullptr ? nullptr : find_counterpart(*spec, world);
    if (to == nullptr) {
        return std::nullopt;
    }
    wire::DecodedFields fields;
    wire::decode_fields(*spec, head->body, fields);
    const bool is_chat = *audience == Recipients::chat;
    const bool is_secret = std::ranges::any_of(fields.values, [](const FieldValue& value) {
        return value.secrecy == wire::Secrecy::secret;
    });
    if (fields.error || is_secret || (is_chat && !is_public_chat(*spec, fields.values))) {
        return std::nullopt;
    }
    auto values = to == spec ? std::move(fields.values) : convert_values(*to, fields.values);
    const FieldValue* const speaker = is_chat ? find_value(values, "client_id") : nullptr;
    const bool needs_two =
        *audience == Recipients::all_or_one || (speaker != nullptr && speaker->integer < 0);
    if (!is_accepted_by_clients(*spec, values) || !is_accepted_by_clients(*to, values) ||
        (ids != nullptr && !renumber_values(values, *ids))) {
        return std::nullopt;
    }
    return Broadcast{.spec = to,
                     .bytes = wire::encode_message(*to, values),
                     .needs_second_recipient = needs_two};
}

} // namespace

const Recipients* find_recipients(std::string_view message) {
    const auto found =
        std::ranges::find(kRecipientsOfMessages, message, &MessageRecipients::message);
    return found == kRecipientsOfMessages.end() ? nullptr : &found->recipients;
}

void WorldMessages::add_message(std::uint32_t session, const TickInMapRun& at,
                                record::Timestamp time, std::span<const std::byte> payload) {
    const std::size_t size = payload.size() + kWaitingMessageBytes;
    if (memory_bytes_ + size > kMaxBytes) {
        ++num_lost_messages_;
        return;
    }
    memory_bytes_ += size;
    waiting_messages_.push_back({.session = session,
                                 .tick_in_map_run = at,
                                 .time = time,
                                 .payload = {payload.begin(), payload.end()}});
}

void WorldMessages::add_viewing_session(std::uint32_t session, const ClientIds* ids) {
    sessions_[session].client_ids = ids == nullptr ? std::nullopt : std::optional{*ids};
}

void WorldMessages::remove_session(std::uint32_t session) {
    if (const auto known = sessions_.find(session); known != sessions_.end()) {
        // the entry stays until the session's waiting messages are processed
        known->second.has_left = true;
    }
}

std::size_t WorldMessages::count_playing_sessions() const {
    return static_cast<std::size_t>(
        std::ranges::count_if(sessions_, [](const auto& each) { return !each.second.has_left; }));
}

void WorldMessages::collect_ready_message(const WaitingMessage& waiting,
                                          const WrittenWorld& world) {
    const auto known = sessions_.find(waiting.session);
    if (known == sessions_.end()) {
        return; // client ids of a session without a view cannot be translated
    }
    const auto& ids = known->second.client_ids;
    auto said = read_broadcast(waiting.payload, waiting.tick_in_map_run.dialect, world.dialect,
                               ids ? &*ids : nullptr);
    if (!said) {
        return;
    }
    const std::size_t size = said->bytes.size();
    const auto [text, added] = message_texts_.try_emplace(std::move(said->bytes));
    MessageOccurrences& it = text->second;
    if (added) {
        it.spec = said->spec;
    }
    const auto [num_received, first] = it.num_received.try_emplace(waiting.session);
    memory_bytes_ += first ? kReceivedCountBytes : 0;
    const bool is_new = num_received->second == it.occurrences.size();
    if (is_new) {
        memory_bytes_ += size + kOccurrenceBytes;
        it.needs_second_recipient = said->needs_second_recipient && count_playing_sessions() > 1;
        it.occurrences.push_back(
            {.number = ++newest_occurrence_number_, .first_time = waiting.time});
        occurrences_by_age_.push_back({.tick = world.tick, .text = text});
    }
    Occurrence& time = it.occurrences[num_received->second];
    ++num_received->second;
    if (!time.is_passed_on && (!it.needs_second_recipient || !is_new)) {
        time.is_passed_on = true;
        ready_messages_.push_back({.number = time.number, .time = time.first_time, .text = text});
    }
}

void WorldMessages::forget_oldest_occurrence(MessageTexts::iterator text) {
    memory_bytes_ -= text->first.size() + kOccurrenceBytes;
    MessageOccurrences& it = text->second;
    it.occurrences.pop_front();
    for (auto& [session, times] : it.num_received) {
        --times; // each session in num_received received the oldest occurrence
    }
    memory_bytes_ -=
        kReceivedCountBytes * std::erase_if(it.num_received, [](const auto& num_received) {
            return num_received.second == 0;
        });
    if (it.occurrences.empty()) {
        message_texts_.erase(text);
    }
}

void WorldMessages::pass_on_messages(const WrittenWorld& world, record::WorldMessageSink& to) {
    while (!occurrences_by_age_.empty() &&
           std::int64_t{occurrences_by_age_.front().tick} + kMaxDeliveryTicks < world.tick) {
        forget_oldest_occurrence(occurrences_by_age_.front().text);
        occurrences_by_age_.pop_front();
    }
    std::deque<WaitingMessage> later;
    for (WaitingMessage& waiting : std::exchange(waiting_messages_, {})) {
        const bool is_later = waiting.tick_in_map_run.map_run == world.map_run &&
                              waiting.tick_in_map_run.tick > world.tick;
        if (waiting.tick_in_map_run.map_run > world.map_run || is_later) {
            later.push_back(std::move(waiting));
            continue;
        }
        memory_bytes_ -= waiting.payload.size() + kWaitingMessageBytes;
        if (waiting.tick_in_map_run.map_run == world.map_run) {
            collect_ready_message(waiting, world);
        }
    }
    waiting_messages_ = std::move(later);
    std::erase_if(sessions_, [this](const auto& each) {
        return each.second.has_left &&
               std::ranges::find(waiting_messages_, each.first, &WaitingMessage::session) ==
                   waiting_messages_.end();
    });
    std::ranges::sort(ready_messages_, {}, &ReadyMessage::number);
    wire::DecodedFields fields;
    for (const ReadyMessage& ready : std::exchange(ready_messages_, {})) {
        const auto& [bytes, text] = *ready.text;
        if (const auto head = wire::decode_message_header(bytes, world.dialect)) {
            wire::decode_fields(*text.spec, head->body, fields);
            to.on_world_message({.time = ready.time,
                                 .server = world.server,
                                 .run = world.map_run,
                                 .spec = text.spec,
                                 .values = fields.values,
                                 .payload = bytes});
        }
    }
}

void WorldMessages::begin_map_run() {
    for (; !occurrences_by_age_.empty(); occurrences_by_age_.pop_front()) {
        forget_oldest_occurrence(occurrences_by_age_.front().text);
    }
    sessions_.clear();
}

void WorldMessages::clear() {
    num_lost_messages_ += waiting_messages_.size();
    waiting_messages_.clear();
    occurrences_by_age_.clear();
    message_texts_.clear();
    memory_bytes_ = 0;
}

} // namespace tw::world
