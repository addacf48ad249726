#pragma once

#include "proxy/relay/ring.h"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include <boost/intrusive/list.hpp>

namespace tw::relay {

/// A DatagramCopier's state about one session. The object must not be moved until the session is
/// closed.
struct ObservedSession : SessionAddresses {
    std::uint32_t id = 0;
    base::Timestamp opened_at = 0;
    /// The number of the observer that ran when the session began; 0: no observer ran.
    std::uint32_t observer_at_open = 0;
    /// The number of the observer that got the session's `open` event; 0: no observer got it.
    std::uint32_t announced_to_observer = 0;
    /// Datagrams not copied since the session's last `gap` event; indexed by Direction.
    std::array<std::uint64_t, 2> lost{};

    // LoadShedding sets the members below.
    /// Links the session into one of the lists of LoadShedding.
    boost::intrusive::list_member_hook<boost::intrusive::link_mode<boost::intrusive::normal_link>>
        list_hook;
    bool is_listed = false;          ///< true if the session is in a list of LoadShedding
    bool is_copying_stopped = false; ///< true if the session's datagrams are not copied now
    /// True if a `gap` event has reported that copying of the session stopped.
    bool is_stop_reported = false;
};

/// Chooses the sessions whose datagrams are copied to the observer. While the observer is too slow
/// for all sessions, the datagrams of the newest sessions are not copied. Owns nothing and
/// allocates nothing.
class LoadShedding {
  public:
    /// Adds a new session. Its datagrams are copied if all other sessions are copied, too.
    void add_session(ObservedSession& session) noexcept;
    void remove_session(ObservedSession& session) noexcept;

    /// Stops copying a session until resume_copying_oldest_sessions() selects it.
    void stop_copying_session(ObservedSession& session) noexcept;
    void resume_copying_oldest_sessions(std::size_t count) noexcept;

    /// Returns how many sessions may be copied when `backlog` of the ring's `capacity` bytes are in
    /// use. The result falls as the ring fills, so that the backlog stops growing.
    [[nodiscard]] std::size_t max_copied_sessions(std::size_t backlog,
                                                  std::size_t capacity) const noexcept;

    /// Returns the newest session that is copied; null if no session is copied.
    [[nodiscard]] ObservedSession* newest_copied_session() noexcept {
        return copied_.empty() ? nullptr : &copied_.back();
    }

    [[nodiscard]] std::size_t num_copied_sessions() const noexcept { return copied_.size(); }

    [[nodiscard]] std::size_t num_uncopied_sessions() const noexcept { return uncopied_.size(); }

  private:
    /// Sessions, the oldest first.
    using SessionList = boost::intrusive::list<
        ObservedSession,
        boost::intrusive::member_hook<ObservedSession, decltype(ObservedSession::list_hook),
                                      &ObservedSession::list_hook>>;

    [[nodiscard]] SessionList& list_of(const ObservedSession& session) noexcept {
        return session.is_copying_stopped ? uncopied_ : copied_;
    }

    SessionList copied_;
    SessionList uncopied_;
};

/// Copies the datagrams of a relay thread into its ring, and counts the datagrams that do not fit.
///
/// The following is guaranteed to the observer, however full the ring is:
/// - Each announced session begins with `open` and ends with exactly one `close`.
/// - Between `open` and `close`, a session's datagrams are in order. Where datagrams are missing, a
/// `gap` event contains the session, the direction and the exact number of missing datagrams.
/// - When the observer is too slow, the newest sessions are not copied (see LoadShedding), so that
/// the others lose no datagram. A `gap` reports that copying a session stopped; when copying
/// resumes, another `gap` contains the number of missing datagrams.
/// - Sessions that began and ended while the ring was full are reported together by a `gap` of
/// session 0.
/// - The events for an observer begin with a `new_observer` event, which contains the observer's
/// number. Earlier events in the ring are for an observer that ended before it read them.
/// - A new observer gets, before the next datagram of each running session, an `open` and a `gap`
/// with the reason `new_observer`, even if no datagram is missing.
///
/// If an `open` does not fit, it is tried again with the session's next datagram. If a `close` does
/// not fit, it is stored in a list. No session is announced while the list contains a `close`, so
/// the list has at most `max_sessions` entries.
class DatagramCopier {
  public:
    /// `ring`: null if there is never an observer; all functions then do nothing. `observer`: see
    /// ObserverSharedMemory; it may change at any time. Both must outlive the copier.
    DatagramCopier(Ring* ring, const std::atomic<std::uint32_t>& observer)
        : ring_{ring}, observer_{&observer} {}

