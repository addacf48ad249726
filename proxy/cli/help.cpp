#include "proxy/cli/help.h"

#include "proxy/record/terminal_text.h"
#include "proxy/sink/console.h"

#include <span>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

namespace tw::cli {

namespace {

/// A heading in the help of a live run, and its flags. Flags that no heading lists are under
/// kAdvancedHeading.
struct Heading {
    std::string_view title; ///< empty for the heading about the source of traffic
    std::array<std::string_view, 20> flags;
};

constexpr std::string_view kAdvancedHeading = "Advanced";
constexpr Heading kHeadings[]{
    {"",
     {"interface", "server", "listen", "client-address", "insecure-shared", "max-sessions",
      "max-per-address", "print-routes", "takeover", "background"}},
    {"Record", {"output",     "items",        "view",          "filter",  "no-messages",
                "rotate",     "keep",         "min-free",      "write",   "write-filter",
                "demo",       "maps",         "map-cache",     "objects", "learn-sizes",
                "pseudonyms", "show-secrets", "show-commands", "flight",  "flight-on"}},
    {"Watch",
     {"http", "http-host", "http-token-file", "http-open-reading", "http-recordings",
      "console-filter", "quiet", "stats", "color", "log-level"}},
    {"Check", {"expect", "fail-on", "summary", "duration", "check-config", "config"}},
    {"Simulate", {"impair"}},
    {"Many servers", {"bus", "bus-file", "bus-name", "spool"}}};

/// What -h says about one of the most used flags.
struct BriefHelp {
    std::string_view commands; ///< names of commands; "live" stands for proxy and tap
    std::string_view flag;
    std::string_view text; ///< with {} or {0} for the default, and {1} for the usual port of a page
};

constexpr BriefHelp kBriefHelp[]{
    {"live", "interface", "Interface that carries the game's traffic"},
    {"live", "server", "Game server; several: -s NAME=HOST:PORT each"},
    {"live", "listen", "Address for clients (default: {})"},
    {"live", "output", "Records as JSON lines; in a folder: segments"},
    {"live", "keep", "Delete segments beyond this age or total size"},
    {"live", "http", "Live page and API ({1} is usual)"},
    {"live", "quiet", "No status, findings or table of findings"},
    {"live", "impair", "For example s2c:delay=40ms,loss=2%"},
    {"live", "bus", "Publish records to this NATS bus"},
    {"live decode", "items", "Items of each snapshot (default: {})"},
    {"decode", "filter", "Write only matching records"},
    {"live decode", "write", "Datagrams as a pcapng capture"},
    {"decode", "demo", "Folder for demos of what each client saw"},
    {"live decode", "expect", "Exit with 1 unless a record matches"},
    {"live decode", "fail-on", "Exit with 1 if one of these findings occurs"},
    {"decode", "summary", "Result of the checks, as JUnit or text"},
    {"live decode explain", "maps", "Folder with maps, to name the tiles"},
    {"live decode explain records", "config", "Read flags from this file"},
    {"decode explain records", "objects", "Objects and messages of a mod"},
    {"decode explain", "server", "Only this server's traffic"},
    {"decode", "output", "Records as JSON lines; - for standard output"},
    {"decode", "view", "Each session's own view, or one merged world"},
    {"decode", "show-secrets", "Write passwords and whispers in clear text"},
    {"decode", "stats", "Show traffic by message and item type"},
    {"decode", "sizes", "Show objects whose size is not as agreed"},
    {"decode", "json", "Print reports as JSON"},
    {"explain", "session", "Session of the finding"},
    {"explain", "tick", "Tick of the snapshot"},
    {"explain", "frame", "Name every byte of the datagram in this frame"},
    {"explain", "learn-sizes", "Decode with inferred object sizes"},
    {"explain", "json", "Print one JSON object instead of text"},
    {"records", "filter", "Only matching records"},
    {"records", "session", "Only this session"},
    {"records", "from", "Only from this UTC time on: 2026-11-21T20:15"},
    {"records", "to", "Only before this time"},
    {"records", "output", "Output file; .zst compresses (default: {})"},
    {"records", "columns", "Write a CSV table of these keys"},
    {"records", "where", "In a table of items, only matching rows"},
    {"records", "follow", "At the end, wait for more records"},
    {"records", "verify", "Only verify; exit with 3 on any problem"},
};

bool applies_to(const BriefHelp& row, const Command& command) {
    const std::string name = command.traffic_heading.empty() ? command.name : "live";
    return row.commands.find(name) != std::string_view::npos;
}

/// Returns a flag with its value: "-o, --output FILE", "--items none|changed|all".
std::string flag_with_value_text(const Flag& flag) {
    const std::string names = fmt::format("{}", fmt::join(names_with_dashes(flag), ", "));
    return flag.is_switch() ? names
           : flag.allowed_words.empty()
               ? fmt::format("{} {}", names, flag.value_name)
               : fmt::format("{} {}", names, fmt::join(flag.allowed_words, "|"));
}

/// Returns what -h says about a flag; empty if only --help shows the flag.
std::string brief_flag_help(const Command& command, const Flag& flag) {
    constexpr std::size_t kColumn = 29;
    const auto* const row = std::ranges::find_if(kBriefHelp, [&](const BriefHelp& each) {
        return each.flag == flag.name && applies_to(each, command);
    });
    if (row == std::end(kBriefHelp)) {
        return {};
    }
    std::string name = flag_with_value_text(flag);
    if (name.size() > kColumn) {
        name = fmt::format("{} {}", fmt::join(names_with_dashes(flag), ", "), flag.value_name);
    }
    return fmt::format("  {:{}} {}\n", name, kColumn,
                       fmt::format(fmt::runtime(row->text), flag.default_text, kSuggestedHttpPort));
}

std::string heading_of(const Command& command, const Flag& flag) {
    if (command.traffic_heading.empty()) {
        return "Options";
    }
    for (const Heading& heading : kHeadings) {
        if (!flag.name.empty() &&
            std::ranges::find(heading.flags, flag.name) != heading.flags.end()) {
            return heading.title.empty() ? command.traffic_heading : std::string{heading.title};
        }
    }
    return std::string{kAdvancedHeading};
}

std::vector<std::string> headings_of(const Command& command) {
    if (command.traffic_heading.empty()) {
        return {"Options"};
    }
    std::vector<std::string> headings{command.traffic_heading};
    for (const Heading& heading : std::span{kHeadings}.subspan(1)) {
        headings.emplace_back(heading.title);
    }
    headings.emplace_back(kAdvancedHeading);
    return headings;
}

/// Returns how the command is called: "twscope explain [OPTIONS] [captures...]".
std::string usage_text(const Command& command) {
    std::string text = fmt::format("Usage: twscope {} [OPTIONS]", command.name);
    for (const Flag& flag : command.flags) {
        if (flag.is_argument) {
            const std::string name = flag.name + (flag.max_values > 1 ? "..." : "");
            text += flag.is_required ? ' ' + name : fmt::format(" [{}]", name);
        }
    }
    return text + '\n';
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

void append_wrapped_line(std::string& out, std::string_view line, std::size_t columns) {
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

std::string quote_for_shell(std::string_view text) {
    std::string word{"'"};
    for (const char character : record::escape_for_terminal(text)) {
        word += character == '\'' ? std::string{"'\\''"} : std::string{character};
    }
    return word + '\'';
}

std::string wrap_lines(std::string_view text, std::size_t columns) {
    std::string out;
    while (!text.empty()) {
        const std::size_t end = std::min(text.find('\n'), text.size());
        append_wrapped_line(out, text.substr(0, end), columns);
        text.remove_prefix(std::min(end + 1, text.size()));
    }
    return out;
}

std::vector<std::string> names_with_dashes(const Flag& flag) {
    std::vector<std::string> names;
    if (!flag.letter.empty()) {
        names.push_back('-' + flag.letter);
    }
    if (!flag.name.empty() && !flag.is_argument) {
        names.push_back("--" + flag.name);
    }
    return names;
}

std::string help_line(const std::string& name, const std::string& text) {
    constexpr std::size_t kColumn = 30;
    const std::string start = "  " + name;
    return start.size() + 2 <= kColumn ? fmt::format("{:{}}{}\n", start, kColumn, text)
                                       : fmt::format("{}\n{:{}}{}\n", start, "", kColumn, text);
}

std::string flag_help(const Flag& flag) {
    std::vector<std::string> notes;
    if (!flag.limits_text.empty()) {
        notes.push_back(flag.limits_text);
    }
    if (!flag.default_text.empty()) {
        notes.push_back("default: " + flag.default_text);
    }
    return help_line(flag.is_argument ? flag.name : flag_with_value_text(flag),
                     notes.empty() ? flag.help
                                   : fmt::format("{} ({})", flag.help, fmt::join(notes, "; ")));
}

std::string command_help(const Command& command, bool is_brief) {
    std::string text = command.about + '\n' + usage_text(command);
    const auto add = [&](const std::string& heading, const std::string& flags) {
        text += flags.empty() ? "" : fmt::format("{}{}:\n{}", is_brief ? "" : "\n", heading, flags);
    };
    std::string arguments;
    for (const Flag& flag : command.flags) {
        arguments += flag.is_argument ? flag_help(flag) : "";
    }
    add("Positionals", arguments);
    for (const std::string& heading : headings_of(command)) {
        std::string flags;
        for (const Flag& flag : command.flags) {
            if (!flag.is_argument && flag.replacement.empty() &&
                heading_of(command, flag) == heading) {
                flags += is_brief ? brief_flag_help(command, flag) : flag_help(flag);
            }
        }
        add(heading, flags);
    }
    text += is_brief ? fmt::format("'twscope {} --help' lists all flags.\n", command.name)
                     : '\n' + command.footer + '\n';
    return wrap_lines(text, sink::terminal_columns(STDOUT_FILENO));
}

void add_help_flags(Command& command) {
    const bool has_brief_help = std::ranges::any_of(
        kBriefHelp, [&](const BriefHelp& each) { return applies_to(each, command); });
    Flag full{.name = "help", .help = "Show all flags and exit", .max_values = 0};
    if (has_brief_help) {
        command.flags.push_back({.name = "",
                                 .letter = "h",
                                 .help = "Show the most used flags and exit",
                                 .max_values = 0});
        command.flags.push_back(std::move(full));
    } else {
        full.letter = "h";
        full.help = "Print this help message and exit";
        command.flags.push_front(std::move(full));
    }
}

} // namespace tw::cli
