#include "proxy/relay/session_table.h"

#include <algorithm>
#include <cerrno>
#include <new>

namespace tw::relay {

namespace {

/// After a change of the server's address, sessions with the old address end when the old address
/// has sent nothing for this long.
constexpr std::uint32_t kFormerAddressMs = 5000;
/// A real client that gets no answer repeats its request after at most this time.
constexpr std::uint32_t kLongestRepetitionMs = 1000;
/// find_evictable_session() chooses among this many of the oldest sessions.
constexpr std::size_t kEvictionCandidates = 32;
/// find_evictable_session_of() searches this many of the oldest sessions.
constexpr std::size_t kNetworkEvictionCandidates = 1024;
/// The shortest pause after a search that found no forgotten session (see
/// is_forgotten_by_server()).
constexpr std::uint32_t kForgottenSearchPauseMs = 100;
/// While less than 1/8 of max_sessions is free, check_timeout() closes each session that the server
/// has forgotten (see is_forgotten_by_server()).
constexpr std::size_t kReserveDivisor = 8;

/// Returns the number of a new session. Connectionless sessions are numbered separately, so that
/// they do not change the random impairment of other sessions.
std::uint32_t take_next_number(LastSessionNumbers& numbers, bool counts_against_limit) noexcept {
    constexpr std::uint32_t kConnlessBit = 1U << 31U;
    return counts_against_limit ? numbers.last_number.fetch_add(1) + 1
                                : kConnlessBit | (numbers.last_connless_number.fetch_add(1) + 1);
}

} // namespace

SessionTable::SessionTable(SharedServerData& shared, const std::vector<Listener>& listeners,
                           int epoll, DatagramCopier& copier, LiveCounters& counters,
                           SessionTimers& timers)
    : shared_{shared}, listeners_{&listeners}, epoll_{epoll}, copier_{&copier},
      counters_{&counters}, new_client_filter_{shared.options.new_client_limits, shared.pools},
      sessions_{shared.options.max_sessions},
      answers_{shared.options.answer_functions.read_question != nullptr
                   ? std::make_unique<AnswerCache>()
                   : nullptr},
      announcement_budget_{shared.options.new_client_limits.announcement_rate,
                           shared.options.new_client_limits.announcement_burst},
      interface_addresses_{interface_addresses()}, server_{shared.upstreams.server()},
      server_generation_{shared.upstreams.server_generation()}, timers_{&timers},
      now_{&timers.batch_time()} {}

SessionTable::~SessionTable() {
    sessions_.for_each_session([&](Session& session) {
        shared_.upstreams.close_socket(session.upstream);
        shared_.num_sessions.fetch_sub(session.counts_against_limit ? 1 : 0);
    });
    timers_->free_closed_sessions(true);
}

Session* SessionTable::find_or_open_session(msghdr& header, std::span<const std::byte> datagram,
                                            ListenerIndex listener) {
    const base::Endpoint client =
        base::endpoint_from(static_cast<const sockaddr*>(header.msg_name));
    Session* const known = sessions_.find(client, listener);
    if (known == nullptr) {
        return admit_new_client(client, header, datagram, listener);
    }
    if (!known->send_budget.try_take_token(now_->ms)) {
        counters_->new_clients.rejected_by_session_rate.add(1);
        return nullptr;
    }
    if (known->standing == ClientStanding::connless &&
        !may_forward_next_request(*known, header, datagram)) {
        return nullptr;
    }
    known->last_heard_ms = now_->ms;
    return known;
}

Session* SessionTable::admit_new_client(const base::Endpoint& client, msghdr& header,
                                        std::span<const std::byte> datagram,
                                        ListenerIndex listener) {
    if (is_relay_or_server_address(client)) {
        counters_->new_clients.rejected_own_address.add(1);
        return nullptr;
    }
    RememberedHandshakes proof;
    DatagramVerdict verdict{.standing = ClientStanding::player};
    NewClientDecision entry;
    ClientQuestion question;
    if (shared_.options.judge_datagram != nullptr) {
        verdict = shared_.options.judge_datagram(proof, Direction::c2s, datagram);
        if (verdict.standing == ClientStanding::connless) {
            question = read_client_question(datagram);
            if (!may_forward_request(client, header, question, verdict.request, listener)) {
                return nullptr;
            }
        } else {
            entry = new_client_filter_.decide_new_client(
                client, verdict.standing, is_first_session_of_network(client), datagram, now_->ms);
        }
        if (entry.refusal != NewClientRefusal::none) {
            auto& totals = counters_->new_clients;
            (entry.refusal == NewClientRefusal::network_limit ? totals.rejected_by_network_limit
                                                              : totals.rejected_among_too_many)
                .add(1);
            return nullptr;
        }
    }
    if (!make_room_for_session(client, verdict.standing)) {
        (is_address_at_limit(client) ? counters_->new_clients.rejected_by_address_limit
                                     : counters_->datagrams_without_session)
            .add(1);
        return nullptr;
    }
    Session* const session = open_session(client, header, listener, verdict.standing, proof);
    if (session != nullptr) {
        session->num_repeats = entry.num_repeats;
        session->latest_question = question;
    }
    return session;
}

/// Returns whether the client's network has no unrecognised, unverified or verified session. True
/// for loopback clients, because their addresses cannot be forged.
bool SessionTable::is_first_session_of_network(const base::Endpoint& client) const noexcept {
    const base::Network own = base::narrowest_network(client);
    return base::is_loopback(client) ||
           (sessions_.num_sessions(own, ClientStanding::unverified) == 0 &&
            sessions_.num_sessions(own, ClientStanding::verified) == 0);
}

/// Returns whether the relay or the server listens on the sender address of a client's datagram.
/// Such a datagram is forged. Forwarding it could make the relay and the server answer each other
/// forever.
bool SessionTable::is_relay_or_server_address(const base::Endpoint& client) noexcept {
    if (const auto generation = shared_.upstreams.server_generation();
        generation != server_generation_) {
        server_ = shared_.upstreams.server();
        server_generation_ = generation;
    }
    const auto is_same_address = [&](const base::Endpoint& other) {
        return other.v6 == client.v6 && other.address == client.address;
    };
    const auto is_here = [&] {
        return base::is_loopback(client) ||
               std::ranges::any_of(interface_addresses_, is_same_address);
    };
    if (client.port == server_.port &&
        (is_same_address(server_) || (base::is_loopback(server_) && is_here()))) {
        return true;
    }
    return std::ranges::any_of(*listeners_, [&](const Listener& each) {
        return each.local.port == client.port &&
               (is_same_address(each.local) || (each.is_any_address && is_here()));
    });
}

ClientQuestion
SessionTable::read_client_question(std::span<const std::byte> datagram) const noexcept {
    return answers_ != nullptr ? shared_.options.answer_functions.read_question(datagram)
                               : ClientQuestion{};
}

/// Returns true if a request must be forwarded; otherwise answers or rejects it.
bool SessionTable::may_forward_request(const base::Endpoint& client, msghdr& header,
                                       const ClientQuestion& question, RequestKind request,
                                       ListenerIndex listener) noexcept {
    const AnswerCache::Answer* const answer =
        question.kind != 0 ? answers_->find_answer(question.kind, now_->ms) : nullptr;
    switch (new_client_filter_.decide_request(client, request, answer != nullptr, now_->ms)) {
    case RequestDecision::forward:
        return true;
    case RequestDecision::repeat_answer:
        send_repeated_answer(*answer, question, header, listener);
        return false;
    case RequestDecision::reject_by_network_limit:
        counters_->new_clients.rejected_by_network_limit.add(1);
        return false;
    case RequestDecision::reject_by_total_limit:
        counters_->new_clients.rejected_among_too_many.add(1);
        return false;
    }
    return false;
}

bool SessionTable::may_forward_next_request(Session& session, msghdr& header,
                                            std::span<const std::byte> datagram) noexcept {
    const DatagramVerdict verdict =
        shared_.options.judge_datagram(session.handshake, Direction::c2s, datagram);
    if (verdict.request == RequestKind::none) {
        return true;
    }
    const ClientQuestion question = read_client_question(datagram);
    if (!may_forward_request(session.observed.client, header, question, verdict.request,
                             session.listener)) {
        return false;
    }
    session.latest_question = question;
    return true;
}

/// Sends a client an answer that the server gave to another client. The answer comes from the
/// address to which the client sent its question.
void SessionTable::send_repeated_answer(const AnswerCache::Answer& answer,
                                        const ClientQuestion& question, msghdr& header,
                                        ListenerIndex listener) noexcept {
    const Listener& from = (*listeners_)[listener];
    ReplyControl control{};
    const std::size_t control_length =
        from.is_any_address ? make_reply_control(header, control) : 0;
    for (std::size_t i = 0; i < answer.num_parts; ++i) {
        std::array<std::byte, AnswerCache::kMaxPartBytes>
            bytes; // NOLINT(*-member-init): write_answer() sets the used bytes
        const std::size_t size =
            shared_.options.answer_functions.write_answer(answer.part(i), question, bytes);
        iovec vector{bytes.data(), size};
        msghdr message{};
        message.msg_name = header.msg_name;
        message.msg_namelen = header.msg_namelen;
        message.msg_iov = &vector;
        message.msg_iovlen = 1;
        message.msg_control = control_length != 0 ? control.data() : nullptr;
        message.msg_controllen = control_length;
        if (size == 0 || ::sendmsg(from.socket, &message, MSG_DONTWAIT) < 0) {
            return; // without this part the client cannot use the other parts
        }
    }
    counters_->repeated_answers.add(1);
}

/// Makes room for a session of this standing, by eviction if necessary. Returns whether there is
/// room.
bool SessionTable::make_room_for_session(const base::Endpoint& client, ClientStanding standing) {
    if (shared_.options.judge_datagram == nullptr) {
        return reserve_session_place();
    }
    if (standing == ClientStanding::connless) {
        SessionsByAge& asking = sessions_.sessions_of_standing(standing);
        if (asking.size() >= shared_.pools.connless) {
            evict_session(asking.front());
        }
        return true;
    }
    if (!make_room_at_address(client) ||
        !make_room_in_pool(ClientStanding::unverified, shared_.pools.unverified, client)) {
        return false;
    }
    if (reserve_session_place()) {
        return true;
    }
    Session* const leaving = find_evictable_session_in_table();
    if (leaving == nullptr) {
        return false;
    }
    evict_session(*leaving);
    return reserve_session_place();
}

bool SessionTable::reserve_session_place() {
    if (shared_.num_sessions.fetch_add(1) < shared_.options.max_sessions) {
        return true;
    }
    shared_.num_sessions.fetch_sub(1);
    return false;
}

bool SessionTable::is_address_at_limit(const base::Endpoint& client) const noexcept {
    const std::size_t most = shared_.pools.per_address;
    return shared_.options.judge_datagram != nullptr && most != 0 && !base::is_loopback(client) &&
           sessions_.num_sessions_against_limit(base::narrowest_network(client)) >= most;
}

/// Makes room for a session within the limit of sessions per address, by eviction if necessary.
/// Returns whether there is room.
bool SessionTable::make_room_at_address(const base::Endpoint& client) {
    if (!is_address_at_limit(client)) {
        return true;
    }
    const base::Network own = base::narrowest_network(client);
    for (const ClientStanding standing :
         {ClientStanding::unverified, ClientStanding::verified, ClientStanding::unverified_player,
          ClientStanding::player}) {
        if (Session* const leaving = find_evictable_session_of(own, standing)) {
            evict_session(*leaving);
            return true;
        }
    }
    return false;
}

/// Makes room for a session within its networks' shares of a pool, by eviction if necessary.
/// Returns whether there is room. `pool`: the pool's size.
bool SessionTable::make_room_in_pool(ClientStanding standing, std::size_t pool,
                                     const base::Endpoint& client) {
    for (const base::Network& network : base::EnclosingNetworks{client}) {
        if (base::is_loopback(client) ||
            sessions_.num_sessions(network, standing) <
                SessionPoolSizes::max_sessions_of_network(pool, network)) {
            continue;
        }
        Session* const leaving = find_evictable_session_of(network, standing);
        if (leaving == nullptr) {
            return false;
        }
        evict_session(*leaving);
    }
    if (sessions_.sessions_of_standing(standing).size() >= pool) {
        evict_session(*find_evictable_session(standing));
    }
    return true;
}

/// Returns the session of this standing that should be evicted first; null if no session may be
/// evicted. Prefers the network with the most sessions, then the client that repeated its first
/// datagram the fewest times until it got a session, then the oldest session.
Session* SessionTable::find_evictable_session(ClientStanding standing) noexcept {
    Session* found = nullptr;
    std::size_t most = 0;
    std::size_t looked = 0;
    for (Session& each : sessions_.sessions_of_standing(standing)) {
        if (++looked > kEvictionCandidates) {
            break;
        }
        const std::size_t count =
            sessions_.num_sessions(base::narrowest_network(each.observed.client), each.standing);
        if (found == nullptr || count > most ||
            (count == most && each.num_repeats < found->num_repeats)) {
            found = &each;
            most = count;
        }
    }
    return found;
}

/// Returns the session of this standing and network that should be evicted first; null if the
/// oldest kNetworkEvictionCandidates sessions contain none that may be evicted.
Session* SessionTable::find_evictable_session_of(const base::Network& network,
                                                 ClientStanding standing) noexcept {
    const auto is_in = [&](const Session& session) {
        return std::ranges::any_of(base::EnclosingNetworks{session.observed.client},
                                   [&](const base::Network& each) { return each == network; });
    };
    Session* found = nullptr;
    std::size_t looked = 0;
    for (Session& each : sessions_.sessions_of_standing(standing)) {
        if (++looked > kNetworkEvictionCandidates) {
            break;
        }
        if ((found == nullptr || each.num_repeats < found->num_repeats) && is_in(each) &&
            (standing < ClientStanding::unverified_player || has_left_server(each))) {
            found = &each;
        }
    }
    return found;
}

/// Returns the session to evict from a full table; null if no session may be evicted.
Session* SessionTable::find_evictable_session_in_table() noexcept {
    for (const ClientStanding standing : {ClientStanding::unverified, ClientStanding::verified}) {
        if (Session* const leaving = find_evictable_session(standing)) {
            return leaving;
        }
    }
    if (now_->ms - forgotten_search_ms_ >= kForgottenSearchPauseMs) {
        Session* forgotten = nullptr;
        sessions_.for_each_session([&](Session& each) {
            if (is_forgotten_by_server(each) &&
                (forgotten == nullptr ||
                 now_->ms - each.last_play_ms > now_->ms - forgotten->last_play_ms)) {
                forgotten = &each;
            }
        });
        if (forgotten != nullptr) {
            return forgotten;
        }
        forgotten_search_ms_ = now_->ms;
    }
    return find_silent_unverified_player();
}

/// Returns whether the client had a slot, and the server now sends only to other clients.
bool SessionTable::is_forgotten_by_server(const Session& session) const noexcept {
    return shared_.options.judge_datagram != nullptr &&
           session.standing >= ClientStanding::unverified_player && has_server_answered_ &&
           static_cast<std::int32_t>(last_answer_ms_ - session.last_play_ms) >=
               shared_.options.new_client_limits.forgotten_time.count();
}

/// Returns whether the client and the server have stopped sending to each other. This is true after
/// a player has left. Forged datagrams cannot make it true for a player in the game.
bool SessionTable::has_left_server(const Session& session) const noexcept {
    const auto is_long_ago = [this](std::uint32_t ms) {
        return now_->ms - ms >= shared_.options.new_client_limits.forgotten_time.count();
    };
    return is_long_ago(session.last_heard_ms) && is_long_ago(session.last_play_ms);
}

Session* SessionTable::open_session(const base::Endpoint& client, msghdr& header,
                                    ListenerIndex listener, ClientStanding standing,
                                    const RememberedHandshakes& proof) {
    std::unique_ptr<Session> made;
    try {
        made = make_session(shared_, epoll_, client, header, (*listeners_)[listener], *now_);
        if (made != nullptr) {
            made->listener = listener;
            made->standing = standing;
            made->counts_against_limit = standing != ClientStanding::connless;
            made->number = take_next_number(shared_.numbers, made->counts_against_limit);
            made->handshake = proof;
            return insert_session(std::move(made));
        }
    } catch (const std::bad_alloc&) {
        shared_.numbers.last_open_error.store(ENOMEM, std::memory_order_relaxed);
        if (made != nullptr) {
            shared_.upstreams.close_socket(made->upstream);
        }
    }
    shared_.num_sessions.fetch_sub(standing == ClientStanding::connless ? 0 : 1);
    counters_->datagrams_without_socket.add(1);
    return nullptr;
}

/// Adds a session to the table. First allocates all memory, so that a failed allocation leaves no
/// half-made session in the table.
Session* SessionTable::insert_session(std::unique_ptr<Session>&& made) {
    const bool is_announced = made->standing >= ClientStanding::unverified_player;
    if (made->counts_against_limit && !is_announced) {
        made->held_copies = std::make_unique<HeldDatagramCopies>();
    }
    Session& session = sessions_.insert(std::move(made));
    session.table = this;
    set_send_budget(session);
    timers_->add_session(session);
    if (is_announced) {
        announce_to_observer(session);
        return &session;
    }
    auto& totals = counters_->new_clients;
    (session.counts_against_limit ? totals.begun_sessions : totals.connless_sessions).add(1);
    return &session;
}

void SessionTable::set_send_budget(Session& session) const noexcept {
    const NewClientLimits& limits = shared_.options.new_client_limits;
    const std::uint32_t rate = shared_.options.judge_datagram == nullptr ? 0
                               : session.standing >= ClientStanding::unverified_player
                                   ? limits.player_datagram_rate
                                   : limits.other_datagram_rate;
    session.send_budget = TokenBucket{rate, rate};
    session.send_budget.refill(now_->ms);
}

void SessionTable::apply_verdict(Session& session, Direction direction,
                                 std::span<const std::byte> datagram) {
    if (shared_.options.judge_datagram == nullptr) {
        session.last_play_ms = now_->ms;
        return;
    }
    const DatagramVerdict verdict =
        shared_.options.judge_datagram(session.handshake, direction, datagram);
    if (direction == Direction::c2s && !verdict.is_answered) {
        counters_->unanswerable_datagrams.add(1);
    }
    if (verdict.shows_player) {
        session.last_play_ms = now_->ms;
    }
    if (verdict.standing > session.standing) {
        raise_standing(session, verdict.standing);
    }
    if (direction == Direction::s2c && session.latest_question.kind != 0) {
        answers_->add_part(
            session.latest_question.kind, session.number,
            shared_.options.answer_functions.classify_answer(datagram, session.latest_question),
            datagram, now_->ms);
    }
}

/// Raises a session's standing. If memory runs out, the standing does not change, and the session's
/// next datagram tries again.
void SessionTable::raise_standing(Session& session, ClientStanding standing) {
    try {
        try_raise_standing(session, standing);
    } catch (const std::bad_alloc&) {
        shared_.numbers.last_open_error.store(ENOMEM, std::memory_order_relaxed);
        counters_->datagrams_without_socket.add(1);
    }
}

bool SessionTable::try_count_against_limit(Session& session, ClientStanding standing) {
    auto held = std::make_unique<HeldDatagramCopies>();
    if (!make_room_for_session(session.observed.client, standing)) {
        return false;
    }
    try {
        sessions_.count_against_limit(session);
    } catch (const std::bad_alloc&) {
        shared_.num_sessions.fetch_sub(1);
        throw;
    }
    session.number = take_next_number(shared_.numbers, true);
    session.began_at = now_->steady;
    session.opened_at = now_->utc;
    session.held_copies = std::move(held);
    session.latest_question = {};
    counters_->new_clients.begun_sessions.add(1);
    return true;
}

void SessionTable::try_raise_standing(Session& session, ClientStanding standing) {
    if (!session.counts_against_limit && !try_count_against_limit(session, standing)) {
        return;
    }
    if (standing == ClientStanding::verified &&
        !make_room_in_pool(standing, shared_.pools.verified, session.observed.client)) {
        return;
    }
    if (standing == ClientStanding::unverified_player &&
        sessions_.sessions_of_standing(standing).size() >= shared_.pools.unverified_players) {
        Session* const silent = find_silent_unverified_player();
        if (silent == nullptr) {
            // No session of the pool may be evicted, so this session keeps its standing. The client
            // may be verified later.
            return;
        }
        evict_session(*silent);
    }
    const ClientStanding before = session.standing;
    sessions_.set_standing(session, standing);
    if (standing < ClientStanding::verified) {
        return;
    }
    auto& totals = counters_->new_clients;
    if (standing == ClientStanding::unverified_player) {
        totals.unverified_player_sessions.add(1);
    } else {
        totals.verified_sessions.add(before == ClientStanding::verified ? 0 : 1);
        totals.player_sessions.add(standing == ClientStanding::player ? 1 : 0);
    }
    if (standing >= ClientStanding::unverified_player) { // the client has a slot on the server
        new_client_filter_.lift_readmission_pause(session.observed.client);
    }
    set_send_budget(session);
    // Clients without a slot on the server are announced at a limited rate (announcement_rate).
    announcement_budget_.refill(now_->ms);
    if (!session.is_announced() && (standing >= ClientStanding::unverified_player ||
                                    announcement_budget_.try_take_token(now_->ms))) {
        announce_to_observer(session);
    }
}

void SessionTable::announce_to_observer(Session& session) {
    session.observed.id = shared_.numbers.last_observed_id.fetch_add(1) + 1;
    counters_->sessions_opened.add(1);
    copier_->open_session(session.observed, session.opened_at);
    if (session.held_copies == nullptr) {
        return;
    }
    session.held_copies->for_each_copy(
        [&](base::Timestamp time, Direction direction, std::span<const std::byte> bytes) {
            copy_datagram(session, time, direction, bytes);
        });
    for (std::size_t i = 0; i < session.observed.lost.size(); ++i) {
        session.observed.lost[i] += session.held_copies->lost_counts()[i];
        counters_->directions[i].copies_lost.add(session.held_copies->lost_counts()[i]);
    }
    session.held_copies.reset();
}

void SessionTable::evict_session(Session& session) {
    counters_->new_clients.displaced_sessions.add(1);
    close_session(session, CloseReason::displaced);
}

void SessionTable::close_session(Session& session, CloseReason reason) {
    counters_->kernel_dropped.add(
        read_new_kernel_drops(session.upstream.socket.get(), session.kernel_drops));
    if (session.is_announced()) {
        copier_->close_session(session.observed, now_->utc, reason);
        counters_->sessions_closed.add(1);
    }
    shared_.num_sessions.fetch_sub(session.counts_against_limit ? 1 : 0);
    session.is_closed = true;
    timers_->free_after_sending(sessions_.remove(session));
}

/// Returns whether the server has a new address and no longer answers at the session's old address.
/// The client's next datagram must then begin a session with the new address.
bool SessionTable::is_at_former_address(const Session& session) const noexcept {
    return session.upstream.server_generation != shared_.upstreams.server_generation() &&
           now_->ms - session.last_answer_ms >= kFormerAddressMs;
}

/// Returns whether an unverified session stays open after its time for the handshake is over. While
/// the server answers no client, promotes a session whose client still repeats its datagram. The
/// observer is then told about the session, which stays open.
bool SessionTable::keep_session_if_server_is_silent(Session& session) {
    const bool others_hear =
        has_server_answered_ && now_->ms - last_answer_ms_ <= now_->ms - session.last_answer_ms;
    if (session.standing == ClientStanding::unverified && !session.has_server_answered &&
        !others_hear && now_->ms - session.last_heard_ms < kLongestRepetitionMs) {
        raise_standing(session, ClientStanding::unverified_player);
    }
    return session.is_announced();
}

void SessionTable::check_timeout(Session& session, Time now) {
    if (session.is_active) {
        counters_->kernel_dropped.add(
            read_new_kernel_drops(session.upstream.socket.get(), session.kernel_drops));
    }
    if (session.is_active || has_waiting_datagrams(session)) {
        session.is_active = false;
        session.last_active = now;
    }
    const NewClientLimits& limits = shared_.options.new_client_limits;
    const auto idle = now - session.last_active;
    bool over = idle >= shared_.options.idle_timeout || is_at_former_address(session);
    if (session.standing == ClientStanding::connless) {
        over = over || idle >= limits.connless_timeout;
    } else if (session.standing < ClientStanding::verified &&
               now - session.began_at >= limits.unverified_timeout) {
        over = !keep_session_if_server_is_silent(session);
    } else if (shared_.num_sessions.load() >
               shared_.options.max_sessions - shared_.options.max_sessions / kReserveDivisor) {
        over = over || is_forgotten_by_server(session); // other threads cannot evict the session
    }
    if (over) {
        const bool proved_nothing =
            session.counts_against_limit && session.standing < ClientStanding::verified;
        counters_->new_clients.expired_sessions.add(proved_nothing ? 1 : 0);
        close_session(session, CloseReason::idle);
    }
}

void SessionTable::for_each_session(const std::function<void(HandedOverSession, int)>& visit) {
    const auto own = listeners_of(*this, *listeners_);
    sessions_.for_each_session([&](const Session& session) {
        HandedOverSession state = takeover_state_of(session);
        state.listener =
            static_cast<std::uint32_t>(std::ranges::find(own, session.listener) - own.begin());
        visit(std::move(state), session.upstream.socket.get());
    });
}

void SessionTable::add_handed_over_session(const HandedOverSession& state, base::UniqueFd socket) {
    timers_->begin_batch();
    const auto own = listeners_of(*this, *listeners_);
    if (state.listener >= own.size() ||
        sessions_.find(state.client, own[state.listener]) != nullptr) {
        throw TakeoverError{"the session of " + base::to_string(state.client) +
                            " was handed over twice, or belongs to no listening socket"};
    }
    const ListenerIndex listener = own[state.listener];
    auto made = make_handed_over_session(shared_, epoll_, state, std::move(socket),
                                         (*listeners_)[listener].v6, *now_);
    made->listener = listener;
    shared_.num_sessions.fetch_add(state.facts.counts_against_limit ? 1 : 0);
    Session& session = sessions_.insert(std::move(made));
    session.table = this;
    set_send_budget(session);
    timers_->add_session(session);
}

bool SessionTable::close_sessions(CloseReason reason, std::size_t max) {
    timers_->begin_batch();
    Session* session = sessions_.any_session();
    for (std::size_t closed = 0; session != nullptr && closed < max; ++closed) {
        close_session(*session, reason);
        session = sessions_.any_session();
    }
    timers_->end_batch();
    return session == nullptr;
}

} // namespace tw::relay
