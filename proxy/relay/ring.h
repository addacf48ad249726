#pragma once

#include "proxy/base/clock.h"
#include "proxy/base/endpoint.h"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>

namespace tw::relay {

/// Lets a thread sleep until another thread wakes it. The threads may belong to two processes that
/// share the object's memory. wake() never blocks, and makes a system call only while a thread
/// sleeps. Zeroed memory is the initial state. No wakeup is lost if the waking thread stores its
/// data before it calls wake(), and the callback of sleep_until() loads the data. Both accesses
/// must be sequentially consistent.
class ThreadWaker {
  public:
    void wake() noexcept {
        if (is_sleeping_.load(std::memory_order_seq_cst) != 0) {
            wake_by_futex();
        }
    }

    /// Sleeps until another thread calls wake(), or until `time`; may return earlier. Returns at
    /// once if `has_work()` returns true. Only one thread may sleep at a time.
    template <typename HasWork>
    void sleep_until(base::Clock::time_point time, HasWork&& has_work) noexcept {
        is_sleeping_.store(1, std::memory_order_seq_cst);
        if (!has_work()) {
            sleep_on_futex(time);
        }
        is_sleeping_.store(0, std::memory_order_relaxed);
    }

  private:
    void wake_by_futex() noexcept;
    void sleep_on_futex(base::Clock::time_point time) noexcept;

    std::atomic<std::uint32_t> is_sleeping_{0};
};

/// c2s: client to server; s2c: server to client.
enum class Direction : std::uint8_t { c2s, s2c };

enum class CloseReason : std::uint8_t {
    idle,
    shutdown,
    handed_over,     ///< another relay continues the session
    removed,         ///< the session's server was removed
    displaced,       ///< the session was closed to make room for a new session
    sides_exchanged, ///< in a capture: the supposed server turned out to be the client
};

/// Why the observer did not get copies of some datagrams.
enum class GapReason : std::uint8_t {
    ring_full,    ///< the observer read the ring too slowly
    new_observer, ///< the observer started during the session
    /// The kernel's receive buffer was full, so the relay did not get the datagrams.
    kernel_dropped,
};

enum class EventKind : std::uint8_t {
    open,         ///< a session began; this is its first event
    datagram,     ///< the relay sent a datagram, or sending it failed
    close,        ///< a session ended; this is its last event
    gap,          ///< the copies of `lost` datagrams are missing here
    new_observer, ///< the events after this one are for the observer with the number `session`
    /// The relay changed the session's next datagram before it sent it (see ResyncFunctions).
    resync,
};

/// The addresses of a session, and the number of its server within the relay.
struct SessionAddresses {
    base::Endpoint client;
    base::Endpoint upstream; ///< the local address of the session's upstream socket
    base::Endpoint server;
    std::uint16_t server_index = 0;
};

/// The members of an event that a ring stores in the same way for all kinds of events.
struct EventHeader {
    EventKind kind = EventKind::datagram;
    Direction direction = Direction::c2s;   ///< in `datagram` and `gap` events
    CloseReason reason = CloseReason::idle; ///< in `close` events
    GapReason gap = GapReason::ring_full;   ///< in `gap` events: why copies are missing
    /// The session's number, from 1; 0 in a `gap` whose datagrams belong to sessions without an
    /// `open` event. In a `new_observer` event: the number of the observer.
    std::uint32_t session = 0;
    base::Timestamp time = 0;
    std::uint64_t lost = 0; ///< in `gap` events: the number of missing datagrams
};

/// An event that the relay reports to its observer. Only `open` events have addresses.
struct RelayEvent : EventHeader, SessionAddresses {
    /// In `datagram` events: the payload; not valid after the handler of Ring::consume_events()
    /// returns.
    std::span<const std::byte> bytes;
    /// Set by Ring::consume_events(): the payload of the next event in the ring; empty if there is
    /// no next event yet, or it has no payload. Not valid after the handler returns.
    std::span<const std::byte> next;
};

/// A bounded ring of events from one relay thread (producer) to one observer thread (consumer),
/// within a process or between two.
///
/// Never blocks or allocates. The consumer sees pushed events after commit_events(), so a batch of
/// datagrams costs a single store, and a system call only while the consumer sleeps. The producer
/// has private copies of its position and of the capacity, so a misbehaving consumer cannot make it
/// block or write outside of the ring.
///
/// Layout:  each record is contiguous, aligned to 32 bytes, and starts with a header of 32 bytes.
/// If a record does not fit before the end of the ring, a padding record fills the end.
class Ring {
  public:
    /// The size of the smallest ring: room for the longest datagram and padding of the same size.
    static constexpr std::size_t kMinBytes = std::size_t{1} << 18U;

