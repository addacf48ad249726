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

/// The greatest age in SessionState, in nanoseconds. Greater ages are replaced by this age.
constexpr std::uint64_t kLongAgoNs = std::uint64_t{24} * 3600 * 1'000'000'000;

std::uint64_t nanoseconds_between(base::Clock::time_point from, base::Clock::time_point to) {
    return static_cast<std::uint64_t>(
        std::max(std::chrono::nanoseconds{to - from}, std::chrono::nanoseconds{0}).count());
}

std::chrono::nanoseconds limited_age(std::uint64_t nanoseconds) {
    return std::chrono::nanoseconds{std::min(nanoseconds, kLongAgoNs)};
}

std::unique_ptr<HeldDatagramCopies> restore_held_copies(const SessionState& state) {
    auto held = std::make_unique<HeldDatagramCopies>();
    for (const DatagramCopy& copy : state.held) {
        held->add(copy.time, copy.direction, copy.bytes);
    }
    held->add_lost(state.held_lost);
    return held;
}

/// Sets the addresses that the observer is told about. Precondition: the upstream socket is open.
void set_tap_addresses(Session& session, const base::Endpoint& client) {
    session.tap.client = client;
    session.tap.upstream = session.upstream.local;
    session.tap.server = session.upstream.server;
}

} // namespace

std::unique_ptr<Session> SessionMaker::make_session(const base::Endpoint& client, msghdr& header,
                                                    ListenerIndex listener, const BatchTime& now) {
    auto made = open_session(client);
    if (made == nullptr) {
        return nullptr;
    }
    std::memcpy(&made->client, header.msg_name, header.msg_namelen);
    made->client_length = header.msg_namelen;
    made->listener = listener;
    if ((*listeners_)[listener].any_address) {
        made->control_length = static_cast<std::uint8_t>(make_reply_control(header, made->control));
    }
    made->opened = now.utc;
    made->begun = made->last_active = now.steady;
    made->last_heard_ms = made->last_answer_ms = made->played_ms = now.ms;
    return made;
}

std::unique_ptr<Session> SessionMaker::open_session(const base::Endpoint& client) {
    auto session = std::make_unique<Session>();
    session->upstreams = &shared_.upstreams;
    std::error_code error;
    try {
        session->upstream = shared_.upstreams.open(client, error);
    } catch (const std::bad_alloc&) {
        error = std::make_error_code(std::errc::not_enough_memory);
    }
    if (error) {
        shared_.numbers->session_error.store(error.value(), std::memory_order_relaxed);
        return nullptr;
    }
    if (!watch_socket(*session)) {
        shared_.numbers->session_error.store(errno, std::memory_order_relaxed);
        shared_.upstreams.close(session->upstream);
        return nullptr;
    }
    set_tap_addresses(*session, client);
    session->tap.server_index = shared_.index;
    return session;
}

bool SessionMaker::watch_socket(Session& session) const noexcept {
    epoll_event interest{};
    interest.events = EPOLLIN;
    interest.data.ptr = &session;
    if (::epoll_ctl(ready_set_, EPOLL_CTL_ADD, session.upstream.socket.get(), &interest) != 0) {
        return false;
    }
    session.upstream.ready_set = ready_set_;
    return true;
}

namespace {

/// Returns whether a correct relay can hand over this state.
bool is_valid_state(const SessionState& state) {
    const bool is_announced = state.id != 0;
    const bool may_be_told = state.standing >= ClientStanding::verified;
    const bool has_to_be = state.standing >= ClientStanding::weak;
    return state.standing <= ClientStanding::player && (is_announced ? may_be_told : !has_to_be) &&
           (state.counts_against_limit || !may_be_told) && state.number != 0 &&
           state.client.port != 0 && state.control_length <= state.control.size() &&
           std::ranges::all_of(state.held, [](const DatagramCopy& copy) {
               return copy.direction <= Direction::s2c &&
                      copy.bytes.size() <= HeldDatagramCopies::kBytes;
           });
}

} // namespace

std::unique_ptr<Session> SessionMaker::continue_session(const SessionState& state,
                                                        base::UniqueFd socket,
                                                        ListenerIndex listener,
                                                        const BatchTime& now) {
    if (!is_valid_state(state)) {
        throw HandoverError{"a session that was handed over is damaged"};
    }
    auto made = std::make_unique<Session>();
    static_cast<SessionFacts&>(*made) = state;
    made->upstreams = &shared_.upstreams;
    made->upstream =
        shared_.upstreams.take_over_socket(std::move(socket), state.client, state.own_loopback);
    if (!watch_socket(*made)) {
        shared_.upstreams.close(made->upstream);
        throw HandoverError{"a socket that was handed over cannot be waited for"};
    }
    set_tap_addresses(*made, state.client);
    made->tap.server_index = shared_.index;
    made->tap.id = state.id;
    made->tap.opened = state.told;
    made->client =
        base::to_socket_address(state.client, (*listeners_)[listener].v6, made->client_length);
    made->listener = listener;
    made->active = state.active_ns == 0;
    made->begun = now.steady - limited_age(state.begun_ns);
    made->last_active = now.steady - limited_age(state.active_ns);
    made->last_heard_ms = now.ms - state.heard_ms;
    made->last_answer_ms = now.ms;
    made->played_ms = now.ms - state.played_ms;
    if (state.counts_against_limit && !made->is_announced()) {
        made->held = restore_held_copies(state);
    }
    return made;
}

SessionState handover_state_of(const Session& session, const BatchTime& now) {
    SessionState state;
    static_cast<SessionFacts&>(state) = session;
    state.client = session.tap.client;
    state.id = session.tap.id;
    state.server = session.tap.server_index;
    state.own_loopback = session.upstream.loopback_of.has_value();
    state.told = session.tap.opened;
    state.begun_ns = nanoseconds_between(session.begun, now.steady);
    state.active_ns = session.active ? 0 : nanoseconds_between(session.last_active, now.steady);
    state.heard_ms = now.ms - session.last_heard_ms;
    state.played_ms = now.ms - session.played_ms;
    if (session.held != nullptr) {
        state.held_lost = session.held->lost();
        session.held->for_each(
            [&](base::Timestamp time, Direction direction, std::span<const std::byte> bytes) {
                state.held.push_back({time, direction, {bytes.begin(), bytes.end()}});
            });
    }
    return state;
}

namespace {

using std::chrono::milliseconds;

constexpr milliseconds kShortestBetweenChecks{5};
constexpr milliseconds kLongestBetweenChecks{1000};
/// How often a session is checked within its timeout. It is closed at most 1/8 of the timeout late.
constexpr int kChecksPerTimeout = 8;

} // namespace

SessionTimers::SessionTimers(milliseconds shortest, Time started)
    : started_{started}, between_checks_{std::clamp(shortest / kChecksPerTimeout,
                                                    kShortestBetweenChecks,
                                                    kLongestBetweenChecks)} {}

base::Timestamp SessionTimers::begin_batch(Time now) noexcept {
    now_ = {.steady = now,
            .ms = static_cast<std::uint32_t>(
                std::chrono::duration_cast<milliseconds>(now - started_).count()),
            .utc = base::now_utc()};
    return now_.utc;
}

void SessionTimers::free_after_sending(std::unique_ptr<Session> session) noexcept {
    session->timer.unlink();
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
        session.upstreams->close(session.upstream);
        *place = std::move(session.next_closed);
        --sessions_;
    }
}

} // namespace tw::relay
