#pragma once

#include "proxy/relay/impairment.h"

#include <chrono>
#include <cstddef>
#include <cstdint>

namespace tw::relay {

/// What becomes of one datagram on a bad line.
struct Fate {
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
    [[nodiscard]] Fate next(Time now, std::size_t bytes) noexcept;

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

} // namespace tw::relay
