#include "proxy/relay/forwarder.h"

#include "proxy/relay/sender.h"

#include <cerrno>
#include <cstring>
#include <thread>

#include <linux/sock_diag.h>
#include <sys/epoll.h>

namespace tw::relay {

namespace {

/// How long an ending relay waits for the observer to make room.
constexpr std::chrono::milliseconds kSettleTime{500};

/// Turns the control message of a datagram into one that makes the reply leave from the address it
/// came to. Returns its length, 0 when there is none.
std::size_t make_reply_control(msghdr& from, Control& to) {
    for (cmsghdr* c = CMSG_FIRSTHDR(&from); c != nullptr; c = CMSG_NXTHDR(&from, c)) {
        std::size_t space = 0;
        if (c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_PKTINFO) {
            in_pktinfo info{};
            std::memcpy(&info, CMSG_DATA(c), sizeof info);
            info.ipi_ifindex = 0; // the route decides
            info.ipi_addr = {};
            std::memcpy(CMSG_DATA(c), &info, sizeof info);
            space = CMSG_SPACE(sizeof info);
        } else if (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_PKTINFO) {
            in6_pktinfo info{};
            std::memcpy(&info, CMSG_DATA(c), sizeof info);
            if (!IN6_IS_ADDR_LINKLOCAL(&info.ipi6_addr)) {
                info.ipi6_ifindex = 0;
            }
            std::memcpy(CMSG_DATA(c), &info, sizeof info);
            space = CMSG_SPACE(sizeof info);
        }
        if (space != 0 && space <= to.size()) {
            std::memcpy(to.data(), c, space);
            return space;
        }
    }
    return 0;
}

} // namespace

Forwarder::Forwarder(Shared& shared, unsigned thread, std::span<const Listener> listeners,
                     Ring* ring)
    : shared_{shared}, listeners_{listeners.begin(), listeners.end()},
      listener_drops_(listeners.size()), ready_set_{::epoll_create1(EPOLL_CLOEXEC)},
      tap_{ring, shared.max_sessions, shared.observation->observer}, sessions_{shared.max_sessions},
      counters_{shared.observation->counters[thread]}, impaired_{listeners_, tap_, counters_} {
    if (!ready_set_.valid()) {
        throw std::system_error{errno, std::system_category(), "epoll_create1"};
    }
}

Forwarder::~Forwarder() {
    sessions_.remove_if([&](Session& session) {
        shared_.upstreams.close(session.upstream);
        shared_.sessions.fetch_sub(1);
        return true;
    });
}

std::size_t Forwarder::read_clients() {
    std::size_t count = 0;
    for (std::size_t i = 0; i < listeners_.size(); ++i) {
        count += read_listener(static_cast<std::uint8_t>(i));
    }
    return count;
}

std::size_t Forwarder::read_listener(std::uint8_t index) {
    const Listener& listener = listeners_[index];
    const int received =
        batch_.receive(listener.socket, 0, Batch::kDatagrams, true, listener.any_address);
    if (received <= 0) {
        note_receive_error(-received);
        return 0;
    }
    const auto count = static_cast<std::size_t>(received);
    const Timestamp now = now_utc();
    std::array<Session*, Batch::kDatagrams> touched{};
    std::size_t num_touched = 0;
    for (std::size_t i = 0; i < count; ++i) {
        owner_[i] = session_of(i, index, now);
        if (owner_[i] != nullptr) {
            if (owner_[i]->count == 0) {
                touched[num_touched++] = owner_[i];
            }
            chain(*owner_[i], i);
        }
    }
    if (impaired_.active()) {
        for (std::size_t i = 0; i < num_touched; ++i) {
            touched[i]->count = 0;
        }
        impair(count, Direction::c2s);
        return count;
    }
    for (std::size_t i = 0; i < num_touched; ++i) {
        send_upstream(*touched[i]);
    }
    offer(count, now, Direction::c2s);
    return count;
}

Session* Forwarder::session_of(std::size_t i, std::uint8_t listener, Timestamp now) {
    const Endpoint client = endpoint_from(batch_.name(i));
    Session* const known = sessions_.find(client, listener);
    return known != nullptr ? known : open_session(i, client, listener, now);
}

Session* Forwarder::open_session(std::size_t i, const Endpoint& client, std::uint8_t listener,
                                 Timestamp now) {
    if (shared_.sessions.fetch_add(1) >= shared_.max_sessions) {
        shared_.sessions.fetch_sub(1);
        counters_.sessions_refused.add(1);
        return nullptr;
    }
    auto made = make_session(client);
    if (made == nullptr) {
        shared_.sessions.fetch_sub(1);
        counters_.sessions_failed.add(1);
        return nullptr;
    }
    msghdr& header = batch_.message(i).msg_hdr;
    std::memcpy(&made->client, batch_.name(i), header.msg_namelen);
    made->client_length = header.msg_namelen;
    made->listener = listener;
    if (listeners_[listener].any_address) {
        made->control_length = static_cast<std::uint8_t>(make_reply_control(header, made->control));
    }
    made->tap.id = shared_.last_session.fetch_add(1) + 1;
    Session& session = sessions_.insert(std::move(made));
    counters_.sessions_opened.add(1);
    tap_.open(session.tap, now);
    return &session;
}

std::unique_ptr<Session> Forwarder::make_session(const Endpoint& client) {
    auto session = std::make_unique<Session>();
    std::error_code error;
    session->upstream = shared_.upstreams.open(client, error);
    if (error) {
        shared_.session_error.store(error.value(), std::memory_order_relaxed);
        return nullptr;
    }
    epoll_event interest{};
    interest.events = EPOLLIN;
    interest.data.ptr = session.get();
    const int socket = session->upstream.socket.get();
    if (::epoll_ctl(ready_set_.get(), EPOLL_CTL_ADD, socket, &interest) != 0) {
        shared_.session_error.store(errno, std::memory_order_relaxed);
        shared_.upstreams.close(session->upstream);
        return nullptr;
    }
    session->tap.client = client;
    session->tap.upstream = session->upstream.local;
    session->tap.server = shared_.upstreams.server();
    return session;
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
        outgoing_[k].msg_hdr.msg_iov = &vector;
        outgoing_[k].msg_hdr.msg_iovlen = 1;
        i = next_[i];
    }
    auto& totals = counters_.directions[static_cast<std::size_t>(Direction::c2s)];
    send_messages(session.upstream.socket.get(), outgoing_.data(), session.count, totals,
                  counters_.icmp_refused);
    session.count = 0;
    session.active = true;
}

