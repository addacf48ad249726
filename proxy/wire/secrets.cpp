#include "proxy/wire/secrets.h"

#include <algorithm>
#include <string_view>

namespace tw::wire {
namespace {

constexpr std::int64_t kFirstPrivateTeam = 2; ///< sv_chat: 2 whisper sent, 3 whisper received
constexpr std::string_view kBroadcast = "sv_broadcast";
constexpr std::int64_t kWhisperMode = 3; ///< of chat in 0.7, either way

std::string_view as_text(std::span<const std::byte> bytes) {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

bool may_show(const MessageSpec& spec, std::string_view name) {
    return std::any_of(spec.fields.begin(), spec.fields.end(), [name](const MessageField& field) {
        return field.shown && field.name == name;
    });
}

/// Elements of an array have no name, so they may not be shown.
void hide_all_but_shown(const MessageSpec& spec, DecodedFields& fields) {
    for (FieldValue& value : fields.values) {
        if (!may_show(spec, value.name)) {
            value.secrecy = Secrecy::secret;
        }
    }
}

/// Hides what is behind the first `size` bytes.
void show_first(FieldValue& value, std::size_t size) {
    if (size < value.bytes.size()) {
        value.secrecy = Secrecy::secret;
        value.integer = static_cast<std::int64_t>(size);
    }
}

/// `whom` says who hears the line.
void mark_chat(const MessageSpec& spec, const FieldValue& whom, bool from_server, FieldValue& line,
               const ShownCommands& shown) {
    const bool is_private =
        spec.dialect == snapshot::Dialect::seven
            ? whom.integer == kWhisperMode
            : spec.id == MessageId::sv_chat && whom.integer >= kFirstPrivateTeam;
    const std::string_view text = as_text(line.bytes);
    show_first(line, is_private    ? 0
                     : from_server ? shown_size_of_server_line(text)
                                   : shown_size_of_chat(text, shown));
}

/// 0.7's form of a chat command: its name without the slash, and its arguments.
void mark_command(FieldValue& name, FieldValue& arguments, const ShownCommands& shown) {
    const std::string_view command = as_text(name.bytes);
    show_first(name, shown_size_of_command(command, shown));
    show_first(arguments, shown_size_of_arguments(command, as_text(arguments.bytes), shown));
}

} // namespace

void mark_secrets(const MessageSpec& spec, DecodedFields& fields, const ShownCommands& shown) {
    // The layouts: kClSay, kSvChat, kSevenSvChat and so on. Of a truncated message some are missing.
    auto& values = fields.values;
    const bool whole = values.size() == spec.fields.size();
    if (spec.secrecy == Secrecy::secret) {
        hide_all_but_shown(spec, fields);
    } else if (spec.id == MessageId::cl_say && whole) {
        mark_chat(spec, values.front(), false, values.back(), shown);
    } else if (spec.id == MessageId::sv_chat && whole) {
        mark_chat(spec, values.front(), values[1].integer < 0, values.back(), shown);
    } else if (spec.name == kBroadcast && whole) {
        show_first(values.back(), shown_size_of_server_line(as_text(values.back().bytes)));
    } else if (spec.id == MessageId::cl_command && whole) {
        mark_command(values.front(), values.back(), shown);
    }
}

} // namespace tw::wire
