#pragma once

#include "proxy/capture/capture_sessions.h"
#include "proxy/cli/run_flags.h"
#include "proxy/relay/options.h"

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include <boost/asio/ip/udp.hpp>

namespace tw::cli {

/// What to do about a relay::SharedAddressError, appended to its text.
inline constexpr std::string_view kSharedAddressHint =
    "; use --client-address transparent, or accept this with --insecure-shared";

/// Returns a log line that says which client addresses the server sees, and why.
[[nodiscard]] std::string describe_client_address_mode(relay::ClientAddressMode wanted,
                                                       relay::ClientAddressMode chosen);

/// Returns a shell script that routes the server's responses to a proxy that uses its clients'
/// addresses.
///
/// `server_is_local`: the server runs on the proxy's host.
/// Errors: UsageError if the proxy's own responses would be mistaken for the server's.
[[nodiscard]] std::string
transparent_routing_script(const boost::asio::ip::udp::endpoint& server, bool server_is_local,
                           const std::vector<boost::asio::ip::udp::endpoint>& listen);

struct ProxyFlags final : RunFlags {
    std::vector<std::string> server; ///< one server, or several with names
    std::vector<std::string> listen{"127.0.0.1:8303"};
    relay::Options forwarding; ///< options that flags set directly; relay_options() adds the others
    bool print_routes = false;
    std::vector<std::string> impair;
    bool no_admission = false;
    bool no_info_cache = false;
    bool resync = false;
    /// Seconds for which the start is retried while an address or name is not available yet.
    double start_timeout = 0;
    bool takeover = false;

    ProxyFlags();

    [[nodiscard]] std::unique_ptr<RunFlags> make_default_flags() const override {
        return std::make_unique<ProxyFlags>();
    }

    void add_to(Command& command) override;
    [[nodiscard]] std::vector<Check> traffic_checks(const Settings& settings) const override;
    [[nodiscard]] std::vector<std::string> describe_traffic_source() const override;

    /// Returns "fleet" if there are several servers: the name for data that belongs to none of
    /// them.
    [[nodiscard]] std::string server_name() const override;

    [[nodiscard]] std::vector<process::ConfiguredServer> servers() const override;

    void raise_descriptor_limit(std::size_t server_count) const override;

    [[nodiscard]] relay::Impairment impairment() const override;

    [[nodiscard]] bool requests_full_snapshots() const override { return resync; }

    [[nodiscard]] relay::Options relay_options() const;

  private:
    void add_relay_flags(Command& command);
    [[nodiscard]] bool has_named_servers() const;
    [[nodiscard]] process::ConfiguredServer named_server(std::size_t index) const;
    [[nodiscard]] relay::ServerOptions unnamed_server() const;
};

struct TapFlags final : RunFlags {
    std::string interface;
    std::vector<std::string> servers; ///< empty if servers are to be recognised
    std::size_t buffer_mib = 16;

    TapFlags() { records.config.inspect.sees_all_datagrams = false; }

    [[nodiscard]] std::unique_ptr<RunFlags> make_default_flags() const override {
        return std::make_unique<TapFlags>();
    }

    void add_to(Command& command) override;
    [[nodiscard]] std::vector<Check> traffic_checks(const Settings& settings) const override;
    [[nodiscard]] std::vector<std::string> describe_traffic_source() const override;

    [[nodiscard]] std::string server_name() const override { return interface; }

    [[nodiscard]] capture::ServerDetector server_detector() const;
    /// Describes the traffic: "eth0, servers :8303, :8304".
    [[nodiscard]] std::string describe_interface_and_servers() const;
};

} // namespace tw::cli
