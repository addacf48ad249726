#include "proxy/cli/commands.h"
#include "proxy/cli/run_flags.h"
#include "proxy/cli/settings.h"
#include "proxy/run/server_probe.h"
#include "proxy/sink/complaint.h"

#include <chrono>
#include <memory>
#include <string>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

namespace tw::cli {

namespace {

struct HealthFlags {
    std::string address = "127.0.0.1:8303";
    double timeout = 2;
};

int run_health(const HealthFlags& flags) {
    const HostPort where = parse_host_port(flags.address, "health");
    boost::system::error_code error;
    const auto address =
        boost::asio::ip::make_address(where.host.empty() ? "127.0.0.1" : where.host, error);
    if (error || where.port == 0) {
        throw UsageError{
            fmt::format("health {}: expected an address like 127.0.0.1:8303", flags.address)};
    }
    boost::asio::io_context io{1};
    const std::chrono::milliseconds deadline{static_cast<std::int64_t>(flags.timeout * 1000)};
    run::ServerProbe probe{io, run::reachable({address, where.port}), deadline};
    bool ok = false;
    probe.ask([&](bool answered) { ok = answered; });
    io.run();
    if (!ok) {
        sink::complain("no server answered through {} within {} s", flags.address, flags.timeout);
    }
    return ok ? 0 : 1;
}

} // namespace

Action add_health_command(CLI::App& app) {
    CLI::App* command = app.add_subcommand(
        "health", "Request server info through a running proxy; exit with 0 if an answer arrives");
    auto flags = std::make_shared<HealthFlags>();
    // The proxy's own variable: in a container both are asked about the same address.
    command->add_option("address", flags->address, "Address the proxy listens on")
        ->type_name("ADDR:PORT")
        ->envname("TWSCOPE_LISTEN")
        ->capture_default_str();
    command->add_option("--timeout", flags->timeout, "Seconds to wait for an answer")
        ->transform(seconds())
        ->check(CLI::Range(0.01, 60.0))
        ->capture_default_str();
    return [flags] { return run_health(*flags); };
}

} // namespace tw::cli
