#pragma once

#include "proxy/relay/counters.h"
#include "proxy/relay/line.h"
#include "proxy/relay/ring.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace tw::relay {

/// One session's lines, and what waits to leave them.
struct SessionLines {
    /// A datagram that waits to be overtaken.
    struct Held {
        std::size_t slot = 0;
        std::uint64_t order = 0; ///< 0: none
        Line::Time leaves{};     ///< when nothing overtakes it
    };

    SessionLines(const Impairment& impairment, std::uint32_t number) noexcept;

    /// As the lines of a new session; what waits goes on waiting.
    void begin(const Impairment& impairment, std::uint32_t number) noexcept;

    std::uint32_t session; ///< its number
    std::array<Line, 2> lines;
    std::array<Held, 2> held{};
    std::size_t waiting = 0; ///< datagrams; a session with any must not end
};

/// Lets datagrams wait, get lost, double and overtake each other as their lines say. Knows no clock
/// and no socket: time comes in, datagrams come out.
///
/// Memory:  at most kMaxDatagrams and kMaxBytes wait; what does not fit is dropped and counted.
class Impairer {
  public:
    using Time = Line::Time;

    /// 128 players, 100 datagrams a second each, for 2.5 s in both directions.
    static constexpr std::size_t kMaxDatagrams = 65'536;
    static constexpr std::size_t kMaxBytes = std::size_t{64} << 20U;
    /// How long a datagram waits to be overtaken when nothing follows: two snapshots' distance.
    static constexpr std::chrono::milliseconds kMaxHold{80};

    /// Counts what happens in `fates`, by direction.
    Impairer(const Impairment& impairment, std::array<FateTotals<Counter>, 2>& fates)
        : impairment_{impairment}, fates_{&fates} {}

    [[nodiscard]] const Impairment& impairment() const noexcept { return impairment_; }

    /// Takes a datagram. `owner` comes back with it; both must live as long as it waits.
    void accept(void* owner, SessionLines& session, Direction direction,
                std::span<const std::byte> bytes, Time now);

    /// Hands over what has to leave by now, in order:
    /// `handler(void* owner, Direction, std::span<const std::byte>)`.
    template <typename Handler>
    void release(Time now, Handler&& handler) {
        while (const auto slot = pop(now)) {
            Slot& leaving = slots_[*slot];
            handler(leaving.owner, leaving.direction, std::span<const std::byte>{leaving.bytes});
            give_back(*slot);
        }
    }

    /// When the next one has to leave.
    [[nodiscard]] std::optional<Time> next() noexcept;

    [[nodiscard]] std::size_t waiting() const noexcept { return slots_.size() - free_.size(); }

  private:
    /// Buffers up to this size are kept for the next datagram; the game's are smaller.
    static constexpr std::size_t kKeptBytes = 2048;

    struct Slot {
        void* owner = nullptr;
        SessionLines* session = nullptr;
        Direction direction = Direction::c2s;
        std::uint64_t order = 0; ///< of the entry that counts; 0: empty
        std::vector<std::byte> bytes;
    };

    struct Entry {
        Time leaves;
        std::uint64_t order;
        std::size_t slot;
    };

    /// A heap's order: the earliest on top, of several the first that came.
    struct Later {
        bool operator()(const Entry& left, const Entry& right) const noexcept {
            return left.leaves != right.leaves ? left.leaves > right.leaves
                                               : left.order > right.order;
        }
    };

    [[nodiscard]] std::optional<std::size_t> push(void* owner, SessionLines& session,
                                                  Direction direction,
                                                  std::span<const std::byte> bytes, Time leaves);
    void enter(std::size_t slot, Time leaves);
    void let_overtaken_leave(SessionLines::Held& held, Time leaves);
    void drop_stale() noexcept;
    [[nodiscard]] std::optional<std::size_t> pop(Time now) noexcept;
    void give_back(std::size_t slot) noexcept;

    Impairment impairment_;
    std::array<FateTotals<Counter>, 2>* fates_;
    std::vector<Slot> slots_;
    std::vector<std::size_t> free_;
    std::vector<Entry> heap_; ///< entries whose order is not their slot's any more count nothing
    std::size_t bytes_ = 0;
    std::uint64_t last_order_ = 0;
};

} // namespace tw::relay
