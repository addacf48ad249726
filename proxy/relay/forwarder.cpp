#include "proxy/relay/forwarder.h"

#include <cerrno>
#include <new>
#include <system_error>
#include <thread>
#include <tuple>

namespace tw::relay {

namespace {

/// The maximum number of attempts to send a datagram. A send call can fail because of an ICMP
/// message about an earlier datagram, which anyone can forge. The system reports each such message
/// once, so that a further attempt usually succeeds.
constexpr int kSendAttempts = 4;

int try_send_messages(int socket, mmsghdr* messages, std::size_t count) noexcept {
    if (count == 1) {
        const auto sent = ::sendmsg(socket, &messages->msg_hdr, MSG_DONTWAIT);
        return sent < 0 ? -1 : 1;
    }
    return ::sendmmsg(socket, messages, static_cast<unsigned>(count), MSG_DONTWAIT);
}

/// The epoll data of wakeup descriptors. It is greater than any listener index, and less than any
/// session's address.
constexpr std::uint64_t kWakeupTag = kMaxListeningSockets;

/// The longest time for which a stopping relay waits for room in the observer's ring.
constexpr std::chrono::milliseconds kFinalReportTime{500};

} // namespace

void send_messages(int socket, mmsghdr* messages, std::size_t count,
                   DirectionTotals<Counter>& totals, Counter& icmp_refused) noexcept {
    std::size_t done = 0;
    std::uint64_t datagrams = 0;
    std::uint64_t bytes = 0;
    int attempts = 0;
    while (done < count) {
        const int sent = try_send_messages(socket, messages + done, count - done);
        if (sent > 0) {
            const auto end = done + static_cast<std::size_t>(sent);
            for (; done < end; ++done) {
                bytes += messages[done].msg_hdr.msg_iov->iov_len;
            }
            datagrams += static_cast<std::uint64_t>(sent);
            attempts = 0;
            continue;
        }
        const int error = errno;
        if (error == ECONNREFUSED) {
            icmp_refused.add(1);
        }
        if (++attempts < kSendAttempts) {
            continue;
        }
        const bool full = error == EAGAIN || error == EWOULDBLOCK || error == ENOBUFS;
        (full ? totals.dropped : totals.send_errors).add(1);
        attempts = 0;
        ++done;
    }
    totals.datagrams.add(datagrams);
    totals.bytes.add(bytes);
}

Forwarder::Forwarder(ObserverSharedMemory& observation, unsigned thread,
                     const ResyncFunctions& resync, std::chrono::milliseconds shortest_timeout,
                     Ring* ring)
    : epoll_{base::take_descriptor(::epoll_create1(EPOLL_CLOEXEC), "epoll_create1")},
      copier_{ring, observation.observer}, thread_{thread}, observation_{observation},
      counters_{observation.counters_of(0, thread)}, timers_{shortest_timeout}, resync_{resync} {
    if (resync_.rewrite_acknowledgement != nullptr) {
        rewritten_.datagrams.resize(DatagramBatch::kDatagrams);
    }
}

void Forwarder::add_server(SharedServerData& shared, std::span<const Listener> listeners) {
    copier_.reserve_events(shared.options.max_sessions);
    tables_.push_back(
        std::make_unique<SessionTable>(shared, listeners_, epoll_.get(), copier_,
                                       observation_.counters_of(shared.index, thread_), timers_));
    for (Listener listener : listeners) {
        listener.table = tables_.back().get();
        add_listener(listener);
    }
}

void Forwarder::add_listener(const Listener& listener) {
    auto place = std::ranges::find(listeners_, nullptr, &Listener::table);
    const auto index = static_cast<std::size_t>(place - listeners_.begin());
    if (index == kMaxListeningSockets) {
        throw std::system_error{std::make_error_code(std::errc::too_many_files_open),
                                "listening sockets of a thread"};
    }
    if (place == listeners_.end()) {
        listeners_.emplace_back();
    }
    watch_descriptor(listener.socket, index);
    listeners_[index] = listener;
}

Forwarder::Tables::iterator Forwarder::find_session_table(const SharedServerData& server) {
    return std::ranges::find(tables_, &server,
                             [](const auto& table) { return &table->server_data(); });
}

bool Forwarder::remove_server(const SharedServerData& shared) {
    const auto place = find_session_table(shared);
    if (place == tables_.end()) {
        return true;
    }
    SessionTable& table = **place;
    for (const Listener& listener : listeners_) {
        if (listener.table == &table) {
            // Only receiving stops here. The server's remaining sessions send from this socket.
            ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, listener.socket, nullptr);
        }
    }
    const bool empty = table.close_sessions(CloseReason::removed, SessionTimers::kChecksPerCall);
    copier_.commit_events();
    if (!empty) {
        return false;
    }
    if (is_impaired()) { // setting the impairment again sends all delayed datagrams
        set_impairment(Impairment{impairment_queue_->impairment()});
    }
    for (Listener& listener : listeners_) {
        if (listener.table == &table) {
            listener = {.socket = -1};
        }
    }
    tables_.erase(place);
    return true;
}

