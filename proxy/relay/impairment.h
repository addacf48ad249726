#pragma once

#include "proxy/relay/counters.h"
#include "proxy/relay/ring.h"

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <tl/expected.hpp>

namespace tw::relay {

/// How one direction of every session's line is made worse. Each session has lines of its own: what
/// one client sends takes nothing from another's rate.
struct LineImpairment {
    /// Probabilities count in millionths, so that what is written can be read back exactly.
    static constexpr std::uint32_t kCertain = 1'000'000;

    std::chrono::microseconds delay{};
    std::chrono::microseconds jitter{}; ///< evenly within delay +- jitter; order is kept
    std::uint32_t loss = 0;
    std::uint32_t duplicate = 0;
    std::uint32_t reorder = 0; ///< comes behind the next one
    /// How many datagrams are lost in a row on average, in thousandths; nothing: each loss is
    /// independent of the one before it.
    std::optional<std::uint32_t> burst{};
    /// Bits a second, 28 bytes of IPv4 and UDP header counted with each datagram.
    std::optional<std::uint64_t> rate{};

    friend bool operator==(const LineImpairment&, const LineImpairment&) = default;
};

/// How lines are made worse, in both directions.
struct Impairment {
    std::array<LineImpairment, 2> directions{}; ///< indexed by Direction
    /// The same seed and the same traffic have the same fate.
    std::uint64_t seed = 1;

    /// Whether anything is done to any datagram.
    [[nodiscard]] bool active() const noexcept { return directions != decltype(directions){}; }

    friend bool operator==(const Impairment&, const Impairment&) = default;
};

/// More would need queues that nobody has memory for, and no game is played with.
inline constexpr std::chrono::microseconds kMaxImpairDelay{10'000'000};
/// At this rate one full datagram takes 0.2 s: slower lines play no game.
inline constexpr std::uint64_t kMinImpairRate = 64'000;
inline constexpr std::uint64_t kMaxImpairRate = 100'000'000'000;
/// Mean length of a burst, in datagrams.
inline constexpr std::uint32_t kMaxImpairBurst = 1000;

/// Reads `s2c:delay=40ms,jitter=10ms,loss=2%;c2s:loss=1%`, or `none`.
///
/// Layout:  sections separated by ';', each `c2s:` or `s2c:` or nothing (both directions) and
///          settings `name=value` separated by ','. Spaces do not matter.
///          delay, jitter: `us`, `ms` or `s`; loss, dup, reorder: `%`; burst: a number of datagrams
///          from 1; rate: `kbit`, `mbit` or `gbit` (a second).
/// Errors:  one line that says what is wrong and what would be right; so that nothing is silently
///          overruled, naming the same thing twice is one.
[[nodiscard]] tl::expected<Impairment, std::string> parse_impairment(std::string_view text,
                                                                     std::uint64_t seed = 1);

/// What parse_impairment reads as the same (the seed apart); `none` when nothing is done.
[[nodiscard]] std::string to_string(const Impairment& impairment);

/// What becomes of one datagram on a bad line.
struct ImpairmentResult {
    enum class Outcome : std::uint8_t {
        pass,
        lost,
        rate_dropped, ///< too much was ahead of it on a line with a rate
    };

    Outcome outcome = Outcome::pass;
    bool duplicate = false;
    bool reorder = false; ///< leaves behind the next one
    std::chrono::steady_clock::time_point leaves{};
};

/// One direction of one session's line: decides the fate of each datagram. Knows no clock and no
/// socket.
///
/// What chance decides depends on the key, the datagram's number and, with `burst`, on the ones
/// before it; never on time. So the same traffic has the same fate, however fast the machine is;
/// only what a `rate` drops depends on when datagrams come.
class Line {
  public:
    using Time = std::chrono::steady_clock::time_point;

    /// A line with a rate holds what leaves within this time; more is dropped. Home routers hold
    /// about as much.
    static constexpr std::chrono::milliseconds kMaxRateWait{200};
    /// What may leave at once on a line that was idle: one full datagram.
    static constexpr std::size_t kRateBurstBytes = 1500;
    /// IPv4 and UDP header.
    static constexpr std::size_t kHeaderBytes = 28;

    Line(const LineImpairment& impairment, std::uint64_t key) noexcept
        : impairment_{impairment}, key_{key} {}

    /// The fate of the next datagram of that many bytes.
    [[nodiscard]] ImpairmentResult next(Time now, std::size_t bytes) noexcept;

  private:
    /// What is drawn for each datagram; always all of them, so that one setting does not change
    /// what another does.
    enum class Draw : std::uint8_t { loss, duplicate, reorder, jitter, count };

    [[nodiscard]] std::uint64_t draw(Draw what) const noexcept;
    [[nodiscard]] bool happens(Draw what, std::uint32_t share) const noexcept;
    [[nodiscard]] bool is_lost() noexcept;
    [[nodiscard]] std::chrono::microseconds delay() const noexcept;

    LineImpairment impairment_;
    std::uint64_t key_;
    std::uint64_t number_ = 0;
    bool losing_ = false; ///< with `burst`: in the state that loses everything
    Time rate_free_{};    ///< when all that was accepted has left a line with a rate
    Time last_leaves_{};
};

/// The key of a session's line: unlike those of all others.
[[nodiscard]] std::uint64_t line_key(std::uint64_t seed, std::uint32_t session,
                                     std::size_t direction) noexcept;

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
