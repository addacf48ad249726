// What of a door's sessions goes on in another relay.
#include "proxy/relay/door.h"

#include <algorithm>

#include <sys/epoll.h>

namespace tw::relay {

namespace {

/// What is longer ago than this makes no difference any more.
constexpr std::uint64_t kLongAgoNs = std::uint64_t{24} * 3600 * 1'000'000'000;

std::uint64_t nanoseconds_between(Clock::time_point from, Clock::time_point to) {
    return static_cast<std::uint64_t>(
        std::max(std::chrono::nanoseconds{to - from}, std::chrono::nanoseconds{0}).count());
}

std::chrono::nanoseconds limited(std::uint64_t nanoseconds) {
    return std::chrono::nanoseconds{std::min(nanoseconds, kLongAgoNs)};
}

std::unique_ptr<HeldCopies> held_copies(const SessionState& state) {
    auto held = std::make_unique<HeldCopies>();
    for (const KeptCopy& copy : state.held) {
        held->add(copy.time, copy.direction, copy.bytes);
    }
    held->lose(state.held_lost);
    return held;
}

} // namespace

SessionState Door::state_of(const Session& session) const {
    SessionState state{
        .client = session.tap.client,
        .id = session.tap.id,
        .number = session.number,
        .listener = session.listener,
        .reply = {session.control.begin(), session.control.begin() + session.control_length},
        .standing = session.standing,
        .has_place = session.has_place,
        .answered = session.answered,
        .own_loopback = session.upstream.loopback_of.has_value(),
        .proof = session.proof,
        .opened = session.opened,
        .told = session.tap.opened,
        .begun_ns = nanoseconds_between(session.begun, now_),
        .active_ns = session.active ? 0 : nanoseconds_between(session.last_active, now_),
        .heard_ms = now_ms_ - session.last_heard_ms,
        .kernel_drops = session.kernel_drops,
        .held = {},
        .held_lost = {}};
    if (session.held != nullptr) {
        state.held_lost = session.held->lost();
        session.held->for_each(
            [&](Timestamp time, Direction direction, std::span<const std::byte> bytes) {
                state.held.push_back({time, direction, {bytes.begin(), bytes.end()}});
            });
    }
    return state;
}

void Door::take_over(const SessionState& state, UniqueFd socket) {
    begin_batch();
    const auto listener = static_cast<ListenerIndex>(state.listener);
    if (state.listener >= listeners_.size() || sessions_.find(state.client, listener) != nullptr) {
        throw HandoverError{"the session of " + to_string(state.client) +
                            " was handed over twice, or belongs to no listening socket"};
    }
    auto made = std::make_unique<Session>();
    made->upstream =
        shared_.upstreams.take_over(std::move(socket), state.client, state.own_loopback);
    epoll_event interest{};
    interest.events = EPOLLIN;
    interest.data.ptr = made.get();
    if (::epoll_ctl(ready_set_, EPOLL_CTL_ADD, made->upstream.socket.get(), &interest) != 0) {
        shared_.upstreams.close(made->upstream);
        throw HandoverError{"a socket that was handed over cannot be waited for"};
    }
    made->tap.id = state.id;
    made->tap.opened = state.told;
    made->tap.client = state.client;
    made->tap.upstream = made->upstream.local;
    made->tap.server = made->upstream.server;
    made->client = to_socket_address(state.client, listeners_[listener].v6, made->client_length);
    made->listener = listener;
    made->control_length =
        static_cast<std::uint8_t>(std::min(state.reply.size(), made->control.size()));
    std::copy_n(state.reply.begin(), made->control_length, made->control.begin());
    made->standing = state.standing;
    made->has_place = state.has_place;
    made->answered = state.answered;
    made->active = state.active_ns == 0;
    made->proof = state.proof;
    made->number = state.number;
    made->opened = state.opened;
    made->begun = now_ - limited(state.begun_ns);
    made->last_active = now_ - limited(state.active_ns);
    made->last_heard_ms = now_ms_ - state.heard_ms;
    made->last_answer_ms = now_ms_;
    made->kernel_drops = state.kernel_drops;
    if (state.has_place && !made->is_told()) {
        made->held = held_copies(state);
    }
    shared_.sessions.fetch_add(state.has_place ? 1 : 0);
    Session& session = sessions_.insert(std::move(made));
    set_budget(session);
    wheel_.add(session, ticks_until_look(session));
}

} // namespace tw::relay
