#include "proxy/wire/secrets.h"

namespace tw::wire {
namespace {

/// Chat commands of DDNet 11 to 20 (ddracechat.h) whose arguments are harmless: players, maps,
/// numbers, switches and public texts. The names are in lower case and sorted. DDNet's other
/// commands have codes (timeout, save, load) or private messages (w, whisper, c, converse) as
/// arguments.
constexpr std::string_view kHarmlessCommands[] = {
    "about",      "back",       "cancelswap", "cmdlist",    "credits",
    "dnd",        "emote",      "eyeemote",   "help",       "info",
    "invite",     "join",       "kill",       "lasttp",     "list",
    "lock",       "map",        "mapinfo",    "me",         "ninjajetpack",
    "pause",      "pausevoted", "points",     "practice",   "practicecmdlist",
    "rank",       "rankteam",   "rescue",     "rescuemode", "rules",
    "saytime",    "saytimeall", "settings",   "showall",    "showothers",
    "spec",       "specteam",   "specvoted",  "swap",       "tc",
    "team",       "teamrank",   "teamtop5",   "telecursor", "teleport",
    "time",       "timecp",     "timer",      "times",      "top",
    "top5",       "top5points", "top5team",   "tp",         "unlock",
    "unpractice", "whispers",
};
static_assert(std::ranges::is_sorted(kHarmlessCommands));

/// An argument of a command may be a secret if the server's description contains one of these
/// words.
constexpr std::string_view kSecretWords[] = {
    "pin",    "pass", "pw",     "code",  "mail", "token", "key",     "auth",   "login",
    "secret", "hash", "regist", "claim", "msg",  "text",  "message", "private"};

/// Commands whose arguments are secret regardless of the server's description.
constexpr std::string_view kAlwaysSecretCommands[] = {
    "c",     "converse", "dm",   "link",    "load", "pm",     "r",
    "reply", "save",     "tell", "timeout", "w",    "whisper"};
static_assert(std::ranges::is_sorted(kAlwaysSecretCommands));

/// Words in a server's chat line that may introduce a secret.
constexpr std::string_view kWordsBeforeSecret[] = {
    "pin", "pass", "password", "passwort", "pw", "code", "mail", "email", "token", "secret"};

/// Texts that stand between a word of kWordsBeforeSecret and the secret.
constexpr std::string_view kTextsBeforeSecret[] = {":",       "=",           "is ", "ist ", "to ",
                                                   "set to ", "changed to ", "'",   "\"",   "`"};

/// Commands in a server's chat line whose argument is a code. For example, DDNet answers /save with
/// a line that contains /load.
constexpr std::string_view kCommandsWithCode[] = {"/load", "/timeout"};

/// Servers send whispers to clients older than version 217 as chat lines with these beginnings:
/// "[\u2192 name] text" for the sender, "[\u2190 name] text" for the recipient. Mods leave out the
/// bracket.
constexpr std::string_view kWhisperPrefixes[] = {"[\u2192 ", "[\u2190 ", "\u2192 ", "\u2190 "};

/// The maximum size in bytes of a word that looks_like_command_name() accepts.
constexpr std::size_t kMaxCommandNameSize = 24;

constexpr char lower_case_of(char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

constexpr bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

constexpr bool is_letter(char c) {
    return lower_case_of(c) >= 'a' && lower_case_of(c) <= 'z';
}

/// Whether a character separates words. Servers turn control characters into spaces before they
/// read a command.
constexpr bool is_blank(char c) {
    return static_cast<unsigned char>(c) <= ' ';
}

std::string to_lower(std::string_view text) {
    std::string lowered{text};
    std::ranges::transform(lowered, lowered.begin(), lower_case_of);
    return lowered;
}

bool less_without_case(std::string_view a, std::string_view b) {
    return std::ranges::lexicographical_compare(a, b, {}, lower_case_of, lower_case_of);
}

template <typename Names>
bool contains_name(const Names& names, std::string_view name) {
    return std::ranges::binary_search(names, name, less_without_case);
}

std::size_t skip_blanks(std::string_view text, std::size_t at) {
    while (at < text.size() && is_blank(text[at])) {
        ++at;
    }
    return at;
}

/// Whether a word has the form of a command name: letters and '_', then at most one digit. Most
/// passwords that a player types instead of a command name do not have this form.
bool looks_like_command_name(std::string_view word) {
    const auto letters =
        std::ranges::find_if_not(word, [](char c) { return is_letter(c) || c == '_'; });
    const auto rest = word.end() - letters;
    return letters != word.begin() && word.size() <= kMaxCommandNameSize &&
           (rest == 0 || (rest == 1 && is_digit(*letters)));
}

/// Returns the offset of the command name in a chat line; npos if the line is not a command. Skips
/// non-ASCII bytes at the start, because vanilla treats some of them as white space.
std::size_t find_command_name(std::string_view line) {
    std::size_t at = 0;
    while (at < line.size() &&
           (is_blank(line[at]) || (static_cast<unsigned char>(line[at]) & 0x80U) != 0)) {
        ++at;
    }
    if (at == line.size()) {
        return std::string_view::npos;
    }
    const char first = line[at];
    const bool bang = first == '!' && at + 1 < line.size() && is_letter(line[at + 1]);
    return first == '/' || first == '\\' || bang ? at + 1 : std::string_view::npos;
}

bool mentions_secret(std::string_view text) {
    const std::string lowered = to_lower(text);
    return std::ranges::any_of(kSecretWords, [&](std::string_view word) {
        return lowered.find(word) != std::string::npos;
    });
}

/// Whether each argument in a format string (see is_described_harmless()) has a name.
bool are_all_arguments_named(std::string_view format) {
    std::size_t at = 0;
    while (at < format.size()) {
        if (is_blank(format[at]) || format[at] == '?') {
            ++at;
            continue;
        }
        const std::size_t end = format.find(']', at);
        if (at + 1 >= format.size() || format[at + 1] != '[' || end == std::string_view::npos ||
            end == at + 2) {
            return false;
        }
        at = end + 1;
    }
    return true;
}

/// Returns the offset of the secret that follows `word` in a lower-case line; npos if no secret
/// follows.
std::size_t find_introduced_secret(std::string_view line, std::string_view word) {
    for (std::size_t at = line.find(word); at != std::string_view::npos;
         at = line.find(word, at + 1)) {
        const std::size_t end = at + word.size();
        if ((at != 0 && is_letter(line[at - 1])) || (end < line.size() && is_letter(line[end]))) {
            continue;
        }
        const std::size_t link = skip_blanks(line, end);
        for (const std::string_view each : kTextsBeforeSecret) {
            if (line.substr(link).starts_with(each)) {
                return link + each.size();
            }
        }
    }
    return std::string_view::npos;
}

} // namespace

CommandNames::CommandNames(const std::vector<std::string>& names) {
    for (const std::string& name : names) {
        add(name.starts_with('/') ? std::string_view{name}.substr(1) : std::string_view{name});
    }
    all_ = contains(kAll);
}

bool CommandNames::contains(std::string_view name) const {
    return all_ || contains_name(names_, name);
}

void CommandNames::add(std::string_view name) {
    const std::string lowered = to_lower(name);
    if (!lowered.empty() && lowered.size() <= kMaxNameSize && names_.size() < kMaxNames &&
        !contains(lowered)) {
        names_.insert(std::ranges::lower_bound(names_, lowered), lowered);
    }
}

void CommandNames::remove(std::string_view name) {
    std::erase(names_, to_lower(name));
}

std::size_t CommandNames::memory_bytes() const {
    std::size_t bytes = names_.capacity() * sizeof(std::string);
    for (const std::string& name : names_) {
        bytes += name.capacity();
    }
    return bytes;
}

bool is_described_harmless(std::string_view name, std::string_view format, std::string_view help) {
    return are_all_arguments_named(format) && !contains_name(kAlwaysSecretCommands, name) &&
           !mentions_secret(name) && !mentions_secret(format) && !mentions_secret(help);
}

bool may_show_arguments(std::string_view command, const HarmlessCommands& shown) {
    return contains_name(kHarmlessCommands, command) ||
           (shown.announced_harmless != nullptr && shown.announced_harmless->contains(command)) ||
           (shown.named_by_operator != nullptr && shown.named_by_operator->contains(command));
}

std::size_t unredacted_prefix_size_of_arguments(std::string_view command,
                                                std::string_view arguments,
                                                const HarmlessCommands& shown) {
    if (skip_blanks(arguments, 0) == arguments.size()) {
        return arguments.size();
    }
    if (!may_show_arguments(command, shown)) {
        return 0;
    }
    const std::size_t next = arguments.find(';');
    return next == std::string_view::npos
               ? arguments.size()
               : next + 1 + unredacted_prefix_size_of_command(arguments.substr(next + 1), shown);
}

std::size_t unredacted_prefix_size_of_command(std::string_view command,
                                              const HarmlessCommands& shown) {
    std::size_t begun = 0; // offset of the current command
    while (true) {
        const std::size_t begin = skip_blanks(command, begun);
        const auto* const found = std::find_if(command.begin() + begin, command.end(),
                                               [](char c) { return is_blank(c) || c == ';'; });
        const auto end = static_cast<std::size_t>(found - command.begin());
        const std::string_view name = command.substr(begin, end - begin);
        const bool may_show = name.empty() || may_show_arguments(name, shown);
        if (!may_show && !looks_like_command_name(name)) {
            return begin;
        }
        if (!may_show) {
            const bool alone = skip_blanks(command, end) == command.size();
            const std::size_t blank = end < command.size() && is_blank(command[end]) ? 1 : 0;
            return alone ? command.size() : end + blank;
        }
        const std::size_t next = command.find(';', end);
        if (next == std::string_view::npos) {
            return command.size();
        }
        begun = next + 1;
    }
}

std::size_t unredacted_prefix_size_of_chat(std::string_view line, const HarmlessCommands& shown) {
    const std::size_t command = find_command_name(line);
    return command == std::string_view::npos
               ? line.size()
               : command + unredacted_prefix_size_of_command(line.substr(command), shown);
}

std::size_t unredacted_prefix_size_of_server_chat(std::string_view line) {
    const std::string_view text = line.substr(skip_blanks(line, 0));
    for (const std::string_view begin : kWhisperPrefixes) {
        if (text.starts_with(begin)) {
            return 0;
        }
    }
    const std::string lowered = to_lower(line);
    std::size_t shown = line.size();
    for (const std::string_view answer : kCommandsWithCode) {
        if (const std::size_t at = lowered.find(answer); at != std::string::npos) {
            shown = std::min(shown, at + answer.size());
        }
    }
    for (const std::string_view word : kWordsBeforeSecret) {
        shown = std::min(shown, find_introduced_secret(lowered, word));
    }
    return shown;
}

namespace {

constexpr std::int64_t kFirstPrivateTeam = 2; ///< sv_chat's team: 2 whisper sent, 3 received
constexpr std::string_view kBroadcastName = "sv_broadcast";
constexpr std::int64_t kWhisperMode = 3; ///< 0.7's chat mode of whispers, in both directions

bool may_show_field(const MessageSpec& spec, std::string_view name) {
    return std::any_of(spec.fields.begin(), spec.fields.end(), [name](const MessageField& field) {
        return field.always_shown && field.name == name;
    });
}

/// Marks as secret all fields that are not `always_shown`, and all elements of arrays.
void mark_secret_unless_always_shown(const MessageSpec& spec, DecodedFields& fields) {
    for (FieldValue& value : fields.values) {
        if (!may_show_field(spec, value.name)) {
            value.secrecy = Secrecy::secret;
        }
    }
}

/// Marks the bytes after the first `size` bytes as secret.
void mark_secret_after(FieldValue& value, std::size_t size) {
    if (size < value.bytes.size()) {
        value.secrecy = Secrecy::secret;
        value.integer = static_cast<std::int64_t>(size);
    }
}

/// Marks the secret part of a chat line. `whom`: the field that tells who receives the line.
void mark_secret_in_chat(const MessageSpec& spec, const FieldValue& whom, bool from_server,
                         FieldValue& line, const HarmlessCommands& shown) {
    const bool is_private =
        spec.dialect == snapshot::Dialect::seven
            ? whom.integer == kWhisperMode
            : spec.id == MessageId::sv_chat && whom.integer >= kFirstPrivateTeam;
    const std::string_view text = as_text(line.bytes);
    mark_secret_after(line, is_private    ? 0
                            : from_server ? unredacted_prefix_size_of_server_chat(text)
                                          : unredacted_prefix_size_of_chat(text, shown));
}

/// Marks the secret part of a 0.7 chat command. `values`: the name without the slash, then the
/// arguments. A truncated message has no arguments.
void mark_secret_in_command(std::vector<FieldValue>& values, const HarmlessCommands& shown) {
    const std::string_view command = as_text(values.front().bytes);
    mark_secret_after(values.front(), unredacted_prefix_size_of_command(command, shown));
    if (values.size() > 1) {
        FieldValue& arguments = values.back();
        mark_secret_after(arguments, unredacted_prefix_size_of_arguments(
                                         command, as_text(arguments.bytes), shown));
    }
}

} // namespace

void mark_secrets(const MessageSpec& spec, DecodedFields& fields, const HarmlessCommands& shown) {
    // The values are in the order of the message's fields (kClSay, kSvChat, kSevenSvChat and so
    // on). In a truncated chat message, no value is marked.
    auto& values = fields.values;
    const bool whole = values.size() == spec.fields.size();
    if (spec.secrecy == Secrecy::secret) {
        mark_secret_unless_always_shown(spec, fields);
    } else if (spec.id == MessageId::cl_say && whole) {
        mark_secret_in_chat(spec, values.front(), false, values.back(), shown);
    } else if (spec.id == MessageId::sv_chat && whole) {
        mark_secret_in_chat(spec, values.front(), values[1].integer < 0, values.back(), shown);
    } else if (spec.name == kBroadcastName && whole) {
        mark_secret_after(values.back(),
                          unredacted_prefix_size_of_server_chat(as_text(values.back().bytes)));
    } else if (spec.id == MessageId::cl_command && !values.empty()) {
        mark_secret_in_command(values, shown);
    }
}

} // namespace tw::wire
