#pragma once

#include "proxy/relay/handover.h"
#include "proxy/relay/listener.h"
#include "proxy/relay/session.h"
#include "proxy/relay/session_maker.h"
#include "proxy/relay/stranger_filter.h"

#include <chrono>
#include <functional>
#include <memory>
#include <span>
#include <vector>

namespace tw::relay {

/// Where the sessions of one server in one relay thread begin, promote and end: who gets a place, who
/// has to leave for whom, and when. It allocates for a session, never for a datagram; where there is no memory
/// for one, that one is lost and counted, and no other.
///
/// - A session keeps its place by what the server does for it. Whoever the server plays with is not
///   displaced. Others leave for the next one when there are too many of them: those first whose
///   network has most, and of these the oldest. Those that the server has forgotten, and weak ones
///   that are silent, leave when their place is wanted.
/// - The observer hears of a session when the server plays with it, or soon after it is verified, and
///   then from its first datagram on; of others nothing.
/// - Requests are answered from the server's last answer while there are too many of them.
class SessionTable {
  public:
    using Time = base::Clock::time_point;

    /// All have to outlive it. `listeners`: all of the thread. `ready_set`: the epoll instance that
    /// upstream sockets are added to.
    SessionTable(Shared& shared, const std::vector<Listener>& listeners, int ready_set, Tap& tap,
                 LiveCounters& counters, SessionTimers& rounds);
    ~SessionTable();
    SessionTable(const SessionTable&) = delete;
    SessionTable& operator=(const SessionTable&) = delete;
    SessionTable(SessionTable&&) = delete;
    SessionTable& operator=(SessionTable&&) = delete;

    /// The session that a client's datagram belongs to or begins; null when it is to be dropped.
    /// `header` is the message it came in.
    [[nodiscard]] Session* admit(msghdr& header, std::span<const std::byte> datagram,
                                 ListenerIndex listener);

    /// Looks at a datagram of a session that is passed on: it may promote.
    void look(Session& session, Direction direction, std::span<const std::byte> datagram) {
        const bool is_player = session.standing == Standing::player;
        const bool is_due =
            direction == Direction::s2c && now_->ms - session.played_ms >= kLooksAtPlayMs;
        if ((!is_player || is_due) && !session.leaving) {
            judge(session, direction, datagram);
        }
    }

    /// The server said something to it, in the batch at hand.
    void note_answer(Session& session) noexcept {
        session.active = true;
        session.answered = answered_ = true;
        session.last_answer_ms = last_answer_ms_ = now_->ms;
    }

    /// Shows a datagram to the observer, or keeps a copy until it hears of the session.
    void show(Session& session, base::Timestamp time, Direction direction,
              std::span<const std::byte> datagram) {
        if (session.leaving) {
            return; // the observer has heard of its end
        }
        if (session.is_told()) {
            copy(session, time, direction, datagram);
        } else if (session.held != nullptr) {
            session.held->add(time, direction, datagram);
        }
    }

    /// Its time has come to be looked after.
    void look_after(Session& session, Time now);

    /// Closes all.
    void close_all(CloseReason reason);
    /// Closes as many as others can wait for. Returns whether none is left.
    [[nodiscard]] bool close_some(CloseReason reason);

    /// Shows each session, as of the batch's time, and its socket, for another relay to go on with.
    /// Its `listener`: which of this door's.
    void for_each_session(const std::function<void(const SessionState&, int socket)>& use);

    /// Goes on with another relay's session. `state.listener`: which of this door's.
    /// Errors: HandoverError for one that is here already, or whose socket is not as it has to be.
    void take_over(const SessionState& state, base::UniqueFd socket);

    [[nodiscard]] Sessions& sessions() noexcept { return sessions_; }

    /// What was counted here.
    [[nodiscard]] LiveCounters& counters() const noexcept { return *counters_; }

    [[nodiscard]] const Shared& shared() const noexcept { return shared_; }

  private:
    /// Between two looks whether the server still plays with a player.
    static constexpr std::uint32_t kLooksAtPlayMs = 500;

    [[nodiscard]] Session* let_in(const base::Endpoint& client, msghdr& header,
                                  std::span<const std::byte> datagram, ListenerIndex listener);
    [[nodiscard]] bool is_own(const base::Endpoint& client) noexcept;
    [[nodiscard]] bool may_ask(const base::Endpoint& client, msghdr& header,
                               const Question& question, Request request,
                               ListenerIndex listener) noexcept;
    [[nodiscard]] bool asks_again(Session& session, msghdr& header,
                                  std::span<const std::byte> datagram) noexcept;
    void repeat(const Answers::Answer& answer, const Question& question, msghdr& header,
                ListenerIndex listener) noexcept;
    [[nodiscard]] Question question_of(std::span<const std::byte> datagram) const noexcept;

    [[nodiscard]] bool make_room(const base::Endpoint& client, Standing standing);
    [[nodiscard]] bool make_room_at_address(const base::Endpoint& client);
    [[nodiscard]] bool make_room_among(Standing standing, std::size_t pool,
                                       const base::Endpoint& client);
    [[nodiscard]] bool take_place();

    [[nodiscard]] Session* leaves_for_others(Standing standing) const noexcept;
    [[nodiscard]] Session* leaves_for_network(const base::Network& network,
                                              Standing standing) const noexcept;
    [[nodiscard]] Session* leaves_for_players() noexcept;
    [[nodiscard]] bool is_forgotten(const Session& session) const noexcept;

    [[nodiscard]] Session* silent_weak() const noexcept {
        return sessions_.most_silent(Standing::weak, now_->ms);
    }

    [[nodiscard]] Session* open(const base::Endpoint& client, msghdr& header,
                                ListenerIndex listener, Standing standing,
                                const ProofMemory& proof);
    [[nodiscard]] Session* begin(std::unique_ptr<Session>&& made);
    void judge(Session& session, Direction direction, std::span<const std::byte> datagram);
    void promote(Session& session, Standing standing);
    void try_rise(Session& session, Standing standing);
    [[nodiscard]] bool try_give_place(Session& session, Standing standing);
    void count_rise(Standing before, Standing standing) noexcept;
    [[nodiscard]] bool is_left_behind(const Session& session) const noexcept;
    void tell(Session& session);
    void set_budget(Session& session) const noexcept;
    [[nodiscard]] bool waits_for_server(Session& session);

    void copy(Session& session, base::Timestamp time, Direction direction,
              std::span<const std::byte> datagram) {
        const auto lost = tap_->lost();
        tap_->datagram(session.tap, time, direction, datagram);
        if (tap_->lost() != lost) [[unlikely]] {
            counters_->directions[static_cast<std::size_t>(direction)].copies_lost.add(1);
        }
    }

    void evict(Session& session);
    void leave(Session& session, CloseReason reason);
    [[nodiscard]] std::chrono::milliseconds timeout_of(const Session& session) const noexcept;

    Shared& shared_;
    SessionMaker maker_;
    Tap* tap_;
    LiveCounters* counters_;
    StrangerFilter gate_;
    Sessions sessions_;
    std::unique_ptr<Answers> answers_; ///< null: none are repeated
    TokenBucket verified_told_;
    std::vector<base::Endpoint> interfaces_; ///< addresses of this host
    base::Endpoint server_;                  ///< as of this generation of the upstream sockets
    std::uint32_t server_generation_;
    SessionTimers* rounds_;
    const BatchTime* now_;
    bool answered_ = false; ///< the server has said anything to anybody
    std::uint32_t last_answer_ms_ = 0;
    std::uint32_t none_forgotten_until_ms_ = 0; ///< there was none when they were last looked for
};

} // namespace tw::relay
