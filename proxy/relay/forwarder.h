#pragma once

#include "proxy/relay/counters.h"
#include "proxy/relay/impairment.h"
#include "proxy/relay/listen_socket.h"
#include "proxy/relay/session.h"
#include "proxy/relay/session_table.h"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include <sys/epoll.h>
#include <sys/socket.h>

namespace tw::relay {

/// Sends messages in order with few system calls. Counts the results in `totals` and
/// `icmp_refused`.
///
/// A failed send call is repeated a few times, because the error may concern an earlier datagram
/// (ECONNREFUSED). Then the datagram is dropped. Waiting for a full send buffer would delay all
/// other datagrams.
void send_messages(int socket, mmsghdr* messages, std::size_t count,
                   DirectionTotals<Counter>& totals, Counter& icmp_refused) noexcept;

/// Forwards datagrams between listening and upstream sockets. Receives a batch, sends it, and then
/// copies it to the observer. While a bad network is simulated (see Impairment), datagrams wait in
/// a queue until they are due. They are copied when they are sent, so that the observer sees
/// exactly the datagrams that the receiver gets. Used by one thread; never blocks except in
/// forward_from_ready_sockets().
class Forwarder {
  public:
    /// `thread`: the thread's number, from 0. `ring`: null without an observer. `shortest_timeout`:
    /// the shortest timeout after which a session is closed.
    Forwarder(ObserverSharedMemory& observation, unsigned thread, const ResyncFunctions& resync,
              std::chrono::milliseconds shortest_timeout, Ring* ring);
    Forwarder(const Forwarder&) = delete;
    Forwarder& operator=(const Forwarder&) = delete;
    ~Forwarder() = default;

    /// Adds a server and the listeners that its clients send to.
    /// Errors: std::system_error, std::bad_alloc; the caller must then call remove_server().
    void add_server(SharedServerData& shared, std::span<const Listener> listeners);

    /// Stops listening for a server and closes a bounded number of its sessions. Returns true if no
    /// session is left; if false, the caller must call remove_server() again.
    [[nodiscard]] bool remove_server(const SharedServerData& shared);

    struct ForwardResult {
        std::size_t datagrams = 0; ///< number of datagrams received
        /// True if a descriptor that was passed to add_wakeup_descriptor() is readable.
        bool is_woken = false;
    };

    /// Waits up to `timeout` milliseconds (-1: without limit), then forwards at most one batch of
    /// datagrams from each ready socket.
    ForwardResult forward_from_ready_sockets(int timeout);

    /// Makes forward_from_ready_sockets() return when this descriptor is readable. Errors:
    /// std::system_error.
    void add_wakeup_descriptor(int descriptor) const;

    /// Replaces the impairment of all sessions and sends the waiting datagrams at once.
    void set_impairment(const Impairment& impairment);

    [[nodiscard]] bool is_impaired() const noexcept { return impairment_queue_ != nullptr; }

    /// Sends the delayed datagrams that are due. Returns when the next delayed datagram is due;
    /// nullopt if no datagram waits.
    std::optional<base::Clock::time_point> send_due_datagrams(base::Clock::time_point now);

    /// Closes a bounded number of idle sessions. Tries again to report events that did not fit into
    /// the observer's ring. Returns false if further sessions are due for a check.
    bool check_timeouts(base::Clock::time_point now);

    /// The interval between calls of check_timeouts() while there are no sessions and no event
    /// waits for room in the observer's ring.
    static constexpr std::chrono::milliseconds kIdleCheckInterval{1000};

    [[nodiscard]] std::chrono::milliseconds timeout_check_interval() const noexcept {
        return timers_.has_no_sessions() && copier_.has_no_pending_events()
                   ? std::max(kIdleCheckInterval, timers_.check_interval())
                   : timers_.check_interval();
    }

    void request_full_snapshot(std::uint32_t id);

    /// Closes all sessions and reports their ends to the observer. Waits at most half a second for
    /// room in the observer's ring.
    void close_all_sessions(CloseReason reason);

    /// Switches the impairment off and sends all delayed datagrams.
    void send_delayed_datagrams();

    /// Returns this thread's session table of a server. Precondition: the server exists.
    [[nodiscard]] SessionTable& table_of(const SharedServerData& server) {
        return **find_session_table(server);
    }