void Forwarder::watch_descriptor(int descriptor, std::uint64_t tag) const {
    epoll_event interest{};
    interest.events = EPOLLIN;
    interest.data.u64 = tag;
    if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, descriptor, &interest) != 0) {
        throw std::system_error{errno, std::system_category(), "epoll_ctl"};
    }
}

void Forwarder::add_wakeup_descriptor(int descriptor) const {
    watch_descriptor(descriptor, kWakeupTag);
}

Forwarder::ForwardResult Forwarder::forward_from_ready_sockets(int timeout) {
    std::array<epoll_event, kMaxReadySockets>
        events; // NOLINT(*-member-init): only the filled part is read
    const int count = ::epoll_wait(epoll_.get(), events.data(), kMaxReadySockets, timeout);
    const std::span ready = std::span{events}.first(static_cast<std::size_t>(std::max(count, 0)));
    ForwardResult woken;
    // Upstream sockets are read first, because reading from clients may free sessions in `ready`.
    if (std::ranges::any_of(ready, [](const auto& each) { return each.data.u64 > kWakeupTag; })) {
        woken.datagrams = read_upstream_sockets(ready);
    }
    for (const epoll_event& each : ready) {
        if (each.data.u64 < kWakeupTag) {
            woken.datagrams += read_listener(static_cast<ListenerIndex>(each.data.u64));
        }
        woken.is_woken = woken.is_woken || each.data.u64 == kWakeupTag;
    }
    return woken;
}

std::size_t Forwarder::read_listener(ListenerIndex index) {
    const Listener& listener = listeners_[index];
    const int received = batch_.receive(listener.socket, 0, true, listener.is_any_address);
    if (received <= 0) {
        count_receive_error(-received, listener.table->counters());
        return 0;
    }
    const auto count = static_cast<std::size_t>(received);
    SessionTable& table = *listener.table;
    const base::Timestamp now = timers_.begin_batch();
    clear_rewritten_datagrams();
    std::array<Session*, DatagramBatch::kDatagrams> touched{};
    std::size_t num_touched = 0;
    for (std::size_t i = 0; i < count; ++i) {
        batch_sessions_[i] =
            table.find_or_open_session(batch_.message_header(i).msg_hdr, batch_.datagram(i), index);
        if (batch_sessions_[i] != nullptr) {
            if (batch_sessions_[i]->num_datagrams == 0) {
                touched[num_touched++] = batch_sessions_[i];
            }
            append_datagram_to_session(*batch_sessions_[i], i);
            if (batch_sessions_[i]->resync.is_in_progress()) [[unlikely]] {
                rewrite_datagram(i);
            }
        }
    }
    if (is_impaired()) {
        for (std::size_t i = 0; i < num_touched; ++i) {
            touched[i]->num_datagrams = 0;
        }
        delay_datagrams(count, Direction::c2s);
        timers_.end_batch();
        return count;
    }
    for (std::size_t i = 0; i < num_touched; ++i) {
        send_to_server(*touched[i]);
    }
    copy_to_observer(count, now, Direction::c2s);
    timers_.end_batch();
    return count;
}

