#include "proxy/relay/session_maker.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <system_error>
#include <utility>

#include <sys/epoll.h>

namespace tw::relay {

namespace {

void set_observed_addresses(Session& session, const base::Endpoint& client,
                            const SharedServerData& server) {
    static_cast<SessionAddresses&>(session.observed) = {.client = client,
                                                        .upstream = session.upstream.local,
                                                        .server = session.upstream.server,
                                                        .server_index = server.index};
}

bool watch_socket(Session& session, int epoll) noexcept {
    epoll_event interest{};
    interest.events = EPOLLIN;
    interest.data.ptr = &session;
    if (::epoll_ctl(epoll, EPOLL_CTL_ADD, session.upstream.socket.get(), &interest) != 0) {
        return false;
    }
    session.upstream.epoll = epoll;
    return true;
}

/// Returns whether a correct relay can hand over this state.
bool is_valid_state(const HandedOverSession& state, base::Clock::time_point now) {
    const auto is_past = [now](base::Clock::time_point time) {
        return time >= base::Clock::time_point{} && time <= now;
    };
    const TransferredSessionData& facts = state.facts;
    const bool may_be_announced = facts.standing >= ClientStanding::verified;
    const bool must_be_announced = facts.standing >= ClientStanding::unverified_player;
    return facts.standing <= ClientStanding::player &&
           (state.id != 0 ? may_be_announced : !must_be_announced) &&
           (facts.counts_against_limit || !may_be_announced) && facts.number != 0 &&
           state.client.port != 0 && facts.control_length <= facts.control.size() &&
           is_past(facts.began_at) && is_past(facts.last_active) &&
           std::ranges::all_of(state.held_copies, [](const DatagramCopy& copy) {
               return copy.direction <= Direction::s2c &&
                      copy.bytes.size() <= HeldDatagramCopies::kBytes;
           });
}

using std::chrono::milliseconds;

constexpr milliseconds kShortestBetweenChecks{5};
constexpr milliseconds kLongestBetweenChecks{1000};
/// The number of checks of a session within its timeout. So a session is closed at most 1/8 of its
/// timeout late.
constexpr int kChecksPerTimeout = 8;

} // namespace

std::unique_ptr<Session> make_session(SharedServerData& server, int epoll,
                                      const base::Endpoint& client, msghdr& header,
                                      const Listener& listener, const BatchTime& now) {
    auto made = std::make_unique<Session>();
    made->upstreams = &server.upstreams;
    std::error_code error;
    try {
        made->upstream = server.upstreams.open_socket(client, error);
    } catch (const std::bad_alloc&) {
        error = std::make_error_code(std::errc::not_enough_memory);
    }
    if (!error && !watch_socket(*made, epoll)) {
        error = {errno, std::system_category()};
        server.upstreams.close_socket(made->upstream);
    }
    if (error) {
        server.numbers.last_open_error.store(error.value(), std::memory_order_relaxed);
        return nullptr;
    }
    set_observed_addresses(*made, client, server);
    std::memcpy(&made->client, header.msg_name, header.msg_namelen);
    made->client_length = header.msg_namelen;
    if (listener.is_any_address) {
        made->control_length = static_cast<std::uint8_t>(make_reply_control(header, made->control));
    }
    made->opened_at = now.utc;
    made->began_at = made->last_active = now.steady;
    made->last_heard_ms = made->last_answer_ms = made->last_play_ms = now.ms;
    return made;
}

std::unique_ptr<Session> make_handed_over_session(SharedServerData& server, int epoll,
                                                  const HandedOverSession& state,
                                                  base::UniqueFd socket, bool v6,
                                                  const BatchTime& now) {
    if (!is_valid_state(state, now.steady)) {
        throw TakeoverError{"a session that was handed over is damaged"};
    }
    auto made = std::make_unique<Session>();
    static_cast<TransferredSessionData&>(*made) = state.facts;
    made->upstreams = &server.upstreams;
    made->upstream = server.upstreams.adopt_socket(std::move(socket), state.client, state.server);
    if (!watch_socket(*made, epoll)) {
        server.upstreams.close_socket(made->upstream);
        throw TakeoverError{"a socket that was handed over cannot be waited for"};
    }
    set_observed_addresses(*made, state.client, server);
    made->observed.id = state.id;
    made->observed.opened_at = made->opened_at;
    made->client = base::to_socket_address(state.client, v6, made->client_length);
    made->last_answer_ms = now.ms;
    if (made->counts_against_limit && !made->is_announced()) {
        made->held_copies = std::make_unique<HeldDatagramCopies>();
        for (const DatagramCopy& copy : state.held_copies) {
            made->held_copies->add_copy(copy.time, copy.direction, copy.bytes);
        }
        made->held_copies->add_lost_counts(state.lost_held_copies);
    }
    return made;
}

HandedOverSession takeover_state_of(const Session& session) {
    HandedOverSession state;
    state.facts = static_cast<const TransferredSessionData&>(session);
    state.client = session.observed.client;
    state.server = session.observed.server;
    state.id = session.observed.id;
    if (session.held_copies != nullptr) {
        state.lost_held_copies = session.held_copies->lost_counts();
        session.held_copies->for_each_copy(
            [&](base::Timestamp time, Direction direction, std::span<const std::byte> bytes) {
                state.held_copies.push_back({time, direction, {bytes.begin(), bytes.end()}});
            });
    }
    return state;
}

SessionTimers::SessionTimers(milliseconds shortest, Time now)
    : check_pause_{
          std::clamp(shortest / kChecksPerTimeout, kShortestBetweenChecks, kLongestBetweenChecks)} {
    begin_batch(now);
}

base::Timestamp SessionTimers::begin_batch(Time now) noexcept {
    const auto ms = std::chrono::duration_cast<milliseconds>(now.time_since_epoch()).count();
    now_ = {.steady = now, .ms = static_cast<std::uint32_t>(ms), .utc = base::now_utc()};
    return now_.utc;
}

void SessionTimers::free_after_sending(std::unique_ptr<Session> session) noexcept {
    session->timer_hook.unlink();
    session->next_closed = std::move(closed_);
    closed_ = std::move(session);
}

void SessionTimers::free_closed_sessions(bool all) noexcept {
    for (auto* place = &closed_; *place != nullptr;) {
        Session& session = **place;
        if (!all && has_waiting_datagrams(session)) {
            place = &session.next_closed;
            continue;
        }
        session.upstreams->close_socket(session.upstream);
        *place = std::move(session.next_closed);
        --num_sessions_;
    }
}

} // namespace tw::relay
