#include "proxy/relay/forwarder.h"
#include "proxy/relay/sender.h"

/// What the forwarder does while lines are impaired: everything waits in the impairer, if only for
/// a moment, and is shown to the observer when it is sent on. The observer sees what the receiver
/// gets, and what is lost on the line it does not see.
namespace tw::relay {

void Forwarder::set_impairment(const Impairment& impairment) {
    if (impairer_ != nullptr) {
        static_cast<void>(send_due(Session::Clock::time_point::max()));
    }
    sessions_.for_each([](Session& session) { session.lines.reset(); });
    impairer_ =
        impairment.active() ? std::make_unique<Impairer>(impairment, counters_.fates) : nullptr;
}

void Forwarder::impair(std::size_t count, Direction direction) {
    const auto now = Session::Clock::now();
    for (std::size_t i = 0; i < count; ++i) {
        if ((batch_.message(i).msg_hdr.msg_flags & MSG_TRUNC) != 0) {
            counters_.truncated.add(1);
        }
        Session* const session = owner_[i];
        if (session == nullptr) {
            continue;
        }
        session->active = true;
        if (session->lines == nullptr) {
            session->lines =
                std::make_unique<SessionLines>(impairer_->impairment(), session->tap.id);
        }
        impairer_->accept(session, *session->lines, direction, batch_.bytes(i), now);
    }
}

std::optional<Session::Clock::time_point> Forwarder::send_due(Session::Clock::time_point now) {
    const Timestamp utc = now_utc();
    impairer_->release(now,
                       [&](void* owner, Direction direction, std::span<const std::byte> bytes) {
                           send_late(*static_cast<Session*>(owner), direction, bytes, utc);
                       });
    tap_.commit();
    return impairer_->next();
}

void Forwarder::send_late(Session& session, Direction direction, std::span<const std::byte> bytes,
                          Timestamp now) {
    // The system only reads what it sends.
    iovec vector{const_cast<std::byte*>(bytes.data()),
                 bytes.size()}; // NOLINT(cppcoreguidelines-pro-type-const-cast)
    mmsghdr message{};
    message.msg_hdr.msg_iov = &vector;
    message.msg_hdr.msg_iovlen = 1;
    int socket = session.upstream.socket.get();
    if (direction == Direction::s2c) {
        socket = listeners_[session.listener].socket;
        message.msg_hdr.msg_name = &session.client;
        message.msg_hdr.msg_namelen = session.client_length;
        message.msg_hdr.msg_control =
            session.control_length != 0 ? session.control.data() : nullptr;
        message.msg_hdr.msg_controllen = session.control_length;
    }
    auto& totals = counters_.directions[static_cast<std::size_t>(direction)];
    send_messages(socket, &message, 1, totals, counters_.icmp_refused);
    const auto lost = tap_.lost();
    tap_.datagram(session.tap, now, direction, bytes);
    totals.copies_lost.add(tap_.lost() - lost);
}

} // namespace tw::relay