void Forwarder::request_full_snapshot(std::uint32_t id) {
    if (resync_.rewrite_acknowledgement == nullptr) {
        return;
    }
    static_cast<void>(timers_.begin_batch());
    for (const auto& table : tables_) {
        table->sessions().for_each_session([&](Session& session) {
            if (session.observed.id == id && session.is_announced()) {
                static_cast<void>(
                    session.resync.begin_resync(timers_.batch_time().ms, session.last_heard_ms));
            }
        });
    }
}

void Forwarder::rewrite_datagram(std::size_t i) noexcept {
    Session& session = *batch_sessions_[i];
    const auto known = session.resync.next_acknowledgement(timers_.batch_time().ms);
    // With an impairment, or if the session is not copied, the observer might not get the full
    // snapshot, so the datagram is not changed.
    if (!known || is_impaired() || session.observed.is_copying_stopped) {
        return;
    }
    auto& rewritten = rewritten_.datagrams[i];
    const std::size_t size =
        resync_.rewrite_acknowledgement(batch_.datagram(i), *known, rewritten.bytes);
    if (size == 0) {
        return;
    }
    rewritten.vector = {rewritten.bytes.data(), size};
    rewritten.is_first_of_resync = session.resync.on_datagram_rewritten();
    rewritten_.has_rewritten = true;
    session.table->counters().rewritten_datagrams.add(1);
}

void Forwarder::clear_rewritten_datagrams() noexcept {
    if (std::exchange(rewritten_.has_rewritten, false)) {
        for (auto& each : rewritten_.datagrams) {
            each.vector = {};
        }
    }
}

void Forwarder::look_for_full_snapshot(Session& session, std::size_t begin,
                                       std::size_t end) const noexcept {
    for (std::size_t i = begin; i < end; ++i) {
        if (const auto number = resync_.find_full_snapshot(batch_.datagram(i))) {
            session.resync.on_full_snapshot(timers_.batch_time().ms, *number);
        }
    }
}

void Forwarder::append_datagram_to_session(Session& session, std::size_t i) noexcept {
    const auto index = static_cast<std::uint8_t>(i);
    if (session.num_datagrams == 0) {
        session.first_datagram = index;
    } else {
        next_of_session_[session.last_datagram] = index;
    }
    session.last_datagram = index;
    ++session.num_datagrams;
}

void Forwarder::send_to_server(Session& session) noexcept {
    std::size_t i = session.first_datagram;
    for (std::size_t k = 0; k < session.num_datagrams; ++k) {
        iovec& vector = batch_.buffer_vector(i);
        vector.iov_len = batch_.message_header(i).msg_len;
        outgoing_[k].msg_hdr.msg_iov = is_rewritten(i) ? &rewritten_.datagrams[i].vector : &vector;
        outgoing_[k].msg_hdr.msg_iovlen = 1;
        i = next_of_session_[i];
    }
    LiveCounters& counters = session.table->counters();
    send_messages(session.upstream.socket.get(), outgoing_.data(), session.num_datagrams,
                  counters.directions[static_cast<std::size_t>(Direction::c2s)],
                  counters.icmp_refused);
    session.num_datagrams = 0;
    session.is_active = true;
}

