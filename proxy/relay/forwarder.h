#pragma once

#include "proxy/relay/counters.h"
#include "proxy/relay/impairment.h"
#include "proxy/relay/listen_socket.h"
#include "proxy/relay/session.h"
#include "proxy/relay/session_table.h"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include <sys/epoll.h>
#include <sys/socket.h>

namespace tw::relay {

/// Sends messages in order with as few system calls as possible, and counts the results.
///
/// If the send buffer is full, the call is tried once more; then the datagram is dropped, because
/// waiting would delay all others. ECONNREFUSED reports an earlier datagram, so the current one is
/// sent again.
void send_messages(int socket, mmsghdr* messages, std::size_t count,
                   DirectionTotals<Counter>& totals, Counter& icmp_refused) noexcept;

/// The path of datagrams while the network is impaired. Each datagram waits in a queue and is
/// copied to the observer when it is sent, so the observer sees what the receiver gets. Used by one
/// thread; never blocks.
class ImpairedPath {
  public:
    using Time = Impairer::Time;

    /// The arguments must outlive the object.
    ImpairedPath(const std::vector<Listener>& listeners, Tap& tap, LiveCounters& counters)
        : listeners_{&listeners}, tap_{&tap}, counters_{&counters} {}

    [[nodiscard]] bool active() const noexcept { return impairer_ != nullptr; }

    /// The current impairment. Precondition: active().
    [[nodiscard]] const Impairment& impairment() const noexcept { return impairer_->impairment(); }

    /// Replaces the impairment; waiting datagrams are sent at once. The caller must then call
    /// restart_random_decisions() for all sessions.
    void set_impairment(const Impairment& impairment);

    static void restart_random_decisions(Sessions& sessions) {
        sessions.for_each([](Session& session) { session.lines.reset(); });
    }

    /// Queues a datagram. The session must live until all of its datagrams are sent. Precondition:
    /// active().
    void enqueue(Session& session, Direction direction, std::span<const std::byte> bytes, Time now);

    /// Sends the datagrams that are due. Returns when the next datagram is due; nullopt if none
    /// waits. Precondition: active().
    std::optional<Time> send_due(Time now);

  private:
    void send(Session& session, Direction direction, std::span<const std::byte> bytes,
              base::Timestamp now);

    const std::vector<Listener>* listeners_;
    Tap* tap_;
    LiveCounters* counters_;
    std::unique_ptr<Impairer> impairer_; ///< null if no impairment is set
};

/// Forwards datagrams between listening and upstream sockets in batches: receives, sends, and then
/// copies them to the observer. Used by one thread; never blocks except in forward_ready().
class Forwarder {
  public:
    /// `thread`: the thread's number, from 0. `ring`: null without an observer. `shortest`: the
    /// shortest idle timeout of any session.
    Forwarder(Observation& observation, unsigned thread, const Resync& resync,
              std::chrono::milliseconds shortest, Ring* ring);
    Forwarder(const Forwarder&) = delete;
    Forwarder& operator=(const Forwarder&) = delete;
    ~Forwarder() = default;

    /// Adds a server and the listeners that its clients send to.
    /// Errors: std::system_error, std::bad_alloc; the caller must then call remove_server().
    void add_server(SharedServer& shared, std::span<const Listener> listeners);

    /// Stops listening for a server and closes a bounded number of its sessions. Returns true if no
    /// session is left; if false, the caller must call it again.
    [[nodiscard]] bool remove_server(const SharedServer& shared);

    /// What forward_ready() did, and why it returned.
    struct ForwardResult {
        std::size_t datagrams = 0; ///< datagrams received
        bool is_woken = false;     ///< a descriptor that was passed to add_wakeup() is readable
    };

    /// Waits up to `timeout` milliseconds (-1: without limit), then forwards at most one batch of
    /// datagrams from each ready socket.
    ForwardResult forward_ready(int timeout);

    /// Makes forward_ready() also return when this descriptor is readable. Errors: throws std::system_error.
    void add_wakeup(int descriptor) const;

    /// Replaces the impairment of all sessions; waiting datagrams are sent at once.
    void set_impairment(const Impairment& impairment) {
        impaired_.set_impairment(impairment);
        for (const auto& table : tables_) {
            ImpairedPath::restart_random_decisions(table->sessions());
        }
    }

    [[nodiscard]] bool impaired() const noexcept { return impaired_.active(); }

    /// Sends the delayed datagrams that are due. Returns when the next one is due; nullopt if none
    /// waits. Precondition: impaired().
    std::optional<base::Clock::time_point> send_due(base::Clock::time_point now) {
        return impaired_.send_due(now);
    }

