#pragma once

#include "proxy/process/server_probe.h"
#include "proxy/relay/relay.h"

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <boost/asio/ip/udp.hpp>

namespace tw::process {

/// Resolves a host name on a separate thread, because resolving may block for a long time.
class NameLookup {
  public:
    using Endpoint = boost::asio::ip::udp::endpoint;
    /// A function that returns the host's addresses, the best first; empty if the name does not
    /// resolve. It is called on another thread, possibly after the NameLookup was destroyed.
    using Lookup = std::function<std::vector<Endpoint>()>;

    /// Starts the lookup; nullopt if no thread can be started.
    [[nodiscard]] static std::optional<NameLookup> start(Lookup lookup);

    /// Returns whether the lookup has finished.
    [[nodiscard]] bool is_done() const;

    /// Returns the resolved addresses; empty if the name does not resolve. Precondition: is_done().
    [[nodiscard]] const std::vector<Endpoint>& addresses() const;

  private:
    struct Result;

    explicit NameLookup(std::shared_ptr<Result> result) : result_{std::move(result)} {}

    std::shared_ptr<Result> result_;
};

/// Resolves a server's host name again and again during a run.
class ServerNameResolver {
  public:
    using Time = std::chrono::steady_clock::time_point;
    using Endpoint = NameLookup::Endpoint;
    using Lookup = NameLookup::Lookup;

    /// The time between lookups: short enough to notice a change soon, long enough not to burden
    /// the name server. The system's resolver does not report a TTL.
    static constexpr std::chrono::seconds kInterval{60};
    /// The time between lookups while the server does not answer, because it may have moved.
    static constexpr std::chrono::seconds kSilentInterval{5};

    ServerNameResolver(Lookup lookup, Endpoint current, Time now);

    /// Must be called once a second. `silent`: the server does not answer. Returns a new address if
    /// the name no longer resolves to the current address.
    [[nodiscard]] std::optional<Endpoint> on_second(Time now, bool silent);

    /// Sets the current address. Must be called when a new address is in use; otherwise on_second()
    /// returns the new address again.
    void set_current(const Endpoint& current) { current_ = current; }

  private:
    Lookup lookup_;
    Endpoint current_;
    Time last_lookup_;
    std::optional<NameLookup> lookup_in_progress_;
};

/// A server to which the relay forwards, as configured.
struct ConfiguredServer {
    std::string name{}; ///< empty for a single server without a name
    relay::ServerOptions where{};

    friend bool operator==(const ConfiguredServer&, const ConfiguredServer&) = default;
};

/// Returns the configured "game.test:8303"; empty if an IP address is configured.
[[nodiscard]] std::string host_and_port(const relay::ServerOptions& where);

/// A server of the relay. Updates the server's address when its host name gets another address.
class ServerAddressUpdater {
  public:
    /// `relay` must outlive the object.
    ServerAddressUpdater(relay::Relay& relay, relay::ServerIndex index, ConfiguredServer served);

    [[nodiscard]] const ConfiguredServer& served() const { return served_; }

    [[nodiscard]] relay::ServerIndex index() const { return index_; }

    /// Must be called once a second. Returns the new address if the server has moved.
    [[nodiscard]] std::optional<base::Endpoint> update_address(const relay::Counters& counters);

    /// Logs when the server stops answering and when it answers again. For runs without an
    /// observer, which would report it.
    void log_silence(const relay::Counters& counters);

  private:
    relay::Relay* relay_;
    relay::ServerIndex index_;
    ConfiguredServer served_;
    std::optional<ServerNameResolver> name_; ///< nullopt if an IP address is configured
    /// The last new address of the server that the relay did not accept.
    std::optional<ServerNameResolver::Endpoint> refused_;
    SilenceDetector watch_;
    SilenceReporter report_;
};

/// Servers that wait until their host names are resolved.
class PendingServers {
  public:
    /// A function that returns the lookup function for a server; see NameLookup.
    using LookupFactory = std::function<NameLookup::Lookup(const relay::ServerOptions& where)>;

    explicit PendingServers(LookupFactory make_lookup) : make_lookup_{std::move(make_lookup)} {}

    /// Returns a function that resolves the server's name with the system's resolver. If some of
    /// the addresses answer, the function returns only those.
    [[nodiscard]] static NameLookup::Lookup system_lookup(const relay::ServerOptions& where);

    /// Starts resolving the server's name, unless that is in progress.
    void add(const ConfiguredServer& server);
    /// Removes the waiting servers that are not in `wanted`.
    void keep_only(const std::vector<ConfiguredServer>& wanted);

    struct Resolved {
        ConfiguredServer server;
        std::optional<NameLookup::Endpoint> at; ///< nullopt if the name does not resolve
    };

    /// Removes and returns the servers whose lookup has finished.
    [[nodiscard]] std::vector<Resolved> take_resolved();

  private:
    struct Pending {
        ConfiguredServer server;
        std::optional<NameLookup> search;
    };

    LookupFactory make_lookup_;
    std::vector<Pending> pending_;
};

} // namespace tw::process
