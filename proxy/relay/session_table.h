#pragma once

#include "proxy/relay/listen_socket.h"
#include "proxy/relay/new_client_filter.h"
#include "proxy/relay/session.h"
#include "proxy/relay/session_maker.h"

#include <functional>
#include <limits>
#include <memory>
#include <span>
#include <vector>

namespace tw::relay {

/// The sessions of one server in one relay thread: admits clients, raises the standing of their
/// sessions, and closes them. The table allocates memory per session, never per datagram. If memory
/// runs out, only the session that needs memory is lost, and the loss is counted.
///
/// - When a new session needs room, the table evicts the oldest session of the network with the
/// most sessions. The session of a client with a slot on the server is evicted only if the player
/// is unverified and silent, the server has stopped sending to the player, or the player has left.
/// - A session is announced to the observer, together with its earlier datagrams, when the client
/// gets a slot on the server, or soon after the client is verified. Other sessions are never
/// announced.
/// - If too many requests come, the relay answers some of them with the server's latest answer.
class SessionTable {
  public:
    using Time = base::Clock::time_point;

    /// The arguments must outlive the table. `listeners`: all listeners of the thread. `epoll`:
    /// the epoll instance to which the upstream sockets are added.
    SessionTable(SharedServerData& shared, const std::vector<Listener>& listeners, int epoll,
                 DatagramCopier& copier, LiveCounters& counters, SessionTimers& timers);
    ~SessionTable();
    SessionTable(const SessionTable&) = delete;
    SessionTable& operator=(const SessionTable&) = delete;

    /// Returns the session of the client that sent a datagram; creates it if necessary. Returns
    /// null if the datagram must be dropped. `header`: the datagram's message header.
    [[nodiscard]] Session* find_or_open_session(msghdr& header, std::span<const std::byte> datagram,
                                                ListenerIndex listener);

    /// Examines a forwarded datagram, and raises the session's standing if the datagram proves more
    /// about the client.
    void examine_datagram(Session& session, Direction direction,
                          std::span<const std::byte> datagram) {
        const bool is_player = session.standing == ClientStanding::player;
        const bool is_due = direction == Direction::s2c &&
                            now_->ms - session.last_play_ms >= kPlayerCheckIntervalMs;
        if ((!is_player || is_due) && !session.is_closed) {
            apply_verdict(session, direction, datagram);
        }
    }

    /// Must be called when the server has sent a datagram to the session.
    void note_server_answer(Session& session) noexcept {
        session.is_active = true;
        session.has_server_answered = has_server_answered_ = true;
        session.last_answer_ms = last_answer_ms_ = now_->ms;
    }

    /// Copies a datagram to the observer, or stores the copy until the observer knows the session.
    void copy_to_observer(Session& session, base::Timestamp time, Direction direction,
                          std::span<const std::byte> datagram) {
        if (session.is_closed) {
            return; // the observer was told that the session is closed
        }
        if (session.is_announced()) {
            copy_datagram(session, time, direction, datagram);
        } else if (session.held_copies != nullptr) {
            session.held_copies->add_copy(time, direction, datagram);
        }
    }

    /// Closes a session if it has timed out.
    void check_timeout(Session& session, Time now);

    /// Closes at most `max` sessions. Returns whether no session is left.
    bool close_sessions(CloseReason reason,
                        std::size_t max = std::numeric_limits<std::size_t>::max());

    /// Calls `visit` with the state and the upstream socket of each session, for a takeover.
    /// HandedOverSession::listener is an index into the result of listeners_of() for this table.
    void for_each_session(const std::function<void(HandedOverSession, int socket)>& visit);

    /// Continues a session of another relay. `state.listener`: an index into the result of
    /// listeners_of() for this table. Errors: TakeoverError if the client has a session already, or
    /// the socket is unsuitable.
    void add_handed_over_session(const HandedOverSession& state, base::UniqueFd socket);

    [[nodiscard]] SessionIndex& sessions() noexcept { return sessions_; }

    [[nodiscard]] LiveCounters& counters() const noexcept { return *counters_; }

    [[nodiscard]] const SharedServerData& server_data() const noexcept { return shared_; }

  private:
    /// The interval of the checks that a player still has a slot on the server.
    static constexpr std::uint32_t kPlayerCheckIntervalMs = 500;