std::size_t Forwarder::read_upstream_sockets(std::span<const epoll_event> ready) {
    std::size_t total = 0;
    std::size_t held = 0;
    static_cast<void>(timers_.begin_batch());
    for (const epoll_event& event : ready) {
        if (event.data.u64 <= kWakeupTag) {
            continue;
        }
        auto* const session = static_cast<Session*>(event.data.ptr);
        const int received = batch_.receive(session->upstream.socket.get(), held, false, false);
        if (received <= 0) {
            count_receive_error(-received, session->table->counters());
            continue;
        }
        session->table->note_server_answer(*session);
        if (session->resync.is_in_progress()) [[unlikely]] {
            look_for_full_snapshot(*session, held, held + static_cast<std::size_t>(received));
        }
        for (const auto end = held + static_cast<std::size_t>(received); held < end; ++held) {
            batch_sessions_[held] = session;
        }
        total += static_cast<std::size_t>(received);
        if (held > DatagramBatch::kDatagrams - kMinFreeBuffers) {
            send_datagrams_to_clients(held);
            held = 0;
        }
    }
    if (held != 0) {
        send_datagrams_to_clients(held);
    }
    timers_.end_batch();
    return total;
}

void Forwarder::send_datagrams_to_clients(std::size_t count) {
    if (is_impaired()) {
        delay_datagrams(count, Direction::s2c);
        return;
    }
    const base::Timestamp now = base::now_utc();
    for (std::size_t i = 0; i < count; ++i) {
        Session& session = *batch_sessions_[i];
        session.set_reply_address(batch_.message_header(i).msg_hdr);
        batch_.buffer_vector(i).iov_len = batch_.message_header(i).msg_len;
    }
    for (std::size_t begin = 0; begin < count;) {
        const ListenerIndex listener = batch_sessions_[begin]->listener;
        std::size_t end = begin + 1;
        while (end < count && batch_sessions_[end]->listener == listener) {
            ++end;
        }
        LiveCounters& counters = batch_sessions_[begin]->table->counters();
        send_messages(listeners_[listener].socket, &batch_.message_header(begin), end - begin,
                      counters.directions[static_cast<std::size_t>(Direction::s2c)],
                      counters.icmp_refused);
        begin = end;
    }
    copy_to_observer(count, now, Direction::s2c);
}

void Forwarder::delay_datagrams(std::size_t count, Direction direction) {
    const auto now = base::Clock::now();
    for (std::size_t i = 0; i < count; ++i) {
        count_if_truncated(i);
        if (batch_sessions_[i] != nullptr) {
            SessionTable& table = *batch_sessions_[i]->table;
            table.examine_datagram(*batch_sessions_[i], direction, batch_.datagram(i));
            try {
                delay_datagram(*batch_sessions_[i], direction, batch_.datagram(i), now);
            } catch (const std::bad_alloc&) { // the other datagrams are still forwarded
                table.counters().directions[static_cast<std::size_t>(direction)].dropped.add(1);
            }
        }
    }
}

void Forwarder::delay_datagram(Session& session, Direction direction,
                               std::span<const std::byte> bytes, base::Clock::time_point now) {
    session.is_active = true;
    if (session.impairment == nullptr) {
        session.impairment = std::make_unique<SessionImpairment>();
    }
    if (session.impairment->session_number !=
        session.number) { // the session is new, or got a new number
        session.impairment->restart(impairment_queue_->impairment(), session.number);
    }
    impairment_queue_->enqueue_datagram(&session, *session.impairment, direction, bytes, now);
}

std::optional<base::Clock::time_point> Forwarder::send_due_datagrams(base::Clock::time_point now) {
    if (!is_impaired()) {
        return std::nullopt;
    }
    const base::Timestamp utc = base::now_utc();
    impairment_queue_->release_due_datagrams(
        now, [&](void* owner, Direction direction, std::span<const std::byte> bytes) {
            send_delayed_datagram(*static_cast<Session*>(owner), direction, bytes, utc);
        });
    copier_.commit_events();
    return impairment_queue_->next_due_time();
}

