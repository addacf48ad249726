#include "proxy/cli/command_line.h"

#include "proxy/cli/help.h"
#include "proxy/cli/log.h"
#include "proxy/cli/settings.h"
#include "proxy/filter/keys.h"
#include "proxy/process/confinement.h"
#include "proxy/record/terminal_text.h"
#include "proxy/sink/output.h"
#include "proxy/web/page.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <tuple>
#include <vector>

#include <CLI/CLI.hpp>
#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

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

bool is_current_flag(const CLI::Option* option) {
    return replacement_of_flag(*option).empty();
}

/// Returns the completion of a flag's value: words, files, folders, or nothing.
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
        for (const CLI::Option* option : command->get_options(is_current_flag)) {
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

namespace {

/// Returns what fish has to know about a flag's value: its words, files, folders, or that any value
/// is possible.
std::string fish_value_options(const CLI::Option& option) {
    if (is_switch(option)) {
        return {};
    }
    if (const auto words = value_words(option); !words.empty()) {
        return fmt::format(" -x -a '{}'", fmt::join(words, " "));
    }
    const std::string type = option.get_type_name();
    if (type == "DIR") {
        return " -x -a '(__fish_complete_directories)'";
    }
    return type == "FILE" ? " -r -F" : " -x";
}

} // namespace

std::string zsh_completion(const CLI::App& app) {
    return "#compdef twscope\nautoload -U +X bashcompinit && bashcompinit\n" + bash_completion(app);
}

std::string fish_completion(const CLI::App& app) {
    std::string text = "# fish completion for twscope, made of its own help\n";
    for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
        text += fmt::format("complete -c twscope -n __fish_use_subcommand -f -a {} -d {}\n",
                            command->get_name(), shell_word(command->get_description()));
        for (const CLI::Option* option : command->get_options(is_current_flag)) {
            std::string names;
            for (const std::string& name : option->get_snames()) {
                names += " -s " + name;
            }
            for (const std::string& name : option->get_lnames()) {
                names += " -l " + name;
            }
            if (!names.empty()) {
                text += fmt::format(
                    "complete -c twscope -n '__fish_seen_subcommand_from {}'{}{} -d {}\n",
                    command->get_name(), names, fish_value_options(*option),
                    shell_word(option->get_description()));
            }
        }
    }
    return text;
}

namespace {

struct Shell {
    const char* name;
    std::string (*completion)(const CLI::App& app);
};

constexpr std::array<Shell, 3> kShells{
    {{"bash", bash_completion}, {"zsh", zsh_completion}, {"fish", fish_completion}}};

Action add_completion_command(Command& program) {
    Command command =
        program.add_command("completion", "Print what lets a shell complete commands and flags");
    auto name = std::make_shared<std::string>();
    command.add("SHELL", name.get(), "SHELL", "For bash: eval \"$(twscope completion bash)\"")
        .required()
        .one_of({"bash", "zsh", "fish"});
    return [&app = program.app(), name] {
        const auto* const shell = std::ranges::find(kShells, *name, &Shell::name);
        fmt::print("{}", shell->completion(app));
        return 0;
    };
}

constexpr const char* kAboutTwscope =
    "twscope is a UDP proxy between Teeworlds or DDNet clients and a server. It forwards every "
    "datagram untouched and inspects a copy: it rebuilds every snapshot, verifies it against the "
    "server's checksum, adds the map tile to every position, and records what it saw.\n"
    "\n"
    "  twscope proxy -s 127.0.0.1:8304                   clients connect to port 8303\n"
    "  twscope proxy -s 127.0.0.1:8304 -o records/       also record everything\n"
    "  twscope tap -i eth0 -o records/                   record beside the path\n"
    "  twscope decode traffic.pcap -o -                  decode a capture\n"
    "  twscope explain traffic.pcap                      explain the first error in it\n"
    "  twscope records game.jsonl.zst --session 3        read a recording\n"
    "  twscope collect --bus nats://bus:4222 -o fleet/   collect from many servers\n"
    "  twscope replay traffic.pcap -s 127.0.0.1:8304     replay clients on a server\n"
    "  twscope map ctf1.map --at 1616,1040               show what is at a position\n";

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Woverlength-strings"
constexpr std::string_view kLicenses =
#include "proxy/cli/licenses.txt.inc"
    ;
#pragma GCC diagnostic pop

/// The text for a user who gives no command.
constexpr const char* kFirstSteps =
    "twscope shows what a Teeworlds or DDNet server really sends. Name a command:\n"
    "  twscope proxy -s 127.0.0.1:8304 -o records/      stand between players and a server, "
    "record\n"
    "  twscope decode traffic.pcap                      check a capture of a game\n"
    "  twscope records records/                         read a recording\n"
    "'twscope --help' lists all, and 'twscope COMMAND --help' what a command can do.\n";

constexpr const char* kSettings = "Every flag of a command can also be set by an environment "
                                  "variable TWSCOPE_NAME or a key in --config FILE.\n";

constexpr const char* kUnmetCheck = "an --expect or --fail-on was not met";

/// A subcommand, with the meanings of the exit codes that only some commands have. Null: the
/// subcommand never exits with that code.
struct Subcommand {
    const char* name;
    std::function<Action(Command&)> add;
    const char* finding = nullptr; ///< meaning of kExitFinding
    const char* not_yet = nullptr; ///< meaning of kExitNotYet
};

std::string exit_codes_text(const Subcommand& command) {
    std::string text = "Exit codes: 0 success";
    if (command.finding != nullptr) {
        text += fmt::format(", {} {}", kExitFinding, command.finding);
    }
    text += fmt::format(", {} wrong usage or it could not start, {} a failure while running or "
                        "damaged input",
                        kExitUsage, kExitFailed);
    if (command.not_yet != nullptr) {
        text += fmt::format(", {} {}", kExitNotYet, command.not_yet);
    }
    return text + ".";
}

} // namespace

