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

/// What makes a game server send a whole snapshot: wire::acknowledge. The relay, which
/// knows nothing of the game, is handed it.
[[nodiscard]] relay::Resync game_resync();

/// Asks for a whole snapshot of sessions that are blind: what they build on did not pass by. One
/// worker's.
class ResyncRequester {
  public:
    /// `ask`: carries a wish for this session to the relay; false when it cannot.
    explicit ResyncRequester(std::function<bool(std::uint32_t session)> ask)
        : ask_{std::move(ask)} {}

    /// A datagram of the server's was looked at.
    void look(std::uint32_t session, record::Timestamp time, bool blind);

    void forget(std::uint32_t session) { asked_.erase(session); }

  private:
    std::function<bool(std::uint32_t session)> ask_;
    std::unordered_map<std::uint32_t, record::Timestamp> asked_; ///< of sessions that were blind
};

/// The relay's side: which wishes of an observer, which may have gone mad, are carried out.
class ResyncGrants {
  public:
    /// Each takes a look at all sessions.
    static constexpr unsigned kASecond = 256;

    /// To be called once a second.
    void refill() { left_ = kASecond; }

    /// The session of a wish; nothing for one that is none, and when there were too many.
    [[nodiscard]] std::optional<std::uint32_t> grant(std::string_view wish);

  private:
    unsigned left_ = kASecond;
};

} // namespace tw::pipeline
