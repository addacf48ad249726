#pragma once

#include "proxy/relay/ring.h"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace tw::relay {

/// What the tap remembers of one session. Stays where it is from its first datagram to its close.
struct TapSession {
    std::uint32_t id = 0;
    base::Timestamp opened = 0;
    base::Endpoint client;
    base::Endpoint upstream;
    base::Endpoint server;
    std::uint16_t server_index = 0;
    std::uint32_t opened_for = 0;        ///< the observer there was when it began; 0: none
    std::uint32_t announced_to = 0;      ///< the observer that knows it; 0: none
    std::array<std::uint64_t, 2> lost{}; ///< copies dropped since the last gap event, by direction

    // Of LoadShedding.
    TapSession* older = nullptr;
    TapSession* newer = nullptr;
    bool listed = false;
    bool aside = false;
    bool aside_told = false; ///< the observer knows that it is
};

/// Which sessions the observer is shown while it cannot see all: those that have been there for
/// longest. Owns nothing, allocates nothing.
class LoadShedding {
  public:
    /// A new one: the newest. Set aside where others are.
    void add(TapSession& session) noexcept;
    void remove(TapSession& session) noexcept;

    /// Of one that is shown: nothing of it is, until it is brought back.
    void set_aside(TapSession& session) noexcept;
    /// Shows so many more again, the oldest first.
    void bring_back(std::size_t count) noexcept;

    /// How many can be shown when so much of the ring is in use: fewer and fewer, the fuller it is,
    /// so that it gets no fuller as soon as those that are left are few enough.
    [[nodiscard]] std::size_t affordable(std::size_t backlog, std::size_t capacity) const noexcept;

    /// The newest that is shown.
    [[nodiscard]] TapSession* newest() const noexcept { return shown_.newest; }

    [[nodiscard]] std::size_t num_shown() const noexcept { return shown_.size; }

    [[nodiscard]] std::size_t num_aside() const noexcept { return aside_.size; }

  private:
    struct List {
        TapSession* oldest = nullptr;
        TapSession* newest = nullptr;
        std::size_t size = 0;

        void push_newest(TapSession& session) noexcept;
        void push_oldest(TapSession& session) noexcept;
        void remove(TapSession& session) noexcept;
    };

    [[nodiscard]] List& list_of(const TapSession& session) noexcept {
        return session.aside ? aside_ : shown_;
    }

    List shown_;
    List aside_;
};

/// One relay thread's side of the ring: offers copies, and keeps the account of what did not fit.
///
/// What the observer may rely on, however full the ring was:
/// - Every session it hears of begins with `open` and ends with exactly one `close`.
/// - Between them the session's datagrams are in order, and wherever some are missing a `gap` of
///   that session and direction stands in their place, with their exact number.
/// - No copy is missing of a session while it is shown. When the observer gets too slow, whole
///   sessions are set aside, the newest first, and told so by a `gap`; they are brought back when
///   there is room again, and another `gap` says how much is missing by then.
/// - Sessions that began and ended while the ring was full appear as one `gap` of session 0.
/// - What is for it begins with an `observer` event with its number; what stands in the ring before
///   that was for another one, which ended before it read it.
/// - An observer that comes later hears of a running session by `open` and a `gap` with the reason
///   `new_observer` before its next datagram, even when no copy is missing between the two.
///
/// An open that did not fit is tried again with the session's next datagram; a close that did not
/// fit waits in a list. No session is announced while a close waits, so the list never holds more
/// than the sessions that were announced at one time: `max_sessions`.
class Tap {
  public:
    /// `ring` may be null: nobody looks, everything is a no-op.
    /// `observer`: which one looks, by a number that is never used again; 0 while there is none.
    ///             Another thread changes it at any time. Has to outlive the tap.
    Tap(Ring* ring, std::size_t max_sessions, const std::atomic<std::uint32_t>& observer);

    /// So many more sessions may be there at one time. Errors: std::bad_alloc.
    void expect(std::size_t more_sessions);

    void open(TapSession& session, base::Timestamp time);
    void datagram(TapSession& session, base::Timestamp time, Direction direction,
                  std::span<const std::byte> bytes);
    void close(TapSession& session, base::Timestamp time, CloseReason reason);
    /// The datagram that is shown next was written anew before it was sent on.
    void resync(const TapSession& session, base::Timestamp time);

    /// So many datagrams were never seen here, and nobody knows whose they were: a gap of session 0.
    void missed(std::uint64_t count, base::Timestamp time);

    /// Ends a batch: shows the observer what was pushed.
    void commit() noexcept;

    /// Tries again what is still to be reported; true when nothing is.
    [[nodiscard]] bool settle(base::Timestamp time);

    /// Nothing is still to be reported to the observer there is.
    [[nodiscard]] bool settled() const noexcept {
        return ring_ == nullptr ||
               (!behind_ && observer_->load(std::memory_order_relaxed) == seen_);
    }

    /// Datagrams whose copy did not fit.
    [[nodiscard]] std::uint64_t lost() const noexcept { return lost_; }

  private:
    struct PendingClose {
        std::uint32_t session;
        CloseReason reason;
        base::Timestamp time;
        std::array<std::uint64_t, 2> lost;
    };

    [[nodiscard]] bool has_observer();
    [[nodiscard]] bool greet(std::uint32_t observer);

    [[nodiscard]] bool knows(const TapSession& session) const noexcept {
        return session.announced_to == seen_;
    }

    void relieve() noexcept;
    void tell_aside(TapSession& session, base::Timestamp time);
    void bring_back() noexcept;
    [[nodiscard]] bool offer(TapSession& session, base::Timestamp time, Direction direction,
                             std::span<const std::byte> bytes);
    [[nodiscard]] bool announce(TapSession& session, base::Timestamp time);
    [[nodiscard]] bool introduce(TapSession& session, base::Timestamp time);
    [[nodiscard]] bool report_gaps(std::uint32_t session, base::Timestamp time,
                                   std::array<std::uint64_t, 2>& lost);
    [[nodiscard]] bool report_close(PendingClose& pending);
    [[nodiscard]] bool report_missed(base::Timestamp time);
    [[nodiscard]] bool report_pending(base::Timestamp time);

    Ring* ring_;
    const std::atomic<std::uint32_t>* observer_;
    std::uint32_t seen_ = 0; ///< the observer that was greeted; 0: none
    LoadShedding watch_;
    std::vector<PendingClose> pending_;
    std::array<std::uint64_t, 2> unknown_lost_{}; ///< of sessions that were never announced
    std::optional<std::uint64_t> missed_; ///< that nobody saw, and the observer is to hear of
    std::uint64_t lost_ = 0;
    bool behind_ = false; ///< something is pending; one test on the fast path
};

} // namespace tw::relay
