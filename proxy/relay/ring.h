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

/// Lets one thread sleep until another one rings, of the same process or of another that shares the
/// memory. Ringing never waits, and costs no system call while nobody sleeps. Zeros at first.
///
/// Whoever rings first shows what there is to see by a sequentially consistent store, and whoever
/// goes to sleep looks for it by such a load: then one of the two always sees the other.
class Doorbell {
  public:
    void ring() noexcept {
        if (sleeps_.load(std::memory_order_seq_cst) != 0) {
            wake();
        }
    }

    /// Sleeps until somebody rings, or the time has come, or some while before that. Returns at
    /// once when `awake()` says that there is something to do. One thread's at a time.
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

/// c2s: from the game client to the server; s2c: the other way.
enum class Direction : std::uint8_t { c2s, s2c };

enum class CloseReason : std::uint8_t {
    idle,
    shutdown,
    handed_over, ///< it goes on in another relay
    removed,     ///< its server was taken out
    displaced,   ///< another one needed its place
    turned,      ///< what was taken for its server is the client
};

/// Why copies are missing.
enum class GapReason : std::uint8_t {
    ring_full,      ///< the observer was too slow
    new_observer,   ///< another one looked at the session until now, or none
    kernel_dropped, ///< the kernel had no room for what it was to show; nobody knows whose it was
};

enum class EventKind : std::uint8_t {
    open,     ///< a session began; always before anything else of the session
    datagram, ///< a datagram that was passed on (or tried to)
    close,    ///< the session's last event
    gap,      ///< copies are missing here: `lost` datagrams
    observer, ///< what follows is for the observer with the number `session`
    resync,   ///< the session's next datagram reached the server written anew (see Resync)
};

/// What the relay reports to its observer.
struct Event {
    EventKind kind = EventKind::datagram;
    Direction direction = Direction::c2s;   ///< datagram, gap
    CloseReason reason = CloseReason::idle; ///< close
    GapReason gap = GapReason::ring_full;   ///< gap
    std::uint32_t session = 0; ///< from 1; 0 only in a gap: of sessions never announced
                               ///< observer: its number
    base::Timestamp time = 0;
    std::uint64_t lost = 0;           ///< gap: how many datagrams
    base::Endpoint client;            ///< open: who
    base::Endpoint upstream;          ///< open: the relay's own address towards the server
    base::Endpoint server;            ///< open: to whom
    std::uint16_t server_index = 0;   ///< open: which of the relay's servers that is
    std::span<const std::byte> bytes; ///< datagram: valid only during the handler's call
    std::span<const std::byte>
        next; ///< consumer: those of the event behind this one, if it is there
              ///< already and has some; valid until its handler's call ends
};

/// A bounded ring of events between one relay thread (producer) and one observer thread (consumer),
/// of one process or of two.
///
/// Never blocks, never allocates after construction. Pushed events become visible with `commit`, so
/// that a batch of datagrams costs one store, and a system call only when the consumer sleeps.
/// Nothing that a consumer gone mad may write into shared memory makes the producer write outside of
/// it, or wait: its own position and the capacity are its own.
///
/// Layout:  records of 32 bytes (header) and up, aligned to 32, each in one piece; what does not
///          fit before the ring's end is padded over.
class Ring {
  public:
    /// Large enough for any datagram twice: once as padding, once as record.
    static constexpr std::size_t kMinBytes = std::size_t{1} << 18U;

    /// In memory of its own. `bytes` is rounded up to a power of two of at least kMinBytes.
    explicit Ring(std::size_t bytes);

    /// In memory shared by producer and consumer, each of which makes a Ring over it; zeroed at
    /// first, `shared_bytes(…)` long, and aligned to a page.
    explicit Ring(std::span<std::byte> shared);

    /// How much shared memory a ring of so many bytes takes.
    [[nodiscard]] static std::size_t shared_bytes(std::size_t bytes) noexcept;

    // Producer.

    /// Writes an event behind the others; false when there is no room, which counts as dropped.
    [[nodiscard]] bool try_push(const Event& event) noexcept;

    /// Whether an event of that many bytes is sure to fit.
    [[nodiscard]] bool has_room(std::size_t bytes) noexcept;

    /// Bytes pushed and not yet consumed: where it is more than half of the ring exactly, else at
    /// most so many.
    [[nodiscard]] std::size_t backlog() noexcept {
        if (producer_.tail - producer_.head > capacity_ / 2) {
            producer_.head = positions_->head.load(std::memory_order_acquire);
        }
        return static_cast<std::size_t>(producer_.tail - producer_.head);
    }

