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

Action add_extcap_command(Command& program) {
    Command command =
        program.add_command("extcap", "Capture in Wireshark, which lists twscope as an interface "
                                      "once it is in its extcap folder");
    command.make_internal(); // only Wireshark starts it
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
    return [flags, command] {
        check_unknown(command.unknown_arguments());
        return run_extcap(*flags);
    };
}

} // namespace tw::cli
