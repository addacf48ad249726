#pragma once

#include "proxy/relay/counters.h"
#include "proxy/relay/ring.h"

#include <array>
#include <chrono>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory_resource>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <tl/expected.hpp>

namespace tw::relay {

/// The settings of the simulated network in one direction. They apply to each session separately,
/// so one client's traffic does not use up another client's rate.
struct DirectionImpairment {
    /// The probability 1. Probabilities are whole millionths, so that a number such as 0.05 is read
    /// and printed without rounding.
    static constexpr std::uint64_t kCertainPpm = 1'000'000;

    std::uint64_t delay_us = 0;
    /// Each datagram's delay is random, evenly distributed from delay - jitter to delay + jitter.
    /// Jitter does not change the order of datagrams.
    std::uint64_t jitter_us = 0;
    std::uint64_t loss_ppm = 0;
    std::uint64_t duplicate_ppm = 0;
    /// Probability that a datagram is sent after the datagram that follows it.
    std::uint64_t reorder_ppm = 0;
    /// The mean number of consecutive losses, in thousandths; 0: losses are independent.
    std::uint64_t burst_thousandths = 0;
    /// The most bits per second, including 28 bytes of headers per datagram; 0: no limit.
    std::uint64_t bits_per_second = 0;

    friend bool operator==(const DirectionImpairment&, const DirectionImpairment&) = default;
};

/// The settings of the simulated network in both directions.
struct Impairment {
    std::array<DirectionImpairment, 2> directions{}; ///< indexed by Direction
    /// The seed of all random decisions. Equal seeds and equal traffic give equal results.
    std::uint64_t seed = 1;

    /// Returns whether any setting, except the seed, differs from the default.
    [[nodiscard]] bool is_active() const noexcept { return directions != decltype(directions){}; }

    friend bool operator==(const Impairment&, const Impairment&) = default;
};

/// The longest delay that can be set. A longer delay would make games unplayable.
inline constexpr std::uint64_t kMaxImpairDelayUs = 10'000'000;
/// The lowest rate that can be set, in bits per second. At this rate a full datagram takes 0.2 s;
/// slower networks are not playable.
inline constexpr std::uint64_t kMinImpairBitsPerSecond = 64'000;
inline constexpr std::uint64_t kMaxImpairBitsPerSecond = 100'000'000'000;
/// The longest mean burst that can be set, in datagrams.
inline constexpr std::uint64_t kMaxImpairBurstDatagrams = 1000;

/// Parses a text like `s2c:delay=40ms,jitter=10ms,loss=2%;c2s:loss=1%`, or `none`.
///
/// Layout:  sections separated by ';', each `c2s:` or `s2c:` or nothing (both directions) and
/// settings `name=value` separated by ','. Spaces do not matter. delay, jitter: `us`, `ms` or `s`;
/// loss, dup, reorder: `%`; burst: a number of datagrams from 1; rate: `kbit`, `mbit` or `gbit` (a
/// second).
/// Errors:  returns one line for the user. A repeated setting is an error.
[[nodiscard]] tl::expected<Impairment, std::string> parse_impairment(std::string_view text,
                                                                     std::uint64_t seed = 1);

/// Returns the settings, without the seed, as text for parse_impairment(). Returns `none` if all
/// settings have their default values.
[[nodiscard]] std::string to_string(const Impairment& impairment);

/// Tells what happens to one datagram in the simulated network.
struct ImpairmentDecision {
    enum class Outcome : std::uint8_t {
        pass,
        dropped_by_chance,
        dropped_by_rate, ///< too many bytes are queued at the rate limit
    };

    Outcome outcome = Outcome::pass;
    bool is_duplicated = false;
    bool is_reordered = false; ///< the datagram is sent after the datagram that follows it
    std::chrono::steady_clock::time_point send_time{}; ///< when the datagram is sent
};

/// Decides what happens to each datagram of a session in one direction. Uses no clock and no
/// socket.
///
/// Random decisions depend on the key, the datagram's number and, with `burst`, earlier datagrams,
/// but never on time. So the same traffic loses the same datagrams each time, except datagrams that
/// `rate` drops.
class ImpairedDirection {
  public:
    using Time = std::chrono::steady_clock::time_point;

    /// The longest time for which a datagram waits because of a rate limit. A datagram that would
    /// wait longer is dropped. Home routers queue about as much.
    static constexpr std::chrono::milliseconds kMaxRateWait{200};
    /// The most bytes sent at once after a pause if a rate is set: one full datagram.
    static constexpr std::size_t kRateBurstBytes = 1500;
    /// The size of an IPv4 header and a UDP header.
    static constexpr std::size_t kHeaderBytes = 28;

    ImpairedDirection() = default;

    ImpairedDirection(const DirectionImpairment& impairment, std::uint64_t key) noexcept
        : impairment_{impairment}, key_{key} {}

    [[nodiscard]] ImpairmentDecision decide_next_datagram(Time now, std::size_t bytes) noexcept;

  private:
    /// The random numbers that are drawn for each datagram. All of them are always drawn, so that
    /// one setting does not change the effect of another.
    enum class RandomDraw : std::uint8_t { loss, duplicate, reorder, jitter, count };

