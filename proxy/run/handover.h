#pragma once

#include "proxy/relay/endpoint.h"
#include "proxy/relay/handover.h"
#include "proxy/relay/observation.h"
#include "proxy/relay/options.h"
#include "proxy/relay/relay.h"
#include "proxy/run/takeover_link.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tw::run {

/// What a new relay says first: who it is, and which version of the format it speaks. Every change
/// of what is handed over, or of what stands in it (relay::SessionState, relay::Counters,
/// wire::ProofState), is a new version.
struct TakeoverGreeting {
    static constexpr std::string_view kName = "twscope takeover";
    static constexpr std::uint32_t kVersion = 5;

    std::uint32_t version = kVersion;
};

/// What a running relay says of itself, so that another one can see whether it fits.
struct TakeoverOffer {
    std::uint64_t network = 0;  ///< the network namespace
    std::uint32_t servers = 0;  ///< that it forwards to
    std::uint32_t observer = 0; ///< the number of its last observer
};

/// What it says of each of its servers.
struct TakeoverServer {
    static constexpr std::size_t kMaxHostName = 512; ///< host names have at most 255 bytes

    relay::ServerIndex number = 0; ///< there
    std::string name{};            ///< of the configuration; empty: it is the only one
    std::vector<relay::Endpoint> listen{};
    std::uint32_t listening_sockets = 0;
    relay::Endpoint server{};
    std::string host_name{};               ///< "game.test:8303"; empty: it goes by an address
    std::vector<relay::Endpoint> former{}; ///< where it was before
    relay::ClientAddress mode = relay::ClientAddress::shared;
};

/// Which of those the new one goes on with, by their numbers; the others' sessions end.
struct TakeoverWish {
    std::vector<relay::ServerIndex> servers;
};

/// What stands behind the sessions.
struct TakeoverRest {
    std::int64_t held_at = 0; ///< when it stopped forwarding: nanoseconds of relay::Clock
    std::uint32_t sessions = 0;
    std::uint32_t numbered_sessions = 0; ///< as SharedBlock
    std::vector<std::byte> relay;        ///< relay::RelayState
};

/// What the old one says when it ends.
struct TakeoverLeft {
    std::uint32_t numbered_sessions = 0;
};

[[nodiscard]] std::vector<std::byte> written(const TakeoverGreeting& greeting);
[[nodiscard]] std::vector<std::byte> written(const TakeoverOffer& offer);
[[nodiscard]] std::vector<std::byte> written(const TakeoverServer& server);
[[nodiscard]] std::vector<std::byte> written(const TakeoverWish& wish);
[[nodiscard]] std::vector<std::byte> written(const TakeoverRest& rest);
[[nodiscard]] std::vector<std::byte> written(const TakeoverLeft& left);

/// Errors: relay::HandoverError for what no relay says.
[[nodiscard]] TakeoverGreeting read_greeting(std::span<const std::byte> in);
[[nodiscard]] TakeoverOffer read_offer(std::span<const std::byte> in);
[[nodiscard]] TakeoverServer read_server(std::span<const std::byte> in);
[[nodiscard]] TakeoverWish read_wish(std::span<const std::byte> in);
[[nodiscard]] TakeoverRest read_rest(std::span<const std::byte> in);
[[nodiscard]] TakeoverLeft read_left(std::span<const std::byte> in);

/// Several sessions as one message holds them; sessions are added as long as they fit.
class SessionBatch {
  public:
    /// False: it is full. `session`: as relay::write writes it.
    [[nodiscard]] bool add(std::span<const std::byte> session, int socket);

    [[nodiscard]] std::span<const std::byte> body() const { return body_; }

    [[nodiscard]] std::span<const int> sockets() const { return sockets_; }

    void clear();

  private:
    std::vector<std::byte> body_;
    std::vector<int> sockets_;
};

/// The sessions of a message: as many as it has descriptors.
/// Errors: relay::HandoverError.
[[nodiscard]] std::vector<relay::SessionState> read_sessions(const TakeoverLink::Message& message);

/// The network namespace this process is in; 0 where nobody can tell.
[[nodiscard]] std::uint64_t own_network();

} // namespace tw::run
