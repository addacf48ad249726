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
    /// `ask`: sends a request for this session to the relay; returns false on failure.
    explicit ResyncRequester(std::function<bool(std::uint32_t session)> ask)
        : ask_{std::move(ask)} {}

    /// Notes a server datagram of a session. `blind`: whether its snapshots cannot be decoded.
    void look(std::uint32_t session, record::Timestamp time, bool blind);

    void forget(std::uint32_t session) { asked_.erase(session); }

  private:
    std::function<bool(std::uint32_t session)> ask_;
    /// Time of the last request, by session.
    std::unordered_map<std::uint32_t, record::Timestamp> asked_;
};

/// Decides which resync requests the relay carries out; the observer may misbehave.
class ResyncGrants {
  public:
    /// The most requests a second; each one searches all sessions.
    static constexpr unsigned kASecond = 256;

    /// Call it once a second.
    void refill() { left_ = kASecond; }

    /// Returns the session of a request; nullopt if the text is invalid or there were too many
    /// requests.
    [[nodiscard]] std::optional<std::uint32_t> grant(std::string_view wish);

  private:
    unsigned left_ = kASecond;
};

} // namespace tw::pipeline