    [[nodiscard]] std::uint64_t draw_random_number(RandomDraw what) const noexcept;
    [[nodiscard]] bool happens_by_chance(RandomDraw what, std::uint64_t share) const noexcept;
    [[nodiscard]] bool decide_loss() noexcept;
    [[nodiscard]] std::chrono::microseconds draw_delay() const noexcept;

    DirectionImpairment impairment_;
    std::uint64_t key_ = 0;
    std::uint64_t number_ = 0; ///< number of earlier datagrams
    bool is_in_burst_ = false; ///< with `burst`: true while every datagram is lost
    Time rate_allows_next_{};  ///< when the rate limit allows the next datagram
    Time last_send_time_{};    ///< when the previous datagram is sent
};

/// The position of a datagram in the queue. Datagrams with equal send times are sent in the order
/// of their numbers (`order`).
struct DueTime {
    ImpairedDirection::Time send_time{};
    std::uint64_t order = 0; ///< number of the queued datagram, from 1; 0: no datagram

    friend auto operator<=>(const DueTime&, const DueTime&) = default;
};

/// The state of the simulated network of one session, in both directions.
struct SessionImpairment {
    /// Resets both directions for the session with this number. Waiting datagrams stay in the
    /// queue.
    void restart(const Impairment& impairment, std::uint32_t number) noexcept;

    /// Session::number, on which the random decisions depend; 0 before restart().
    std::uint32_t session_number = 0;
    std::array<ImpairedDirection, 2> directions{}; ///< indexed by Direction
    /// For each direction, the queue position of the reordered datagram that waits. This datagram
    /// is sent right after the session's next datagram in the same direction, but at the latest at
    /// its due time.
    std::array<DueTime, 2> reordered{};
    /// The number of the session's queued datagrams. While it is not 0, this object must not be
    /// freed.
    std::size_t num_waiting = 0;
};

/// A queue of datagrams that delays, drops, duplicates and reorders them as each session's
/// ImpairedDirection decides. Uses no clock and no socket: the caller passes the time.
///
/// Memory:  at most kMaxDatagrams datagrams wait, with at most kMaxBytes in all. Further datagrams
/// are dropped and counted. The memory of a sent datagram is reused for later datagrams.
class ImpairmentQueue {
  public:
    using Time = ImpairedDirection::Time;

    /// The largest number of datagrams that may wait: enough for 2.5 s of 128 players with 100
    /// datagrams a second each way.
    static constexpr std::size_t kMaxDatagrams = 65'536;
    static constexpr std::size_t kMaxBytes = std::size_t{64} << 20U;
    /// How long a reordered datagram waits for the next datagram: two snapshot intervals.
    static constexpr std::chrono::milliseconds kMaxReorderHold{80};

    /// `totals`: counts lost, duplicated and reordered datagrams; indexed by Direction.
    ImpairmentQueue(const Impairment& impairment, std::array<ImpairmentTotals<Counter>, 2>& totals)
        : impairment_{impairment}, totals_{&totals} {}

    [[nodiscard]] const Impairment& impairment() const noexcept { return impairment_; }

    /// Queues a datagram. `owner` is passed to the handler of release_due_datagrams(). `owner` and
    /// `session` must live until release_due_datagrams() has handled the datagram.
    void enqueue_datagram(void* owner, SessionImpairment& session, Direction direction,
                          std::span<const std::byte> bytes, Time now);

    /// Removes the due datagrams from the queue. Calls handler(void* owner, Direction,
    /// std::span<const std::byte>) for each of them, in order.
    template <typename Handler>
    void release_due_datagrams(Time now, Handler&& handler) {
        while (!queue_.empty() && queue_.begin()->first.send_time <= now) {
            const auto leaving = queue_.extract(queue_.begin());
            const WaitingDatagram& datagram = leaving.mapped();
            handler(datagram.owner, datagram.direction, std::span<const std::byte>{datagram.bytes});
            bytes_ -= datagram.bytes.size();
            --datagram.session->num_waiting;
        }
    }

    /// Returns when the next datagram is due; nullopt if no datagram waits.
    [[nodiscard]] std::optional<Time> next_due_time() const noexcept {
        return queue_.empty() ? std::nullopt : std::optional{queue_.begin()->first.send_time};
    }

    [[nodiscard]] std::size_t num_waiting() const noexcept { return queue_.size(); }

  private:
    struct WaitingDatagram {
        void* owner;
        SessionImpairment* session;
        Direction direction;
        std::pmr::vector<std::byte> bytes;
    };

    [[nodiscard]] std::optional<DueTime> push_datagram(void* owner, SessionImpairment& session,
                                                       Direction direction,
                                                       std::span<const std::byte> bytes,
                                                       Time leaves);

    Impairment impairment_;
    std::array<ImpairmentTotals<Counter>, 2>* totals_;
    std::pmr::unsynchronized_pool_resource memory_;
    std::pmr::map<DueTime, WaitingDatagram> queue_{&memory_};
    std::size_t bytes_ = 0;
    std::uint64_t last_order_ = 0;
};

} // namespace tw::relay
