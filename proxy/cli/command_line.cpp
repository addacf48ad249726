#include "proxy/cli/command_line.h"

#include "proxy/admin/page.h"
#include "proxy/cli/help_format.h"
#include "proxy/run/confinement.h"

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include <fmt/format.h>

namespace tw::cli {

namespace {

constexpr const char* kAboutTwscope =
    "twscope is a UDP proxy between Teeworlds or DDNet clients and a server. It forwards every\n"
    "datagram untouched and inspects a copy: it rebuilds every snapshot, verifies it against the\n"
    "server's checksum, locates every position on the map, and records what it saw.\n"
    "\n"
    "  twscope proxy -s 127.0.0.1:8304                  clients connect to 127.0.0.1:8303\n"
    "  twscope proxy -s 127.0.0.1:8304 -o game.jsonl    also record everything\n"
    "  twscope tap -i eth0 -o game.jsonl                record without being in the path\n"
    "  twscope decode traffic.pcap -o -                 decode a capture\n"
    "  twscope records game.jsonl.zst --session 3       read a recording\n"
    "  twscope collect --nats nats://bus:4222 -o fleet/ collect records of many servers\n"
    "  twscope replay traffic.pcap -s 127.0.0.1:8304    replay its clients against a server\n"
    "  twscope map ctf1.map --at 1616,1040              show what is at a position\n";

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Woverlength-strings"
constexpr std::string_view kLicenses =
#include "proxy/cli/licenses.txt.inc"
    ;
#pragma GCC diagnostic pop

constexpr const char* kSettings = "Every flag of a command can also be set by an environment "
                                  "variable TWSCOPE_NAME or a key in --config FILE.\n";
constexpr const char* kExitCodes =
    "Exit codes: 0 success, 1 an --expect or --fail-on check failed or the compared files differ, "
    "2 usage or start-up error, 3 failure while running, 4 could not start yet (a name, address or "
    "port is unavailable, or there is no twscope to take over from).";

} // namespace

CommandLine::CommandLine(const Invocation& invocation) : app{kAboutTwscope, "twscope"} {
    app.formatter(std::make_shared<HelpFormat>()); // before the commands, which take it over
    app.set_version_flag(
        "--version",
        [] {
            return fmt::format("twscope {}\nobserver confinement: {}{}", TWSCOPE_VERSION,
                               run::describe(run::possible_confinement()),
                               admin::has_page() ? "" : "\nwithout the live page");
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
    app.footer(std::string{kSettings} + kExitCodes);
    const auto add_proxy = [&](CLI::App& to) { return add_proxy_command(to, invocation); };
    const auto add_tap = [&](CLI::App& to) { return add_tap_command(to, invocation); };
    for (const std::function<Action(CLI::App&)>& add : {std::function<Action(CLI::App&)>{add_proxy},
                                                        {add_tap},
                                                        {add_decode_command},
                                                        {add_records_command},
                                                        {add_collect_command},
                                                        {add_compare_command},
                                                        {add_replay_command},
                                                        {add_map_command},
                                                        {add_stats_command},
                                                        {add_sizes_command},
                                                        {add_explain_command},
                                                        {add_findings_command},
                                                        {add_health_command},
                                                        {add_extcap_command}}) {
        Action action = add(app);
        CLI::App* const command = app.get_subcommands({}).back();
        if (command->get_option_no_throw("--config") == nullptr) {
            command->footer(kExitCodes);
        }
        actions.emplace_back(command, std::move(action));
    }
}

} // namespace tw::cli
