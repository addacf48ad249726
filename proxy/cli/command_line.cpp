#include "proxy/cli/commands.h"
#include "proxy/cli/help.h"
#include "proxy/cli/log.h"
#include "proxy/cli/output_file.h"
#include "proxy/cli/settings.h"
#include "proxy/filter/keys.h"
#include "proxy/process/confinement.h"
#include "proxy/record/terminal_text.h"
#include "proxy/relay/listen_socket.h"
#include "proxy/sink/console.h"
#include "proxy/sink/output.h"
#include "proxy/web/page_files.h"

#include <cerrno>
#include <csignal>
#include <exception>
#include <iterator>
#include <set>
#include <system_error>
#include <tuple>

#include <fcntl.h>
#include <unistd.h>

namespace tw::cli {

namespace {

constexpr const char* kAboutTwscope =
    "twscope is a UDP proxy between Teeworlds or DDNet clients and a server. It forwards every "
    "datagram untouched and inspects a copy: it rebuilds every snapshot, verifies it against the "
    "server's checksum, adds the map tile to every position, and records what it saw.\n"
    "\n"
    "  twscope proxy -s 127.0.0.1:8304                   clients connect to port 8303\n"
    "  twscope proxy -s 127.0.0.1:8304 -o records/       also record everything\n"
    "  twscope tap -i eth0 -o records/                   record beside the path\n"
    "  twscope decode traffic.pcap -o -                  decode a capture\n"
    "  twscope explain traffic.pcap                      explain its first error\n"
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

constexpr const char* kSettingsHelp = "Every flag of a command can also be set by an environment "
                                      "variable TWSCOPE_NAME or a key in --config FILE.\n";

constexpr const char* kUnmetCheck = "an --expect or --fail-on was not met";

/// A command, with the meanings of the exit codes that only some commands have. A meaning is null
/// if the command never exits with that code.
struct CommandInfo {
    std::string_view name;
    void (*add)(Command& command); ///< adds the flags and the action
    const char* finding = nullptr; ///< meaning of kExitFinding
    const char* not_yet = nullptr; ///< meaning of kExitRetryable
};

constexpr CommandInfo kCommands[]{
    {"proxy", add_proxy_command, kUnmetCheck,
     "could not start yet (a name, address or port is unavailable, or there is no twscope to take "
     "over from)"},
    {"tap", add_tap_command, kUnmetCheck,
     "could not start yet (the interface or a port is unavailable)"},
    {"decode", add_decode_command, kUnmetCheck},
    {"records", add_records_command},
    {"collect", add_collect_command, kUnmetCheck,
     "could not start yet (the bus, the stream or a port is unavailable)"},
    {"compare", add_compare_command, "the games differ or nothing could be compared"},
    {"replay", add_replay_command, kUnmetCheck, "the server did not answer"},
    {"map", add_map_command},
    {"explain", add_explain_command},
    {"health", add_health_command, "no answer"},
    {"extcap", add_extcap_command},
    {"completion", add_completion_command}};

std::string exit_codes_text(const CommandInfo& command) {
    std::string text = "Exit codes: 0 success";
    if (command.finding != nullptr) {
        text += fmt::format(", {} {}", kExitFinding, command.finding);
    }
    text += fmt::format(", {} wrong usage or it could not start, {} a failure while running or "
                        "damaged input",
                        kExitUsage, kExitFailed);
    if (command.not_yet != nullptr) {
        text += fmt::format(", {} {}", kExitRetryable, command.not_yet);
    }
    return text + ".";
}

std::unique_ptr<Command> make_command(const CommandInfo& info) {
    auto command = std::make_unique<Command>(std::string{info.name});
    info.add(*command);
    if (!command->footer.empty()) {
        command->footer += '\n';
    }
    command->footer +=
        (command->find_flag("--config") == nullptr ? "" : kSettingsHelp) + exit_codes_text(info);
    if (command->find_flag("--color") == nullptr) {
        add_color_flag(*command);
    }
    add_help_flags(*command);
    return command;
}

std::string program_help() {
    constexpr const char* kCommandHelp =
        "Exit codes: 0 success; each command's --help says what the others mean.\n";
    std::string text =
        fmt::format("{}\nUsage: twscope [OPTIONS] SUBCOMMAND\n\nOptions:\n", kAboutTwscope);
    text += help_line("-h, --help", "Print this help message and exit");
    text +=
        help_line("-V, --version",
                  "Print the version, the observer's confinement and what was left out, and exit");
    text +=
        help_line("--licenses", "Print the licences of everything that is compiled in, and exit");
    text += "\nSubcommands:\n";
    for (const auto& command : make_commands()) {
        text += command->ignored_flag_prefix.empty() ? help_line(command->name, command->about)
                                                     : ""; // only Wireshark starts extcap
    }
    return wrap_lines(fmt::format("{}\n{}{}", text, kSettingsHelp, kCommandHelp),
                      sink::terminal_columns(STDOUT_FILENO));
}

/// Returns what `twscope FLAG` prints, without a command; empty for an unknown flag.
std::string program_flag_output(std::string_view flag) {
    if (flag == "-h" || flag == "--help") {
        return program_help();
    }
    if (flag == "-V" || flag == "--version") {
        return fmt::format("twscope {}\nobserver confinement: {}{}\n", TWSCOPE_VERSION,
                           process::describe(process::supported_confinement()),
                           web::is_page_built() ? "" : "\nwithout the live page");
    }
    return flag == "--licenses" ? fmt::format("{}\n", kLicenses) : std::string{};
}

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

/// Renames -o and --output, with or without their value in the same argument.
void rename_output_flag(std::string& argument, std::string_view new_name) {
    constexpr std::string_view kShort = "-o";
    constexpr std::string_view kLong = "--output";
    if (argument == kLong || argument.starts_with("--output=")) {
        argument.replace(0, kLong.size(), new_name);
    } else if (argument.starts_with(kShort)) {
        const std::string value = argument.substr(kShort.size());
        argument = std::string{new_name} + (value.empty() ? "" : "=") + value;
    }
}

/// Wireshark starts twscope without the name of a command. Some arguments then begin with this.
constexpr std::string_view kExtcapPrefix = "--extcap-";

/// Opens closed standard streams. Otherwise the files opened next would become standard output and
/// error, and messages would get into the records. The streams are opened in the unused direction,
/// so that reads and writes fail as before.
void open_closed_streams() {
    for (const int descriptor : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
        if (::fcntl(descriptor, F_GETFD) < 0) {
            std::ignore = ::open("/dev/null", descriptor == STDIN_FILENO ? O_WRONLY : O_RDONLY);
        }
    }
}

Invocation make_invocation(int argc, char** argv) {
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
                    [](const std::string& given) { return given.starts_with(kExtcapPrefix); })) {
        invocation.arguments.insert(invocation.arguments.begin() + 1, "extcap");
    }
    return invocation;
}