CommandLine::CommandLine(const Invocation& invocation, std::string_view only)
    : program{kAboutTwscope, "twscope"} {
    CLI::App& app = program.app();
    app.formatter(help_format()); // before adding the commands, which inherit it
    app.set_version_flag(
        "-V,--version",
        [] {
            return fmt::format("twscope {}\nobserver confinement: {}{}", TWSCOPE_VERSION,
                               process::describe(process::supported_confinement()),
                               web::is_page_built() ? "" : "\nwithout the live page");
        },
        "Print the version, the observer's confinement and what was left out, and exit");
    app.add_flag_callback(
           "--licenses",
           [] {
               throw CLI::CallForVersion{std::string{kLicenses}, 0};
           },
           "Print the licences of everything that is compiled in, and exit")
        ->configurable(false);
    app.require_subcommand(1);
    const Subcommand commands[] = {
        {"proxy", [&](Command& to) { return add_proxy_command(to, invocation); }, kUnmetCheck,
         "could not start yet (a name, address or port is unavailable, or there is no twscope to "
         "take over from)"},
        {"tap", [&](Command& to) { return add_tap_command(to, invocation); }, kUnmetCheck,
         "could not start yet (the interface or a port is unavailable)"},
        {"decode", add_decode_command, kUnmetCheck},
        {"records", add_records_command},
        {"collect", add_collect_command, kUnmetCheck,
         "could not start yet (the bus, the stream or a port is unavailable)"},
        {"compare", add_compare_command, "the games differ"},
        {"replay", add_replay_command, kUnmetCheck, "the server did not answer"},
        {"map", add_map_command},
        {"explain", add_explain_command},
        {"health", add_health_command, "no answer"},
        {"extcap", add_extcap_command},
        {"completion", add_completion_command}};
    const bool has_only =
        only == "-V" || only == "--version" ||
        std::ranges::find(commands, only, &Subcommand::name) != std::end(commands);
    for (const Subcommand& each : commands) {
        if (has_only && each.name != only) {
            continue;
        }
        Action action = each.add(program);
        Command added{app.get_subcommand_ptr(app.get_subcommands({}).back())};
        CLI::App& command = added.app();
        const bool has_settings = command.get_option_no_throw("--config") != nullptr;
        const std::string own = command.get_footer();
        command.footer(own + (own.empty() ? "" : "\n") + (has_settings ? kSettings : "") +
                       exit_codes_text(each));
        if (command.get_option_no_throw("--color") == nullptr) {
            add_color_flag(added, color);
        }
        hide_old_flags(command);
        add_brief_help(command);
        actions.emplace_back(added, std::move(action));
    }
    // Set last, so that the commands do not inherit it.
    app.footer(std::string{kSettings} +
               "Exit codes: 0 success; each command's --help says what the others mean.");
}

