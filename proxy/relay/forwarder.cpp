#include "proxy/relay/forwarder.h"

#include "proxy/relay/sender.h"

#include <algorithm>
#include <cerrno>
#include <new>
#include <thread>

#include <sys/epoll.h>

namespace tw::relay {

namespace {

/// Stands for what is not a socket, behind the indexes of listeners and below all addresses.
constexpr std::uint64_t kWords = kMaxListeningSockets;

/// How long an ending relay waits for the observer to make room.
constexpr std::chrono::milliseconds kSettleTime{500};

} // namespace

Forwarder::Forwarder(Shared& shared, unsigned thread, std::span<const Listener> listeners,
                     Ring* ring)
    : listeners_{listeners.begin(), listeners.end()}, listener_drops_(listeners.size()),
      ready_set_{::epoll_create1(EPOLL_CLOEXEC)}, tap_{ring, shared.max_sessions,
                                                       shared.observation->observer},
      counters_{shared.observation->counters[thread]}, door_{shared, listeners_, ready_set_.get(),
                                                             tap_, counters_},
      impaired_{listeners_, door_, tap_, counters_}, resync_{shared.resync} {
    if (resync_.rewrite != nullptr) {
        anew_.datagrams.resize(Batch::kDatagrams);
    }
    if (!ready_set_.valid()) {
        throw std::system_error{errno, std::system_category(), "epoll_create1"};
    }
    for (std::size_t i = 0; i < listeners_.size(); ++i) {
        wait_for(listeners_[i].socket, i);
    }
}

void Forwarder::wait_for(int descriptor, std::uint64_t tag) const {
    epoll_event interest{};
    interest.events = EPOLLIN;
    interest.data.u64 = tag;
    if (::epoll_ctl(ready_set_.get(), EPOLL_CTL_ADD, descriptor, &interest) != 0) {
        throw std::system_error{errno, std::system_category(), "epoll_ctl"};
    }
}

void Forwarder::wait_for_words(int descriptor) const {
    wait_for(descriptor, kWords);
}

Forwarder::Woken Forwarder::work(int timeout) {
    std::array<epoll_event, kReady> events; // NOLINT(*-member-init): as far as it is filled
    const int count = ::epoll_wait(ready_set_.get(), events.data(), kReady, timeout);
    const std::span ready = std::span{events}.first(static_cast<std::size_t>(std::max(count, 0)));
    Woken woken;
    // Sessions first: those at hand may be freed as soon as clients are read.
    if (std::ranges::any_of(ready, [](const auto& each) { return each.data.u64 > kWords; })) {
        woken.datagrams = read_servers(ready);
    }
    for (const epoll_event& each : ready) {
        if (each.data.u64 < kWords) {
            woken.datagrams += read_listener(static_cast<ListenerIndex>(each.data.u64));
        }
        woken.words = woken.words || each.data.u64 == kWords;
    }
    return woken;
}

std::size_t Forwarder::read_listener(ListenerIndex index) {
    const Listener& listener = listeners_[index];
    const int received =
        batch_.receive(listener.socket, 0, Batch::kDatagrams, true, listener.any_address);
    if (received <= 0) {
        note_receive_error(-received);
        return 0;
    }
    const auto count = static_cast<std::size_t>(received);
    const Timestamp now = door_.begin_batch();
    forget_written_anew();
    std::array<Session*, Batch::kDatagrams> touched{};
    std::size_t num_touched = 0;
    for (std::size_t i = 0; i < count; ++i) {
        owner_[i] = door_.admit(batch_.message(i).msg_hdr, batch_.bytes(i), index);
        if (owner_[i] != nullptr) {
            if (owner_[i]->count == 0) {
                touched[num_touched++] = owner_[i];
            }
            chain(*owner_[i], i);
            if (owner_[i]->resync.wanted()) [[unlikely]] {
                write_anew(i);
            }
        }
    }
    if (impaired_.active()) {
        for (std::size_t i = 0; i < num_touched; ++i) {
            touched[i]->count = 0;
        }
        impair(count, Direction::c2s);
        door_.end_batch();
        return count;
    }
    for (std::size_t i = 0; i < num_touched; ++i) {
        send_upstream(*touched[i]);
    }
    offer(count, now, Direction::c2s);
    door_.end_batch();
    return count;
}

void Forwarder::resync(std::uint32_t id) {
    if (resync_.rewrite == nullptr) {
        return;
    }
    static_cast<void>(door_.begin_batch());
    door_.sessions().for_each([&](Session& session) {
        if (session.tap.id == id && session.is_told()) {
            static_cast<void>(session.resync.ask(door_.now_ms(), session.last_heard_ms));
        }
    });
}

void Forwarder::write_anew(std::size_t i) noexcept {
    Session& session = *owner_[i];
    const auto known = session.resync.turn(door_.now_ms());
    if (!known || impaired_.active() || session.tap.aside) { // nobody would hear of it
        return;
    }
    auto& anew = anew_.datagrams[i];
    const std::size_t size = resync_.rewrite(batch_.bytes(i), *known, anew.bytes);
    if (size == 0) {
        return;
    }
    anew.vector = {anew.bytes.data(), size};
    anew.first = session.resync.on_written();
    anew_.any = true;
    counters_.rewritten.add(1);
}

void Forwarder::forget_written_anew() noexcept {
    if (std::exchange(anew_.any, false)) {
        for (auto& each : anew_.datagrams) {
            each.vector = {};
        }
    }
}

/// Of what the server sent to a session that waits for it.
void Forwarder::look_for_answer(Session& session, std::size_t begin,
                                std::size_t end) const noexcept {
    for (std::size_t i = begin; i < end; ++i) {
        if (const auto number = resync_.find_answer(batch_.bytes(i))) {
            session.resync.on_answer(door_.now_ms(), *number);
        }
    }
}

void Forwarder::chain(Session& session, std::size_t i) noexcept {
    const auto index = static_cast<std::uint8_t>(i);
    if (session.count == 0) {
        session.first = index;
    } else {
        next_[session.last] = index;
    }
    session.last = index;
    ++session.count;
}

void Forwarder::send_upstream(Session& session) noexcept {
    std::size_t i = session.first;
    for (std::size_t k = 0; k < session.count; ++k) {
        iovec& vector = batch_.vector(i);
        vector.iov_len = batch_.message(i).msg_len;
        outgoing_[k].msg_hdr.msg_iov = is_written_anew(i) ? &anew_.datagrams[i].vector : &vector;
        outgoing_[k].msg_hdr.msg_iovlen = 1;
        i = next_[i];
    }
    auto& totals = counters_.directions[static_cast<std::size_t>(Direction::c2s)];
    send_messages(session.upstream.socket.get(), outgoing_.data(), session.count, totals,
                  counters_.icmp_refused);
    session.count = 0;
    session.active = true;
}

std::size_t Forwarder::read_servers(std::span<const epoll_event> ready) {
    std::size_t total = 0;
    std::size_t held = 0;
    static_cast<void>(door_.begin_batch());
    for (const epoll_event& event : ready) {
        if (event.data.u64 <= kWords) {
            continue;
        }
        auto* const session = static_cast<Session*>(event.data.ptr);
        const int received =
            batch_.receive(session->upstream.socket.get(), held, Batch::kDatagrams, false, false);
        if (received <= 0) {
            note_receive_error(-received);
            continue;
        }
        door_.note_answer(*session);
        if (session->resync.wanted()) [[unlikely]] {
            look_for_answer(*session, held, held + static_cast<std::size_t>(received));
        }
        for (const auto end = held + static_cast<std::size_t>(received); held < end; ++held) {
            owner_[held] = session;
        }
        total += static_cast<std::size_t>(received);
        if (held > Batch::kDatagrams - kMinFree) {
            send_to_clients(held);
            held = 0;
        }
    }
    if (held != 0) {
        send_to_clients(held);
    }
    door_.end_batch();
    return total;
}

void Forwarder::send_to_clients(std::size_t count) {
    if (impaired_.active()) {
        impair(count, Direction::s2c);
        return;
    }
    const Timestamp now = now_utc();
    for (std::size_t i = 0; i < count; ++i) {
        Session& session = *owner_[i];
        session.address_reply(batch_.message(i).msg_hdr);
        batch_.vector(i).iov_len = batch_.message(i).msg_len;
    }
    auto& totals = counters_.directions[static_cast<std::size_t>(Direction::s2c)];
    for (std::size_t begin = 0; begin < count;) {
        const ListenerIndex listener = owner_[begin]->listener;
        std::size_t end = begin + 1;
        while (end < count && owner_[end]->listener == listener) {
            ++end;
        }
        send_messages(listeners_[listener].socket, &batch_.message(begin), end - begin, totals,
                      counters_.icmp_refused);
        begin = end;
    }
    offer(count, now, Direction::s2c);
}

void Forwarder::impair(std::size_t count, Direction direction) {
    const auto now = Clock::now();
    for (std::size_t i = 0; i < count; ++i) {
        note_truncated(i);
        if (owner_[i] != nullptr) {
            door_.look(*owner_[i], direction, batch_.bytes(i));
            try {
                impaired_.accept(*owner_[i], direction, batch_.bytes(i), now);
            } catch (const std::bad_alloc&) { // it is lost, and no other
                counters_.directions[static_cast<std::size_t>(direction)].dropped.add(1);
            }
        }
    }
}

void Forwarder::note_truncated(std::size_t i) noexcept {
    if ((batch_.message(i).msg_hdr.msg_flags & MSG_TRUNC) != 0) {
        counters_.truncated.add(1);
    }
}

void Forwarder::offer(std::size_t count, Timestamp now, Direction direction) {
    const auto lost = tap_.lost();
    for (std::size_t i = 0; i < count; ++i) {
        note_truncated(i);
        if (owner_[i] != nullptr) {
            const std::span bytes{static_cast<const std::byte*>(batch_.vector(i).iov_base),
                                  batch_.vector(i).iov_len};
            door_.look(*owner_[i], direction, bytes);
            if (direction == Direction::c2s && is_written_anew(i) && anew_.datagrams[i].first) {
                tap_.resync(owner_[i]->tap, now);
            }
            door_.show(*owner_[i], now, direction, bytes);
        }
    }
    tap_.commit();
    counters_.directions[static_cast<std::size_t>(direction)].copies_lost.add(tap_.lost() - lost);
}

void Forwarder::note_receive_error(int error) noexcept {
    if (error == ECONNREFUSED) {
        counters_.icmp_refused.add(1);
    } else if (error != 0 && error != EAGAIN && error != EWOULDBLOCK && error != EINTR) {
        counters_.receive_errors.add(1);
    }
}

bool Forwarder::sweep(Clock::time_point now) {
    counters_.turns.add(1);
    const bool all = door_.sweep(now);
    if (now - listeners_seen_ >= kListenerLooks) {
        listeners_seen_ = now;
        for (std::size_t i = 0; i < listeners_.size(); ++i) {
            counters_.kernel_dropped.add(
                new_kernel_drops(listeners_[i].socket, listener_drops_[i]));
        }
    }
    static_cast<void>(tap_.settle(now_utc())); // what does not fit is tried again
    return all;
}

void Forwarder::settle() {
    impaired_.set({}, door_.sessions());
    door_.end_batch();
}

void Forwarder::for_each_session(const std::function<void(const SessionState&, int)>& use) {
    static_cast<void>(door_.begin_batch());
    door_.sessions().for_each([&](const Session& session) {
        use(door_.state_of(session), session.upstream.socket.get());
    });
}

void Forwarder::close_all(CloseReason reason) {
    door_.close_all(reason);
    const Timestamp utc = now_utc();
    const auto deadline = Clock::now() + kSettleTime;
    while (!tap_.settle(utc) && Clock::now() < deadline) {
        std::this_thread::sleep_for(std::chrono::milliseconds{1});
    }
}

} // namespace tw::relay
