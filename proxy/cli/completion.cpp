#include "proxy/cli/completion.h"

#include "proxy/cli/help_format.h"

#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

namespace tw::cli {

namespace {

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
    if (const auto words = value_words(option); !words.empty()) {
        return fmt::format("COMPREPLY=($(compgen -W '{}' -- \"$current\"))", fmt::join(words, " "));
    }
    const std::string type = option.get_type_name();
    if (type == "DIR") {
        return "COMPREPLY=($(compgen -d -- \"$current\"))";
    }
    return type == "FILE" ? "COMPREPLY=($(compgen -f -- \"$current\"))" : "COMPREPLY=()";
}

} // namespace

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
            if (!own.empty() && !is_switch(*option)) {
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
