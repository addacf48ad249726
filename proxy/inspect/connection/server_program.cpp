#include "proxy/inspect/connection/server_program.h"

#include <algorithm>
#include <charconv>

namespace tw::inspect {

namespace {

struct FirstVersionOfMessage {
    std::string_view message;
    DdnetVersion version;
};

/// Messages with the first DDNet version whose servers send them.
constexpr FirstVersionOfMessage kFirstVersionsOfMessages[] = {
    {"rcon_type", 10071},
    {"map_details", 11020},
    {"capabilities", 12060},
    {"redirect", 17020},
    {"rcon_cmd_group_start", 18000},
    {"rcon_cmd_group_end", 18000},
    {"map_reload", 18060},
    {"reconnect", 18090},
    {"maplist_group_start", 19000},
    {"maplist_add", 19000},
    {"maplist_group_end", 19000},
    {"sv_map_info", 19080},
};

/// An object that has at least this many ints since this DDNet version.
struct ObjectSizeSinceVersion {
    std::string_view object;
    std::size_t ints;
    DdnetVersion version;
};

constexpr ObjectSizeSinceVersion kObjectSizesByVersion[] = {
    {"ddnet_character", 10, 16020},
    {"ddnet_character", 11, 19000},
    {"ddnet_player", 4, 19070},
    {"game_info_ex", 5, 20010},
};

constexpr std::string_view kChatGreeting = "DDraceNetwork Mod. Version: ";
constexpr std::string_view kDdnetVersionSeparator = ", ";
constexpr std::string_view kTranslationArrow = "\u2194"; // as in "0.7↔0.6, 20.1.1"

/// Parses a version such as "20.1.1" at the start of a text; nullopt if there is none.
std::optional<DdnetVersion> parse_version(std::string_view text) {
    std::array<DdnetVersion, 3> numbers{};
    constexpr DdnetVersion kMost = 999;
    const char* at = text.data();
    const char* const end = at + text.size();
    for (DdnetVersion& number : numbers) {
        const auto [behind, error] = std::from_chars(at, end, number);
        if (error != std::errc{} || number < 0 || number > kMost) {
            return std::nullopt;
        }
        at = behind;
        if (at == end || *at != '.') {
            break;
        }
        ++at;
    }
    return numbers[0] * 1000 + numbers[1] * 10 + numbers[2];
}

} // namespace

void ServerProgram::on_server_info(std::string_view version) {
    if (version.starts_with("0.7")) {
        // In a DDNet server's text for 0.7 clients, the DDNet version follows an arrow.
        const std::size_t arrow = version.find(kTranslationArrow);
        announces_vanilla_ = arrow == std::string_view::npos;
        if (announces_vanilla_) {
            return;
        }
        version.remove_prefix(arrow + kTranslationArrow.size());
    }
    const std::size_t comma = version.find(kDdnetVersionSeparator);
    if (!version.starts_with("0.6")) {
        return;
    }
    announces_vanilla_ = comma == std::string_view::npos;
    announced_version_ = announces_vanilla_
                             ? std::nullopt
                             : parse_version(version.substr(comma + kDdnetVersionSeparator.size()));
}

void ServerProgram::on_server_chat(std::string_view line) {
    if (line.starts_with(kChatGreeting)) {
        on_server_info(line.substr(kChatGreeting.size()));
    }
}

void ServerProgram::on_uuid_message(const wire::MessageSpec& message) {
    has_ddnet_features_ = true;
    lacks_ddnet_messages_ = false;
    const auto* const row =
        std::ranges::find(kFirstVersionsOfMessages, message.name, &FirstVersionOfMessage::message);
    if (row != std::end(kFirstVersionsOfMessages)) {
        rule_out_versions_before(row->version);
    }
}

void ServerProgram::on_snapshot(const snapshot::SnapshotView& items,
                                const record::ItemTypes& types) {
    ++num_examined_snapshots_;
    for (std::size_t i = items.lower_bound({snapshot::kFirstUuidType, 0}); i < items.size(); ++i) {
        const auto item = items[i];
        const snapshot::ObjectSpec* const object = types.object(item.key.type);
        if (object == nullptr) {
            continue;
        }
        for (const ObjectSizeSinceVersion& each : kObjectSizesByVersion) {
            if (each.object != object->name) {
                continue;
            }
            if (item.data.size() < each.ints) {
                rule_out_versions_since(each.version);
            } else {
                rule_out_versions_before(each.version);
            }
        }
    }
}

void ServerProgram::rule_out_versions_before(DdnetVersion version) {
    min_version_ = std::max(min_version_, version);
}

void ServerProgram::rule_out_versions_since(DdnetVersion version) {
    version_limit_ = std::min(version_limit_, version);
}

ServerProgram::IdInterpretation
ServerProgram::interpret_message_id(const wire::MessageHeader& head) const {
    if (head.spec == nullptr || head.spec->removed_in == 0) {
        return IdInterpretation::certain;
    }
    const DdnetVersion until = head.spec->removed_in;
    const bool is_said = announced_version_ && *announced_version_ >= min_version_ &&
                         *announced_version_ < version_limit_;
    if (min_version_ >= until || (is_said && *announced_version_ >= until)) {
        return IdInterpretation::mistaken;
    }
    if (version_limit_ <= until || is_said) {
        return IdInterpretation::certain;
    }
    return wire::is_certainly_valid(*head.spec, head.body) ? IdInterpretation::likely
                                                           : IdInterpretation::mistaken;
}

std::optional<DdnetVersion> ServerProgram::version() const {
    if (announced_version_ && *announced_version_ >= min_version_ &&
        *announced_version_ < version_limit_) {
        return announced_version_;
    }
    return version_limit_ == kNoVersionLimit ? std::nullopt : std::optional{version_limit_ - 1};
}

} // namespace tw::inspect
