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

/// Nobody is there to take over from, or not now; what() is one line for the user.
class NobodyThere : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

/// The new relay's side of a takeover, step by step. Until take() has returned, the running one goes
/// on as if nothing had been when this ends. Its servers go on by their names.
class HandoverTaker {
  public:
    /// Asks the running relay, and hears what it offers.
    /// Errors: NobodyThere; relay::HandoverError.
    explicit HandoverTaker(std::filesystem::path file);

    [[nodiscard]] const TakeoverOffer& offer() const { return offer_; }

    /// The servers of the running one, in the order of their numbers.
    [[nodiscard]] const std::vector<TakeoverServer>& servers() const { return servers_; }

    /// Its server of this name; null: it has none.
    [[nodiscard]] const TakeoverServer* find(std::string_view name) const;

    /// Whether a run with these servers can follow the running one. It need not have all of its
    /// servers, and may have others.
    /// Errors: relay::HandoverError where none is the same, or two would listen on one address.
    void check(const std::vector<ServedServer>& wanted) const;

    /// A server of the run that takes over, as it begins.
    struct Begun {
        relay::ServerOptions where;
        std::vector<base::UniqueFd> listening{}; ///< what the running one listens on; none: its own
    };

    /// Where the running one has a server of this name, that one goes on as the server of `number` of
    /// the relay that takes over. `served`: as it is asked to listen; port 0 fits any. Once take()
    /// has returned, every server is a new one.
    /// Errors: relay::HandoverError where the running one listens elsewhere for it.
    [[nodiscard]] Begun begin(const ServedServer& served, relay::ServerIndex number);

    /// A server that goes on.
    struct Taken {
        const TakeoverServer* from;
        relay::ServerIndex number; ///< here
        std::string host_name;     ///< as TakeoverServer; of the same name it may have moved by now
    };

    [[nodiscard]] const std::vector<Taken>& taken() const { return taken_; }

    /// Takes all sessions of those, when all that is slow is done; `relay` has not started. Then
    /// nobody forwards until it does. Returns what else was said.
    /// Errors: relay::HandoverError.
    [[nodiscard]] TakeoverRest take(relay::Relay& relay);

    /// Says that the relay forwards.
    void say_going() const;

    /// The socket at which the next one asks; nothing where it was none. Once, after take().
    [[nodiscard]] std::optional<TakeoverDoor> take_door();

    /// Readable when the old one says that it has ended, or has.
    [[nodiscard]] int descriptor() const { return link_.descriptor(); }

    /// The last word, and what came with it.
    struct Left {
        TakeoverLeft said;
        base::UniqueFd checkpoint{}; ///< a file of run::SessionCheckpoints, if there is one
    };

    /// Nothing: it has ended without a word.
    [[nodiscard]] std::optional<Left> left();

  private:
    [[nodiscard]] TakeoverLink::Message receive(TakeoverWord wanted,
                                                std::chrono::milliseconds patience);
    [[nodiscard]] TakeoverLink::Message receive_any(std::chrono::milliseconds patience);
    void hear_of_server();
    void say_ready() const;
    [[nodiscard]] relay::ServerIndex number_here(relay::ServerIndex there) const;

    std::filesystem::path file_;
    TakeoverLink link_;
    TakeoverOffer offer_;
    base::UniqueFd door_;
    std::vector<TakeoverServer> servers_;
    std::vector<std::vector<base::UniqueFd>> listening_; ///< of each of them, until take()
    std::vector<Taken> taken_;
};

/// Says in the log what is not as one may have thought, once the relay has taken over: servers that
/// moved or do not go on, and threads that have nothing to do.
void report_takeover(const HandoverTaker& taker, const relay::Relay& relay, unsigned threads);

} // namespace tw::process