    /// Producer and consumer each construct a Ring with the same shared memory. The memory must be
    /// page-aligned, `shared_memory_size(…)` long, and zeroed before the first Ring is constructed.
    explicit Ring(std::span<std::byte> shared);

    /// Returns the size of the shared memory for a ring with this capacity. The capacity is rounded
    /// up to a power of two and to at least kMinBytes.
    [[nodiscard]] static std::size_t shared_memory_size(std::size_t bytes) noexcept;

    // Functions for the producer.

    [[nodiscard]] bool try_push(const RelayEvent& event) noexcept;

    /// Returns whether an event with this many payload bytes is certain to fit.
    [[nodiscard]] bool has_room(std::size_t bytes) noexcept;

    /// Returns an upper limit of the number of bytes that were pushed and not consumed. A result of
    /// more than half of the ring is exact.
    [[nodiscard]] std::size_t max_unread_bytes() noexcept {
        if (producer_.tail - producer_.head > capacity_ / 2) {
            producer_.head = positions_->head.load(std::memory_order_acquire);
        }
        return static_cast<std::size_t>(producer_.tail - producer_.head);
    }

    /// Makes pushed events visible to the consumer and wakes it.
    void commit_events() noexcept {
        if (producer_.tail != producer_.committed) {
            producer_.committed = producer_.tail;
            positions_->tail.store(producer_.tail, std::memory_order_seq_cst);
            positions_->waker.wake();
        }
    }

    // Functions for the consumer.

    /// Calls handler(const RelayEvent&) for up to `max` events, in order. Returns the number of
    /// calls.
    template <typename Handler>
    std::size_t consume_events(Handler&& handler,
                               std::size_t max = std::numeric_limits<std::size_t>::max()) {
        std::uint64_t head = positions_->head.load(std::memory_order_relaxed);
        const std::uint64_t tail = positions_->tail.load(std::memory_order_acquire);
        std::size_t count = 0;
        std::uint64_t released = head;
        while (head != tail && count < max) {
            const Record record = record_at(head);
            head += record.header.size;
            if (record.header.event.kind == kPadding) {
                continue;
            }
            RelayEvent event = to_event(record);
            event.next = head == tail ? std::span<const std::byte>{} : payload_at(head);
            handler(event);
            ++count;
            if (head - released >= kReleaseBytes) {
                positions_->head.store(head, std::memory_order_release);
                released = head;
            }
        }
        positions_->head.store(head, std::memory_order_release);
        return count;
    }

    /// Sleeps until the ring contains events, another thread calls wake_consumer(), or the time is
    /// `time`; may return earlier. `has_work`: see ThreadWaker::sleep_until.
    template <typename HasWork>
    void sleep_until(base::Clock::time_point time, HasWork&& has_work) noexcept {
        positions_->waker.sleep_until(time, [&] {
            return positions_->tail.load(std::memory_order_seq_cst) !=
                       positions_->head.load(std::memory_order_relaxed) ||
                   has_work();
        });
    }

    // Functions for any thread.

    void wake_consumer() noexcept { positions_->waker.wake(); }

    [[nodiscard]] std::size_t capacity() const noexcept { return capacity_; }

    /// Returns the number of bytes that the consumer can see and has not consumed.
    [[nodiscard]] std::size_t num_unconsumed_bytes() const noexcept {
        const auto head = positions_->head.load(std::memory_order_acquire);
        return static_cast<std::size_t>(positions_->tail.load(std::memory_order_acquire) - head);
    }

    /// Returns the number of bytes, with padding, that were consumed since the start of the ring.
    [[nodiscard]] std::uint64_t bytes_consumed() const noexcept {
        return positions_->head.load(std::memory_order_relaxed);
    }

  private:
    static constexpr std::size_t kAlign = 32;
    static constexpr std::size_t kCacheLine = 64;
    /// The consumer returns room to the producer each time it has consumed about this many bytes,
    /// so that the producer gets room before the end of a long batch.
    static constexpr std::uint64_t kReleaseBytes = 16'384;
    static constexpr EventKind kPadding{0xff};

