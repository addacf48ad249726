#include "proxy/relay/door.h"

#include <algorithm>
#include <cerrno>
#include <new>

namespace tw::relay {

namespace {

using std::chrono::milliseconds;

/// A server that has said nothing for so long, and has another address by now, is not there any more.
constexpr std::uint32_t kLeftBehindMs = 5000;
/// A client that the server does not answer repeats itself at least this often.
constexpr std::uint32_t kRepeatsWithinMs = 1000;

/// Apart from who only asks: they would make the fates of others' datagrams differ from run to run.
std::uint32_t next_number(SessionNumbers& numbers, bool has_place) noexcept {
    constexpr std::uint32_t kOfRequests = 1U << 31U;
    return has_place ? numbers.last_number.fetch_add(1) + 1
                     : kOfRequests | (numbers.last_request.fetch_add(1) + 1);
}

} // namespace

Door::Door(Shared& shared, const std::vector<Listener>& listeners, int ready_set, Tap& tap,
           LiveCounters& counters, Rounds& rounds)
    : shared_{shared}, maker_{shared, listeners, ready_set}, tap_{&tap}, counters_{&counters},
      gate_{shared.limits, shared.pools}, sessions_{shared.max_sessions}, rounds_{&rounds},
      now_{&rounds.now()} {}

Door::~Door() {
    sessions_.for_each([&](Session& session) {
        shared_.upstreams.close(session.upstream);
        shared_.sessions.fetch_sub(session.has_place ? 1 : 0);
    });
    rounds_->free_left(true);
}

Session* Door::admit(msghdr& header, std::span<const std::byte> datagram, ListenerIndex listener) {
    const Endpoint client = endpoint_from(static_cast<const sockaddr*>(header.msg_name));
    Session* const known = sessions_.find(client, listener);
    if (known == nullptr) {
        return let_in(client, header, datagram, listener);
    }
    if (!known->budget.take(now_->ms)) {
        counters_->admission.rate.add(1);
        return nullptr;
    }
    known->last_heard_ms = now_->ms;
    return known;
}

Session* Door::let_in(const Endpoint& client, msghdr& header, std::span<const std::byte> datagram,
                      ListenerIndex listener) {
    ProofMemory proof;
    Standing standing = Standing::proven;
    if (shared_.prove != nullptr) {
        if (!gate_.may_knock(client, now_->ms)) {
            counters_->admission.flood.add(1);
            return nullptr;
        }
        standing = shared_.prove(proof, Direction::c2s, datagram);
        if (!gate_.may_enter(client, standing, datagram, now_->ms)) {
            counters_->admission.crowd.add(1);
            return nullptr;
        }
    }
    if (!make_room(client, standing)) {
        counters_->sessions_refused.add(1);
        return nullptr;
    }
    return open(client, header, listener, standing, proof);
}

/// Makes room in the pool of that standing, and in the table when the session takes a place there.
bool Door::make_room(const Endpoint& client, Standing standing) {
    if (shared_.prove == nullptr) {
        return take_place();
    }
    if (standing == Standing::connless) {
        const RankList& asking = sessions_.of(standing);
        if (asking.size() >= shared_.pools.connless) {
            displace(*asking.oldest());
        }
        return true;
    }
    if (!is_loopback(client) && !make_room_of(source_of(client))) {
        return false;
    }
    const RankList& unproven = sessions_.of(Standing::unproven);
    if (unproven.size() >= shared_.pools.unproven) {
        displace(*unproven.oldest());
    }
    if (take_place()) {
        return true;
    }
    Session* leaving = unproven.oldest();
    if (leaving == nullptr) {
        leaving = silent_weak();
    }
    if (leaving == nullptr) {
        return false;
    }
    displace(*leaving);
    return take_place();
}

bool Door::take_place() {
    if (shared_.sessions.fetch_add(1) < shared_.max_sessions) {
        return true;
    }
    shared_.sessions.fetch_sub(1);
    return false;
}

/// One address has few unproven sessions, and not too many in all.
bool Door::make_room_of(const Source& source) {
    const std::size_t all = sessions_.count_of(source);
    const std::size_t most = shared_.limits.max_per_address;
    if (all < shared_.pools.unproven_per_address && (most == 0 || all < most)) {
        return true;
    }
    Session* oldest = nullptr;
    std::size_t unproven = 0;
    for (Session* each = sessions_.of(Standing::unproven).oldest(); each != nullptr;
         each = each->rank.newer) {
        if (source_of(each->tap.client) == source) {
            oldest = unproven++ == 0 ? each : oldest;
        }
    }
    const bool full = most != 0 && all >= most;
    if (oldest != nullptr && (full || unproven >= shared_.pools.unproven_per_address)) {
        displace(*oldest);
        return true;
    }
    return !full;
}

Session* Door::open(const Endpoint& client, msghdr& header, ListenerIndex listener,
                    Standing standing, const ProofMemory& proof) {
    std::unique_ptr<Session> made;
    try {
        made = maker_.make(client, header, listener, *now_);
        if (made != nullptr) {
            made->standing = standing;
            made->has_place = standing != Standing::connless;
            made->number = next_number(*shared_.numbers, made->has_place);
            made->proof = proof;
            return begin(std::move(made));
        }
    } catch (const std::bad_alloc&) {
        shared_.numbers->session_error.store(ENOMEM, std::memory_order_relaxed);
        if (made != nullptr) {
            shared_.upstreams.close(made->upstream);
        }
    }
    shared_.sessions.fetch_sub(standing == Standing::connless ? 0 : 1);
    counters_->sessions_failed.add(1);
    return nullptr;
}

/// All that takes memory comes first: what is in the table has all it needs.
Session* Door::begin(std::unique_ptr<Session>&& made) {
    if (made->has_place && !made->is_told()) {
        made->held = std::make_unique<HeldCopies>();
    }
    Session& session = sessions_.insert(std::move(made));
    session.door = this;
    set_budget(session);
    rounds_->enter(session, timeout_of(session));
    if (session.is_told()) {
        tell(session);
        return &session;
    }
    auto& totals = counters_->admission;
    (session.has_place ? totals.begun : totals.connless).add(1);
    return &session;
}

void Door::set_budget(Session& session) const noexcept {
    const AdmissionLimits& limits = shared_.limits;
    const std::uint32_t rate = shared_.prove == nullptr ? 0
                               : session.is_told()      ? limits.session_rate
                                                        : limits.unproven_rate;
    session.budget = TokenBucket{rate, rate};
    session.budget.refill(now_->ms);
}

void Door::judge(Session& session, Direction direction, std::span<const std::byte> datagram) {
    if (direction == Direction::c2s && session.standing == Standing::stray) {
        counters_->strays.add(1);
    }
    const Standing standing = shared_.prove(session.proof, direction, datagram);
    if (standing > session.standing) {
        rise(session, standing);
    }
}

/// Without memory it stays where it is, and may rise by its next datagram.
void Door::rise(Session& session, Standing standing) {
    try {
        try_rise(session, standing);
    } catch (const std::bad_alloc&) {
        shared_.numbers->session_error.store(ENOMEM, std::memory_order_relaxed);
        counters_->sessions_failed.add(1);
    }
}

void Door::try_rise(Session& session, Standing standing) {
    if (!session.has_place) {
        auto held = std::make_unique<HeldCopies>();
        if (!make_room(session.tap.client, standing)) {
            return;
        }
        try {
            sessions_.give_place(session);
        } catch (const std::bad_alloc&) {
            shared_.sessions.fetch_sub(1);
            throw;
        }
        session.number = next_number(*shared_.numbers, true);
        session.begun = now_->steady;
        session.opened = now_->utc;
        session.held = std::move(held);
        counters_->admission.begun.add(1);
    }
    if (standing == Standing::weak && sessions_.of(standing).size() >= shared_.pools.weak) {
        Session* const silent = silent_weak();
        if (silent == nullptr) {
            return; // all are playing; it may still prove itself
        }
        displace(*silent);
    }
    const bool was_told = session.is_told();
    sessions_.rank(session, standing);
    if (!session.is_told()) {
        return;
    }
    auto& totals = counters_->admission;
    (standing == Standing::proven ? totals.proven : totals.weak).add(1);
    gate_.forgive(session.tap.client);
    set_budget(session);
    if (!was_told) {
        tell(session);
    }
}

void Door::tell(Session& session) {
    session.tap.id = shared_.numbers->last_session.fetch_add(1) + 1;
    counters_->sessions_opened.add(1);
    tap_->open(session.tap, session.opened);
    if (session.held == nullptr) {
        return;
    }
    session.held->for_each(
        [&](Timestamp time, Direction direction, std::span<const std::byte> bytes) {
            copy(session, time, direction, bytes);
        });
    for (std::size_t i = 0; i < session.tap.lost.size(); ++i) {
        session.tap.lost[i] += session.held->lost()[i];
        counters_->directions[i].copies_lost.add(session.held->lost()[i]);
    }
    session.held.reset();
}

void Door::displace(Session& session) {
    counters_->admission.displaced.add(1);
    leave(session, CloseReason::idle);
}

void Door::leave(Session& session, CloseReason reason) {
    counters_->kernel_dropped.add(
        new_kernel_drops(session.upstream.socket.get(), session.kernel_drops));
    if (session.is_told()) {
        tap_->close(session.tap, now_->utc, reason);
        counters_->sessions_closed.add(1);
    }
    shared_.sessions.fetch_sub(session.has_place ? 1 : 0);
    session.leaving = true;
    rounds_->leave(sessions_.remove(session));
}

/// The server has moved, and where it was nobody answers any more: the client's next datagram is to
/// begin a session with the one there is now.
bool Door::is_left_behind(const Session& session) const noexcept {
    return session.upstream.generation != shared_.upstreams.generation() &&
           now_->ms - session.last_answer_ms >= kLeftBehindMs;
}

/// A client that still repeats itself before a server that says nothing, to others neither: the observer
/// is to hear of that, and the client could not have proved anything.
bool Door::waits_for_server(Session& session) {
    const bool others_hear =
        answered_ && now_->ms - last_answer_ms_ <= now_->ms - session.last_answer_ms;
    if (session.standing == Standing::unproven && !session.answered && !others_hear &&
        now_->ms - session.last_heard_ms < kRepeatsWithinMs) {
        rise(session, Standing::weak);
    }
    return session.is_told();
}

void Door::look_after(Session& session, Time now) {
    if (session.active || has_waiting_datagrams(session)) {
        session.active = false;
        session.last_active = now;
    }
    const AdmissionLimits& limits = shared_.limits;
    const auto idle = now - session.last_active;
    bool over = idle >= shared_.idle_timeout || is_left_behind(session);
    if (session.standing == Standing::connless) {
        over = over || idle >= limits.connless_time;
    } else if (!session.is_told() && now - session.begun >= limits.unproven_time) {
        over = !waits_for_server(session);
    }
    if (over) {
        counters_->admission.expired.add(session.is_told() || !session.has_place ? 0 : 1);
        leave(session, CloseReason::idle);
        return;
    }
    counters_->kernel_dropped.add(
        new_kernel_drops(session.upstream.socket.get(), session.kernel_drops));
    rounds_->look_again(session, timeout_of(session));
}

milliseconds Door::timeout_of(const Session& session) const noexcept {
    return session.standing == Standing::connless ? shared_.limits.connless_time
           : session.is_told()                    ? shared_.idle_timeout
                               : std::min(shared_.limits.unproven_time, shared_.idle_timeout);
}

void Door::for_each_session(const std::function<void(const SessionState&, int)>& use) {
    const auto own = listeners_of(*this, maker_.listeners());
    sessions_.for_each([&](const Session& session) {
        SessionState state = state_of(session, *now_);
        state.listener =
            static_cast<std::uint32_t>(std::ranges::find(own, session.listener) - own.begin());
        use(state, session.upstream.socket.get());
    });
}

void Door::take_over(const SessionState& state, UniqueFd socket) {
    rounds_->begin_batch();
    const auto own = listeners_of(*this, maker_.listeners());
    if (state.listener >= own.size() ||
        sessions_.find(state.client, own[state.listener]) != nullptr) {
        throw HandoverError{"the session of " + to_string(state.client) +
                            " was handed over twice, or belongs to no listening socket"};
    }
    auto made = maker_.make_from(state, std::move(socket), own[state.listener], *now_);
    shared_.sessions.fetch_add(state.has_place ? 1 : 0);
    Session& session = sessions_.insert(std::move(made));
    session.door = this;
    set_budget(session);
    rounds_->enter(session, timeout_of(session));
}

void Door::close_all(CloseReason reason) {
    rounds_->begin_batch();
    while (Session* const session = sessions_.any()) {
        leave(*session, reason);
    }
    rounds_->end_batch();
}

bool Door::close_some(CloseReason reason) {
    rounds_->begin_batch();
    std::size_t closed = 0;
    Session* session = sessions_.any();
    for (; session != nullptr && closed < Rounds::kLooksPerSweep; session = sessions_.any()) {
        leave(*session, reason);
        ++closed;
    }
    rounds_->end_batch();
    return session == nullptr;
}

} // namespace tw::relay
