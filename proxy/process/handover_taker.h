#pragma once

#include "proxy/process/followed_server.h"
#include "proxy/process/handover.h"
#include "proxy/relay/relay.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace tw::process {

/// No relay can be taken over, or not now; what() is one line for the user.
class NoTakeoverPeer : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

/// The new relay's side of a takeover, step by step. If it is destroyed before take() returns, the
/// running relay continues unchanged. Servers are matched by name.
class HandoverTaker {
  public:
    /// Connects to the running relay and receives its offer.
    /// Errors: NoTakeoverPeer; relay::HandoverError.
    explicit HandoverTaker(std::filesystem::path file);

    [[nodiscard]] const TakeoverOffer& offer() const { return offer_; }

    /// The servers of the running relay, ordered by number.
    [[nodiscard]] const std::vector<TakeoverServer>& servers() const { return servers_; }

    /// The running relay's server with this name; null if there is none.
    [[nodiscard]] const TakeoverServer* find(std::string_view name) const;

    /// Checks whether a run with these servers can take over. Servers may be missing or new.
    /// Errors: relay::HandoverError if no server is common, or two would listen on the same
    /// address.
    void check(const std::vector<ServedServer>& wanted) const;

    /// How a server starts in the new relay.
    struct Begun {
        relay::ServerOptions where;
        /// Sockets of the running relay; empty: open new ones.
        std::vector<base::UniqueFd> listening{};
    };

    /// Returns how a server starts. If the running relay has a server of this name, it continues as
    /// the new relay's server `number`. `served.where.listen` must be what the running relay
    /// listens on; port 0 matches any. After take(), every server is a new one.
    /// Errors: relay::HandoverError if the running relay listens elsewhere for this server.
    [[nodiscard]] Begun begin(const ServedServer& served, relay::ServerIndex number);

    /// A server that continues in the new relay.
    struct Taken {
        const TakeoverServer* from;
        relay::ServerIndex number; ///< its number in the new relay
        /// As TakeoverServer::host_name; a server of the same name may have a new one.
        std::string host_name;
    };

    [[nodiscard]] const std::vector<Taken>& taken() const { return taken_; }

    /// Takes over all sessions of these servers, after all slow preparations. `relay` must not be
    /// started yet. No relay forwards from here until it starts. Returns the rest of the state.
    /// Errors: relay::HandoverError.
    [[nodiscard]] TakeoverRest take(relay::Relay& relay);

    /// Tells the old relay that this one forwards.
    void confirm_forwarding() const;

    /// The socket that accepts the next takeover; nullopt if there was none. Call once, after
    /// take().
    [[nodiscard]] std::optional<TakeoverSocket> take_socket();

    /// Readable when the old relay has reported its end, or has ended.
    [[nodiscard]] int descriptor() const { return link_.descriptor(); }

    /// The old relay's last message and its descriptor.
    struct Left {
        TakeoverLeft said;
        base::UniqueFd checkpoint{}; ///< a file of pipeline::SessionCheckpoints, if valid
    };

    /// Returns the last message; nullopt if the old relay ended without one.
    [[nodiscard]] std::optional<Left> left();

  private:
    [[nodiscard]] TakeoverLink::Message receive(TakeoverMessage wanted,
                                                std::chrono::milliseconds patience);
    [[nodiscard]] TakeoverLink::Message receive_any(std::chrono::milliseconds patience);
    void hear_of_server();
    void say_ready() const;
    [[nodiscard]] relay::ServerIndex number_here(relay::ServerIndex there) const;

    std::filesystem::path file_;
    TakeoverLink link_;
    TakeoverOffer offer_;
    base::UniqueFd takeover_socket_;
    std::vector<TakeoverServer> servers_;
    /// The sockets of each server, until take().
    std::vector<std::vector<base::UniqueFd>> listening_;
    std::vector<Taken> taken_;
};

/// Logs differences after a takeover: servers that moved or were not continued, and threads without
/// sockets.
void report_takeover(const HandoverTaker& taker, const relay::Relay& relay, unsigned threads);

} // namespace tw::process