namespace {

/// The start of the first argument from Wireshark, which passes no command's name.
constexpr std::string_view kExtcap = "--extcap-";

/// Opens closed standard streams. Otherwise the files opened next would become standard output and
/// error, and messages would get into the records. The streams are opened in the unused direction,
/// so that reads and writes fail as before.
void occupy_closed_streams() {
    for (const int descriptor : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
        if (::fcntl(descriptor, F_GETFD) < 0) {
            std::ignore = ::open("/dev/null", descriptor == STDIN_FILENO ? O_WRONLY : O_RDONLY);
        }
    }
}

Invocation invocation_of(int argc, char** argv) {
    Invocation invocation{.arguments = {argv, argv + argc}};
    if (argc > 1 && invocation.arguments[1].starts_with(kObserverArgument)) {
        invocation.arguments.erase(invocation.arguments.begin() + 1);
        invocation.is_observer = true;
    }
    if (argc > 1 && invocation.arguments[1] == "help") { // "help CMD" is "CMD --help"
        invocation.arguments.erase(invocation.arguments.begin() + 1);
        invocation.arguments.emplace_back("--help");
    }
    if (argc > 1 && invocation.arguments[1].starts_with('-') &&
        std::any_of(invocation.arguments.begin(), invocation.arguments.end(),
                    [](const std::string& given) { return given.starts_with(kExtcap); })) {
        invocation.arguments.insert(invocation.arguments.begin() + 1, "extcap");
    }
    return invocation;
}

/// True for -x, also if a value or more flags follow in the text; false for a negative number.
bool is_short_flag(std::string_view text) {
    return text.size() > 1 && text[0] == '-' &&
           std::isalpha(static_cast<unsigned char>(text[1])) != 0;
}

/// Returns a suggestion of the long flags that begin with this letter; empty if no flag does, or
/// too many do.
std::string flags_with_letter(const CLI::App& command, char letter) {
    constexpr std::size_t kMost = 3;
    std::vector<std::string> flags;
    for (const CLI::Option* option : command.get_options()) {
        if (!option->get_lnames().empty() && option->get_lnames().front().front() == letter &&
            !option->get_group().empty()) {
            flags.push_back("--" + option->get_lnames().front());
        }
    }
    return flags.empty() || flags.size() > kMost
               ? std::string{}
               : fmt::format("; did you mean {}?", fmt::join(flags, " or "));
}

/// Returns an error for the first flag that the command does not have, such as "tap has no
/// --resync; proxy has it" or "proxy has no --kep; did you mean --keep?"; empty if it has them all.
std::string unknown_flag_error(const CLI::App& app, const CLI::App& chosen,
                               const std::vector<std::string>& given) {
    std::string short_flag; // error that is returned last, because -x may be the value of a flag
    for (const std::string& each : given) {
        const std::string flag = each.substr(0, each.find('='));
        if (flag == "--") {
            break;
        }
        if (is_short_flag(flag) && short_flag.empty() &&
            chosen.get_option_no_throw(flag.substr(0, 2)) == nullptr) {
            const bool is_long = chosen.get_option_no_throw('-' + flag) != nullptr;
            short_flag =
                is_long ? fmt::format("{0} has no {1}; did you mean -{1}?", chosen.get_name(), flag)
                        : fmt::format("{} has no {}{}", chosen.get_name(), flag.substr(0, 2),
                                      flags_with_letter(chosen, flag[1]));
        }
        if (!flag.starts_with("--") || chosen.get_option_no_throw(flag) != nullptr) {
            continue;
        }
        for (const CLI::App* other : app.get_subcommands([](const CLI::App*) { return true; })) {
            if (other->get_option_no_throw(flag) != nullptr) {
                return fmt::format("{} has no {}; {} has it", chosen.get_name(), flag,
                                   other->get_name());
            }
        }
        return fmt::format("{} has no {}{}", chosen.get_name(), flag,
                           suggest_flag(chosen, std::string_view{flag}.substr(2), "--"));
    }
    return short_flag;
}

/// Returns an error for the command's first missing argument, such as "map needs file: Map file";
/// empty if no argument is missing.
std::string missing_argument_error(const CLI::App& chosen) {
    const auto missing = chosen.get_options(
        [](const CLI::Option* option) { return option->get_required() && option->count() == 0; });
    return missing.empty()
               ? std::string{}
               : fmt::format("{} needs {}: {}", chosen.get_name(), missing.front()->get_name(true),
                             missing.front()->get_description());
}

/// Returns the error message for arguments that the parser refused. `app`: has all commands.
/// `chosen`: the command that was parsed, or none.
std::string describe_error(const CLI::App& app, const std::vector<CLI::App*>& chosen,
                           const CLI::ParseError& error, const std::vector<std::string>& given) {
    if (chosen.empty() && given.size() > 1 && !given[1].starts_with('-')) {
        std::vector<std::string_view> names;
        for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
            names.push_back(command->get_name());
        }
        const std::string_view like = filter::most_similar_word(given[1], names);
        return fmt::format("unknown command '{}'{}", record::terminal_text(given[1]),
                           like.empty() ? "" : fmt::format("; did you mean {}?", like));
    }
    if (!chosen.empty()) {
        std::string text = unknown_flag_error(app, *chosen.front(), given);
        if (text.empty() && dynamic_cast<const CLI::RequiredError*>(&error) != nullptr) {
            text = missing_argument_error(*chosen.front());
        }
        if (!text.empty()) {
            return text;
        }
    }
    return describe_parser_error(error);
}

