#include "proxy/cli/http_flags.h"

#include "proxy/cli/settings.h"

#include <algorithm>
#include <cctype>
#include <tuple>

#include <CLI/CLI.hpp>
#include <boost/asio/ip/address.hpp>
#include <fmt/format.h>

namespace tw::cli {

void HttpFlags::add_to(CLI::App& command) {
    command
        .add_option("--http", address,
                    "Serve a live page, /healthz, /metrics and /api/state here; a port alone means "
                    "127.0.0.1 (9303 is usual)")
        ->type_name("[ADDR:]PORT");
    command
        .add_option("--http-host", hosts,
                    "A name with dots that browsers may reach the page by (repeatable); addresses "
                    "and localhost always work")
        ->type_name("NAME")
        ->expected(1)
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

admin::AdminOptions HttpFlags::options() const {
    const bool port_alone = std::all_of(address.begin(), address.end(),
                                        [](unsigned char c) { return std::isdigit(c) != 0; });
    const HostPort where = parse_host_port(port_alone ? ':' + address : address, "--http");
    const std::string host = where.host.empty() ? "127.0.0.1" : where.host;
    boost::system::error_code error;
    std::ignore = boost::asio::ip::make_address(host, error);
    if (error) {
        throw UsageError{fmt::format("--http {}: expected an address like 127.0.0.1:9303, not a "
                                     "name",
                                     address)};
    }
    return {.server = {.address = host, .port = where.port},
            .hosts = hosts,
            .unknown_host_hint = "start twscope with --http-host NAME"};
}

} // namespace tw::cli
