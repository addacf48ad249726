#pragma once

#include "proxy/relay/counters.h"
#include "proxy/relay/impairment.h"
#include "proxy/relay/listener.h"
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

/// Sends messages in order with as few calls as the socket allows, and counts what became of them.
///
/// A full buffer is tried again once, then the datagram is dropped: one that waits delays all
/// others, and UDP's users know loss. "Refused" is news of an earlier datagram; this one is sent.
void send_messages(int socket, mmsghdr* messages, std::size_t count,
                   DirectionTotals<Counter>& totals, Counter& icmp_refused) noexcept;

/// The way datagrams take while lines are impaired: each waits, if only for a moment, and is shown
/// to the observer when it is sent on. So the observer sees what the receiver gets, and nothing of
/// what the line loses. One thread's; it never waits itself.
class ImpairedPath {
  public:
    using Time = Impairer::Time;

    /// All have to outlive it.
    ImpairedPath(const std::vector<Listener>& listeners, Tap& tap, LiveCounters& counters)
        : listeners_{&listeners}, tap_{&tap}, counters_{&counters} {}

    [[nodiscard]] bool active() const noexcept { return impairer_ != nullptr; }

    /// As last set. Precondition: active.
    [[nodiscard]] const Impairment& impairment() const noexcept { return impairer_->impairment(); }

    /// Makes all lines as bad as this, from now on; what waits is sent on at once. The sessions are
    /// to be shown to begin_anew after it.
    void set(const Impairment& impairment);

    static void begin_anew(Sessions& sessions) {
        sessions.for_each([](Session& session) { session.lines.reset(); });
    }

    /// Takes a datagram of the session, which has to live as long as anything of it waits.
    /// Precondition: active.
    void accept(Session& session, Direction direction, std::span<const std::byte> bytes, Time now);

    /// Sends on what has to leave by now; returns when the next one has to.
    /// Precondition: active.
    std::optional<Time> send_due(Time now);

  private:
    void send(Session& session, Direction direction, std::span<const std::byte> bytes,
              base::Timestamp now);

    const std::vector<Listener>* listeners_;
    Tap* tap_;
    LiveCounters* counters_;
    std::unique_ptr<Impairer> impairer_; ///< null unless lines are impaired
};

/// Moves datagrams between listening and upstream sockets, in batches: received, sent on, and only
/// then shown to the observer. One thread's; it never waits.
class Forwarder {
  public:
    /// `thread`: its number, from 0. `ring` may be null. `shortest`: the shortest time after which a
    /// session of any server is closed.
    Forwarder(Observation& observation, unsigned thread, const Resync& resync,
              std::chrono::milliseconds shortest, Ring* ring);
    Forwarder(const Forwarder&) = delete;
    Forwarder& operator=(const Forwarder&) = delete;
    Forwarder(Forwarder&&) = delete;
    Forwarder& operator=(Forwarder&&) = delete;
    ~Forwarder() = default;

    /// A server, whose clients send to these. Errors: std::system_error, std::bad_alloc; then
    /// nothing of it is here but what remove_server takes out.
    void add_server(Shared& shared, std::span<const Listener> listeners);

    /// Listens for a server no more, and closes as many of its sessions as others can wait for. Returns
    /// whether it is gone; otherwise it is to be called again.
    [[nodiscard]] bool remove_server(const Shared& shared);

    /// What a call of work() was woken by.
    struct Woken {
        std::size_t datagrams = 0; ///< that came
        bool words = false;        ///< something else is to be done; see wait_for_words
    };

    /// Waits so many milliseconds (-1: for ever) and passes on what the sockets hold that woke it, up to
    /// a batch of each.
    Woken work(int timeout);

    /// work() is woken by this descriptor, too. Errors: throws std::system_error.
    void wait_for_words(int descriptor) const;

    /// Makes all lines as bad as this, from now on; what waits is sent on at once.
    void set_impairment(const Impairment& impairment) {
        impaired_.set(impairment);
        for (const auto& door : doors_) {
            ImpairedPath::begin_anew(door->sessions());
        }
    }

    [[nodiscard]] bool impaired() const noexcept { return impaired_.active(); }

