#include "proxy/cli/tap_flags.h"

#include "proxy/cli/capture_flags.h"
#include "proxy/cli/relay_flags.h"
#include "proxy/cli/settings.h"

#include <tuple>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace tw::cli {

void TapFlags::add_to(CLI::App& command) {
    command
        .add_option(
            "-i,--interface", interface,
            "Interface that carries the game's traffic; any: all of this host, for a server on it")
        ->type_name("IFACE");
    repeatable(
        command
            .add_option("--server", servers,
                        "Inspect only this server's traffic (repeatable; by default, servers are "
                        "recognised by what they send)")
            ->type_name("[ADDRESS]:PORT"));
    command
        .add_option("--buffer", buffer_mib,
                    "Kernel buffer in MiB for frames waiting to be read; frames that do not fit "
                    "are dropped and reported as a gap (inspect.gap)")
        ->type_name("MIB")
        ->check(CLI::Range(std::size_t{1}, std::size_t{1024}))
        ->capture_default_str();
    add_outputs(command);
    http.add_to(command);
    command
        .add_option("--state", state,
                    "Folder for the live page's token [$STATE_DIRECTORY, $XDG_STATE_HOME/twscope "
                    "or ~/.local/state/twscope]")
        ->type_name("DIR");
    add_limits(command);
    add_course(command, "Run in the background, returning once the interface is open");
}

void TapFlags::check(const Settings& settings) const {
    RunFlags::check(settings);
    std::ignore = guess();
}

std::filesystem::path TapFlags::state_folder() const {
    return tw::cli::state_folder(state);
}

capture::ServerGuess TapFlags::guess() const {
    capture::ServerGuess guess;
    guess.take(capture::ServerGuess::Taken::recognised);
    for (const std::string& server : servers) {
        add_server(guess, server);
    }
    return guess;
}

std::vector<std::uint16_t> TapFlags::ports() const {
    std::vector<std::uint16_t> ports;
    for (const std::string& server : servers) {
        ports.push_back(parse_host_port(server, "--server").port);
    }
    return ports;
}

std::string TapFlags::shown() const {
    return servers.empty()
               ? fmt::format("{}, servers by what they send", interface)
               : fmt::format("{}, {} {}", interface, servers.size() == 1 ? "server" : "servers",
                             fmt::join(servers, ", "));
}

} // namespace tw::cli
