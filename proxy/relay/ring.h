#pragma once

#include "proxy/base/clock.h"
#include "proxy/base/endpoint.h"

#include <array>
#include <atomic>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <span>

namespace tw::relay {

/// Lets one thread sleep until another thread wakes it, also across processes that share the
/// memory. ring() never blocks and makes no system call while no thread sleeps. Zeroed memory is
/// the initial state.
///
/// The waking side publishes its data by a sequentially consistent store before ring(). The
/// sleeping side loads it sequentially consistently in `awake()`. So at least one side notices the
/// other.
class Doorbell {
  public:
    void ring() noexcept {
        if (sleeps_.load(std::memory_order_seq_cst) != 0) {
            wake();
        }
    }

    /// Sleeps until ring() or `time`; may return earlier. Returns at once if `awake()` is true. Only
    /// one thread may sleep at a time.
    template <typename Awake>
    void sleep_until(base::Clock::time_point time, Awake&& awake) noexcept {
        sleeps_.store(1, std::memory_order_seq_cst);
        if (!awake()) {
            sleep(time);
        }
        sleeps_.store(0, std::memory_order_relaxed);
    }

  private:
    void wake() noexcept;
    void sleep(base::Clock::time_point time) noexcept;

    std::atomic<std::uint32_t> sleeps_{0};
};

/// c2s: client to server; s2c: server to client.
enum class Direction : std::uint8_t { c2s, s2c };

enum class CloseReason : std::uint8_t {
    idle,
    shutdown,
    handed_over, ///< another relay continues the session
    removed,     ///< the session's server was removed
    displaced,   ///< the session was evicted, because a new session needed its place
    turned,      ///< in a capture: the supposed server turned out to be the client
};

/// Why copies are missing.
enum class GapReason : std::uint8_t {
    ring_full,      ///< the observer was too slow
    new_observer,   ///< the observer started during the session
    kernel_dropped, ///< the kernel's receive buffer was full; the sessions are unknown
};

enum class EventKind : std::uint8_t {
    open,     ///< a session began; its first event
    datagram, ///< a datagram that was sent or whose sending failed
    close,    ///< the session's last event
    gap,      ///< copies are missing here: `lost` datagrams
    observer, ///< the following events are for the observer with the number `session`
    resync,   ///< the session's next datagram was rewritten before it was sent (see Resync)
};

/// An event that the relay reports to its observer. A member's comment begins with the kinds of
/// events that use it.
struct Event {
    EventKind kind = EventKind::datagram;
    Direction direction = Direction::c2s;   ///< datagram, gap: the direction of the datagrams
    CloseReason reason = CloseReason::idle; ///< close: why the session was closed
    GapReason gap = GapReason::ring_full;   ///< gap: why copies are missing
    /// The session's number, from 1; 0 only in a `gap` about sessions that were never announced. In
    /// an `observer` event, the number of the observer.
    std::uint32_t session = 0;
    base::Timestamp time = 0;
    std::uint64_t lost = 0;         ///< gap: the number of missing datagrams
    base::Endpoint client;          ///< open: the client's address
    base::Endpoint upstream;        ///< open: the address of the relay's socket towards the server
    base::Endpoint server;          ///< open: the server's address
    std::uint16_t server_index = 0; ///< open: the server's number within the relay
    std::span<const std::byte> bytes; ///< datagram: valid only during the handler's call
    /// Set for the consumer only: the bytes of the event after this one; empty if that event is not
    /// in the ring yet or has no bytes. Valid during the handler's call.
    std::span<const std::byte> next;
};

/// A bounded ring of events from one relay thread (producer) to one observer thread (consumer),
/// within a process or between two.
///
/// It never blocks, and allocates only in the constructor. Events become visible by commit(), so a
/// batch of datagrams costs one store, and a system call only while the consumer sleeps. The
/// producer keeps its own position and capacity, so a misbehaving consumer cannot make it block or
/// write outside of the ring.
///
/// Layout:  records from 32 bytes (header) up, aligned to 32, contiguous; a padding record fills
/// the end of the ring if the next record does not fit there.
class Ring {
  public:
    /// The smallest ring: it has room for the longest datagram and a padding record of that size.
    static constexpr std::size_t kMinBytes = std::size_t{1} << 18U;

