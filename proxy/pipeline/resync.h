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

/// Returns the functions with which the relay makes a game server send a full snapshot (see
/// wire::acknowledge). The relay itself does not know the game's format.
[[nodiscard]] relay::ResyncFunctions make_snapshot_resync_functions();

/// Requests full snapshots for sessions whose snapshots cannot be decoded because a base snapshot
/// was lost. Used by one worker.
class ResyncRequester {
  public:
    /// `request`: sends a request for this session to the relay; returns false on failure.
    explicit ResyncRequester(std::function<bool(std::uint32_t session)> request)
        : request_{std::move(request)} {}

    /// Must be called for each datagram from the server. If `undecodable` is true, requests a full
    /// snapshot, unless the session's previous request is recent. `undecodable`: whether the
    /// session's snapshots cannot be decoded.
    void on_server_datagram(std::uint32_t session, record::Timestamp time, bool undecodable);

    void forget_session(std::uint32_t session) { requested_at_.erase(session); }

  private:
    std::function<bool(std::uint32_t session)> request_;
    /// Time of the latest request, by session.
    std::unordered_map<std::uint32_t, record::Timestamp> requested_at_;
};

/// Limits how many requests for full snapshots the relay carries out, because the observer may
/// misbehave.
class ResyncLimiter {
  public:
    /// The limit of requests a second. Each request searches all sessions.
    static constexpr unsigned kMaxPerSecond = 256;

    /// Allows kMaxPerSecond requests until the next call. Call this function once a second.
    void refill() { remaining_requests_ = kMaxPerSecond; }

    /// Returns the session number that a request contains; nullopt if the text is invalid or the
    /// limit is reached. Counts the request.
    [[nodiscard]] std::optional<std::uint32_t> accept_request(std::string_view request);

  private:
    unsigned remaining_requests_ = kMaxPerSecond;
};

} // namespace tw::pipeline