void Forwarder::send_delayed_datagram(Session& session, Direction direction,
                                      std::span<const std::byte> bytes, base::Timestamp now) {
    // sendmmsg() does not write to these bytes.
    // NOLINTNEXTLINE(cppcoreguidelines-pro-type-const-cast)
    iovec vector{const_cast<std::byte*>(bytes.data()), bytes.size()};
    mmsghdr message{};
    message.msg_hdr.msg_iov = &vector;
    message.msg_hdr.msg_iovlen = 1;
    int socket = session.upstream.socket.get();
    if (direction == Direction::s2c) {
        socket = listeners_[session.listener].socket;
        session.set_reply_address(message.msg_hdr);
    }
    LiveCounters& counters = session.table->counters();
    send_messages(socket, &message, 1, counters.directions[static_cast<std::size_t>(direction)],
                  counters.icmp_refused);
    session.table->copy_to_observer(session, now, direction, bytes);
}

void Forwarder::set_impairment(const Impairment& impairment) {
    send_due_datagrams(base::Clock::time_point::max());
    impairment_queue_ = impairment.is_active()
                            ? std::make_unique<ImpairmentQueue>(impairment, counters_.impairment)
                            : nullptr;
    for (const auto& table : tables_) {
        table->sessions().for_each_session([](Session& session) { session.impairment.reset(); });
    }
}

void Forwarder::count_if_truncated(std::size_t i) noexcept {
    if ((batch_.message_header(i).msg_hdr.msg_flags & MSG_TRUNC) != 0) {
        counters_.truncated_datagrams.add(1);
    }
}

void Forwarder::copy_to_observer(std::size_t count, base::Timestamp now, Direction direction) {
    for (std::size_t i = 0; i < count; ++i) {
        count_if_truncated(i);
        if (batch_sessions_[i] != nullptr) {
            const std::span bytes{static_cast<const std::byte*>(batch_.buffer_vector(i).iov_base),
                                  batch_.buffer_vector(i).iov_len};
            SessionTable& table = *batch_sessions_[i]->table;
            table.examine_datagram(*batch_sessions_[i], direction, bytes);
            if (direction == Direction::c2s && is_rewritten(i) &&
                rewritten_.datagrams[i].is_first_of_resync) {
                copier_.report_resync(batch_sessions_[i]->observed, now);
            }
            table.copy_to_observer(*batch_sessions_[i], now, direction, bytes);
        }
    }
    copier_.commit_events();
}

void Forwarder::count_receive_error(int error, LiveCounters& counters) noexcept {
    if (error == ECONNREFUSED) {
        counters.icmp_refused.add(1);
    } else if (error != 0 && error != EAGAIN && error != EWOULDBLOCK && error != EINTR) {
        counters.receive_errors.add(1);
    }
}

bool Forwarder::check_timeouts(base::Clock::time_point now) {
    counters_.loop_iterations.add(1);
    const bool all = timers_.check_due_sessions(
        now, [now](Session& session) { session.table->check_timeout(session, now); });
    if (now - drops_read_ >= kDropCountInterval) {
        drops_read_ = now;
        for (Listener& listener : listeners_) {
            if (const SessionTable* const table = listener.table) {
                table->counters().kernel_dropped.add(
                    read_new_kernel_drops(listener.socket, listener.kernel_drops));
            }
        }
    }
    std::ignore = copier_.retry_events(base::now_utc()); // the next call tries again
    return all;
}

void Forwarder::send_delayed_datagrams() {
    set_impairment({});
    timers_.end_batch();
}

void Forwarder::close_all_sessions(CloseReason reason) {
    for (const auto& table : tables_) {
        table->close_sessions(table->server_data().closes_at_takeover ? CloseReason::removed
                                                                      : reason);
    }
    const base::Timestamp utc = base::now_utc();
    const auto deadline = base::Clock::now() + kFinalReportTime;
    while (!copier_.retry_events(utc) && base::Clock::now() < deadline) {
        std::this_thread::sleep_for(std::chrono::milliseconds{1});
    }
}

} // namespace tw::relay
