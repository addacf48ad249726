#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

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

} // namespace tw::relay
