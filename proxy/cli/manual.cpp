#include "proxy/cli/manual.h"

#include <algorithm>
#include <cctype>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

namespace tw::cli {

namespace {

/// Text as roff shows it: hyphens are hyphens, and no line is taken for a request.
std::string roff(std::string_view text) {
    std::string out;
    bool line_start = true;
    for (const char character : text) {
        if (line_start && (character == '.' || character == '\'')) {
            out += "\\&";
        }
        line_start = character == '\n';
        if (character == '-') {
            out += "\\-";
        } else if (character == '\\') {
            out += "\\e";
        } else {
            out += character;
        }
    }
    return out;
}

/// Paragraphs of a description; indented lines stay as they are.
std::string roff_paragraphs(const std::string& text) {
    std::string out;
    bool example = false;
    std::size_t begin = 0;
    while (begin < text.size()) {
        const std::size_t end = std::min(text.find('\n', begin), text.size());
        const std::string line = text.substr(begin, end - begin);
        begin = end + 1;
        if (const bool indented = line.starts_with("  "); indented != example && !line.empty()) {
            out += indented ? ".PP\n.nf\n" : ".fi\n";
            example = indented;
        }
        if (!line.empty()) {
            out += roff(line) + '\n';
        }
    }
    return out + (example ? ".fi\n" : "");
}

bool is_flag(const CLI::Option& option) {
    return option.get_items_expected_max() == 0;
}

/// The words in "TEXT:{none,changed,all}".
std::vector<std::string> choices(const CLI::Option& option) {
    const std::string type = option.get_type_name();
    const auto begin = type.find('{');
    const auto end = type.find('}');
    if (begin == std::string::npos || end == std::string::npos || end < begin) {
        return {};
    }
    return CLI::detail::split(type.substr(begin + 1, end - begin - 1), ',');
}

/// What stands for a flag's value: "FILE", "none|changed|all".
std::string value_name(const CLI::Option& option) {
    const auto words = choices(option);
    return words.empty() ? option.get_type_name() : fmt::format("{}", fmt::join(words, "|"));
}

/// "\fB\-o\fR, \fB\-\-output\fR \fIFILE\fR"
std::string roff_names(const CLI::Option& option) {
    std::vector<std::string> names;
    for (const std::string& name : option.get_snames()) {
        names.push_back("\\fB" + roff('-' + name) + "\\fR");
    }
    for (const std::string& name : option.get_lnames()) {
        names.push_back("\\fB" + roff("--" + name) + "\\fR");
    }
    if (names.empty()) {
        return "\\fI" + roff(option.get_name(true)) + "\\fR";
    }
    return fmt::format("{}", fmt::join(names, ", ")) +
           (is_flag(option) ? "" : " \\fI" + roff(value_name(option)) + "\\fR");
}

void add_options(const CLI::App& command, std::string& out) {
    for (const CLI::Option* option : command.get_options()) {
        out += ".TP\n" + roff_names(*option) + '\n' + roff(option->get_description());
        // Defaults of flags that can be repeated come in brackets.
        if (const auto standard = CLI::detail::trim_copy(option->get_default_str(), "[]");
            !is_flag(*option) && !standard.empty()) {
            out += roff(fmt::format(" (default: {})", standard));
        }
        out += '\n';
    }
}

std::vector<std::string> names_of(const CLI::Option& option) {
    std::vector<std::string> names;
    for (const std::string& name : option.get_snames()) {
        names.push_back('-' + name);
    }
    for (const std::string& name : option.get_lnames()) {
        names.push_back("--" + name);
    }
    return names;
}

/// What completes the value of a flag: its words, files or folders, or nothing.
std::string value_completion(const CLI::Option& option) {
    if (const auto words = choices(option); !words.empty()) {
        return fmt::format("COMPREPLY=($(compgen -W '{}' -- \"$current\"))", fmt::join(words, " "));
    }
    const std::string type = option.get_type_name();
    if (type == "DIR") {
        return "COMPREPLY=($(compgen -d -- \"$current\"))";
    }
    return type == "FILE" || option.check_lname("config")
               ? "COMPREPLY=($(compgen -f -- \"$current\"))"
               : "COMPREPLY=()";
}

} // namespace

std::string manual_page(const CLI::App& app, const std::string& version) {
    std::string out =
        fmt::format(".TH TWSCOPE 1 \"\" \"twscope {}\" \"User Commands\"\n.ad l\n", version);
    out += ".SH NAME\ntwscope \\- proxy that shows what a Teeworlds or DDNet server really sends\n";
    out += ".SH SYNOPSIS\n";
    const auto commands = app.get_subcommands([](const CLI::App*) { return true; });
    for (const CLI::App* command : commands) {
        out += fmt::format(".B twscope {}\n[\\fIoptions\\fR]\n", roff(command->get_name()));
        for (const CLI::Option* option : command->get_options()) {
            if (option->get_positional()) {
                out += "\\fI" + roff(option->get_name(true)) + "\\fR\n";
            }
        }
        out += ".br\n";
    }
    out += ".SH DESCRIPTION\n" + roff_paragraphs(app.get_description());
    for (const CLI::App* command : commands) {
        std::string title = command->get_name();
        std::transform(title.begin(), title.end(), title.begin(), [](unsigned char character) {
            return static_cast<char>(std::toupper(character));
        });
        out += fmt::format(".SH {}\n{}.\n", roff(title), roff(command->get_description()));
        add_options(*command, out);
    }
    out += ".SH MORE\n";
    for (const std::string& paragraph : CLI::detail::split(app.get_footer(), '\n')) {
        out += ".PP\n" + roff(paragraph) + '\n';
    }
    return out;
}

std::string bash_completion(const CLI::App& app) {
    const auto commands = app.get_subcommands([](const CLI::App*) { return true; });
    std::vector<std::string> names;
    std::string cases;
    std::string flags;
    for (const CLI::App* command : commands) {
        names.push_back(command->get_name());
        std::vector<std::string> all;
        for (const CLI::Option* option : command->get_options()) {
            const auto own = names_of(*option);
            all.insert(all.end(), own.begin(), own.end());
            if (!own.empty() && !is_flag(*option)) {
                cases += fmt::format("        {}\\ {}) {}; return ;;\n", command->get_name(),
                                     fmt::join(own, fmt::format(" | {}\\ ", command->get_name())),
                                     value_completion(*option));
            }
        }
        flags += fmt::format("            {}) words='{}' ;;\n", command->get_name(),
                             fmt::join(all, " "));
    }
    return fmt::format(R"(# bash completion for twscope, made of its own help
_twscope() {{
    local current=$2 before=$3 command=${{COMP_WORDS[1]}} words=''
    if ((COMP_CWORD == 1)); then
        COMPREPLY=($(compgen -W '{} --help --version' -- "$current"))
        return
    fi
    case "$command $before" in
{}    esac
    if [[ $current == -* ]]; then
        case $command in
{}        esac
        COMPREPLY=($(compgen -W "$words" -- "$current"))
    else
        COMPREPLY=($(compgen -f -- "$current"))
    fi
}}
complete -o filenames -F _twscope twscope
)",
                       fmt::join(names, " "), cases, flags);
}

} // namespace tw::cli
