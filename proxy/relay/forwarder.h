#pragma once

#include "proxy/relay/impaired_path.h"
#include "proxy/relay/listener.h"
#include "proxy/relay/observation.h"
#include "proxy/relay/session.h"

#include <atomic>
#include <memory>
#include <optional>
#include <span>

namespace tw::relay {

/// What all relay threads share.
struct Shared {
    Observation* observation;
    UpstreamFactory upstreams;
    std::size_t max_sessions;
    std::chrono::milliseconds idle_timeout;
    std::atomic<std::size_t> sessions{0};
    std::atomic<std::uint32_t> last_session{0};
    std::atomic<int> session_error{0}; ///< errno of the last session that could not be opened
};

/// Moves datagrams between listening and upstream sockets, in batches: received, sent on, and only
/// then shown to the observer. One thread's; it never waits.
class Forwarder {
  public:
    /// `thread`: its number, from 0. `ring` may be null.
    Forwarder(Shared& shared, unsigned thread, std::span<const Listener> listeners, Ring* ring);
    ~Forwarder();
    Forwarder(const Forwarder&) = delete;
    Forwarder& operator=(const Forwarder&) = delete;
    Forwarder(Forwarder&&) = delete;
    Forwarder& operator=(Forwarder&&) = delete;

    /// One batch of each listener; returns how many datagrams came.
    std::size_t read_clients();

    /// What the ready upstream sockets hold, up to a batch of each; returns how many came.
    std::size_t read_servers();

    /// Readable when an upstream socket is.
    [[nodiscard]] int upstream_set() const noexcept { return ready_set_.get(); }

    /// Makes all lines as bad as this, from now on; what waits is sent on at once.
    void set_impairment(const Impairment& impairment) { impaired_.set(impairment, sessions_); }

    [[nodiscard]] bool impaired() const noexcept { return impaired_.active(); }

    /// With impaired lines: sends on what has to leave by now; returns when the next one has to.
    std::optional<Clock::time_point> send_due(Clock::time_point now) {
        return impaired_.send_due(now);
    }

    /// Closes idle sessions and catches up on the account of the ring.
    void sweep(Clock::time_point now);

    /// Closes all sessions and reports it to the observer; waits for room in its ring up to a time limit.
    void close_all();

  private:
    /// Upstream sockets taken from one look at the set; the rest stay ready.
    static constexpr std::size_t kReady = 256;
    /// Fewer free buffers than this are not worth a receive call.
    static constexpr std::size_t kMinFree = 16;

    std::size_t read_listener(std::uint8_t index);
    [[nodiscard]] Session* session_of(std::size_t i, std::uint8_t listener, Timestamp now);
    [[nodiscard]] Session* open_session(std::size_t i, const Endpoint& client,
                                        std::uint8_t listener, Timestamp now);
    [[nodiscard]] std::unique_ptr<Session> make_session(const Endpoint& client);
    void chain(Session& session, std::size_t i) noexcept;
    void send_upstream(Session& session) noexcept;
    void send_to_clients(std::size_t count);
    void impair(std::size_t count, Direction direction);
    void note_truncated(std::size_t i) noexcept;
    void note_receive_error(int error) noexcept;
    void note_kernel_drops(int socket, std::uint32_t& seen) noexcept;
    void close(Session& session, Timestamp now, CloseReason reason);
    void offer(std::size_t count, Timestamp now, Direction direction);

    Shared& shared_;
    std::vector<Listener> listeners_;
    std::vector<std::uint32_t> listener_drops_;
    UniqueFd ready_set_;
    Tap tap_;
    Sessions sessions_;
    LiveCounters& counters_;
    ImpairedPath impaired_;

    Batch batch_;
    std::array<Session*, Batch::kDatagrams> owner_{}; ///< of each datagram of the batch, or null
    std::array<std::uint8_t, Batch::kDatagrams> next_{};
    std::array<mmsghdr, Batch::kDatagrams> outgoing_{};
};

} // namespace tw::relay
