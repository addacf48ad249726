#include "proxy/relay/impaired_path.h"

#include "proxy/relay/sender.h"

namespace tw::relay {

void ImpairedPath::set(const Impairment& impairment) {
    if (active()) {
        static_cast<void>(send_due(Time::max()));
    }
    impairer_ =
        impairment.active() ? std::make_unique<Impairer>(impairment, counters_->fates) : nullptr;
}

void ImpairedPath::accept(Session& session, Direction direction, std::span<const std::byte> bytes,
                          Time now) {
    session.active = true;
    if (session.lines == nullptr) {
        session.lines = std::make_unique<SessionLines>(impairer_->impairment(), session.number);
    } else if (session.lines->session != session.number) { // it only asked, so far
        session.lines->begin(impairer_->impairment(), session.number);
    }
    impairer_->accept(&session, *session.lines, direction, bytes, now);
}

std::optional<ImpairedPath::Time> ImpairedPath::send_due(Time now) {
    const Timestamp utc = now_utc();
    impairer_->release(now,
                       [&](void* owner, Direction direction, std::span<const std::byte> bytes) {
                           send(*static_cast<Session*>(owner), direction, bytes, utc);
                       });
    tap_->commit();
    return impairer_->next();
}

void ImpairedPath::send(Session& session, Direction direction, std::span<const std::byte> bytes,
                        Timestamp now) {
    // The system only reads what it sends.
    // NOLINTNEXTLINE(cppcoreguidelines-pro-type-const-cast)
    iovec vector{const_cast<std::byte*>(bytes.data()), bytes.size()};
    mmsghdr message{};
    message.msg_hdr.msg_iov = &vector;
    message.msg_hdr.msg_iovlen = 1;
    int socket = session.upstream.socket.get();
    if (direction == Direction::s2c) {
        socket = (*listeners_)[session.listener].socket;
        session.address_reply(message.msg_hdr);
    }
    LiveCounters& counters = session.door->counters();
    send_messages(socket, &message, 1, counters.directions[static_cast<std::size_t>(direction)],
                  counters.icmp_refused);
    session.door->show(session, now, direction, bytes);
}

} // namespace tw::relay
