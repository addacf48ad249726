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

/// The simulated network of one direction. It applies to each session separately, so one client's
/// traffic does not use up another's rate.
struct LineImpairment {
    /// The probability 1. Probabilities are in millionths, so that their text form is exact.
    static constexpr std::uint32_t kCertain = 1'000'000;

    std::chrono::microseconds delay{};
    /// Each datagram's delay is drawn uniformly from delay - jitter to delay + jitter. Jitter does not
    /// change the order of datagrams.
    std::chrono::microseconds jitter{};
    std::uint32_t loss = 0;
    std::uint32_t duplicate = 0;
    std::uint32_t reorder = 0; ///< probability that a datagram is sent after the next one
    /// The mean number of consecutive losses, in thousandths. nullopt: losses are independent.
    std::optional<std::uint32_t> burst{};
    /// Bits per second, including 28 bytes of IPv4 and UDP header per datagram.
    std::optional<std::uint64_t> rate{};

    friend bool operator==(const LineImpairment&, const LineImpairment&) = default;
};

/// The simulated network in both directions.
struct Impairment {
    std::array<LineImpairment, 2> directions{}; ///< indexed by Direction
    /// The seed of all random decisions. Equal seeds and equal traffic give equal results.
    std::uint64_t seed = 1;

    /// Whether any setting differs from the default.
    [[nodiscard]] bool active() const noexcept { return directions != decltype(directions){}; }

    friend bool operator==(const Impairment&, const Impairment&) = default;
};

/// The longest delay. A longer one would need very large queues and make every game unplayable.
inline constexpr std::chrono::microseconds kMaxImpairDelay{10'000'000};
/// The lowest rate in bits per second. At this rate a full datagram takes 0.2 s; slower networks
/// are not playable.
inline constexpr std::uint64_t kMinImpairRate = 64'000;
inline constexpr std::uint64_t kMaxImpairRate = 100'000'000'000;
/// The longest mean burst, in datagrams.
inline constexpr std::uint32_t kMaxImpairBurst = 1000;

/// Reads `s2c:delay=40ms,jitter=10ms,loss=2%;c2s:loss=1%`, or `none`.
///
/// Layout:  sections separated by ';', each `c2s:` or `s2c:` or nothing (both directions) and
///          settings `name=value` separated by ','. Spaces do not matter.
///          delay, jitter: `us`, `ms` or `s`; loss, dup, reorder: `%`; burst: a number of datagrams
///          from 1; rate: `kbit`, `mbit` or `gbit` (a second).
/// Errors:  one line that says what is wrong and what is expected. A repeated setting is an error.
[[nodiscard]] tl::expected<Impairment, std::string> parse_impairment(std::string_view text,
                                                                     std::uint64_t seed = 1);

/// Returns the settings as text for parse_impairment(), without the seed; `none` if the impairment is
/// not active.
[[nodiscard]] std::string to_string(const Impairment& impairment);

/// The decision about one datagram.
struct ImpairmentResult {
    enum class Outcome : std::uint8_t {
        pass,
        lost,
        rate_dropped, ///< dropped: too many bytes are queued at the rate limit
    };

    Outcome outcome = Outcome::pass;
    bool duplicate = false;
    bool reorder = false;                           ///< the datagram is sent after the next one
    std::chrono::steady_clock::time_point leaves{}; ///< when the datagram is sent
};

/// Decides what happens to each datagram of one direction of one session. Uses no clock and no
/// socket.
///
/// Random decisions depend on the key, the datagram's number and, with `burst`, earlier datagrams,
/// but never on time. So equal traffic has equal results on any machine, except for what `rate`
/// drops.
class ImpairedDirection {
  public:
    using Time = std::chrono::steady_clock::time_point;

    /// The longest queueing time at a rate limit; further datagrams are dropped. Home routers queue
    /// about as much.
    static constexpr std::chrono::milliseconds kMaxRateWait{200};
    /// The bytes that are sent at once after a pause, even with a rate limit: one full datagram.
    static constexpr std::size_t kRateBurstBytes = 1500;
    /// IPv4 and UDP header.
    static constexpr std::size_t kHeaderBytes = 28;

    ImpairedDirection(const LineImpairment& impairment, std::uint64_t key) noexcept
        : impairment_{impairment}, key_{key} {}

    /// Decides about the next datagram, which has this many bytes.
    [[nodiscard]] ImpairmentResult decide_next(Time now, std::size_t bytes) noexcept;

  private:
    /// The random numbers drawn for each datagram. All are always drawn, so that one setting does
    /// not change the results of another.
    enum class Draw : std::uint8_t { loss, duplicate, reorder, jitter, count };

    [[nodiscard]] std::uint64_t draw_number(Draw what) const noexcept;
    [[nodiscard]] bool draw_chance(Draw what, std::uint32_t share) const noexcept;
    [[nodiscard]] bool is_lost() noexcept;
    [[nodiscard]] std::chrono::microseconds delay() const noexcept;