    /// Returns the listener with this index among this thread's listeners of a server.
    /// Precondition: the server exists.
    [[nodiscard]] Listener& listener(const SharedServerData& server, std::size_t index) {
        return listeners_[listeners_of(table_of(server), listeners_)[index]];
    }

  private:
    /// The maximum number of ready sockets that a call of epoll_wait returns. The next call returns
    /// further ones.
    static constexpr std::size_t kMaxReadySockets = 256;
    /// Receiving stops when fewer buffers than this are free in the batch.
    static constexpr std::size_t kMinFreeBuffers = 16;
    /// The interval at which the kernel's drop counters of the listening sockets are read.
    static constexpr std::chrono::milliseconds kDropCountInterval{500};

    using Tables = std::vector<std::unique_ptr<SessionTable>>;

    [[nodiscard]] Tables::iterator find_session_table(const SharedServerData& server);
    void watch_descriptor(int descriptor, std::uint64_t tag) const;
    std::size_t read_listener(ListenerIndex index);
    std::size_t read_upstream_sockets(std::span<const epoll_event> ready);
    void append_datagram_to_session(Session& session, std::size_t i) noexcept;
    void send_to_server(Session& session) noexcept;
    void send_datagrams_to_clients(std::size_t count);
    void delay_datagrams(std::size_t count, Direction direction);
    void delay_datagram(Session& session, Direction direction, std::span<const std::byte> bytes,
                        base::Clock::time_point now);
    void send_delayed_datagram(Session& session, Direction direction,
                               std::span<const std::byte> bytes, base::Timestamp now);
    void rewrite_datagram(std::size_t i) noexcept;
    void look_for_full_snapshot(Session& session, std::size_t begin,
                                std::size_t end) const noexcept;

    [[nodiscard]] bool is_rewritten(std::size_t i) const noexcept {
        return rewritten_.has_rewritten && rewritten_.datagrams[i].vector.iov_base != nullptr;
    }

    void clear_rewritten_datagrams() noexcept;
    void add_listener(const Listener& listener);
    void count_if_truncated(std::size_t i) noexcept;
    static void count_receive_error(int error, LiveCounters& counters) noexcept;
    void copy_to_observer(std::size_t count, base::Timestamp now, Direction direction);

    std::vector<Listener> listeners_;
    /// Epoll instance. An event's data is a listener's index, a session's address or kWakeupTag.
    base::UniqueFd epoll_;
    DatagramCopier copier_;
    unsigned thread_;
    ObserverSharedMemory& observation_;
    /// The counters of the first server. They also count events that belong to no server.
    LiveCounters& counters_;
    SessionTimers timers_;
    Tables tables_;                                     ///< the session table of each server
    std::unique_ptr<ImpairmentQueue> impairment_queue_; ///< null if no impairment is set
    /// When the kernel's drop counters of the listening sockets were last read.
    base::Clock::time_point drops_read_;

    DatagramBatch batch_;
    /// The session of each datagram in the batch; null if the datagram belongs to no session.
    std::array<Session*, DatagramBatch::kDatagrams> batch_sessions_{};
    /// The index of the next datagram of the same session (see Session::first_datagram).
    std::array<std::uint8_t, DatagramBatch::kDatagrams> next_of_session_{};
    /// The message headers with which a session's datagrams are sent to the server.
    std::array<mmsghdr, DatagramBatch::kDatagrams> outgoing_{};

    /// The new bytes of datagrams in the batch that the relay changes before it sends them. The
    /// observer gets the received bytes.
    struct RewrittenDatagrams {
        struct Datagram {
            iovec vector{}; ///< the bytes to send; null if the datagram is sent unchanged
            /// True for the first datagram that was changed after a resync request.
            bool is_first_of_resync = false;
            std::array<std::byte, 2048> bytes{};
        };

        /// One entry for each datagram of a batch; empty if no functions were set in `resync_`.
        std::vector<Datagram> datagrams;
        bool has_rewritten = false; ///< true if a datagram of the batch is changed
    };

    ResyncFunctions resync_;
    RewrittenDatagrams rewritten_;
};

} // namespace tw::relay
