#pragma once

#include "proxy/process/server_probe.h"
#include "proxy/process/server_report.h"
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
class NameSearch {
  public:
    using Endpoint = boost::asio::ip::udp::endpoint;
    /// Returns the current addresses, the best first; empty if the name does not resolve. Called on
    /// another thread, possibly after the NameSearch was destroyed.
    using Lookup = std::function<std::vector<Endpoint>()>;

    /// Starts the lookup; nullopt if no thread can be started.
    [[nodiscard]] static std::optional<NameSearch> begin(Lookup lookup);

    /// Whether the lookup has finished.
    [[nodiscard]] bool done() const;

    /// The addresses found; empty if the name does not resolve. Precondition: done().
    [[nodiscard]] const std::vector<Endpoint>& found() const;

  private:
    struct Result;

    explicit NameSearch(std::shared_ptr<Result> result) : result_{std::move(result)} {}

    std::shared_ptr<Result> result_;
};

/// Resolves a server's name repeatedly during a run.
class ServerName {
  public:
    using Time = std::chrono::steady_clock::time_point;
    using Endpoint = NameSearch::Endpoint;
    using Lookup = NameSearch::Lookup;

    /// The time between lookups. The system's resolver does not report a TTL, so this is a
    /// compromise between quick changes and load on the name server.
    static constexpr std::chrono::seconds kInterval{60};
    /// The time between lookups while the server does not answer, since it may have moved.
    static constexpr std::chrono::seconds kSilentInterval{5};

    ServerName(Lookup lookup, Endpoint current, Time now);

    /// Call once a second. Returns the new address if the name does not lead to the current address
    /// any more.
    [[nodiscard]] std::optional<Endpoint> on_second(Time now, bool silent);

    /// Confirms a move. Without it, the next lookup reports the same address again.
    void set_current(const Endpoint& current) { current_ = current; }

  private:
    Lookup lookup_;
    Endpoint current_;
    Time looked_;
    std::optional<NameSearch> search_; ///< the lookup in progress
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

/// A server of the relay whose address is updated when its host name leads elsewhere.
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
    std::optional<ServerName> name_; ///< nullopt if the server is configured by address
    std::optional<ServerName::Endpoint> refused_; ///< the last address that the relay rejected
    ServerWatch watch_;
    ServerReport report_;
};

/// Servers that wait for their name lookup before they are added.
class ServerArrivals {
  public:
    /// Returns the lookup function for a server; see NameSearch.
    using LookupOf = std::function<NameSearch::Lookup(const relay::ServerOptions& where)>;

    explicit ServerArrivals(LookupOf lookup_of) : lookup_of_{std::move(lookup_of)} {}

    /// Uses the system's resolver; of several addresses, those that answer come first.
    [[nodiscard]] static NameSearch::Lookup system_lookup(const relay::ServerOptions& where);

    /// Starts looking up the server's name, unless that is in progress.
    void expect(const ServedServer& server);
    /// Drops waiting servers that are not in `wanted`.
    void keep(const std::vector<ServedServer>& wanted);

    struct Arrived {
        ServedServer server;
        std::optional<NameSearch::Endpoint> at; ///< nullopt if the name does not resolve
    };

    /// Returns the servers whose lookup has finished since the last call.
    [[nodiscard]] std::vector<Arrived> take();

  private:
    struct Expected {
        ServedServer server;
        std::optional<NameSearch> search;
    };

    LookupOf lookup_of_;
    std::vector<Expected> expected_;
};

} // namespace tw::process
