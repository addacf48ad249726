#pragma once

#include "proxy/relay/relay.h"
#include "proxy/run/server_name.h"
#include "proxy/run/server_report.h"
#include "proxy/run/server_watch.h"

#include <optional>
#include <string>

namespace tw::run {

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
    [[nodiscard]] std::optional<relay::Endpoint> follow(const relay::Counters& counters);

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

} // namespace tw::run