    /// Allocates the memory. `bytes` is rounded up to a power of two of at least kMinBytes.
    explicit Ring(std::size_t bytes);

    /// Uses shared memory, over which producer and consumer each construct a Ring. The memory must be
    /// zeroed before the first of them, page-aligned, and `shared_bytes(…)` long.
    explicit Ring(std::span<std::byte> shared);

    /// The size of the shared memory for a ring of `bytes` bytes.
    [[nodiscard]] static std::size_t shared_bytes(std::size_t bytes) noexcept;

    // Producer.

    /// Appends an event. Returns false, and counts it as dropped, if there is no room.
    [[nodiscard]] bool try_push(const Event& event) noexcept;

    /// Whether an event with this many payload bytes fits for certain.
    [[nodiscard]] bool has_room(std::size_t bytes) noexcept;

    /// Bytes pushed and not yet consumed. The result is exact if it is more than half of the ring, else
    /// an upper bound.
    [[nodiscard]] std::size_t backlog() noexcept {
        if (producer_.tail - producer_.head > capacity_ / 2) {
            producer_.head = positions_->head.load(std::memory_order_acquire);
        }
        return static_cast<std::size_t>(producer_.tail - producer_.head);
    }

    /// Makes pushed events visible to the consumer and wakes it.
    void commit() noexcept {
        if (producer_.tail != producer_.shown) {
            producer_.shown = producer_.tail;
            positions_->tail.store(producer_.tail, std::memory_order_seq_cst);
            positions_->bell.ring();
        }
    }

    // Consumer.

