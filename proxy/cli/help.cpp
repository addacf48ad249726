#include "proxy/cli/help.h"

#include "proxy/cli/flags.h"
#include "proxy/sink/console.h"
#include "proxy/sink/output.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

namespace tw::cli {

namespace {

struct OldCommand {
    std::string_view name;
    std::string_view command; ///< the command that replaces the old one
    std::string_view flag;    ///< a flag that the new command needs; empty if it needs none
    std::string_view output;  ///< the flag that replaces the old command's -o; empty without -o
};

constexpr std::array<OldCommand, 3> kOldCommands{
    {{.name = "stats", .command = "decode", .flag = "--stats", .output = {}},
     {.name = "sizes", .command = "decode", .flag = "--sizes", .output = "--write-objects"},
     {.name = "findings", .command = "explain", .flag = {}, .output = {}}}};

struct OldFlag {
    std::string_view name; ///< without dashes
    std::string_view now;
};

constexpr std::array<OldFlag, 12> kOldFlags{
    {{.name = "raw", .now = "--items raw"},
     {.name = "nats", .now = "--bus"},
     {.name = "nats-stream", .now = "the path of --bus: nats://HOST:PORT/STREAM"},
     {.name = "nats-creds", .now = "--bus-file"},
     {.name = "nats-tls", .now = "the scheme of --bus: tls://HOST:PORT"},
     {.name = "nats-tls-ca", .now = "--bus-file"},
     {.name = "nats-tls-cert", .now = "--bus-file"},
     {.name = "nats-tls-key", .now = "--bus-file"},
     {.name = "nats-name", .now = "--bus-name"},
     {.name = "nats-limits", .now = "--bus-limits"},
     {.name = "nats-replicas", .now = "--bus-replicas"},
     {.name = "nats-consumer", .now = "--bus-consumer"}}};

/// Renames -o and --output, with or without their value in the same argument.
void rename_output(std::string& argument, std::string_view new_name) {
    constexpr std::string_view kShort = "-o";
    constexpr std::string_view kLong = "--output";
    if (argument == kLong || argument.starts_with("--output=")) {
        argument.replace(0, kLong.size(), new_name);
    } else if (argument.starts_with(kShort)) {
        const std::string value = argument.substr(kShort.size());
        argument = std::string{new_name} + (value.empty() ? "" : "=") + value;
    }
}

/// CLI11's separator between the word for a value and a check's description, and kNoteMark.
constexpr std::string_view kNoteStart{":#"};
static_assert(kNoteStart.back() == kNoteMark);

/// Returns the word for a flag's value. CLI11 appends the descriptions of checks to it.
std::string value_text(const CLI::Option& option) {
    const std::string type = option.get_type_name();
    return type.substr(0, std::min(type.find(":{"), type.find(kNoteStart)));
}

/// Returns the note about a flag's limits; empty if there is none.
std::string note_text(const CLI::Option& option) {
    const std::string type = option.get_type_name();
    const auto start = type.find(kNoteStart);
    return start == std::string::npos ? "" : type.substr(start + kNoteStart.size());
}

/// Returns the names of a flag: "-o, --output".
std::string names_text(const CLI::Option& option) {
    std::vector<std::string> names;
    for (const std::string& name : option.get_snames()) {
        names.push_back('-' + name);
    }
    for (const std::string& name : option.get_lnames()) {
        names.push_back("--" + name);
    }
    return fmt::format("{}", fmt::join(names, ", "));
}

/// Returns a flag with its value: "-o, --output FILE", "--items none|changed|all".
std::string flag_text(const CLI::Option& option) {
    std::string text = names_text(option);
    if (is_switch(option)) {
        return text;
    }
    const auto words = value_words(option);
    return words.empty() ? fmt::format("{} {}", text, value_text(option))
                         : fmt::format("{} {}", text, fmt::join(words, "|"));
}

/// Returns a flag's default; empty if there is none.
std::string default_text(const CLI::Option& option) {
    std::string text = is_switch(option) ? "" : option.get_default_str();
    // The parser writes defaults of repeatable flags in brackets.
    if (text.starts_with('[') && text.ends_with(']')) {
        text = text.substr(1, text.size() - 2);
    }
    return text;
}

} // namespace

bool is_switch(const CLI::Option& option) {
    return option.get_items_expected_max() == 0;
}

std::vector<std::string> value_words(const CLI::Option& option) {
    // CLI11 appends the words to the type: "TEXT:{none,changed,all}".
    const std::string type = option.get_type_name();
    const auto begin = type.find('{');
    const auto end = type.find('}');
    if (begin == std::string::npos || end == std::string::npos || end < begin) {
        return {};
    }
    std::vector<std::string> words;
    std::string_view rest = std::string_view{type}.substr(begin + 1, end - begin - 1);
    for (;;) {
        const auto comma = rest.find(',');
        words.emplace_back(rest.substr(0, comma));
        if (comma == std::string_view::npos) {
            return words;
        }
        rest.remove_prefix(comma + 1);
    }
}

namespace {

class HelpFormat : public CLI::Formatter {
  public:
    [[nodiscard]] std::string make_option(const CLI::Option* option,
                                          bool is_positional) const override;
    [[nodiscard]] std::string make_help(const CLI::App* app, std::string name,
                                        CLI::AppFormatMode mode) const override;
};

std::string HelpFormat::make_option(const CLI::Option* option, bool is_positional) const {
    const std::string name =
        "  " + (is_positional ? option->get_name(true) : flag_text(*option)) + "  ";
    std::vector<std::string> notes;
    if (const std::string note = note_text(*option); !note.empty()) {
        notes.push_back(note);
    }
    if (const std::string standard = default_text(*option); !standard.empty()) {
        notes.push_back("default: " + standard);
    }
    std::string description = option->get_description();
    if (!notes.empty()) {
        description += fmt::format(" ({})", fmt::join(notes, "; "));
    }
    const std::size_t column = get_column_width();
    return name.size() <= column ? fmt::format("{:{}}{}\n", name, column, description)
                                 : fmt::format("{}\n{:{}}{}\n", name.substr(0, name.size() - 2), "",
                                               column, description);
}

/// Where help shows a flag of a live run. Flags without a row are under kRare.
struct FlagHelp {
    std::string_view flag;
    std::string_view heading; ///< empty for the heading about the source of traffic
    /// What -h says, with {} for the default and {http_port} for the usual port of the page; empty:
    /// only --help shows the flag.
    std::string_view brief{};
    std::string_view brief_value{}; ///< a shorter word for the value in -h; may be empty
};

constexpr std::string_view kRecord = "Record";
constexpr std::string_view kWatch = "Watch";
constexpr std::string_view kCheck = "Check";
constexpr std::string_view kSimulate = "Simulate";
constexpr std::string_view kServers = "Many servers";
constexpr std::string_view kRare = "Advanced";
constexpr std::array kHeadings{kRecord, kWatch, kCheck, kSimulate, kServers, kRare};

constexpr auto kFlags = std::to_array<FlagHelp>({
    {"interface", "", "Interface that carries the game's traffic"},
    {"server", "", "Game server; several: -s NAME=HOST:PORT each"},
    {"listen", "", "Address for clients (default: {})"},
    {"client-address", "", "auto, shared, loopback or transparent", "MODE"},
    {"insecure-shared", ""},
    {"max-sessions", "", "Maximum number of clients (default: {})"},
    {"max-per-address", ""},
    {"print-routes", ""},
    {"takeover", "", "Replace the running twscope; players stay"},
    {"background", ""},
    {"output", kRecord, "Records as JSON lines; in a folder: segments"},
    {"items", kRecord, "Items of each snapshot (default: {})"},
    {"view", kRecord},
    {"filter", kRecord, "Write only matching records"},
    {"no-messages", kRecord},
    {"rotate", kRecord},
    {"keep", kRecord, "Delete older segments, and beyond a size"},
    {"min-free", kRecord},
    {"write", kRecord, "Datagrams as a pcapng capture"},
    {"write-filter", kRecord},
    {"demo", kRecord, "Folder for demos of what each client saw"},
    {"maps", kRecord, "Folder with maps, to name the tiles"},
    {"map-cache", kRecord},
    {"objects", kRecord},
    {"learn-sizes", kRecord},
    {"pseudonyms", kRecord},
    {"show-secrets", kRecord},
    {"show-commands", kRecord},
    {"flight", kRecord},
    {"flight-on", kRecord},
    {"http", kWatch, "Live page and API ({http_port} is usual)"},
    {"http-host", kWatch},
    {"http-token-file", kWatch},
    {"http-open-reading", kWatch},
    {"http-recordings", kWatch},
    {"console-filter", kWatch},
    {"quiet", kWatch, "No status, findings or table of findings"},
    {"stats", kWatch, "At the end, show traffic by message and item type"},
    {"color", kWatch},
    {"log-level", kWatch},
    {"expect", kCheck, "Exit with 1 unless a record matches"},
    {"fail-on", kCheck, "Exit with 1 if such a finding occurs"},
    {"summary", kCheck, "Result of the checks, as JUnit or text"},
    {"duration", kCheck, "Stop after this time"},
    {"check-config", kCheck, "Say what a run would do, and exit"},
    {"config", kCheck, "Read flags from this file"},
    {"impair", kSimulate, "For example s2c:delay=40ms,loss=2%", "NAME=VALUE,..."},
    {"bus", kServers, "Publish records to this NATS bus"},
    {"bus-file", kServers},
    {"bus-name", kServers},
    {"spool", kServers},
});

/// What -h says about the most used flags of a command without headings, as FlagHelp::brief.
struct BriefHelp {
    std::string_view command;
    std::string_view flag;
    std::string_view text;
};

constexpr auto kBriefHelp = std::to_array<BriefHelp>({
    {"decode", "server", "Only this server's traffic"},
    {"decode", "maps", "Folder with maps, to name the tiles"},
    {"decode", "objects", "Objects and messages of a mod"},
    {"decode", "output", "Records as JSON lines; - for standard output"},
    {"decode", "items", "Items of each snapshot (default: {})"},
    {"decode", "view", "Each session's own view, or one merged world"},
    {"decode", "filter", "Write only matching records"},
    {"decode", "show-secrets", "Write passwords and whispers in clear text"},
    {"decode", "demo", "Folder for demos of what each client saw"},
    {"decode", "write", "Datagrams as a pcapng capture"},
    {"decode", "stats", "Show traffic by message and item type"},
    {"decode", "sizes", "Show objects whose size is not as agreed"},
    {"decode", "json", "Print reports as JSON"},
    {"decode", "expect", "Exit with 1 unless a record matches"},
    {"decode", "fail-on", "Exit with 1 if such a finding occurs"},
    {"decode", "summary", "Result of the checks, as JUnit or text"},
    {"decode", "config", "Read flags from this file"},
    {"explain", "session", "Session of the finding"},
    {"explain", "tick", "Tick of the snapshot"},
    {"explain", "server", "Only this server's traffic"},
    {"explain", "maps", "Folder with maps, to name the tiles"},
    {"explain", "objects", "Objects and messages of a mod"},
    {"explain", "learn-sizes", "Decode with inferred object sizes"},
    {"explain", "json", "Print one JSON object instead of text"},
    {"explain", "config", "Read flags from this file"},
    {"records", "filter", "Only matching records"},
    {"records", "session", "Only this session"},
    {"records", "from", "Only from this UTC time on: 2026-11-21T20:15"},
    {"records", "to", "Only before this time"},
    {"records", "output", "Output file; .zst compresses (default: {})"},
    {"records", "columns", "Write a CSV table of these keys"},
    {"records", "where", "In a table of items, only matching rows"},
    {"records", "objects", "Objects and messages of a mod"},
    {"records", "follow", "At the end, wait for more records"},
    {"records", "verify", "Only verify; exit with 3 on any problem"},
    {"records", "config", "Read flags from this file"},
});

const FlagHelp* help_of(const CLI::Option& option) {
    const auto& names = option.get_lnames();
    const auto* const found = std::ranges::find_if(
        kFlags, [&](const FlagHelp& each) { return !names.empty() && each.flag == names.front(); });
    return found == kFlags.end() ? nullptr : found;
}

/// Makes -h show the most used flags, and --help all.
void split_help_flag(CLI::App& command) {
    command.set_help_flag("-h", "Show the most used flags and exit");
    command.set_help_all_flag("--help", "Show all flags and exit");
}

bool has_headings(const CLI::App& command) {
    const CLI::Option* const help = command.get_help_all_ptr();
    return help != nullptr && help->get_group() == kRare;
}

/// Returns what -h says about a flag; empty if only --help shows the flag.
std::string_view brief_text(const CLI::App& app, const CLI::Option& option) {
    if (option.get_lnames().empty()) {
        return {};
    }
    const auto* const found = std::ranges::find_if(kBriefHelp, [&](const BriefHelp& each) {
        return each.command == app.get_name() && each.flag == option.get_lnames().front();
    });
    if (found != kBriefHelp.end()) {
        return found->text;
    }
    const FlagHelp* const help = has_headings(app) ? help_of(option) : nullptr;
    return help == nullptr ? std::string_view{} : help->brief;
}

/// Returns the flags under a heading, with their help or in brief.
std::string heading_text(const HelpFormat& format, const CLI::App& app, const std::string& heading,
                         bool is_brief) {
    constexpr std::size_t kBriefColumn = 29;
    std::string text;
    for (const CLI::Option* option : app.get_options()) {
        if (option->get_group() != heading || !option->nonpositional()) {
            continue;
        }
        if (!is_brief) {
            text += format.make_option(option, false);
        } else if (const auto brief = brief_text(app, *option); !brief.empty()) {
            std::string flag = flag_text(*option);
            if (flag.size() > kBriefColumn) {
                flag = fmt::format("{} {}", names_text(*option), help_of(*option)->brief_value);
            }
            text += fmt::format("  {:{}} {}\n", flag, kBriefColumn,
                                fmt::format(fmt::runtime(brief), default_text(*option),
                                            fmt::arg("http_port", kSuggestedHttpPort)));
        }
    }
    return text.empty() ? text : fmt::format("\n{}:\n{}", heading, text);
}

/// Returns the column of the text after the line's first two consecutive spaces between words; the
/// column of the first word if the line has no such spaces.
std::size_t text_column(std::string_view line) {
    const std::size_t first = std::min(line.find_first_not_of(' '), line.size());
    const std::size_t gap = line.find("  ", first);
    const std::size_t second =
        gap == std::string_view::npos ? gap : line.find_first_not_of(' ', gap);
    return second == std::string_view::npos ? first : second;
}

void append_wrapped(std::string& out, std::string_view line, std::size_t columns) {
    constexpr std::size_t kNarrowIndent = 4;
    const std::size_t text = text_column(line);
    const std::size_t indent = 2 * text < columns ? text : kNarrowIndent;
    bool is_continued = false;
    while (is_continued ? indent + line.size() > columns : line.size() > columns) {
        const std::size_t room = is_continued ? columns - indent : columns;
        std::size_t end = line.rfind(' ', room);
        if (end == std::string_view::npos || (!is_continued && end < text)) {
            end = line.find(' ', is_continued ? 0 : text); // a word that is too long is not broken
        }
        if (end == std::string_view::npos) {
            break;
        }
        out += fmt::format("{:{}}{}\n", "", is_continued ? indent : 0, line.substr(0, end));
        line.remove_prefix(std::min(line.find_first_not_of(' ', end), line.size()));
        is_continued = true;
    }
    out += fmt::format("{:{}}{}\n", "", is_continued ? indent : 0, line);
}

} // namespace

std::string shell_word(std::string_view text) {
    std::string word{"'"};
    for (const char character : text) {
        word += character == '\'' ? std::string{"'\\''"} : std::string{character};
    }
    return word + '\'';
}

std::string wrap_lines(std::string_view text, std::size_t columns) {
    std::string out;
    while (!text.empty()) {
        const std::size_t end = std::min(text.find('\n'), text.size());
        append_wrapped(out, text.substr(0, end), columns);
        text.remove_prefix(std::min(end + 1, text.size()));
    }
    return out;
}

void add_brief_help(CLI::App& command) {
    if (std::ranges::find(kBriefHelp, command.get_name(), &BriefHelp::command) !=
        kBriefHelp.end()) {
        split_help_flag(command);
    }
}

std::vector<std::string_view> names_of_flags_with_heading() {
    std::vector<std::string_view> flags;
    std::ranges::transform(kFlags, std::back_inserter(flags), &FlagHelp::flag);
    return flags;
}

void set_flag_headings(Command& of, const std::string& traffic) {
    CLI::App& command = of.app();
    split_help_flag(command);
    for (CLI::Option* option : command.get_options()) {
        const FlagHelp* const help = help_of(*option);
        if (help != nullptr) {
            option->group(help->heading.empty() ? traffic : std::string{help->heading});
        } else {
            option->group(std::string{kRare});
        }
    }
}

namespace {

std::string HelpFormat::make_help(const CLI::App* app, std::string name,
                                  CLI::AppFormatMode mode) const {
    std::string text;
    const bool is_brief = app->get_help_all_ptr() != nullptr && mode == CLI::AppFormatMode::Normal;
    if (!is_brief && !has_headings(*app)) {
        text = CLI::Formatter::make_help(app, std::move(name), mode);
    } else {
        text = make_description(app) + make_usage(app, std::move(name)) + make_positionals(app) +
               heading_text(*this, *app,
                            app->get_option(has_headings(*app) ? "--server" : "-h")->get_group(),
                            is_brief);
        for (const std::string_view heading : kHeadings) {
            text += heading_text(*this, *app, std::string{heading}, is_brief);
        }
        text += '\n' + (is_brief
                            ? fmt::format("'twscope {} --help' lists all flags.\n", app->get_name())
                            : make_footer(app));
    }
    return wrap_lines(text, sink::terminal_columns(STDOUT_FILENO));
}

} // namespace

std::shared_ptr<CLI::FormatterBase> help_format() {
    return std::make_shared<HelpFormat>();
}

std::string replace_old_command(std::vector<std::string>& arguments) {
    constexpr std::size_t kCommand = 1;
    if (arguments.size() <= kCommand) {
        return {};
    }
    const auto* const old = std::ranges::find(kOldCommands, arguments[kCommand], &OldCommand::name);
    if (old == kOldCommands.end()) {
        return {};
    }
    arguments[kCommand] = old->command;
    if (!old->output.empty()) {
        std::for_each(arguments.begin() + kCommand + 1, arguments.end(),
                      [old](std::string& argument) { rename_output(argument, old->output); });
    }
    if (!old->flag.empty()) {
        arguments.insert(arguments.begin() + kCommand + 1, std::string{old->flag});
    }
    return fmt::format("'{}' is now '{}{}{}'", old->name, old->command,
                       old->flag.empty() ? "" : " ", old->flag);
}

std::string_view replacement_of_flag(const CLI::Option& option) {
    const auto& names = option.get_lnames();
    const auto* const old = names.empty()
                                ? kOldFlags.end()
                                : std::ranges::find(kOldFlags, names.front(), &OldFlag::name);
    return old == kOldFlags.end() ? std::string_view{} : old->now;
}

void hide_old_flags(CLI::App& command) {
    for (CLI::Option* option : command.get_options()) {
        if (!replacement_of_flag(*option).empty()) {
            option->group("");
        }
    }
}

void report_old_flags(const CLI::App& command) {
    for (const CLI::Option* option : command.get_options()) {
        const std::string_view now = replacement_of_flag(*option);
        if (option->count() != 0 && !now.empty()) {
            sink::print_error("--{} is now {}", option->get_lnames().front(), now);
        }
    }
}

} // namespace tw::cli
