#include "proxy/relay/tap.h"

namespace tw::relay {

namespace {

/// Room for what may have to be reported before a datagram: an open and two gaps.
constexpr std::size_t kNewsBytes = 512;

} // namespace

Tap::Tap(Ring* ring, std::size_t max_sessions) : ring_{ring} {
    if (ring_ != nullptr) {
        pending_.reserve(max_sessions);
    }
}

void Tap::commit() noexcept {
    if (ring_ != nullptr) {
        ring_->commit();
    }
}

bool Tap::report_gaps(std::uint32_t session, Timestamp time, std::array<std::uint64_t, 2>& lost) {
    for (const auto direction : {Direction::c2s, Direction::s2c}) {
        auto& count = lost[static_cast<std::size_t>(direction)];
        if (count == 0) {
            continue;
        }
        Event gap;
        gap.kind = EventKind::gap;
        gap.direction = direction;
        gap.session = session;
        gap.time = time;
        gap.lost = count;
        if (!ring_->try_push(gap)) {
            return false;
        }
        count = 0;
    }
    return true;
}

bool Tap::report_close(PendingClose& pending) {
    if (!report_gaps(pending.session, pending.time, pending.lost)) {
        return false;
    }
    Event close;
    close.kind = EventKind::close;
    close.session = pending.session;
    close.time = pending.time;
    close.reason = pending.reason;
    return ring_->try_push(close);
}

bool Tap::report_pending(Timestamp time) {
    if (!behind_) {
        return true;
    }
    std::size_t reported = 0;
    while (reported < pending_.size() && report_close(pending_[reported])) {
        ++reported;
    }
    pending_.erase(pending_.begin(), pending_.begin() + static_cast<std::ptrdiff_t>(reported));
    if (!pending_.empty() || !report_gaps(0, time, unknown_lost_)) {
        return false;
    }
    behind_ = false;
    return true;
}

bool Tap::announce(TapSession& session, Timestamp time) {
    if (!report_pending(time)) {
        return false;
    }
    if (!session.announced) {
        Event open;
        open.kind = EventKind::open;
        open.session = session.id;
        open.time = session.opened;
        open.client = session.client;
        open.upstream = session.upstream;
        open.server = session.server;
        session.announced = ring_->try_push(open);
    }
    return session.announced && report_gaps(session.id, time, session.lost);
}

void Tap::open(TapSession& session, Timestamp time) {
    session.opened = time;
    if (ring_ != nullptr) {
        static_cast<void>(announce(session, time)); // else with the first datagram that fits
    }
}

void Tap::datagram(TapSession& session, Timestamp time, Direction direction,
                   std::span<const std::byte> bytes) {
    if (ring_ == nullptr) {
        return;
    }
    const bool has_news =
        behind_ || !session.announced || session.lost[0] != 0 || session.lost[1] != 0;
    // A gap is reported only when the datagram after it fits too, else a ring that stays full would be
    // stuffed with gaps.
    if (!has_news || (ring_->has_room(bytes.size() + kNewsBytes) && announce(session, time))) {
        Event event;
        event.session = session.id;
        event.time = time;
        event.direction = direction;
        event.bytes = bytes;
        if (ring_->try_push(event)) {
            return;
        }
    }
    ++session.lost[static_cast<std::size_t>(direction)];
    ++lost_;
}

void Tap::close(TapSession& session, Timestamp time, CloseReason reason) {
    if (ring_ == nullptr) {
        return;
    }
    const bool knows = session.announced || announce(session, time);
    if (!knows && !session.announced) {
        unknown_lost_[0] += session.lost[0];
        unknown_lost_[1] += session.lost[1];
        behind_ = behind_ || session.lost[0] + session.lost[1] != 0;
        return;
    }
    PendingClose pending{session.id, reason, time, session.lost};
    if (!report_pending(time) || !report_close(pending)) {
        pending_.push_back(pending);
        behind_ = true;
    }
}

bool Tap::settle(Timestamp time) {
    const bool settled = ring_ == nullptr || report_pending(time);
    commit();
    return settled;
}

} // namespace tw::relay