    /// Shows the consumer all that was pushed, and wakes it.
    void commit() noexcept {
        if (producer_.tail != producer_.shown) {
            producer_.shown = producer_.tail;
            positions_->tail.store(producer_.tail, std::memory_order_seq_cst);
            positions_->bell.ring();
        }
    }

    // Consumer.

    /// Hands up to `max` events in order to `handler(const Event&)`; returns how many.
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

    /// Sleeps until there are events, or somebody calls wake(), or the time has come, or some while
    /// before that. `awake()` says whether there is something else to do; what it looks at is
    /// written with sequential consistency before wake() is called.
    template <typename Awake>
    void sleep_until(base::Clock::time_point time, Awake&& awake) noexcept {
        positions_->bell.sleep_until(time, [&] {
            return positions_->tail.load(std::memory_order_seq_cst) !=
                       positions_->head.load(std::memory_order_relaxed) ||
                   awake();
        });
    }

    // Anyone.

    /// Wakes the consumer.
    void wake() noexcept { positions_->bell.ring(); }

    /// Events that found no room so far.
    [[nodiscard]] std::uint64_t dropped() const noexcept {
        return positions_->dropped.load(std::memory_order_relaxed);
    }

    [[nodiscard]] std::size_t capacity() const noexcept { return capacity_; }

    /// Bytes written and not yet consumed: how far the observer is behind.
    [[nodiscard]] std::size_t used() const noexcept {
        const auto head = positions_->head.load(std::memory_order_acquire);
        return static_cast<std::size_t>(positions_->tail.load(std::memory_order_acquire) - head);
    }

    /// Bytes consumed since the beginning, padding included: moves while somebody looks.
    [[nodiscard]] std::uint64_t consumed() const noexcept {
        return positions_->head.load(std::memory_order_relaxed);
    }

  private:
    static constexpr std::size_t kAlign = 32;
    static constexpr std::size_t kCacheLine = 64;
    /// The consumer frees room at least this often, so that a long batch does not starve the relay.
    static constexpr std::uint64_t kReleaseBytes = 16'384;
    static constexpr std::uint8_t kPadding = 0xff;

    struct Header {
        std::uint32_t size;   ///< of the whole record
        std::uint32_t length; ///< of the payload
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

    /// What both sides see; each side writes its own cache line.
    struct Positions {
        alignas(kCacheLine) std::atomic<std::uint64_t> tail{0};
        std::atomic<std::uint64_t> dropped{0};
        alignas(kCacheLine) std::atomic<std::uint64_t> head{0};
        alignas(kCacheLine) Doorbell bell; ///< both sides': the consumer's sleep
    };

    /// What they take of shared memory: a page.
    static constexpr std::size_t kPositionsBytes = 4096;

    /// The producer's own view: its position, and the consumer's as last read.
    struct Producer {
        std::uint64_t tail = 0;
        std::uint64_t shown = 0; ///< the tail as last committed
        std::uint64_t head = 0;
    };

    [[nodiscard]] Record record_at(std::uint64_t position) const noexcept {
        const std::byte* at = bytes_ + (position & (capacity_ - 1));
        Record record{};
        std::memcpy(&record.header, at, sizeof record.header);
        record.payload = at + sizeof(Header);
        return record;
    }

    /// Those of a datagram.
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
    std::unique_ptr<std::byte[]> own_; ///< empty: the memory is shared
    std::unique_ptr<Positions> own_positions_;
    Positions* positions_;
    std::byte* bytes_;
    alignas(kCacheLine) Producer producer_;
};

/// Copies of what a session said before it was proven. The observer gets them when it is, and never
/// hears of one that is not.
class HeldCopies {
  public:
    /// A handshake with its repetitions; one of 0.7 takes 1052 bytes.
    static constexpr std::size_t kBytes = 4096;

    /// Copies that do not fit are counted, and so are all after them: what is left out stands at
    /// the end.
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

    /// Calls `use(Timestamp, Direction, bytes)` for each, in order.
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

    /// Counts on behind so many that did not fit.
    void lose(const std::array<std::uint64_t, 2>& lost) noexcept {
        lost_[0] += lost[0];
        lost_[1] += lost[1];
    }

    /// How many did not fit, by direction.
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