    /// Reserves memory for the events of this many further sessions. Errors: std::bad_alloc.
    void reserve_events(std::size_t more_sessions);

    void open_session(ObservedSession& session, base::Timestamp time);
    void copy_datagram(ObservedSession& session, base::Timestamp time, Direction direction,
                       std::span<const std::byte> bytes);
    void close_session(ObservedSession& session, base::Timestamp time, CloseReason reason);
    /// Reports that the relay changes the session's next datagram before it sends it.
    void report_resync(const ObservedSession& session, base::Timestamp time);

    /// Reports datagrams that the kernel dropped, as a `gap` of session 0.
    void add_kernel_drops(std::uint64_t count, base::Timestamp time);

    /// Makes the events of a batch visible to the observer.
    void commit_events() noexcept;

    /// Tries again to report the events that did not fit. Returns true if all of them fit now.
    [[nodiscard]] bool retry_events(base::Timestamp time);

    /// Returns true if the current observer has got all events.
    [[nodiscard]] bool has_no_pending_events() const noexcept {
        return ring_ == nullptr ||
               (!has_pending_ && observer_->load(std::memory_order_relaxed) == current_observer_);
    }

    /// Returns the number of datagrams that were not copied since the copier was constructed.
    [[nodiscard]] std::uint64_t num_lost_datagrams() const noexcept { return lost_; }

  private:
    struct PendingClose {
        std::uint32_t session;
        CloseReason reason;
        base::Timestamp time;
        std::array<std::uint64_t, 2> lost;
    };

    [[nodiscard]] bool has_observer();
    [[nodiscard]] bool begin_events_of_observer(std::uint32_t observer);

    [[nodiscard]] bool is_announced(const ObservedSession& session) const noexcept {
        return session.announced_to_observer == current_observer_;
    }

    void resume_copying_oldest_sessions() noexcept;
    [[nodiscard]] bool try_copy_datagram(ObservedSession& session, base::Timestamp time,
                                         Direction direction, std::span<const std::byte> bytes);
    [[nodiscard]] bool announce_session(ObservedSession& session, base::Timestamp time);
    [[nodiscard]] bool announce_running_session(ObservedSession& session, base::Timestamp time);
    [[nodiscard]] bool report_gaps(std::uint32_t session, base::Timestamp time,
                                   std::array<std::uint64_t, 2>& lost);
    [[nodiscard]] bool push_close(PendingClose& pending);
    [[nodiscard]] bool report_kernel_drops(base::Timestamp time);
    [[nodiscard]] bool report_pending_events(base::Timestamp time);

    Ring* ring_;
    const std::atomic<std::uint32_t>* observer_;
    /// The number of the latest observer that got its `new_observer` event; 0: no observer got it.
    std::uint32_t current_observer_ = 0;
    LoadShedding shedding_;
    std::vector<PendingClose> pending_closes_;
    /// The number of uncopied datagrams of sessions that ended before they were announced to the
    /// observer; indexed by Direction.
    std::array<std::uint64_t, 2> unannounced_lost_{};
    /// The sum of the counts that were passed to add_kernel_drops() and are not reported yet;
    /// nullopt if all are reported.
    std::optional<std::uint64_t> kernel_drops_;
    std::uint64_t lost_ = 0;
    bool has_pending_ = false; ///< true if any event did not fit and is not reported yet
};

} // namespace tw::relay
