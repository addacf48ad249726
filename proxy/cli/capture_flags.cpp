#include "proxy/cli/capture_flags.h"

#include "proxy/cli/settings.h"

#include <optional>

#include <CLI/CLI.hpp>
#include <boost/asio/ip/address.hpp>
#include <fmt/format.h>

namespace tw::cli {

void CaptureFlags::add_to(CLI::App& command) {
    command.add_option("captures", paths, "Capture files; - means standard input")
        ->type_name("CAPTURE...")
        ->required();
    command
        .add_option("--server", server,
                    "Look only at this server's traffic (otherwise servers are recognised by what "
                    "they send)")
        ->type_name("[ADDRESS]:PORT");
}

capture::ServerGuess CaptureFlags::servers() const {
    capture::ServerGuess guess;
    if (server.empty()) {
        return guess;
    }
    const HostPort where = parse_host_port(server, "--server");
    std::optional<boost::asio::ip::address> address;
    if (!where.host.empty()) {
        boost::system::error_code error;
        address = boost::asio::ip::make_address(where.host, error);
        if (error) {
            throw UsageError{fmt::format("--server {}: captures know addresses, not names; give "
                                         "ADDRESS:PORT or :PORT",
                                         server)};
        }
    }
    guess.only(where.port, address);
    return guess;
}

} // namespace tw::cli
