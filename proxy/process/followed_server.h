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

/// A name is looked up, on a thread of its own that nobody waits for: a resolver may take as long as it
/// likes.
class NameSearch {
  public:
    using Endpoint = boost::asio::ip::udp::endpoint;
    /// The addresses it has now, the best first; none: nobody knows. Called on another thread, also
    /// when its owner is gone.
    using Lookup = std::function<std::vector<Endpoint>()>;

    /// Nothing where there is no thread to be had.
    [[nodiscard]] static std::optional<NameSearch> begin(Lookup lookup);

    /// From then on its result stands.
    [[nodiscard]] bool done() const;

    /// Precondition: done(). None: nobody knows.
    [[nodiscard]] const std::vector<Endpoint>& found() const;

  private:
    struct Result;

    explicit NameSearch(std::shared_ptr<Result> result) : result_{std::move(result)} {}

    std::shared_ptr<Result> result_;
};

/// Looks a server's name up again while a run goes on.
class ServerName {
  public:
    using Time = std::chrono::steady_clock::time_point;
    using Endpoint = NameSearch::Endpoint;
    using Lookup = NameSearch::Lookup;

    /// The system's resolver tells no time to live: often enough for a name that moves, and seldom
    /// enough for whoever serves it.
    static constexpr std::chrono::seconds kInterval{60};
    /// While the server does not answer: it may have moved.
    static constexpr std::chrono::seconds kSilentInterval{5};

    ServerName(Lookup lookup, Endpoint current, Time now);

    /// To be called once a second. Returns the address it has moved to; as long as it has the
    /// current one, too, it has not.
    [[nodiscard]] std::optional<Endpoint> on_second(Time now, bool silent);

    /// It is there now; otherwise it is found anew with the next look.
    void set_current(const Endpoint& current) { current_ = current; }

  private:
    Lookup lookup_;
    Endpoint current_;
    Time looked_;
    std::optional<NameSearch> search_; ///< under way
};

/// A server as the configuration has it.
struct ServedServer {
    std::string name{}; ///< empty: it is the only one
    relay::ServerOptions where{};

    friend bool operator==(const ServedServer&, const ServedServer&) = default;
};

/// "game.test:8303"; empty where the server goes by an address.
[[nodiscard]] std::string host_name(const relay::ServerOptions& where);

/// One of the servers that a relay forwards to: goes with it where its host's name leads.
class FollowedServer {
  public:
    /// `relay` has to outlive it.
    FollowedServer(relay::Relay& relay, relay::ServerIndex index, ServedServer served);

    [[nodiscard]] const ServedServer& served() const { return served_; }

    [[nodiscard]] relay::ServerIndex index() const { return index_; }

    /// To be called once a second. Where it has moved to; nothing: it has not.
    [[nodiscard]] std::optional<base::Endpoint> follow(const relay::Counters& counters);

    /// The same, where no observer says whether it answers.
    void report(const relay::Counters& counters);

  private:
    relay::Relay* relay_;
    relay::ServerIndex index_;
    ServedServer served_;
    std::optional<ServerName> name_;              ///< nothing: it is an address
    std::optional<ServerName::Endpoint> refused_; ///< where the name led last, if that cannot be
    ServerWatch watch_;
    ServerReport report_;
};

/// Servers that are to be added as soon as their names are looked up, which may take as long as it
/// likes.
class ServerArrivals {
  public:
    /// What looks up where a server is; see NameSearch.
    using LookupOf = std::function<NameSearch::Lookup(const relay::ServerOptions& where)>;

    explicit ServerArrivals(LookupOf lookup_of) : lookup_of_{std::move(lookup_of)} {}

    /// The system's resolver, and of several addresses the one that answers.
    [[nodiscard]] static NameSearch::Lookup system_lookup(const relay::ServerOptions& where);

    /// Looks its name up, unless that is under way.
    void expect(const ServedServer& server);
    /// Forgets those that are not among these.
    void keep(const std::vector<ServedServer>& wanted);

    struct Arrived {
        ServedServer server;
        std::optional<NameSearch::Endpoint> at; ///< nothing: nobody knows
    };

    /// Those that were looked up since.
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
