#include "proxy/cli/commands.h"
#include "proxy/cli/settings.h"
#include "proxy/filter/filter.h"
#include "proxy/record/terminal_text.h"

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <memory>
#include <string>
#include <system_error>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <unistd.h>

namespace tw::cli {

namespace {

constexpr const char* kInterface = "twscope";

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
    bool debug = false; ///< ignored, like the next member
    std::string unused;
};

void print_interfaces() {
    fmt::print("extcap {{version={}}}{{display=twscope}}\n"
               "interface {{value={}}}{{display=Teeworlds and DDNet, through twscope}}\n",
               TWSCOPE_VERSION, kInterface);
}

void print_dlts() {
    fmt::print("dlt {{number=1}}{{name=EN10MB}}{{display=Ethernet}}\n");
}

void print_config() {
    fmt::print(
        "arg {{number=0}}{{call=--server}}{{display=Game server}}{{type=string}}{{required=true}}"
        "{{placeholder=127.0.0.1:8304}}{{tooltip=HOST:PORT of the server to forward clients to}}\n"
        "arg {{number=1}}{{call=--listen}}{{display=Clients connect to}}{{type=string}}"
        "{{default=127.0.0.1:8303}}{{tooltip=ADDR:PORT to listen on}}\n"
        "arg {{number=2}}{{call=--filter}}{{display=Only packets with}}{{type=string}}"
        "{{placeholder=session == 1 and message}}"
        "{{tooltip=twscope filter: show only packets with a matching record}}\n");
}

/// Combines the capture filter and the option; both have to match.
std::string filter_of(const ExtcapFlags& flags) {
    if (flags.filter.empty() || flags.capture_filter.empty()) {
        return flags.filter + flags.capture_filter;
    }
    return fmt::format("({}) and ({})", flags.filter, flags.capture_filter);
}

/// Prints what is wrong with a capture filter; prints nothing if it is valid.
int check_filter(const std::string& text) {
    if (const auto parsed = filter::Filter::parse(text, {.show_secrets = true}); !parsed) {
        fmt::print("{}\n", parsed.error().message);
    }
    return 0;
}

/// Continues as `twscope proxy`. Wireshark ends the process with SIGTERM.
int capture(const ExtcapFlags& flags) {
    if (flags.fifo.empty() || flags.server.empty()) {
        throw UsageError{"extcap: a capture needs --fifo and --server HOST:PORT (the interface "
                         "option 'Game server')"};
    }
    std::vector<std::string> words{"twscope",    "proxy", "-s",       flags.server,     "-l",
                                   flags.listen, "-w",    flags.fifo, "--show-secrets", "-q"};
    // Wireshark shows everything on standard error as an error when the capture ends.
    words.insert(words.end(), {"--log-level", "error"});
    if (const std::string filter = filter_of(flags); !filter.empty()) {
        words.insert(words.end(), {"--write-filter", filter});
    }
    std::vector<char*> arguments;
    arguments.reserve(words.size() + 1);
    for (std::string& word : words) {
        arguments.push_back(word.data());
    }
    arguments.push_back(nullptr);
    // Ends with Wireshark, so that players do not pass an unused proxy.
    ::prctl(PR_SET_PDEATHSIG, SIGTERM);
    ::execv("/proc/self/exe", arguments.data());
    throw std::system_error{errno, std::generic_category(), "/proc/self/exe"};
}

/// Checks unknown arguments: those that Wireshark adds are accepted, as newer versions may add
/// some.
/// Errors: UsageError for other unknown arguments.
void check_unknown(const std::vector<std::string>& rest) {
    bool may_be_value = false;
    for (const std::string& word : rest) {
        const bool flag = word.starts_with("--extcap-");
        if (!flag && (!may_be_value || word.starts_with('-'))) {
            throw UsageError{fmt::format("extcap has no {}", record::terminal_text(word))};
        }
        may_be_value = flag && word.find('=') == std::string::npos;
    }
}

int run_extcap(const ExtcapFlags& flags) {
    if (flags.interfaces) {
        print_interfaces();
        return 0;
    }
    if (flags.interface != kInterface) {
        throw UsageError{
            fmt::format("extcap: the only interface is {}; see --extcap-interfaces", kInterface)};
    }
    if (flags.dlts) {
        print_dlts();
    } else if (flags.config) {
        print_config();
    } else if (flags.capture) {
        return capture(flags);
    } else if (!flags.cleanup) {
        return check_filter(flags.capture_filter);
    }
    return 0;
}

} // namespace

Action add_extcap_command(CLI::App& app) {
    CLI::App* command =
        app.add_subcommand("extcap", "Capture in Wireshark, which lists twscope as an interface "
                                     "once it is in its extcap folder");
    command->group(""); // not in the list of commands, because only Wireshark starts it
    auto flags = std::make_shared<ExtcapFlags>();
    command->add_flag("--extcap-interfaces", flags->interfaces, "Print the interfaces");
    command->add_option("--extcap-version", flags->version, "Wireshark's version")
        ->type_name("VERSION");
    command->add_option("--extcap-interface", flags->interface, "Interface to use")
        ->type_name("NAME");
    command->add_flag("--extcap-dlts", flags->dlts, "Print the interface's link type");
    command->add_flag("--extcap-config", flags->config, "Print the interface's options");
    command->add_flag("--capture", flags->capture, "Capture until SIGTERM");
    command->add_option("--fifo", flags->fifo, "Pipe to write to")->type_name("FILE");
    command
        ->add_option("--extcap-capture-filter", flags->capture_filter,
                     "Capture only packets with a matching record; without --capture, check the "
                     "filter's syntax")
        ->type_name("EXPRESSION");
    command->add_option("-s,--server", flags->server, "Game server to forward to")
        ->type_name("HOST:PORT");
    command->add_option("-l,--listen", flags->listen, "Address for clients to connect to")
        ->type_name("ADDR:PORT")
        ->capture_default_str();
    command->add_option("--filter", flags->filter, "Capture only packets with a matching record")
        ->type_name("EXPRESSION");
    command
        ->add_option("--extcap-reload-option", flags->unused,
                     "An option whose values are asked for: none has any")
        ->type_name("NAME");
    command->add_flag("--extcap-cleanup-postkill", flags->cleanup, "Nothing is left to clean up");
    command->add_flag("--debug", flags->debug, "For other extcaps; nothing is written");
    command->add_option("--debug-file", flags->unused, "The same")->type_name("FILE");
    command->allow_extras();
    return [flags, command] {
        check_unknown(command->remaining());
        return run_extcap(*flags);
    };
}

} // namespace tw::cli