std::size_t Forwarder::read_servers() {
    std::array<epoll_event, kReady> ready{};
    const int num_ready = ::epoll_wait(ready_set_.get(), ready.data(), kReady, 0);
    std::size_t total = 0;
    std::size_t held = 0;
    for (int i = 0; i < num_ready; ++i) {
        auto* const session = static_cast<Session*>(ready[static_cast<std::size_t>(i)].data.ptr);
        const int received =
            batch_.receive(session->upstream.socket.get(), held, Batch::kDatagrams, false, false);
        if (received <= 0) {
            note_receive_error(-received);
            continue;
        }
        session->active = true;
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
        const std::uint8_t listener = owner_[begin]->listener;
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
            impaired_.accept(*owner_[i], direction, batch_.bytes(i), now);
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
            tap_.datagram(owner_[i]->tap, now, direction,
                          {static_cast<const std::byte*>(batch_.vector(i).iov_base),
                           batch_.vector(i).iov_len});
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

void Forwarder::note_kernel_drops(int socket, std::uint32_t& seen) noexcept {
    std::array<std::uint32_t, SK_MEMINFO_VARS> info{};
    socklen_t length = sizeof info;
    if (::getsockopt(socket, SOL_SOCKET, SO_MEMINFO, info.data(), &length) == 0) {
        counters_.kernel_dropped.add(info[SK_MEMINFO_DROPS] - seen); // the kernel's counter wraps
        seen = info[SK_MEMINFO_DROPS];
    }
}

void Forwarder::close(Session& session, Timestamp now, CloseReason reason) {
    note_kernel_drops(session.upstream.socket.get(), session.kernel_drops);
    tap_.close(session.tap, now, reason);
    shared_.upstreams.close(session.upstream);
    shared_.sessions.fetch_sub(1);
    counters_.sessions_closed.add(1);
}

void Forwarder::sweep(Clock::time_point now) {
    const Timestamp utc = now_utc();
    sessions_.remove_if([&](Session& session) {
        const bool waited_for = session.lines != nullptr && session.lines->waiting != 0;
        if (session.active || waited_for) {
            session.active = false;
            session.last_active = now;
        }
        if (now - session.last_active < shared_.idle_timeout) {
            note_kernel_drops(session.upstream.socket.get(), session.kernel_drops);
            return false;
        }
        close(session, utc, CloseReason::idle);
        return true;
    });
    for (std::size_t i = 0; i < listeners_.size(); ++i) {
        note_kernel_drops(listeners_[i].socket, listener_drops_[i]);
    }
    static_cast<void>(tap_.settle(utc)); // what does not fit is tried again
}

void Forwarder::close_all() {
    const Timestamp utc = now_utc();
    sessions_.remove_if([&](Session& session) {
        close(session, utc, CloseReason::shutdown);
        return true;
    });
    const auto deadline = Clock::now() + kSettleTime;
    while (!tap_.settle(utc) && Clock::now() < deadline) {
        std::this_thread::sleep_for(std::chrono::milliseconds{1});
    }
}

} // namespace tw::relay
