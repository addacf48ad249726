#include "proxy/cli/commands.h"
#include "proxy/cli/help.h"
#include "proxy/cli/settings.h"
#include "proxy/filter/filter.h"
#include "proxy/process/server_probe.h"
#include "proxy/sink/output.h"

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <system_error>

#include <fmt/ranges.h>
#include <sys/prctl.h>
#include <unistd.h>

// Commands that other programs call: containers, Wireshark, shells.

namespace tw::cli {

namespace {

struct HealthFlags {
    std::string address = "127.0.0.1:8303";
    double timeout = 2;
};

int run_health(const HealthFlags& flags) {
    const auto where = parse_endpoint(flags.address, "health", "127.0.0.1");
    if (where.port() == 0) {
        throw usage_error("health {}: expected an address like 127.0.0.1:8303", flags.address);
    }
    boost::asio::io_context io{1};
    const std::chrono::milliseconds deadline{static_cast<std::int64_t>(flags.timeout * 1000)};
    process::ServerProbe probe{io, process::reachable_address(where), deadline};
    bool ok = false;
    probe.request_info([&](bool answered) { ok = answered; });
    io.run();
    if (!ok) {
        sink::print_error("no server answered at {} within {} s", flags.address, flags.timeout);
        return 1;
    }
    fmt::print("healthy: a server answered a request for its info at {}\n", flags.address);
    return 0;
}

constexpr const char* kExtcapInterface = "twscope";

struct ExtcapFlags {
    bool interfaces = false;
    std::string version;
    std::string interface;
    bool dlts = false;
    bool config = false;
    bool capture = false;
    std::string fifo;
    std::string capture_filter;
    std::string server;
    std::string listen = "127.0.0.1:8303";
    std::string filter;
    bool cleanup = false;
    bool debug = false; ///< ignored, as is the value of `unused`
    std::string unused;
};

void print_extcap_options() {
    fmt::print(
        "arg {{number=0}}{{call=--server}}{{display=Game server}}{{type=string}}{{required=true}}"
        "{{placeholder=127.0.0.1:8304}}{{tooltip=HOST:PORT of the server to forward clients to}}\n"
        "arg {{number=1}}{{call=--listen}}{{display=Clients connect to}}{{type=string}}"
        "{{default=127.0.0.1:8303}}{{tooltip=ADDR:PORT to listen on}}\n"
        "arg {{number=2}}{{call=--filter}}{{display=Only packets with}}{{type=string}}"
        "{{placeholder=session == 1 and message}}"
        "{{tooltip=twscope filter: show only packets with a matching record}}\n");
}

/// Returns a filter that selects what matches both Wireshark's capture filter and --filter.
std::string combined_filter(const ExtcapFlags& flags) {
    if (flags.filter.empty() || flags.capture_filter.empty()) {
        return flags.filter + flags.capture_filter;
    }
    return fmt::format("({}) and ({})", flags.filter, flags.capture_filter);
}

/// Replaces this process by `twscope proxy`, which Wireshark ends with SIGTERM.
int capture_with_proxy(const ExtcapFlags& flags) {
    if (flags.fifo.empty() || flags.server.empty()) {
        throw UsageError{"extcap: a capture needs --fifo and --server HOST:PORT (the interface "
                         "option 'Game server')"};
    }
    std::vector<std::string> words{"twscope",    "proxy", "-s",       flags.server,     "-l",
                                   flags.listen, "-w",    flags.fifo, "--show-secrets", "-q"};
    // Wireshark shows everything on standard error as an error when the capture ends.
    words.insert(words.end(), {"--log-level", "error"});
    if (const std::string filter = combined_filter(flags); !filter.empty()) {
        words.insert(words.end(), {"--write-filter", filter});
    }
    std::vector<char*> arguments;
    arguments.reserve(words.size() + 1);
    for (std::string& word : words) {
        arguments.push_back(word.data());
    }
    arguments.push_back(nullptr);
    // The proxy ends when Wireshark ends, because nobody else uses its capture.
    ::prctl(PR_SET_PDEATHSIG, SIGTERM);
    ::execv("/proc/self/exe", arguments.data());
    throw std::system_error{errno, std::generic_category(), "/proc/self/exe"};
}

int run_extcap(const ExtcapFlags& flags) {
    if (flags.interfaces) {
        fmt::print("extcap {{version={}}}{{display=twscope}}\n"
                   "interface {{value={}}}{{display=Teeworlds and DDNet, through twscope}}\n",
                   TWSCOPE_VERSION, kExtcapInterface);
    } else if (flags.interface != kExtcapInterface) {
        throw usage_error("extcap: the only interface is {}; see --extcap-interfaces",
                          kExtcapInterface);
    } else if (flags.dlts) {
        fmt::print("dlt {{number=1}}{{name=EN10MB}}{{display=Ethernet}}\n");
    } else if (flags.config) {
        print_extcap_options();
    } else if (flags.capture) {
        return capture_with_proxy(flags);
    } else if (!flags.cleanup) { // prints what is wrong with a filter, and nothing if it is valid
        const auto parsed = filter::Filter::parse(flags.capture_filter, {.show_secrets = true});
        fmt::print("{}", parsed ? "" : parsed.error().message + '\n');
    }
    return 0;
}

/// Returns the shell text that completes the value of a flag: `words` if only certain words are
/// valid, `folders` for a folder, `files` for a file, or else `nothing`.
std::string value_completion(const Flag& flag, const std::string& words, std::string_view folders,
                             std::string_view files, std::string_view nothing) {
    return std::string{!flag.allowed_words.empty() ? words
                       : flag.value_name == "DIR"  ? folders
                       : flag.value_name == "FILE" ? files
                                                   : nothing};
}

struct ShellCompletion {
    const char* name;
    std::string (*completion)(const CommandList& commands);
};

constexpr std::array<ShellCompletion, 3> kShellCompletions{
    {{"bash", bash_completion}, {"zsh", zsh_completion}, {"fish", fish_completion}}};

} // namespace

void add_health_command(Command& command) {
    command.about = "Request server info through a running proxy; exit with 0 if an answer arrives";
    auto flags = std::make_shared<HealthFlags>();
    // In a container, this variable also sets the address on which the proxy listens.
    // NOLINTNEXTLINE(concurrency-mt-unsafe): no other thread has started yet
    if (const char* const listen = std::getenv("TWSCOPE_LISTEN")) {
        flags->address = listen;
    }
    command.add("address", &flags->address, "ADDR:PORT", "Address the proxy listens on");
    command.add_time("--timeout", flags->timeout, 0.01, 60, "Seconds to wait for an answer");
    command.action = [flags](const Invocation& /*invocation*/) { return run_health(*flags); };
}

void add_extcap_command(Command& command) {
    command.about = "Capture in Wireshark, which lists twscope as an interface once it is in its "
                    "extcap folder";
    command.ignored_flag_prefix = "--extcap-"; // newer versions of Wireshark may add flags
    auto flags = std::make_shared<ExtcapFlags>();
    command.add_switch("--extcap-interfaces", flags->interfaces, "Print the interfaces");
    command.add("--extcap-version", &flags->version, "VERSION", "Wireshark's version");
    command.add("--extcap-interface", &flags->interface, "NAME", "Interface to use");
    command.add_switch("--extcap-dlts", flags->dlts, "Print the interface's link type");
    command.add_switch("--extcap-config", flags->config, "Print the interface's options");
    command.add_switch("--capture", flags->capture, "Capture until SIGTERM");
    command.add("--fifo", &flags->fifo, "FILE", "Pipe to write to");
    command.add("--extcap-capture-filter", &flags->capture_filter, "EXPRESSION",
                "Capture only packets with a matching record; without --capture, check the "
                "filter's syntax");
    command.add("-s,--server", &flags->server, "HOST:PORT", "Game server to forward to");
    command.add("-l,--listen", &flags->listen, "ADDR:PORT", "Address for clients to connect to");
    command.add("--filter", &flags->filter, "EXPRESSION",
                "Capture only packets with a matching record");
    command.add("--extcap-reload-option", &flags->unused, "NAME",
                "An option whose values are asked for: none has any");
    command.add_switch("--extcap-cleanup-postkill", flags->cleanup, "Nothing is left to clean up");
    command.add_switch("--debug", flags->debug, "For other extcaps; nothing is written");
    command.add("--debug-file", &flags->unused, "FILE", "The same");
    command.action = [flags](const Invocation& /*invocation*/) { return run_extcap(*flags); };
}

std::string bash_completion(const CommandList& commands) {
    std::vector<std::string> names;
    std::string cases;
    std::string flags;
    for (const auto& command : commands) {
        names.push_back(command->name);
        std::vector<std::string> all;
        for (const Flag& flag : command->flags) {
            const auto own = names_with_dashes(flag);
            if (!flag.replacement.empty()) {
                continue;
            }
            all.insert(all.end(), own.begin(), own.end());
            if (!own.empty() && !flag.is_switch()) {
                cases +=
                    fmt::format("        {}\\ {}) COMPREPLY=({}); return ;;\n", command->name,
                                fmt::join(own, fmt::format(" | {}\\ ", command->name)),
                                value_completion(flag,
                                                 fmt::format("$(compgen -W '{}' -- \"$current\")",
                                                             fmt::join(flag.allowed_words, " ")),
                                                 "$(compgen -d -- \"$current\")",
                                                 "$(compgen -f -- \"$current\")", ""));
            }
        }
        flags += fmt::format("            {}) words='{}' ;;\n", command->name, fmt::join(all, " "));
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

std::string zsh_completion(const CommandList& commands) {
    return "#compdef twscope\nautoload -U +X bashcompinit && bashcompinit\n" +
           bash_completion(commands);
}

std::string fish_completion(const CommandList& commands) {
    std::string text = "# fish completion for twscope, made of its own help\n";
    for (const auto& command : commands) {
        text += fmt::format("complete -c twscope -n __fish_use_subcommand -f -a {} -d {}\n",
                            command->name, quote_for_shell(command->about));
        for (const Flag& flag : command->flags) {
            if (flag.is_argument || !flag.replacement.empty()) {
                continue;
            }
            text += fmt::format(
                "complete -c twscope -n '__fish_seen_subcommand_from {}'{}{}{} -d {}\n",
                command->name, flag.letter.empty() ? "" : " -s " + flag.letter,
                flag.name.empty() ? "" : " -l " + flag.name,
                flag.is_switch()
                    ? ""
                    : value_completion(
                          flag, fmt::format(" -x -a '{}'", fmt::join(flag.allowed_words, " ")),
                          " -x -a '(__fish_complete_directories)'", " -r -F", " -x"),
                quote_for_shell(flag.help));
        }
    }
    return text;
}

void add_completion_command(Command& command) {
    command.about = "Print what lets a shell complete commands and flags";
    const auto name = std::make_shared<std::string>();
    Flag& shell = command.add("SHELL", name.get(), "SHELL",
                              "The name of a shell; for bash: eval \"$(twscope completion bash)\"");
    shell.is_required = true;
    shell.allowed_words = {"bash", "zsh", "fish"};
    command.action = [name](const Invocation& /*invocation*/) {
        const auto* const shell_of_name =
            std::ranges::find(kShellCompletions, *name, &ShellCompletion::name);
        fmt::print("{}", shell_of_name->completion(make_commands()));
        return 0;
    };
}

} // namespace tw::cli