    /// Calls handler(const Event&) for up to `max` events, in order. Returns how many.
    template <typename Handler>
    std::size_t consume(Handler&& handler,
                        std::size_t max = std::numeric_limits<std::size_t>::max()) {
        std::uint64_t head = positions_->head.load(std::memory_order_relaxed);
        const std::uint64_t tail = positions_->tail.load(std::memory_order_acquire);
        std::size_t count = 0;
        std::uint64_t released = head;
        while (head != tail && count < max) {
            const Record record = record_at(head);
            head += record.header.size;
            if (record.header.kind == kPadding) {
                continue;
            }
            Event event = to_event(record);
            event.next = head == tail ? std::span<const std::byte>{} : bytes_at(head);
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

    /// Sleeps until there are events, wake() is called, or `time`; may return earlier. `awake()`
    /// returns true if there is other work. Another thread that gives such work must store it
    /// sequentially consistently before it calls wake().
    template <typename Awake>
    void sleep_until(base::Clock::time_point time, Awake&& awake) noexcept {
        positions_->bell.sleep_until(time, [&] {
            return positions_->tail.load(std::memory_order_seq_cst) !=
                       positions_->head.load(std::memory_order_relaxed) ||
                   awake();
        });
    }

    // Any thread.

    /// Wakes the consumer.
    void wake() noexcept { positions_->bell.ring(); }

    /// The number of events so far that did not fit.
    [[nodiscard]] std::uint64_t dropped() const noexcept {
        return positions_->dropped.load(std::memory_order_relaxed);
    }

    [[nodiscard]] std::size_t capacity() const noexcept { return capacity_; }

    /// The number of bytes that are visible to the consumer and not yet consumed.
    [[nodiscard]] std::size_t used() const noexcept {
        const auto head = positions_->head.load(std::memory_order_acquire);
        return static_cast<std::size_t>(positions_->tail.load(std::memory_order_acquire) - head);
    }

    /// The number of bytes consumed so far, including padding. It grows while an observer reads.
    [[nodiscard]] std::uint64_t consumed() const noexcept {
        return positions_->head.load(std::memory_order_relaxed);
    }

  private:
    static constexpr std::size_t kAlign = 32;
    static constexpr std::size_t kCacheLine = 64;
    /// The consumer frees room after at most this many bytes, so that the relay does not have to wait
    /// for the end of a long batch.
    static constexpr std::uint64_t kReleaseBytes = 16'384;
    static constexpr std::uint8_t kPadding = 0xff;

    struct Header {
        std::uint32_t size;   ///< size of the whole record
        std::uint32_t length; ///< size of the payload
        std::uint32_t session;
        std::uint8_t kind;
        std::uint8_t direction;
        std::uint8_t reason;
        std::uint8_t gap;
        base::Timestamp time;
        std::uint64_t lost;
    };

    static_assert(sizeof(Header) == kAlign);

    struct Record {
        Header header;
        const std::byte* payload;
    };

    /// The shared positions. Each side writes its own cache line and reads the other's.
    struct Positions {
        alignas(kCacheLine) std::atomic<std::uint64_t> tail{0};
        std::atomic<std::uint64_t> dropped{0};
        alignas(kCacheLine) std::atomic<std::uint64_t> head{0};
        alignas(kCacheLine) Doorbell bell; ///< wakes the consumer; used by both sides
    };

    /// The size of the positions in shared memory: one page.
    static constexpr std::size_t kPositionsBytes = 4096;

    /// The producer's private copies of the positions.
    struct Producer {
        std::uint64_t tail = 0;
        std::uint64_t shown = 0; ///< the tail at the last commit
        std::uint64_t head = 0;
    };

    [[nodiscard]] Record record_at(std::uint64_t position) const noexcept {
        const std::byte* at = bytes_ + (position & (capacity_ - 1));
        Record record{};
        std::memcpy(&record.header, at, sizeof record.header);
        record.payload = at + sizeof(Header);
        return record;
    }

    /// The bytes of the record at this position; empty if it is not a datagram.
    [[nodiscard]] std::span<const std::byte> bytes_at(std::uint64_t position) const noexcept {
        const Record record = record_at(position);
        return record.header.kind == static_cast<std::uint8_t>(EventKind::datagram)
                   ? std::span{record.payload, record.header.length}
                   : std::span<const std::byte>{};
    }

    [[nodiscard]] static Event to_event(const Record& record) noexcept;
    [[nodiscard]] std::byte* reserve(std::size_t size) noexcept;

    const std::size_t capacity_;
    // NOLINTNEXTLINE(modernize-avoid-c-arrays): sized at run time, and not zeroed as a vector is
    std::unique_ptr<std::byte[]> own_; ///< empty if the memory is shared
    std::unique_ptr<Positions> own_positions_;
    Positions* positions_;
    std::byte* bytes_;
    alignas(kCacheLine) Producer producer_;
};

/// Copies of an unverified session's datagrams. The observer gets them when the session is
/// verified, and never if it is not.
class HeldCopies {
  public:
    /// Enough for a handshake with repetitions. A handshake of 0.7 takes 1052 bytes.
    static constexpr std::size_t kBytes = 4096;

    /// Stores a copy. From the first copy that does not fit on, copies are only counted, so that only
    /// the last copies are missing.
    void add(base::Timestamp time, Direction direction, std::span<const std::byte> bytes) noexcept {
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

    /// Calls `use(Timestamp, Direction, bytes)` for each copy, in order.
    template <typename Use>
    void for_each(Use&& use) const {
        for (std::size_t at = 0; at < used_;) {
            Header header{};
            std::memcpy(&header, memory_.data() + at, sizeof header);
            at += sizeof header;
            use(header.time, header.direction, std::span{memory_}.subspan(at, header.length));
            at += header.length;
        }
    }

    /// Adds to the numbers of copies that did not fit, by direction.
    void add_lost(const std::array<std::uint64_t, 2>& lost) noexcept {
        lost_[0] += lost[0];
        lost_[1] += lost[1];
    }

    /// The number of copies that did not fit, by direction.
    [[nodiscard]] const std::array<std::uint64_t, 2>& lost() const noexcept { return lost_; }

  private:
    struct Header {
        base::Timestamp time;
        std::uint32_t length;
        Direction direction;
    };

    std::size_t used_ = 0;
    std::array<std::uint64_t, 2> lost_{};
    std::array<std::byte, kBytes> memory_; // NOLINT(*-member-init): as far as it is used
};

} // namespace tw::relay