/// Checks that the value of each flag is not empty, and is no flag of the command. For a missing
/// value, the parser would take the next argument, even if that is a flag such as --check-config.
/// Errors: UsageError.
void check_values(const CLI::App& app, const std::vector<std::string>& given) {
    const auto chosen = app.get_subcommands(
        [&given](const CLI::App* each) { return each->get_name() == given[1]; });
    for (std::size_t i = 2; i < given.size() && !chosen.empty() && given[i] != "--"; ++i) {
        const CLI::App& command = *chosen.front();
        const auto equals = given[i].find('=');
        const CLI::Option* const flag = command.get_option_no_throw(given[i].substr(0, equals));
        const bool is_alone = equals == std::string::npos;
        if (flag == nullptr || !given[i].starts_with('-') || is_switch(*flag) ||
            (is_alone && i + 1 == given.size())) {
            continue;
        }
        const std::string value = is_alone ? given[++i] : given[i].substr(equals + 1);
        const std::string name = value.substr(0, value.find('='));
        if (value.empty()) {
            throw UsageError{
                fmt::format("{}: is empty; leave it out, or give it a value", flag->get_name())};
        }
        if (is_alone && name.starts_with("--") && command.get_option_no_throw(name) != nullptr) {
            throw UsageError{fmt::format("{}: needs a value before {}", flag->get_name(), name)};
        }
    }
}

int parse_and_run(Invocation invocation) {
    if (const std::string said = replace_old_command(invocation.arguments); !said.empty()) {
        sink::print_error("{}", said);
    }
    const auto& given = invocation.arguments;
    if (given.size() <= 1) {
        sink::print_text(stderr, kFirstSteps);
        return kExitUsage;
    }
    const bool needs_all = has_variables() || given[1] == "completion";
    CommandLine line{invocation, needs_all ? std::string_view{} : given[1]};
    CLI::App& app = line.program.app();
    check_values(app, given);
    try {
        // The parser takes the arguments from the back.
        app.parse(std::vector<std::string>{given.rbegin(), given.rend() - 1});
    } catch (const CLI::Success& success) {
        return app.exit(success);
    } catch (const CLI::ParseError& error) {
        const auto chosen = app.get_subcommands();
        const std::string where = chosen.empty() ? "" : chosen.front()->get_name() + ' ';
        const CommandLine all{invocation};
        sink::print_error("{} (see 'twscope {}--help')",
                          describe_error(all.program.app(), chosen, error, given), where);
        return kExitUsage;
    }
    for (const auto& [command, action] : line.actions) {
        if (command.app().parsed()) {
            open_log("warn"); // on standard error: records may go to standard output
            return action();
        }
    }
    return kExitUsage;
}

/// Returns the exit code of a command that returned `code`, after writing to standard output ended
/// with `error`. EPIPE is no failure: the reader of the output needs no more.
int exit_code_after_output(int code, int error) {
    if (error == 0 || error == EPIPE) {
        return code;
    }
    sink::print_error("standard output: {}; the output is incomplete",
                      std::generic_category().message(error));
    return code == 0 ? kExitFailed : code;
}

} // namespace

int run_program(int argc, char** argv) {
    occupy_closed_streams();
    std::signal(SIGPIPE, SIG_IGN); // a write to a closed pipe then fails with EPIPE
    try {
        const int code = parse_and_run(invocation_of(argc, argv));
        errno = 0;
        const bool printed = std::fflush(stdout) == 0 && std::ferror(stdout) == 0;
        return exit_code_after_output(code, printed ? 0 : errno == 0 ? EIO : errno);
    } catch (const std::system_error& error) {
        if (std::ferror(stdout) != 0) { // the exception reports a failed write to standard output
            return exit_code_after_output(0, error.code().value());
        }
        sink::print_error("{}", error.what());
    } catch (const std::exception& error) {
        sink::print_error("{}", error.what());
    }
    return kExitUsage;
}

int report_result(const analyze::Outcome& outcome, store::OutputFile* file) {
    if (file != nullptr) {
        file->write(file->path().ends_with(".xml") ? outcome_junit(outcome)
                                                   : outcome_text(outcome));
    }
    for (const analyze::OutcomeCheck& check : outcome.checks) {
        if (!check.passed) {
            sink::print_error("{} {}: {}", check.flag, check.text, check.actual);
        }
    }
    if (file != nullptr && file->failed()) {
        sink::print_error("--summary {}: {}", file->path(),
                          std::generic_category().message(file->error()));
        return kExitFailed;
    }
    return outcome.passed() ? 0 : kExitFinding;
}

} // namespace tw::cli
