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

/// Resolves a host name on a thread of its own, because a resolver may block for long.
class NameLookup {
  public:
    using Endpoint = boost::asio::ip::udp::endpoint;
    /// Returns the current addresses, the best first; empty if the name does not resolve. Called on
    /// another thread, possibly after the NameLookup was destroyed.
    using Lookup = std::function<std::vector<Endpoint>()>;

    /// Starts the lookup; nullopt if no thread can be started.
    [[nodiscard]] static std::optional<NameLookup> start(Lookup lookup);

    /// Whether the lookup has finished.
    [[nodiscard]] bool done() const;

    /// Returns the resolved addresses; empty if the name does not resolve. Precondition: done().
    [[nodiscard]] const std::vector<Endpoint>& addresses() const;

  private:
    struct Result;

    explicit NameLookup(std::shared_ptr<Result> result) : result_{std::move(result)} {}

    std::shared_ptr<Result> result_;
};

/// Resolves a server's name repeatedly during a run.
class ServerNameResolver {
  public:
    using Time = std::chrono::steady_clock::time_point;
    using Endpoint = NameLookup::Endpoint;
    using Lookup = NameLookup::Lookup;

    /// The time between lookups. The system's resolver does not report a TTL, so this is a
    /// compromise between quick changes and load on the name server.
    static constexpr std::chrono::seconds kInterval{60};
    /// The time between lookups while the server does not answer, since it may have moved.
    static constexpr std::chrono::seconds kSilentInterval{5};

    ServerNameResolver(Lookup lookup, Endpoint current, Time now);

    /// Call it once a second; `silent`: the server does not answer. Returns the new address if the
    /// name no longer has the current one.
    [[nodiscard]] std::optional<Endpoint> on_second(Time now, bool silent);

    /// Sets the address that is now used. Without this call, the next lookup returns the same new
    /// address again.
    void set_current(const Endpoint& current) { current_ = current; }

  private:
    Lookup lookup_;
    Endpoint current_;
    Time last_lookup_;
    std::optional<NameLookup> lookup_in_progress_;
};

/// A server in the configuration.
struct ServedServer {
    std::string name{}; ///< empty for a single server without a name
    relay::ServerOptions where{};

    friend bool operator==(const ServedServer&, const ServedServer&) = default;
};

/// Returns the server's host name and port, such as "game.test:8303"; empty if the server is
/// configured by address.
[[nodiscard]] std::string host_name(const relay::ServerOptions& where);

/// A server of the relay whose address is updated when its host name gets another address.
class FollowedServer {
  public:
    /// `relay` must outlive it.
    FollowedServer(relay::Relay& relay, relay::ServerIndex index, ServedServer served);

    [[nodiscard]] const ServedServer& served() const { return served_; }

    [[nodiscard]] relay::ServerIndex index() const { return index_; }

    /// Call once a second. Returns the new address if the server has moved.
    [[nodiscard]] std::optional<base::Endpoint> follow(const relay::Counters& counters);

    /// Reports in the log whether the server answers; for runs without an observer.
    void report(const relay::Counters& counters);

  private:
    relay::Relay* relay_;
    relay::ServerIndex index_;
    ServedServer served_;
    std::optional<ServerNameResolver> name_; ///< nullopt if the server is configured by address
    /// The last address that the relay rejected.
    std::optional<ServerNameResolver::Endpoint> refused_;
    ServerWatch watch_;
    ServerReport report_;
};

/// Servers that are added once their host names are resolved.
class PendingServers {
  public:
    /// Returns the lookup function for a server; see NameLookup.
    using LookupFactory = std::function<NameLookup::Lookup(const relay::ServerOptions& where)>;

    explicit PendingServers(LookupFactory make_lookup) : make_lookup_{std::move(make_lookup)} {}

    /// Returns a lookup by the system's resolver. If some of the addresses answer, it gives only
    /// those.
    [[nodiscard]] static NameLookup::Lookup system_lookup(const relay::ServerOptions& where);

    /// Starts the lookup of the server's name, unless it is in progress.
    void add(const ServedServer& server);
    /// Drops waiting servers that are not in `wanted`.
    void keep_only(const std::vector<ServedServer>& wanted);

    struct Resolved {
        ServedServer server;
        std::optional<NameLookup::Endpoint> at; ///< nullopt if the name does not resolve
    };

    /// Returns the servers whose lookup has finished since the last call.
    [[nodiscard]] std::vector<Resolved> take_resolved();

  private:
    struct Pending {
        ServedServer server;
        std::optional<NameLookup> search;
    };

    LookupFactory make_lookup_;
    std::vector<Pending> pending_;
};

} // namespace tw::process
