#pragma once

#include "proxy/relay/ring.h"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace tw::relay {

/// The tap's state for one session. The object must not be moved until the session is closed.
struct TapSession {
    std::uint32_t id = 0;
    base::Timestamp opened = 0;
    base::Endpoint client;
    base::Endpoint upstream;
    base::Endpoint server;
    std::uint16_t server_index = 0;
    /// Number of the observer that ran when the session began; 0: there was none.
    std::uint32_t opened_for = 0;
    /// Number of the observer that got the session's `open` event; 0: none.
    std::uint32_t announced_to = 0;
    std::array<std::uint64_t, 2> lost{}; ///< copies dropped since the last gap event, by direction

    // Members of LoadShedding.
    TapSession* older = nullptr;
    TapSession* newer = nullptr;
    bool listed = false;
    bool is_aside = false;       ///< the session's datagrams are not copied
    bool aside_reported = false; ///< the observer got the gap event about setting the session aside
};

/// Chooses which sessions' datagrams are copied to the observer. While the observer is too slow for
/// all, the newest sessions are set aside: their datagrams are not copied. Owns nothing and allocates
/// nothing.
class LoadShedding {
  public:
    /// Adds a new session. It is set aside if another session is.
    void add(TapSession& session) noexcept;
    void remove(TapSession& session) noexcept;

    /// Stops copying a session until resume_oldest() selects it.
    void set_aside(TapSession& session) noexcept;
    /// Resumes copying up to `count` sessions, the oldest first.
    void resume_oldest(std::size_t count) noexcept;

    /// How many sessions can be copied when `backlog` bytes of the ring are in use. The number
    /// falls as the ring fills, so that the backlog stops growing.
    [[nodiscard]] std::size_t num_affordable(std::size_t backlog,
                                             std::size_t capacity) const noexcept;

    /// The newest session that is copied.
    [[nodiscard]] TapSession* newest() const noexcept { return shown_.newest; }

    [[nodiscard]] std::size_t num_shown() const noexcept { return shown_.size; }

    [[nodiscard]] std::size_t num_aside() const noexcept { return aside_.size; }

  private:
    struct SessionList {
        TapSession* oldest = nullptr;
        TapSession* newest = nullptr;
        std::size_t size = 0;

        void push_newest(TapSession& session) noexcept;
        void push_oldest(TapSession& session) noexcept;
        void remove(TapSession& session) noexcept;
    };

    [[nodiscard]] SessionList& list_of(const TapSession& session) noexcept {
        return session.is_aside ? aside_ : shown_;
    }

    SessionList shown_;
    SessionList aside_;
};

/// The producer's side of the ring of one relay thread: copies datagrams into the ring and counts
/// the datagrams that did not fit.
///
/// The observer can rely on this, however full the ring was:
/// - Each announced session begins with `open` and ends with exactly one `close`.
/// - Between `open` and `close`, a session's datagrams are in order. If some are missing, a `gap`
/// event in their place says the session, the direction and the exact number.
/// - When the observer is too slow, whole sessions are set aside, the newest first, instead of
/// losing single copies. A `gap` reports that; when the session is resumed, another `gap` says how
/// many are missing.
/// - Sessions that began and ended while the ring was full appear as one `gap` of session 0.
/// - Events for an observer begin with an `observer` event that contains the observer's number. The
/// events before it were for an earlier observer, which ended before it read them.
/// - A new observer gets `open` and a `gap` with the reason `new_observer` for each running session
/// before its next datagram, even if no copy is missing in between.
///
/// An `open` that did not fit is retried with the session's next datagram. A `close` that did not
/// fit is kept in a list. No session is announced while a `close` is in the list, so the list has
/// at most `max_sessions` entries.
class Tap {
  public:
    /// `ring`: null means that there is no observer, and all functions do nothing.
    /// `observer`: the number of the current observer, never reused; 0 while there is none. Other
    /// threads may change it at any time. The object must outlive the tap.
    Tap(Ring* ring, std::size_t max_sessions, const std::atomic<std::uint32_t>& observer);

    /// Reserves memory for this many more simultaneous sessions. Errors: std::bad_alloc.
    void reserve(std::size_t more_sessions);

    void open(TapSession& session, base::Timestamp time);
    void datagram(TapSession& session, base::Timestamp time, Direction direction,
                  std::span<const std::byte> bytes);
    void close(TapSession& session, base::Timestamp time, CloseReason reason);
    /// Reports that the next datagram of the session was rewritten before it was sent.
    void resync(const TapSession& session, base::Timestamp time);

    /// Reports datagrams that were lost before the relay received them, as a gap of session 0.
    void add_unknown_losses(std::uint64_t count, base::Timestamp time);

    /// Ends a batch: makes the pushed events visible to the observer.
    void commit() noexcept;

    /// Retries pending events. Returns whether no event is pending any more.
    [[nodiscard]] bool retry_pending(base::Timestamp time);

    /// True if no event is pending for the current observer.
    [[nodiscard]] bool nothing_pending() const noexcept {
        return ring_ == nullptr ||
               (!has_pending_ && observer_->load(std::memory_order_relaxed) == seen_);
    }

    /// The number of datagrams whose copies did not fit.
    [[nodiscard]] std::uint64_t lost() const noexcept { return lost_; }

  private:
    struct PendingClose {
        std::uint32_t session;
        CloseReason reason;
        base::Timestamp time;
        std::array<std::uint64_t, 2> lost;
    };

    [[nodiscard]] bool has_observer();
    [[nodiscard]] bool begin_observer(std::uint32_t observer);

    [[nodiscard]] bool is_announced(const TapSession& session) const noexcept {
        return session.announced_to == seen_;
    }

    void set_aside_newest_session() noexcept;
    void report_aside(TapSession& session, base::Timestamp time);
    void resume_oldest() noexcept;
    [[nodiscard]] bool try_copy(TapSession& session, base::Timestamp time, Direction direction,
                                std::span<const std::byte> bytes);
    [[nodiscard]] bool announce(TapSession& session, base::Timestamp time);
    [[nodiscard]] bool announce_running(TapSession& session, base::Timestamp time);
    [[nodiscard]] bool report_gaps(std::uint32_t session, base::Timestamp time,
                                   std::array<std::uint64_t, 2>& lost);
    [[nodiscard]] bool report_close(PendingClose& pending);
    [[nodiscard]] bool report_unknown_losses(base::Timestamp time);
    [[nodiscard]] bool report_pending(base::Timestamp time);

    Ring* ring_;
    const std::atomic<std::uint32_t>* observer_;
    std::uint32_t seen_ = 0; ///< the last observer that got its `observer` event; 0: none
    LoadShedding shedding_;
    std::vector<PendingClose> pending_;
    /// Lost copies of sessions that were never announced.
    std::array<std::uint64_t, 2> unknown_lost_{};
    /// Datagrams lost before the relay (see add_unknown_losses()) that are not reported yet.
    std::optional<std::uint64_t> missed_;
    std::uint64_t lost_ = 0;
    bool has_pending_ = false; ///< an event is pending, so that try_copy() needs a single test
};

} // namespace tw::relay
