#include "proxy/relay/datagram_copier.h"

#include <utility>

namespace tw::relay {

namespace {

// Fill levels of the ring, in units of 1/kParts of its capacity. Up to the level kCopyAll, the
// datagrams of all sessions are copied; from the level kCopyNone on, no datagrams are copied, to
// keep room for other events.
constexpr std::size_t kParts = 16;
constexpr std::size_t kCopyAll = 10;
constexpr std::size_t kCopyNone = 15;

RelayEvent event_of(EventKind kind, std::uint32_t session, base::Timestamp time) {
    RelayEvent event;
    event.kind = kind;
    event.session = session;
    event.time = time;
    return event;
}

/// The room, in bytes, for the events that may directly precede a datagram: an `open` and two gaps.
constexpr std::size_t kLeadingEventsBytes = 512;

/// While at most 1/kResumeBelowPart of the ring is in use, each call of retry_events() resumes
/// copying 1/kResumedPart of the uncopied sessions.
constexpr std::size_t kResumeBelowPart = 16;
constexpr std::size_t kResumedPart = 16;

} // namespace

void LoadShedding::add_session(ObservedSession& session) noexcept {
    session.is_listed = true;
    session.is_copying_stopped = !uncopied_.empty();
    session.is_stop_reported = false;
    list_of(session).push_back(session);
}

void LoadShedding::remove_session(ObservedSession& session) noexcept {
    if (std::exchange(session.is_listed, false)) {
        list_of(session).erase(SessionList::s_iterator_to(session));
    }
}

void LoadShedding::stop_copying_session(ObservedSession& session) noexcept {
    copied_.erase(SessionList::s_iterator_to(session));
    session.is_copying_stopped = true;
    session.is_stop_reported = false;
    // All sessions in uncopied_ are newer than this one.
    uncopied_.push_front(session);
}

void LoadShedding::resume_copying_oldest_sessions(std::size_t count) noexcept {
    for (; count != 0 && !uncopied_.empty(); --count) {
        ObservedSession& session = uncopied_.front();
        uncopied_.pop_front();
        session.is_copying_stopped = false;
        copied_.push_back(session);
    }
}

std::size_t LoadShedding::max_copied_sessions(std::size_t backlog,
                                              std::size_t capacity) const noexcept {
    const std::size_t part = capacity / kParts;
    const std::size_t all = copied_.size() + uncopied_.size();
    if (backlog <= kCopyAll * part) {
        return all;
    }
    if (backlog >= kCopyNone * part) {
        return 0;
    }
    const std::size_t room = (kCopyNone - kCopyAll) * part;
    return (all * (kCopyNone * part - backlog) + room - 1) / room;
}

void DatagramCopier::reserve_events(std::size_t more_sessions) {
    if (ring_ != nullptr) {
        pending_closes_.reserve(pending_closes_.capacity() + more_sessions);
    }
}

void DatagramCopier::commit_events() noexcept {
    if (ring_ != nullptr) {
        ring_->commit_events();
    }
}

bool DatagramCopier::has_observer() {
    if (ring_ == nullptr) {
        return false;
    }
    const std::uint32_t observer = observer_->load(std::memory_order_relaxed);
    return observer == current_observer_ ? current_observer_ != 0
                                         : begin_events_of_observer(observer);
}

bool DatagramCopier::begin_events_of_observer(std::uint32_t observer) {
    // Pending events are discarded: the new observer does not know their sessions.
    current_observer_ = 0;
    pending_closes_.clear();
    has_pending_ = unannounced_lost_[0] + unannounced_lost_[1] != 0 || kernel_drops_;
    // For the new observer, all sessions are copied.
    shedding_.resume_copying_oldest_sessions(shedding_.num_uncopied_sessions());
    if (observer == 0 || ring_->max_unread_bytes() > ring_->capacity() / 2) {
        return false; // try again when there is room
    }
    if (!ring_->try_push(event_of(EventKind::new_observer, observer, 0))) {
        return false;
    }
    current_observer_ = observer;
    return true;
}

bool DatagramCopier::report_gaps(std::uint32_t session, base::Timestamp time,
                                 std::array<std::uint64_t, 2>& lost) {
    for (const auto direction : {Direction::c2s, Direction::s2c}) {
        auto& count = lost[static_cast<std::size_t>(direction)];
        if (count == 0) {
            continue;
        }
        RelayEvent gap = event_of(EventKind::gap, session, time);
        gap.direction = direction;
        gap.lost = count;
        if (!ring_->try_push(gap)) {
            return false;
        }
        count = 0;
    }
    return true;
}

bool DatagramCopier::push_close(PendingClose& pending) {
    if (!report_gaps(pending.session, pending.time, pending.lost)) {
        return false;
    }
    RelayEvent close = event_of(EventKind::close, pending.session, pending.time);
    close.reason = pending.reason;
    return ring_->try_push(close);
}

bool DatagramCopier::report_kernel_drops(base::Timestamp time) {
    if (!kernel_drops_) {
        return true;
    }
    RelayEvent gap = event_of(EventKind::gap, 0, time);
    gap.gap = GapReason::kernel_dropped;
    gap.lost = *kernel_drops_;
    if (!ring_->try_push(gap)) {
        return false;
    }
    kernel_drops_.reset();
    return true;
}

bool DatagramCopier::report_pending_events(base::Timestamp time) {
    if (!has_pending_) {
        return true;
    }
    std::size_t reported = 0;
    while (reported < pending_closes_.size() && push_close(pending_closes_[reported])) {
        ++reported;
    }
    pending_closes_.erase(pending_closes_.begin(),
                          pending_closes_.begin() + static_cast<std::ptrdiff_t>(reported));
    if (!pending_closes_.empty() || !report_gaps(0, time, unannounced_lost_) ||
        !report_kernel_drops(time)) {
        return false;
    }
    has_pending_ = false;
    return true;
}

bool DatagramCopier::announce_running_session(ObservedSession& session, base::Timestamp time) {
    // A session that began before this observer gets `open` and `gap` together. Without the gap,
    // the session would look new.
    const bool began_before = session.observer_at_open != current_observer_;
    if (began_before && !ring_->has_room(kLeadingEventsBytes)) {
        return false;
    }
    RelayEvent open =
        event_of(EventKind::open, session.id, began_before ? time : session.opened_at);
    static_cast<SessionAddresses&>(open) = static_cast<const SessionAddresses&>(session);
    if (!ring_->try_push(open)) {
        return false;
    }
    session.announced_to_observer = current_observer_;
    if (began_before) {
        RelayEvent gap = event_of(EventKind::gap, session.id, time);
        gap.gap = GapReason::new_observer;
        gap.lost = session.lost[0] + session.lost[1];
        session.lost = {};
        return ring_->try_push(gap);
    }
    return true;
}

bool DatagramCopier::announce_session(ObservedSession& session, base::Timestamp time) {
    return report_pending_events(time) &&
           (is_announced(session) || announce_running_session(session, time)) &&
           report_gaps(session.id, time, session.lost);
}

void DatagramCopier::open_session(ObservedSession& session, base::Timestamp time) {
    session.opened_at = time;
    if (has_observer()) {
        session.observer_at_open = current_observer_;
        static_cast<void>(
            announce_session(session, time)); // if `open` does not fit, copy_datagram() tries again
    }
}

bool DatagramCopier::try_copy_datagram(ObservedSession& session, base::Timestamp time,
                                       Direction direction, std::span<const std::byte> bytes) {
    const bool has_unreported_events =
        has_pending_ || !is_announced(session) || session.lost[0] != 0 || session.lost[1] != 0;
    // Gaps are pushed only if the datagram fits, too, so that gaps alone do not fill the ring.
    if (has_unreported_events &&
        !(ring_->has_room(bytes.size() + kLeadingEventsBytes) && announce_session(session, time))) {
        return false;
    }
    RelayEvent event = event_of(EventKind::datagram, session.id, time);
    event.direction = direction;
    event.bytes = bytes;
    return ring_->try_push(event);
}

void DatagramCopier::resume_copying_oldest_sessions() noexcept {
    const std::size_t uncopied = shedding_.num_uncopied_sessions();
    if (uncopied != 0 && ring_->num_unconsumed_bytes() <= ring_->capacity() / kResumeBelowPart) {
        shedding_.resume_copying_oldest_sessions((uncopied + kResumedPart - 1) / kResumedPart);
    }
}

void DatagramCopier::copy_datagram(ObservedSession& session, base::Timestamp time,
                                   Direction direction, std::span<const std::byte> bytes) {
    if (ring_ == nullptr) {
        return;
    }
    const bool observed = has_observer();
    if (observed) {
        if (!session.is_listed) {
            shedding_.add_session(session);
        }
        // Stops copying the newest sessions while the ring is too full for all sessions.
        const std::size_t most =
            shedding_.max_copied_sessions(ring_->max_unread_bytes(), ring_->capacity());
        while (shedding_.num_copied_sessions() > most) {
            shedding_.stop_copying_session(*shedding_.newest_copied_session());
        }
        if (!session.is_copying_stopped) {
            if (try_copy_datagram(session, time, direction, bytes)) {
                return;
            }
            shedding_.stop_copying_session(session); // later datagrams are not copied either
        }
    }
    ++session.lost[static_cast<std::size_t>(direction)];
    ++lost_;
    // Reports that the session is no longer copied, unless this was already reported or there is no
    // room.
    if (observed && !session.is_stop_reported && is_announced(session) &&
        ring_->has_room(kLeadingEventsBytes)) {
        session.is_stop_reported = report_gaps(session.id, time, session.lost);
    }
}

void DatagramCopier::close_session(ObservedSession& session, base::Timestamp time,
                                   CloseReason reason) {
    if (ring_ == nullptr) {
        return;
    }
    shedding_.remove_session(session);
    if (!has_observer() ||
        (!is_announced(session) && !announce_session(session, time) && !is_announced(session))) {
        unannounced_lost_[0] += session.lost[0];
        unannounced_lost_[1] += session.lost[1];
        has_pending_ = has_pending_ || session.lost[0] + session.lost[1] != 0;
        return;
    }
    PendingClose pending{session.id, reason, time, session.lost};
    if (!report_pending_events(time) || !push_close(pending)) {
        pending_closes_.push_back(pending);
        has_pending_ = true;
    }
}

void DatagramCopier::report_resync(const ObservedSession& session, base::Timestamp time) {
    if (ring_ == nullptr || !has_observer() || !is_announced(session) ||
        session.is_copying_stopped) {
        return;
    }
    static_cast<void>(ring_->try_push(event_of(EventKind::resync, session.id, time)));
}

void DatagramCopier::add_kernel_drops(std::uint64_t count, base::Timestamp time) {
    if (ring_ == nullptr) {
        return;
    }
    kernel_drops_ = kernel_drops_.value_or(0) + count;
    has_pending_ = true;
    if (has_observer()) {
        static_cast<void>(
            report_pending_events(time)); // if the gap does not fit, copy_datagram() tries again
    }
}

bool DatagramCopier::retry_events(base::Timestamp time) {
    const bool settled = !has_observer() || report_pending_events(time);
    if (ring_ != nullptr) {
        resume_copying_oldest_sessions();
    }
    commit_events();
    return settled;
}

} // namespace tw::relay