    /// With impaired lines: sends on what has to leave by now; returns when the next one has to.
    std::optional<base::Clock::time_point> send_due(base::Clock::time_point now) {
        return impaired_.send_due(now);
    }

    /// Closes idle sessions, a bounded number at once, and catches up on the account of the ring.
    /// Returns whether it saw all that were due.
    bool sweep(base::Clock::time_point now);

    /// Between two sweeps while there are neither sessions nor anything to tell the observer.
    static constexpr std::chrono::milliseconds kRest{1000};

    /// How often sweep() is to be called.
    [[nodiscard]] std::chrono::milliseconds sweep_interval() const noexcept {
        return rounds_.empty() && tap_.settled() ? std::max(kRest, rounds_.tick()) : rounds_.tick();
    }

    /// See Relay::resync.
    void resync(std::uint32_t id);

    /// Closes all sessions and reports it to the observer; waits for room in its ring up to a time limit.
    void close_all(CloseReason reason);

    /// Lets nothing wait here: what bad lines hold back is sent on.
    void settle();

    /// Shows each session, and its socket, for another relay to go on with. Its `listener`: which of
    /// this thread's of its server.
    void for_each_session(const std::function<void(const SessionState&, int socket)>& use);

    /// See SessionTable::take_over. `state.listener`: as above.
    void take_over(const Shared& server, const SessionState& state, base::UniqueFd socket);

    /// Which of this thread's of a server; it has to be there.
    [[nodiscard]] Listener& listener(const Shared& server, std::size_t index) {
        return listeners_[listeners_of(**find_door(server), listeners_)[index]];
    }

  private:
    /// Sockets taken from one look at the set; the rest stay ready.
    static constexpr std::size_t kReady = 256;
    /// Fewer free buffers than this are not worth a receive call.
    static constexpr std::size_t kMinFree = 16;
    /// Between two looks at what the kernel dropped of a listener's.
    static constexpr std::chrono::milliseconds kListenerLooks{500};

    [[nodiscard]] std::vector<std::unique_ptr<SessionTable>>::iterator
    find_door(const Shared& server);
    void wait_for(int descriptor, std::uint64_t tag) const;
    std::size_t read_listener(ListenerIndex index);
    std::size_t read_servers(std::span<const epoll_event> ready);
    void chain(Session& session, std::size_t i) noexcept;
    void send_upstream(Session& session) noexcept;
    void send_to_clients(std::size_t count);
    void impair(std::size_t count, Direction direction);
    void write_anew(std::size_t i) noexcept;
    void look_for_answer(Session& session, std::size_t begin, std::size_t end) const noexcept;

    [[nodiscard]] bool is_written_anew(std::size_t i) const noexcept {
        return anew_.any && anew_.datagrams[i].vector.iov_base != nullptr;
    }

    void forget_written_anew() noexcept;
    void add_listener(const Listener& listener);
    void note_truncated(std::size_t i) noexcept;
    static void note_receive_error(int error, LiveCounters& counters) noexcept;
    void offer(std::size_t count, base::Timestamp now, Direction direction);

    std::vector<Listener> listeners_;
    base::UniqueFd
        ready_set_; ///< of listeners by their index, sessions by their address, and words
    Tap tap_;
    unsigned thread_;
    Observation& observation_;
    LiveCounters& counters_; ///< of what is no server's
    SessionTimers rounds_;
    std::vector<std::unique_ptr<SessionTable>> doors_; ///< one for each server
    ImpairedPath impaired_;
    base::Clock::time_point listeners_seen_;

    Batch batch_;
    std::array<Session*, Batch::kDatagrams> owner_{}; ///< of each datagram of the batch, or null
    std::array<std::uint8_t, Batch::kDatagrams> next_{};
    std::array<mmsghdr, Batch::kDatagrams> outgoing_{};

    /// Datagrams of the batch that leave with other bytes than they came with. The observer is shown
    /// what came.
    struct WrittenAnew {
        struct Datagram {
            iovec vector{};     ///< null: it leaves as it came
            bool first = false; ///< of a session's wish
            std::array<std::byte, 2048> bytes{};
        };

        std::vector<Datagram>
            datagrams; ///< one for each of the batch, or none if none is ever touched
        bool any = false;
    };

    Resync resync_;
    WrittenAnew anew_;
};

} // namespace tw::relay
