#include "proxy/game/said.h"

#include "proxy/record/client_ids.h"
#include "proxy/wire/message_encode.h"

#include <algorithm>
#include <array>

namespace tw::game {

using snapshot::Dialect;
using wire::FieldValue;
using wire::MessageField;
using wire::MessageSpec;

namespace {

struct Row {
    std::string_view message;
    Audience audience;
};

// What is not here is left out: what is about one player (motd, weapon_pickup, your_vote, record,
// race times, save codes, cooldowns), what clients are told when they come (tuning, vote options,
// commands, settings, teams), what each hears in a way of its own (sounds, votes of vanilla's 16).
constexpr std::array kRows{
    Row{"sv_chat", Audience::chat},
    Row{"sv_kill_msg", Audience::everybody},
    Row{"sv_kill_msg_team", Audience::everybody},
    Row{"sv_race_finish", Audience::everybody},
    Row{"sv_emoticon", Audience::everybody},
    Row{"sv_broadcast", Audience::two},
    Row{"sv_game_msg", Audience::two},
};

/// Messages of 0.7 that name clients in an array whose meaning depends on what they say.
constexpr std::string_view kParameters = "parameters";

constexpr std::int64_t kTeamAll = 0; ///< of chat in 0.6
constexpr std::int64_t kModeAll = 1; ///< in 0.7

const FieldValue* find_value(std::span<const FieldValue> values, std::string_view name) {
    const auto found = std::ranges::find(values, name, &FieldValue::name);
    return found == values.end() ? nullptr : &*found;
}

bool is_chat_for_all(const MessageSpec& spec, std::span<const FieldValue> values) {
    const bool seven = spec.dialect == Dialect::seven;
    const FieldValue* const whom = find_value(values, seven ? "mode" : "team");
    return whom != nullptr && whom->integer == (seven ? kModeAll : kTeamAll);
}

/// The same message in the dialect of the world; null: it has none.
const MessageSpec* find_spec(const MessageSpec& spec, Dialect world) {
    if (spec.number == 0 || spec.dialect == world) {
        return &spec;
    }
    const auto table = wire::message_table();
    const auto found = std::ranges::find_if(table, [&](const MessageSpec& other) {
        return other.name == spec.name && (other.number == 0 || other.dialect == world);
    });
    return found == table.end() ? nullptr : &*found;
}

/// The values that `to` has of those of a message of another dialect; a field that they lack is 0.
std::vector<FieldValue> values_for(const MessageSpec& to, std::span<const FieldValue> from) {
    std::vector<FieldValue> values;
    for (const MessageField& field : to.fields) {
        const FieldValue* const value = find_value(from, field.name);
        values.push_back(value != nullptr ? *value : FieldValue{.name = field.name});
    }
    return values;
}

/// Clients ignore a message with a value that they do not take.
bool is_taken(const MessageSpec& spec, std::span<const FieldValue> values) {
    return std::ranges::all_of(values, [&](const FieldValue& value) {
        const auto field = std::ranges::find(spec.fields, value.name, &MessageField::name);
        const bool is_number =
            value.kind == FieldValue::Kind::integer || value.kind == FieldValue::Kind::boolean;
        return !is_number || field == spec.fields.end() ||
               (value.integer >= field->min && value.integer <= field->max);
    });
}

/// False: of a client that nobody knows.
bool renumber(std::vector<FieldValue>& values, const ClientNumber& number) {
    for (FieldValue& value : values) {
        if (value.name == kParameters) {
            return false;
        }
        if (record::names_client(value.name) && value.integer >= 0) {
            const auto id = number(static_cast<std::int32_t>(value.integer));
            if (!id) {
                return false;
            }
            value.integer = *id;
        }
    }
    return true;
}

} // namespace

const Audience* find_audience(std::string_view message) {
    const auto found = std::ranges::find(kRows, message, &Row::message);
    return found == kRows.end() ? nullptr : &found->audience;
}

std::optional<Said> read_said(std::span<const std::byte> payload, Dialect dialect, Dialect world,
                              const ClientNumber& number) {
    const auto head = wire::decode_message_head(payload, dialect);
    const MessageSpec* const spec = head ? head->spec : nullptr;
    const Audience* const audience = spec == nullptr ? nullptr : find_audience(spec->name);
    const MessageSpec* const to = audience == nullptr ? nullptr : find_spec(*spec, world);
    if (to == nullptr) {
        return std::nullopt;
    }
    wire::DecodedFields fields;
    wire::decode_fields(*spec, head->body, fields);
    const bool is_chat = *audience == Audience::chat;
    const bool is_secret = std::ranges::any_of(fields.values, [](const FieldValue& value) {
        return value.secrecy == wire::Secrecy::secret;
    });
    if (fields.error || is_secret || (is_chat && !is_chat_for_all(*spec, fields.values))) {
        return std::nullopt;
    }
    auto values = to == spec ? std::move(fields.values) : values_for(*to, fields.values);
    const FieldValue* const speaker = is_chat ? find_value(values, "client_id") : nullptr;
    const bool for_two = *audience == Audience::two || (speaker != nullptr && speaker->integer < 0);
    if (!is_taken(*spec, values) || !is_taken(*to, values) ||
        (number && !renumber(values, number))) {
        return std::nullopt;
    }
    return Said{.spec = to, .bytes = wire::encode_message(*to, values), .for_two = for_two};
}

} // namespace tw::game
