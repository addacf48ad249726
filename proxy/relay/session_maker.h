#pragma once

#include "proxy/relay/handover.h"
#include "proxy/relay/listener.h"
#include "proxy/relay/session.h"
#include "proxy/relay/shared.h"

#include <memory>
#include <vector>

namespace tw::relay {

/// When a batch began, on the clocks that sessions note.
struct BatchTime {
    Clock::time_point steady{};
    std::uint32_t ms = 0; ///< of the steady one, from when the relay thread started
    Timestamp utc = 0;
};

/// Makes sessions, each with its socket in the epoll instance, from a client's first datagram or
/// from what another relay handed over. Who gets one is the door's business.
class SessionMaker {
  public:
    /// All have to outlive it. `ready_set`: the epoll instance that upstream sockets are added to.
    SessionMaker(Shared& shared, const std::vector<Listener>& listeners, int ready_set)
        : shared_{shared}, listeners_{&listeners}, ready_set_{ready_set} {}

    /// `header` is the message its first datagram came in. Null where no socket is to be had:
    /// Shared::session_error says why. Errors: std::bad_alloc.
    [[nodiscard]] std::unique_ptr<Session> make(const Endpoint& client, msghdr& header,
                                                ListenerIndex listener, const BatchTime& now);
    /// Needs a listener that is there.
    /// Errors: HandoverError for a socket that is not as it has to be.
    [[nodiscard]] std::unique_ptr<Session> make_from(const SessionState& state, UniqueFd socket,
                                                     ListenerIndex listener, const BatchTime& now);

    /// All of the thread.
    [[nodiscard]] const std::vector<Listener>& listeners() const noexcept { return *listeners_; }

  private:
    [[nodiscard]] std::unique_ptr<Session> open(const Endpoint& client);
    [[nodiscard]] bool await(Session& session) const noexcept;

    Shared& shared_;
    const std::vector<Listener>* listeners_;
    int ready_set_;
};

/// All of a session that makes it go on in another relay, but its `listener`.
[[nodiscard]] SessionState state_of(const Session& session, const BatchTime& now);

} // namespace tw::relay
