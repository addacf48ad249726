#include "proxy/commands.h"
#include "proxy/settings.h"

#include <cstdio>
#include <exception>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

namespace {

constexpr const char* kAbout =
    "twscope stands between Teeworlds 0.6 or DDNet clients and a server, passes every datagram on\n"
    "untouched, and looks at a copy: it rebuilds every snapshot, holds it against the server's\n"
    "checksum, finds every position on the map, and writes down what it saw.\n\n"
    "  twscope proxy -s 127.0.0.1:8304                  clients connect to 127.0.0.1:8303\n"
    "  twscope proxy -s 127.0.0.1:8304 -o game.jsonl    and everything is recorded\n"
    "  twscope decode traffic.pcap -o -                 the same from a capture\n"
    "  twscope map ctf1.map --at 1616,1040              what is at a position\n";

constexpr const char* kMore =
    "Every flag of a command is also a variable TWSCOPE_NAME and a key of --config FILE.\n"
    "Exit codes: 0 fine, 1 a --fail-on finding occurred, 2 usage or start-up, 3 failed while "
    "running.";

int run(int argc, char** argv) {
    CLI::App app{kAbout, "twscope"};
    app.set_version_flag("--version", TWSCOPE_VERSION);
    app.require_subcommand(1);
    app.footer(kMore);
    std::vector<std::pair<CLI::App*, tw::Action>> actions;
    for (const auto add : {tw::add_proxy_command, tw::add_decode_command, tw::add_map_command,
                           tw::add_stats_command, tw::add_findings_command,
                           tw::add_health_command}) {
        tw::Action action = add(app);
        actions.emplace_back(app.get_subcommands({}).back(), std::move(action));
    }
    try {
        app.parse(argc, argv);
    } catch (const CLI::Success& success) {
        return app.exit(success);
    } catch (const CLI::ParseError& error) {
        const auto chosen = app.get_subcommands();
        const std::string where = chosen.empty() ? "" : chosen.front()->get_name() + ' ';
        fmt::print(stderr, "twscope: {} (see 'twscope {}--help')\n", error.what(), where);
        return tw::kExitUsage;
    }
    for (const auto& [command, action] : actions) {
        if (command->parsed()) {
            return action();
        }
    }
    return tw::kExitUsage;
}

} // namespace

int main(int argc, char** argv) {
    try {
        return run(argc, argv);
    } catch (const std::exception& error) {
        fmt::print(stderr, "twscope: {}\n", error.what());
        return tw::kExitUsage;
    }
}