    [[nodiscard]] Session* admit_new_client(const base::Endpoint& client, msghdr& header,
                                            std::span<const std::byte> datagram,
                                            ListenerIndex listener);
    [[nodiscard]] bool is_first_session_of_network(const base::Endpoint& client) const noexcept;
    [[nodiscard]] bool is_relay_or_server_address(const base::Endpoint& client) noexcept;
    [[nodiscard]] bool may_forward_request(const base::Endpoint& client, msghdr& header,
                                           const ClientQuestion& question, RequestKind request,
                                           ListenerIndex listener) noexcept;
    [[nodiscard]] bool may_forward_next_request(Session& session, msghdr& header,
                                                std::span<const std::byte> datagram) noexcept;
    void send_repeated_answer(const AnswerCache::Answer& answer, const ClientQuestion& question,
                              msghdr& header, ListenerIndex listener) noexcept;
    [[nodiscard]] ClientQuestion
    read_client_question(std::span<const std::byte> datagram) const noexcept;

    [[nodiscard]] bool make_room_for_session(const base::Endpoint& client, ClientStanding standing);
    [[nodiscard]] bool is_address_at_limit(const base::Endpoint& client) const noexcept;
    [[nodiscard]] bool make_room_at_address(const base::Endpoint& client);
    [[nodiscard]] bool make_room_in_pool(ClientStanding standing, std::size_t pool,
                                         const base::Endpoint& client);
    [[nodiscard]] bool reserve_session_place();

    [[nodiscard]] Session* find_evictable_session(ClientStanding standing) noexcept;
    [[nodiscard]] Session* find_evictable_session_of(const base::Network& network,
                                                     ClientStanding standing) noexcept;
    [[nodiscard]] Session* find_evictable_session_in_table() noexcept;
    [[nodiscard]] bool is_forgotten_by_server(const Session& session) const noexcept;
    [[nodiscard]] bool has_left_server(const Session& session) const noexcept;

    [[nodiscard]] Session* find_silent_unverified_player() noexcept {
        return sessions_.find_most_silent_session(ClientStanding::unverified_player, now_->ms);
    }

    [[nodiscard]] Session* open_session(const base::Endpoint& client, msghdr& header,
                                        ListenerIndex listener, ClientStanding standing,
                                        const RememberedHandshakes& proof);
    [[nodiscard]] Session* insert_session(std::unique_ptr<Session>&& made);
    void apply_verdict(Session& session, Direction direction, std::span<const std::byte> datagram);
    void raise_standing(Session& session, ClientStanding standing);
    void try_raise_standing(Session& session, ClientStanding standing);
    [[nodiscard]] bool try_count_against_limit(Session& session, ClientStanding standing);
    [[nodiscard]] bool is_at_former_address(const Session& session) const noexcept;
    void announce_to_observer(Session& session);
    void set_send_budget(Session& session) const noexcept;
    [[nodiscard]] bool keep_session_if_server_is_silent(Session& session);

    void copy_datagram(Session& session, base::Timestamp time, Direction direction,
                       std::span<const std::byte> datagram) {
        const auto lost = copier_->num_lost_datagrams();
        copier_->copy_datagram(session.observed, time, direction, datagram);
        if (copier_->num_lost_datagrams() != lost) [[unlikely]] {
            counters_->directions[static_cast<std::size_t>(direction)].copies_lost.add(1);
        }
    }

    void evict_session(Session& session);
    void close_session(Session& session, CloseReason reason);

    SharedServerData& shared_;
    const std::vector<Listener>* listeners_; ///< all listeners of the thread
    int epoll_;
    DatagramCopier* copier_;
    LiveCounters* counters_;
    NewClientFilter new_client_filter_;
    SessionIndex sessions_;
    std::unique_ptr<AnswerCache> answers_; ///< null if the relay does not repeat answers
    TokenBucket announcement_budget_;
    std::vector<base::Endpoint>
        interface_addresses_; ///< addresses of this host's network interfaces
    base::Endpoint server_;   ///< the server's address at the time when server_generation_ was read
    std::uint32_t server_generation_;
    SessionTimers* timers_;
    const BatchTime* now_;
    bool has_server_answered_ = false; ///< true if the server has sent a datagram to any session
    std::uint32_t last_answer_ms_ = 0;
    /// When a search for a forgotten session (see is_forgotten_by_server()) last found none.
    std::uint32_t forgotten_search_ms_ = 0;
};

} // namespace tw::relay
