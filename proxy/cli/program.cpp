#include "proxy/cli/program.h"

#include "proxy/cli/command_line.h"
#include "proxy/cli/log.h"
#include "proxy/record/terminal_text.h"
#include "proxy/sink/complaint.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <exception>
#include <string>
#include <string_view>
#include <system_error>
#include <tuple>
#include <vector>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

namespace tw::cli {

namespace {

/// What the relay's process puts before the arguments it was given, to start its observer.
constexpr std::string_view kObserver = "--observer=";
/// How Wireshark begins, which names no command.
constexpr std::string_view kExtcap = "--extcap-";
/// Stands behind the number of one that waits.
constexpr char kWaits = '+';

/// Else the next files opened would be standard output and error, and messages land in the records. In the direction that
/// nobody uses, so that a read or a write fails as it would have.
void occupy_closed_streams() {
    for (const int descriptor : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
        if (::fcntl(descriptor, F_GETFD) < 0) {
            std::ignore = ::open("/dev/null", descriptor == STDIN_FILENO ? O_WRONLY : O_RDONLY);
        }
    }
}

Invocation invocation_of(int argc, char** argv) {
    Invocation invocation{.arguments = {argv, argv + argc}};
    if (argc > 1 && invocation.arguments[1].starts_with(kObserver)) {
        const std::string_view number =
            std::string_view{invocation.arguments[1]}.substr(kObserver.size());
        std::from_chars(number.data(), number.data() + number.size(), invocation.observer);
        invocation.observer_waits = number.ends_with(kWaits);
    }
    if (argc > 1 && invocation.arguments[1].starts_with('-') &&
        std::any_of(invocation.arguments.begin(), invocation.arguments.end(),
                    [](const std::string& given) { return given.starts_with(kExtcap); })) {
        invocation.arguments.insert(invocation.arguments.begin() + 1, "extcap");
    }
    if (invocation.observer != 0) {
        invocation.arguments.erase(invocation.arguments.begin() + 1);
    }
    return invocation;
}

/// "tap has no --resync; proxy has it": of a flag that is another command's. Empty: it is nobody's.
std::string flag_of_another(const CLI::App& app, const CLI::App& chosen,
                            const std::vector<std::string>& given) {
    for (const std::string& each : given) {
        const std::string flag = each.substr(0, each.find('='));
        if (!flag.starts_with("--") || chosen.get_option_no_throw(flag) != nullptr) {
            continue;
        }
        for (const CLI::App* other : app.get_subcommands([](const CLI::App*) { return true; })) {
            if (other->get_option_no_throw(flag) != nullptr) {
                return fmt::format("{} has no {}; {} has it", chosen.get_name(), flag,
                                   other->get_name());
            }
        }
    }
    return {};
}

int run(const Invocation& invocation) {
    CommandLine line{invocation};
    CLI::App& app = line.app;
    const auto& given = invocation.arguments;
    try {
        // Taken from the back.
        app.parse(std::vector<std::string>{given.rbegin(), given.rend() - 1});
    } catch (const CLI::Success& success) {
        return app.exit(success);
    } catch (const CLI::ParseError& error) {
        const auto chosen = app.get_subcommands();
        if (chosen.empty() && given.size() > 1 && !given[1].starts_with('-')) {
            sink::complain("unknown command '{}' (see 'twscope --help')",
                           record::terminal_text(given[1]));
            return kExitUsage;
        }
        const std::string where = chosen.empty() ? "" : chosen.front()->get_name() + ' ';
        const std::string other =
            chosen.empty() ? "" : flag_of_another(app, *chosen.front(), given);
        sink::complain("{} (see 'twscope {}--help')", other.empty() ? error.what() : other, where);
        return kExitUsage;
    }
    for (const auto& [command, action] : line.actions) {
        if (command->parsed()) {
            open_log("warn"); // on standard error: records may go to standard output
            return action();
        }
    }
    return kExitUsage;
}

/// The exit code of a run whose text may not have got where it goes. A reader that left wanted no more.
int code_of(int code, int error) {
    if (error == 0 || error == EPIPE) {
        return code;
    }
    sink::complain("standard output: {}; the output is incomplete",
                   std::generic_category().message(error));
    return code == 0 ? kExitFailed : code;
}

} // namespace

int run_program(int argc, char** argv) {
    occupy_closed_streams();
    try {
        const int code = run(invocation_of(argc, argv));
        errno = 0;
        const bool printed = std::fflush(stdout) == 0 && std::ferror(stdout) == 0;
        return code_of(code, printed ? 0 : errno == 0 ? EIO : errno);
    } catch (const std::system_error& error) {
        if (std::ferror(stdout) != 0) { // it came of printing
            return code_of(0, error.code().value());
        }
        sink::complain("{}", error.what());
    } catch (const std::exception& error) {
        sink::complain("{}", error.what());
    }
    return kExitUsage;
}

} // namespace tw::cli