/// Returns an error for the first environment variable that begins with kVariablePrefix but belongs
/// to no flag; empty if there is none. Without the error, a misspelt name such as
/// TWSCOPE_PSEUDONYM would let addresses be recorded in clear.
std::string unknown_variable_error() {
    std::set<std::string, std::less<>> known;
    for (char** each = environ; *each != nullptr; ++each) {
        const std::string_view line{*each};
        const std::string_view name = line.substr(0, line.find('='));
        // Kubernetes and Docker set TWSCOPE_SERVICE_… and TWSCOPE_PORT… for a service "twscope".
        if (!name.starts_with(kVariablePrefix) || name.starts_with("TWSCOPE_SERVICE_") ||
            name == "TWSCOPE_PORT" || name.starts_with("TWSCOPE_PORT_")) {
            continue;
        }
        if (known.empty()) {
            for (const auto& command : make_commands()) {
                for (const Flag& flag : command->flags) {
                    known.insert(is_config_setting(flag) ? environment_variable_name(flag) : "");
                }
            }
        }
        if (known.contains(name)) {
            continue;
        }
        std::vector<std::string_view> words;
        for (const std::string_view variable : known) {
            words.push_back(variable.substr(std::min(kVariablePrefix.size(), variable.size())));
        }
        const std::string_view like =
            filter::most_similar_word(name.substr(kVariablePrefix.size()), words);
        return fmt::format("{}: no flag has this variable; {}", name,
                           like.empty() ? "unset it"
                                        : fmt::format("did you mean {}{}?", kVariablePrefix, like));
    }
    return {};
}