    /// Closes idle sessions, a bounded number per call, and retries events that did not fit into
    /// the observer's ring. Returns whether all due sessions were examined.
    bool check_timeouts(base::Clock::time_point now);

    /// The interval of sweeps while there are no sessions and no event waits for the observer.
    static constexpr std::chrono::milliseconds kRestInterval{1000};

    [[nodiscard]] std::chrono::milliseconds timeout_check_interval() const noexcept {
        return timers_.empty() && tap_.nothing_pending() ? std::max(kRestInterval, timers_.tick())
                                                         : timers_.tick();
    }

    /// See Relay::resync.
    void resync(std::uint32_t id);

    /// Closes all sessions and reports that to the observer. Waits for room in the observer's ring,
    /// for at most half a second.
    void close_all(CloseReason reason);

    /// Switches the impairment off and sends all datagrams that it delayed.
    void send_delayed();

    /// Calls `use` with the state and socket of each session, for a handover to another relay.
    /// SessionState::listener is an index into this thread's listeners of the session's server.
    void for_each_session(const std::function<void(SessionState, int socket)>& use);

    /// See SessionTable::take_over. `state.listener`: as in for_each_session().
    void take_over(const SharedServer& server, const SessionState& state, base::UniqueFd socket);

    /// The listener with this index among this thread's listeners of a server. The server must
    /// exist.
    [[nodiscard]] Listener& listener(const SharedServer& server, std::size_t index) {
        return listeners_[listeners_of(**find_table(server), listeners_)[index]];
    }

  private:
    /// The most ready sockets that one epoll_wait returns; the next one returns the others.
    static constexpr std::size_t kMaxReady = 256;
    /// If fewer buffers of the batch are free, no further receive call is made.
    static constexpr std::size_t kMinFreeBuffers = 16;
    /// The interval at which the kernel's drop counters of the listening sockets are read.
    static constexpr std::chrono::milliseconds kDropsInterval{500};

    [[nodiscard]] std::vector<std::unique_ptr<SessionTable>>::iterator
    find_table(const SharedServer& server);
    void watch_descriptor(int descriptor, std::uint64_t tag) const;
    std::size_t read_listener(ListenerIndex index);
    std::size_t read_servers(std::span<const epoll_event> ready);
    void append_to_session(Session& session, std::size_t i) noexcept;
    void send_upstream(Session& session) noexcept;
    void send_to_clients(std::size_t count);
    void delay_datagrams(std::size_t count, Direction direction);
    void rewrite_datagram(std::size_t i) noexcept;
    void look_for_answer(Session& session, std::size_t begin, std::size_t end) const noexcept;

    [[nodiscard]] bool is_rewritten(std::size_t i) const noexcept {
        return rewritten_.any && rewritten_.datagrams[i].vector.iov_base != nullptr;
    }

    void clear_rewritten() noexcept;
    void add_listener(const Listener& listener);
    void count_truncated(std::size_t i) noexcept;
    static void count_receive_error(int error, LiveCounters& counters) noexcept;
    void copy_to_observer(std::size_t count, base::Timestamp now, Direction direction);

    std::vector<Listener> listeners_;
    base::UniqueFd
        ready_set_; ///< epoll instance; tags: listener index, session pointer, wakeup descriptors
    Tap tap_;
    unsigned thread_;
    Observation& observation_;
    /// The first server's counters, and of events that belong to no server.
    LiveCounters& counters_;
    SessionTimers timers_;
    std::vector<std::unique_ptr<SessionTable>> tables_; ///< one per server
    ImpairedPath impaired_;
    base::Clock::time_point drops_read_; ///< when the listeners' drop counters were last read

    DatagramBatch batch_;
    /// The session of each datagram of the batch, or null.
    std::array<Session*, DatagramBatch::kDatagrams> owner_{};
    std::array<std::uint8_t, DatagramBatch::kDatagrams> next_{};
    std::array<mmsghdr, DatagramBatch::kDatagrams> outgoing_{};

    /// The datagrams of the batch that are sent with other bytes than were received. The observer
    /// gets the received bytes.
    struct RewrittenDatagrams {
        struct Datagram {
            iovec vector{};     ///< the bytes to send; null if the datagram is sent unchanged
            bool first = false; ///< this is the first datagram that the resync request rewrote
            std::array<std::byte, 2048> bytes{};
        };

        /// One for each datagram of a batch; empty without functions in Resync.
        std::vector<Datagram> datagrams;
        bool any = false;
    };

    Resync resync_;
    RewrittenDatagrams rewritten_;
};

} // namespace tw::relay