    LineImpairment impairment_;
    std::uint64_t key_;
    std::uint64_t number_ = 0;
    bool losing_ = false; ///< with `burst`: a burst is under way, so every datagram is lost
    Time rate_free_{};    ///< when the last accepted datagram has passed the rate limit
    Time last_leaves_{};
};

/// Returns the key for the random decisions in one direction of a session.
[[nodiscard]] std::uint64_t direction_key(std::uint64_t seed, std::uint32_t session,
                                          std::size_t direction) noexcept;

/// The impairment of one session in both directions, and the number of its waiting datagrams.
struct SessionImpairment {
    /// A reordered datagram, which waits until the next one is sent.
    struct HeldDatagram {
        std::size_t slot = 0;    ///< index of the datagram in the Impairer
        std::uint64_t order = 0; ///< 0: no datagram is held
        /// When the held datagram is sent if no other one follows.
        ImpairedDirection::Time leaves{};
    };

    SessionImpairment(const Impairment& impairment, std::uint32_t number) noexcept;

    /// Restarts both directions as for a new session; waiting datagrams are kept.
    void restart(const Impairment& impairment, std::uint32_t number) noexcept;

    std::uint32_t session; ///< the number on which the session's random decisions depend
    std::array<ImpairedDirection, 2> lines;
    std::array<HeldDatagram, 2> held{};
    /// Number of waiting datagrams; the session must not be freed while it is not 0.
    std::size_t waiting = 0;
};

/// Delays, drops, duplicates and reorders datagrams as each session's ImpairedDirection decides. Uses
/// no clock and no socket: the caller passes the time.
///
/// Memory:  at most kMaxDatagrams and kMaxBytes wait; further datagrams are dropped and counted.
class Impairer {
  public:
    using Time = ImpairedDirection::Time;

    /// Enough for 128 players with 100 datagrams a second in each direction, for 2.5 s.
    static constexpr std::size_t kMaxDatagrams = 65'536;
    static constexpr std::size_t kMaxBytes = std::size_t{64} << 20U;
    /// The longest time for which a reordered datagram waits for the next one: two snapshot intervals.
    static constexpr std::chrono::milliseconds kMaxHold{80};

    /// Counts results in `fates`, which is indexed by Direction.
    Impairer(const Impairment& impairment, std::array<ImpairmentTotals<Counter>, 2>& fates)
        : impairment_{impairment}, fates_{&fates} {}

    [[nodiscard]] const Impairment& impairment() const noexcept { return impairment_; }

    /// Queues a datagram. `owner` is passed to the handler of release_due(). Owner and session must live
    /// until release_due() has handled the datagram.
    void enqueue(void* owner, SessionImpairment& session, Direction direction,
                 std::span<const std::byte> bytes, Time now);

    /// Calls handler(void* owner, Direction, std::span<const std::byte>) for each due datagram, in
    /// order.
    template <typename Handler>
    void release_due(Time now, Handler&& handler) {
        while (const auto slot = pop_due_slot(now)) {
            DatagramSlot& leaving = slots_[*slot];
            handler(leaving.owner, leaving.direction, std::span<const std::byte>{leaving.bytes});
            free_slot(*slot);
        }
    }

    /// When the next datagram is due; nullopt if none waits.
    [[nodiscard]] std::optional<Time> next_due() noexcept;

    [[nodiscard]] std::size_t waiting() const noexcept { return slots_.size() - free_.size(); }

  private:
    /// Buffers above this size are freed after use, and smaller ones are reused. The game's datagrams
    /// fit into smaller ones.
    static constexpr std::size_t kMaxReusedBytes = 2048;

    struct DatagramSlot {
        void* owner = nullptr;
        SessionImpairment* session = nullptr;
        Direction direction = Direction::c2s;
        /// Order of the valid heap entry for this slot; 0: the slot is empty.
        std::uint64_t order = 0;
        std::vector<std::byte> bytes;
    };

    struct DueDatagram {
        Time leaves;
        std::uint64_t order;
        std::size_t slot;
    };

    /// Heap order: the earliest time on top, then the lowest order.
    struct IsLater {
        bool operator()(const DueDatagram& left, const DueDatagram& right) const noexcept {
            return left.leaves != right.leaves ? left.leaves > right.leaves
                                               : left.order > right.order;
        }
    };

    [[nodiscard]] std::optional<std::size_t> push(void* owner, SessionImpairment& session,
                                                  Direction direction,
                                                  std::span<const std::byte> bytes, Time leaves);
    void schedule_slot(std::size_t slot, Time leaves);
    void schedule_overtaken(SessionImpairment::HeldDatagram& held, Time leaves);
    void drop_stale_entries() noexcept;
    [[nodiscard]] std::optional<std::size_t> pop_due_slot(Time now) noexcept;
    void free_slot(std::size_t slot) noexcept;

    Impairment impairment_;
    std::array<ImpairmentTotals<Counter>, 2>* fates_;
    std::vector<DatagramSlot> slots_;
    std::vector<std::size_t> free_;
    /// An entry is stale if its order differs from its slot's order.
    std::vector<DueDatagram> heap_;
    std::size_t bytes_ = 0;
    std::uint64_t last_order_ = 0;
};

} // namespace tw::relay
