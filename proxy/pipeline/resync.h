#pragma once

#include "proxy/record/records.h"
#include "proxy/relay/options.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <utility>

namespace tw::pipeline {

/// The functions that make a game server send a full snapshot (wire::acknowledge). The relay gets
/// them from here, because it does not know the game's format.
[[nodiscard]] relay::Resync game_resync();

/// Requests a full snapshot for sessions that cannot be decoded because a base snapshot was missed.
/// Used by one worker.
class ResyncRequester {
  public:
    /// `request`: sends a request for this session to the relay; returns false on failure.
    explicit ResyncRequester(std::function<bool(std::uint32_t session)> request)
        : request_{std::move(request)} {}

    /// To be called for each datagram from the server. Sends a request if `undecodable`, that is if
    /// the session's snapshots cannot be decoded, and the last request is long enough ago.
    void on_server_datagram(std::uint32_t session, record::Timestamp time, bool undecodable);

    void forget_session(std::uint32_t session) { requested_at_.erase(session); }

  private:
    std::function<bool(std::uint32_t session)> request_;
    /// Time of the last request, by session.
    std::unordered_map<std::uint32_t, record::Timestamp> requested_at_;
};

/// Limits the resync requests that the relay carries out, because the observer may misbehave.
class ResyncLimiter {
  public:
    /// The most requests a second; each one searches all sessions.
    static constexpr unsigned kMaxPerSecond = 256;

    /// Call it once a second.
    void refill() { left_ = kMaxPerSecond; }

    /// Returns the session of a request; nullopt if the text is invalid or there were too many
    /// requests.
    [[nodiscard]] std::optional<std::uint32_t> accept(std::string_view request);

  private:
    unsigned left_ = kMaxPerSecond;
};

} // namespace tw::pipeline
