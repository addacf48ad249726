#pragma once

#include "proxy/process/server_probe.h"
#include "proxy/relay/relay.h"

#include <chrono>
#include <functional>
#include <future>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <boost/asio/ip/udp.hpp>

namespace tw::process {

using ServerAddresses = std::vector<boost::asio::ip::udp::endpoint>;

/// A function that returns a host's addresses, the best first; empty if the name does not resolve.
using NameLookup = std::function<ServerAddresses()>;

/// Resolves a server's host name again and again during a run.
class ServerNameResolver {
  public:
    using Time = std::chrono::steady_clock::time_point;
    using Endpoint = boost::asio::ip::udp::endpoint;

    /// The time between lookups. It is fixed, because the system's resolver does not report a TTL.
    static constexpr std::chrono::seconds kLookupInterval{60};
    /// The time between lookups while the server does not answer, because it may have moved.
    static constexpr std::chrono::seconds kSilentLookupInterval{5};

    ServerNameResolver(NameLookup lookup, Endpoint current, Time now)
        : lookup_{std::move(lookup)}, current_{std::move(current)}, last_lookup_{now} {}

    /// Must be called once a second. Returns a new address if the name no longer resolves to the
    /// current address.
    [[nodiscard]] std::optional<Endpoint> on_second(Time now, bool silent);

    /// Sets the current address. Must be called when a new address is in use; otherwise on_second()
    /// returns the new address again.
    void set_current_address(const Endpoint& current) { current_ = current; }

  private:
    NameLookup lookup_;
    Endpoint current_;
    Time last_lookup_;
    std::future<ServerAddresses> lookup_in_progress_;
};

/// The configuration of a server to which the relay forwards.
struct ConfiguredServer {
    std::string name{}; ///< empty for a single server without a name
    relay::ServerOptions options{};

    friend bool operator==(const ConfiguredServer&, const ConfiguredServer&) = default;
};

/// Returns the configured host name and port, such as "game.test:8303"; empty if an IP address is
/// configured.
[[nodiscard]] std::string host_and_port(const relay::ServerOptions& where);

/// Updates the address of one of the relay's servers when its host name gets another address.
class ServerAddressUpdater {
  public:
    /// `relay` must outlive the object.
    ServerAddressUpdater(relay::Relay& relay, relay::ServerIndex index, ConfiguredServer served);

    [[nodiscard]] const ConfiguredServer& configured_server() const { return served_; }

    [[nodiscard]] relay::ServerIndex index() const { return index_; }

    /// Must be called once a second. Returns the new address if the server has moved.
    /// `log_silence`: it is logged when the server stops answering or answers again; must be false
    /// if there is an observer, which logs this.
    [[nodiscard]] std::optional<base::Endpoint> on_second(const relay::Counters& counters,
                                                          bool log_silence);

  private:
    relay::Relay* relay_;
    relay::ServerIndex index_;
    ConfiguredServer served_;
    std::optional<ServerNameResolver> name_resolver_; ///< nullopt if an IP address is configured
    /// The server's latest new address that the relay did not accept.
    std::optional<ServerNameResolver::Endpoint> rejected_address_;
    SilenceDetector silence_detector_;
};

/// Servers that wait until their host names are resolved.
class UnresolvedServers {
  public:
    using LookupFactory = std::function<NameLookup(const relay::ServerOptions& where)>;

    explicit UnresolvedServers(LookupFactory make_lookup) : make_lookup_{std::move(make_lookup)} {}

    /// Returns a function that resolves the server's name with the system's resolver. If any of the
    /// addresses answer, the function returns only addresses that answered.
    [[nodiscard]] static NameLookup make_system_lookup(const relay::ServerOptions& where);

    /// Starts to resolve the server's name.
    void add_server(const ConfiguredServer& server);
    /// Removes the waiting servers that are not in `wanted`.
    void remove_unwanted_servers(const std::vector<ConfiguredServer>& wanted);

    struct ResolvedServer {
        ConfiguredServer server;
        ServerAddresses addresses; ///< empty if the name does not resolve
    };

    /// Removes and returns the servers whose lookup has finished.
    [[nodiscard]] std::vector<ResolvedServer> take_resolved_servers();

  private:
    struct UnresolvedServer {
        ConfiguredServer server;
        std::future<ServerAddresses> addresses;
    };

    LookupFactory make_lookup_;
    std::vector<UnresolvedServer> pending_;
};

} // namespace tw::process