    struct Header {
        std::uint32_t size;   ///< size of the record in bytes, with header and alignment
        std::uint32_t length; ///< size of the payload in bytes
        EventHeader event;
    };

    static_assert(sizeof(Header) == kAlign);

    struct Record {
        Header header;
        const std::byte* payload;
    };

    /// The positions in shared memory. Producer and consumer write one cache line each.
    struct Positions {
        alignas(kCacheLine) std::atomic<std::uint64_t> tail{0};
        alignas(kCacheLine) std::atomic<std::uint64_t> head{0};
        alignas(kCacheLine) ThreadWaker waker; ///< wakes the sleeping consumer
    };

    /// The size of `Positions` in shared memory, in bytes: one page.
    static constexpr std::size_t kPositionsBytes = 4096;

    /// The producer's private copies of `Positions`.
    struct Producer {
        std::uint64_t tail = 0;
        std::uint64_t committed = 0; ///< the value of `tail` at the last call of commit_events()
        std::uint64_t head = 0;
    };

    [[nodiscard]] Record record_at(std::uint64_t position) const noexcept {
        const std::byte* at = bytes_ + (position & (capacity_ - 1));
        Record record{};
        std::memcpy(&record.header, at, sizeof record.header);
        record.payload = at + sizeof(Header);
        return record;
    }

    /// Returns the payload of the datagram at this position; empty for other records.
    [[nodiscard]] std::span<const std::byte> payload_at(std::uint64_t position) const noexcept {
        const Record record = record_at(position);
        return record.header.event.kind == EventKind::datagram
                   ? std::span{record.payload, record.header.length}
                   : std::span<const std::byte>{};
    }

    [[nodiscard]] static RelayEvent to_event(const Record& record) noexcept;
    [[nodiscard]] std::byte* reserve_record(std::size_t size) noexcept;

    const std::size_t capacity_;
    Positions* positions_;
    std::byte* bytes_;
    alignas(kCacheLine) Producer producer_;
};

/// Stores copies of a session's datagrams until the session is announced to the observer, which
/// then gets the copies.
class HeldDatagramCopies {
  public:
    /// The memory for the copies, in bytes. A handshake of 0.7 takes 1052, without repetitions.
    static constexpr std::size_t kBytes = 4096;

    /// Stores a copy of a datagram. After the first copy that does not fit, further copies are only
    /// counted, so that the stored copies have no gap.
    void add_copy(base::Timestamp time, Direction direction,
                  std::span<const std::byte> bytes) noexcept {
        const Header header{time, static_cast<std::uint32_t>(bytes.size()), direction};
        const bool full = lost_[0] + lost_[1] != 0;
        if (full || used_ + sizeof header + bytes.size() > kBytes) {
            ++lost_[static_cast<std::size_t>(direction)];
            return;
        }
        std::memcpy(memory_.data() + used_, &header, sizeof header);
        used_ += sizeof header;
        if (!bytes.empty()) {
            std::memcpy(memory_.data() + used_, bytes.data(), bytes.size());
        }
        used_ += bytes.size();
    }

    /// Calls `visit(Timestamp, Direction, bytes)` for each copy, in order.
    template <typename Visit>
    void for_each_copy(Visit&& visit) const {
        for (std::size_t at = 0; at < used_;) {
            Header header{};
            std::memcpy(&header, memory_.data() + at, sizeof header);
            at += sizeof header;
            visit(header.time, header.direction, std::span{memory_}.subspan(at, header.length));
            at += header.length;
        }
    }

    /// Adds these numbers, indexed by direction, to the numbers of copies that did not fit.
    void add_lost_counts(const std::array<std::uint64_t, 2>& lost) noexcept {
        lost_[0] += lost[0];
        lost_[1] += lost[1];
    }

    /// Returns the numbers of copies that did not fit, indexed by direction.
    [[nodiscard]] const std::array<std::uint64_t, 2>& lost_counts() const noexcept { return lost_; }

  private:
    struct Header {
        base::Timestamp time;
        std::uint32_t length;
        Direction direction;
    };

    std::size_t used_ = 0;
    std::array<std::uint64_t, 2> lost_{};
    std::array<std::byte, kBytes> memory_; // NOLINT(*-member-init): only used bytes are set
};

} // namespace tw::relay
