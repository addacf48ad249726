#include "proxy/wire/secrets.h"

#include <algorithm>
#include <string_view>

namespace tw::wire {
namespace {

/// Commands after which something follows that is not for everybody: codes that claim a tee or a
/// saved team, passwords of mods' account systems, private messages. Lower case.
constexpr std::string_view kSecretCommands[] = {
    "timeout",  "save", "load",  "w",     "whisper",   "c",        "converse",       "msg",
    "tell",     "pm",   "r",     "reply", "login",     "register", "changepassword", "setpassword",
    "password", "pw",   "claim", "auth",  "logincode", "link",     "token",
};

/// Words in a line of the server that come before a code: DDNet's answer to /save tells the command
/// that loads the team again.
constexpr std::string_view kSecretAnswers[] = {"/load", "/timeout"};

/// What lines of the server begin with that are whispers: clients of versions before 217 know no other
/// ("[\u2192 name] text" to who spoke, "[\u2190 name] text" to who listens). Mods leave the bracket out.
constexpr std::string_view kWhisperBegins[] = {"[\u2192 ", "[\u2190 ", "\u2192 ", "\u2190 "};

constexpr std::int64_t kFirstPrivateTeam = 2; ///< sv_chat: 2 whisper sent, 3 whisper received
constexpr std::int64_t kWhisperMode = 3;      ///< of chat in 0.7, either way

char lower(char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

/// Control characters become spaces before a command is read.
bool is_blank(char c) {
    return static_cast<unsigned char>(c) <= ' ';
}

bool equal_without_case(std::string_view text, std::string_view lower_case) {
    return std::equal(text.begin(), text.end(), lower_case.begin(), lower_case.end(),
                      [](char a, char b) { return lower(a) == b; });
}

std::string_view skip_blanks(std::string_view text) {
    const auto first = std::find_if_not(text.begin(), text.end(), is_blank);
    return text.substr(static_cast<std::size_t>(first - text.begin()));
}

std::string_view first_word(std::string_view text) {
    text = skip_blanks(text);
    const auto end = std::find_if(text.begin(), text.end(),
                                  [](char c) { return is_blank(c) || c == ';' || c == '"'; });
    return text.substr(0, static_cast<std::size_t>(end - text.begin()));
}

bool is_secret_command(std::string_view command) {
    const auto word = first_word(command);
    return std::any_of(std::begin(kSecretCommands), std::end(kSecretCommands),
                       [word](auto secret) { return equal_without_case(word, secret); });
}

std::string_view as_text(std::span<const std::byte> bytes) {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

bool tells_code(std::string_view line) {
    return std::any_of(std::begin(kSecretAnswers), std::end(kSecretAnswers),
                       [line](auto word) { return line.find(word) != std::string_view::npos; });
}

/// Of a line that the server speaks.
bool is_for_one(std::string_view line) {
    const std::string_view text = skip_blanks(line);
    return tells_code(line) || std::any_of(std::begin(kWhisperBegins), std::end(kWhisperBegins),
                                           [text](auto begin) { return text.starts_with(begin); });
}

/// Any byte that is not ASCII may be white space that vanilla skips in front of the slash.
std::string_view skip_to_slash(std::string_view text) {
    const auto first = std::find_if_not(text.begin(), text.end(), [](char c) {
        return is_blank(c) || (static_cast<unsigned char>(c) & 0x80U) != 0;
    });
    return text.substr(static_cast<std::size_t>(first - text.begin()));
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

/// Their layouts are kSevenSvChat and the like: mode and whom it concerns, then the text.
void mark_secrets_of_seven(const MessageSpec& spec, std::vector<FieldValue>& values) {
    if (spec.id == MessageId::cl_command && values.size() == 2) {
        if (is_secret_command(as_text(values[0].bytes))) {
            values[1].secrecy = Secrecy::secret;
        }
    } else if (spec.id == MessageId::cl_say && values.size() == 3) {
        if (values[0].integer == kWhisperMode || is_secret_chat(values[2].bytes)) {
            values[2].secrecy = Secrecy::secret;
        }
    } else if (spec.id == MessageId::sv_chat && values.size() == 4) {
        const bool from_server = values[1].integer < 0;
        if (values[0].integer == kWhisperMode ||
            (from_server && is_for_one(as_text(values[3].bytes)))) {
            values[3].secrecy = Secrecy::secret;
        }
    }
}

} // namespace

bool is_secret_chat(std::span<const std::byte> message) {
    std::string_view line = skip_to_slash(as_text(message));
    if (line.empty() || line.front() != '/') {
        return false;
    }
    line.remove_prefix(1);
    while (true) {
        if (is_secret_command(line)) {
            return true;
        }
        const std::size_t next = line.find(';');
        if (next == std::string_view::npos) {
            return false;
        }
        line.remove_prefix(next + 1);
    }
}

void mark_secrets(const MessageSpec& spec, DecodedFields& fields) {
    auto& values = fields.values;
    if (spec.secrecy == Secrecy::secret) {
        hide_all_but_shown(spec, fields);
    } else if (spec.dialect == snapshot::Dialect::seven) {
        mark_secrets_of_seven(spec, values);
    } else if (spec.id == MessageId::cl_say && values.size() == 2) {
        auto& message = values[1];
        if (is_secret_chat(message.bytes)) {
            message.secrecy = Secrecy::secret;
        }
    } else if (spec.id == MessageId::sv_chat && values.size() == 3) {
        const bool is_private = values[0].integer >= kFirstPrivateTeam;
        const bool from_server = values[1].integer < 0;
        auto& message = values[2];
        if (is_private || (from_server && is_for_one(as_text(message.bytes)))) {
            message.secrecy = Secrecy::secret;
        }
    }
}

} // namespace tw::wire
