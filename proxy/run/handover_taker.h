#pragma once

#include "proxy/relay/relay.h"
#include "proxy/run/handover.h"
#include "proxy/run/takeover_link.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

namespace tw::run {

/// Nobody is there to take over from, or not now; what() is one line for the user.
class NobodyThere : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

/// The new relay's side of a takeover, step by step. Until begin() has returned, the running one goes
/// on as if nothing had been when this ends.
class HandoverTaker {
  public:
    /// Asks the running relay, and hears what it offers.
    /// Errors: NobodyThere; relay::HandoverError.
    explicit HandoverTaker(std::filesystem::path file);

    [[nodiscard]] const TakeoverOffer& offer() const { return offer_; }

    /// What a relay has to listen on to follow the running one. `listen`: as it is asked to; port 0
    /// fits any. Errors: relay::HandoverError where that is not what the running one does.
    [[nodiscard]] std::vector<boost::asio::ip::udp::endpoint>
    addresses(const std::vector<boost::asio::ip::udp::endpoint>& listen) const;

    /// The running one's listening sockets. Once.
    [[nodiscard]] std::vector<relay::UniqueFd> take_listening_sockets() {
        return std::move(listening_);
    }

    /// Takes all sessions, when all that is slow is done; `relay` has not started. Then nobody
    /// forwards until it does. Returns what else was said. `server_name`: as TakeoverOffer; a server
    /// of the same name may be at another address by now.
    /// Errors: relay::HandoverError.
    [[nodiscard]] TakeoverRest take(relay::Relay& relay, const std::string& server_name = {});

    /// Says that the relay forwards.
    void say_going() const;

    /// The socket at which the next one asks; nothing where it was none. Once, after take().
    [[nodiscard]] std::optional<TakeoverDoor> take_door();

    /// Readable when the old one says that it has ended, or has.
    [[nodiscard]] int descriptor() const { return link_.descriptor(); }

    /// The last word, and what came with it.
    struct Left {
        TakeoverLeft said;
        relay::UniqueFd legacy{}; ///< a file of run::Legacies, if there is one
    };

    /// Nothing: it has ended without a word.
    [[nodiscard]] std::optional<Left> left();

  private:
    [[nodiscard]] TakeoverLink::Message receive(TakeoverWord wanted,
                                                std::chrono::milliseconds patience);
    [[nodiscard]] TakeoverLink::Message receive_any(std::chrono::milliseconds patience);

    std::filesystem::path file_;
    TakeoverLink link_;
    TakeoverOffer offer_;
    relay::UniqueFd door_;
    std::vector<relay::UniqueFd> listening_;
};

} // namespace tw::run