/// Returns the error for a flag that the command does not have. Names another command that has the
/// flag, if there is one.
std::string describe_unknown_flag(const Command& command, const UnknownFlagError& error) {
    if (command.name == "records" && error.flag == "--demo") {
        return "a recording cannot become a demo; 'twscope decode CAPTURE --view world --demo DIR' "
               "makes one";
    }
    for (const auto& other : make_commands()) {
        if (error.flag.starts_with("--") && other->find_flag(error.flag) != nullptr) {
            return fmt::format("{} has no {}; {} has it", command.name, error.flag, other->name);
        }
    }
    return error.what();
}

/// Returns the error for a first argument that is neither a command nor a flag.
std::string describe_unknown_command(const std::string& given) {
    std::vector<std::string_view> names{"help", "--help", "--version", "--licenses"};
    std::ranges::transform(kCommands, std::back_inserter(names), &CommandInfo::name);
    const std::string_view like = given == "-v" ? "-V" : filter::most_similar_word(given, names);
    return fmt::format("unknown command '{}'{}", record::escape_for_terminal(given),
                       !like.empty()            ? fmt::format("; did you mean {}?", like)
                       : given.starts_with("-") ? "; flags come after the command"
                                                : file_type_hint(given, FileType::objects));
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
    if (const std::string text = program_flag_output(given[1]); !text.empty()) {
        fmt::print("{}", text);
        return 0;
    }
    const auto* const info = std::ranges::find(kCommands, given[1], &CommandInfo::name);
    if (info == std::end(kCommands)) {
        throw usage_error("{} (see 'twscope --help')", describe_unknown_command(given[1]));
    }
    const auto command = make_command(*info);
    const auto refuse = [&](const std::string& error) {
        return usage_error("{} (see 'twscope {} --help')", error, command->name);
    };
    try {
        command->parse_arguments({given.begin() + 2, given.end()});
    } catch (const UnknownFlagError& error) {
        throw refuse(describe_unknown_flag(*command, error));
    } catch (const UsageError& error) {
        throw refuse(error.what());
    }
    if (command->wanted_help != Command::Help::none) {
        fmt::print("{}", command_help(*command, command->wanted_help == Command::Help::brief));
        return 0;
    }
    if (std::string error = unknown_variable_error(); !error.empty()) {
        command->problems.push_back(std::move(error));
    }
    open_log("warn"); // on standard error: records may go to standard output
    return command->action(invocation);
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

CommandList make_commands() {
    CommandList commands;
    std::ranges::transform(kCommands, std::back_inserter(commands), make_command);
    return commands;
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
                      [old](std::string& argument) { rename_output_flag(argument, old->output); });
    }
    if (!old->flag.empty()) {
        arguments.insert(arguments.begin() + kCommand + 1, std::string{old->flag});
    }
    return fmt::format("'{}' is now '{}{}{}'", old->name, old->command,
                       old->flag.empty() ? "" : " ", old->flag);
}

int run_program(int argc, char** argv) {
    open_closed_streams();
    std::signal(SIGPIPE, SIG_IGN); // a write to a closed pipe then fails with EPIPE
    try {
        const int code = parse_and_run(make_invocation(argc, argv));
        errno = 0;
        const bool printed = std::fflush(stdout) == 0 && std::ferror(stdout) == 0;
        return exit_code_after_output(code, printed ? 0 : errno == 0 ? EIO : errno);
    } catch (const std::system_error& error) {
        if (std::ferror(stdout) != 0) { // the exception reports a failed write to standard output
            return exit_code_after_output(0, error.code().value());
        }
        sink::print_error("{}", error.what());
    } catch (const relay::RetryableStartError& error) {
        sink::print_error("{}", error.what());
        return kExitRetryable;
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
