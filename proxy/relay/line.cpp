#include "proxy/relay/line.h"

#include <algorithm>

namespace tw::relay {

namespace {

using std::chrono::microseconds;
using std::chrono::nanoseconds;

/// SplitMix64's finalizer: neighbouring numbers become unrelated ones.
constexpr std::uint64_t mix(std::uint64_t value) noexcept {
    value += 0x9e3779b97f4a7c15U;
    value = (value ^ (value >> 30U)) * 0xbf58476d1ce4e5b9U;
    value = (value ^ (value >> 27U)) * 0x94d049bb133111ebU;
    return value ^ (value >> 31U);
}

/// The draw as a number from 0 up to, but not, `end`.
constexpr std::uint64_t below(std::uint64_t drawn, std::uint64_t end) noexcept {
    return (drawn >> 32U) * end >> 32U;
}

/// From 0 up to, but not, 1.
constexpr double unit(std::uint64_t drawn) noexcept {
    constexpr double kStep = 1.0 / static_cast<double>(std::uint64_t{1} << 53U);
    return static_cast<double>(drawn >> 11U) * kStep;
}

nanoseconds time_on_line(std::size_t bytes, std::uint64_t bits_a_second) noexcept {
    constexpr std::uint64_t kSecond = 1'000'000'000;
    return nanoseconds{static_cast<std::int64_t>(bytes * 8 * kSecond / bits_a_second)};
}

} // namespace

std::uint64_t line_key(std::uint64_t seed, std::uint32_t session, std::size_t direction) noexcept {
    return mix(mix(seed) + std::uint64_t{session} * 2 + direction);
}

std::uint64_t Line::draw(Draw what) const noexcept {
    return mix(key_ + number_ * static_cast<std::uint64_t>(Draw::count) +
               static_cast<std::uint64_t>(what));
}

bool Line::happens(Draw what, std::uint32_t share) const noexcept {
    return below(draw(what), LineImpairment::kCertain) < share;
}

/// With `burst` this is Gilbert's model: a state that loses all and one that loses nothing. The
/// chance to leave the first makes the bursts as long as wanted, the chance to enter it makes the
/// loss as much as wanted.
bool Line::is_lost() noexcept {
    if (!impairment_.burst) {
        return happens(Draw::loss, impairment_.loss);
    }
    constexpr double kThousand = 1000;
    const double leave = kThousand / static_cast<double>(*impairment_.burst);
    const double loss = static_cast<double>(impairment_.loss) / LineImpairment::kCertain;
    const double enter = leave * loss / (1 - loss);
    const double drawn = unit(draw(Draw::loss));
    losing_ = losing_ ? drawn >= leave : drawn < enter;
    return losing_;
}

microseconds Line::delay() const noexcept {
    const auto jitter = static_cast<std::uint64_t>(impairment_.jitter.count());
    const auto drawn = below(draw(Draw::jitter), 2 * jitter + 1);
    return impairment_.delay - impairment_.jitter + microseconds{static_cast<std::int64_t>(drawn)};
}

Fate Line::next(Time now, std::size_t bytes) noexcept {
    Fate fate;
    if (is_lost()) {
        fate.outcome = Fate::Outcome::lost;
    }
    fate.duplicate = happens(Draw::duplicate, impairment_.duplicate);
    fate.reorder = happens(Draw::reorder, impairment_.reorder);
    fate.leaves = now;
    if (impairment_.rate) {
        rate_free_ = std::max(rate_free_, now);
        if (rate_free_ - now > kMaxRateWait) {
            fate.outcome = Fate::Outcome::rate_dropped;
        } else {
            rate_free_ += time_on_line(bytes + kHeaderBytes, *impairment_.rate);
            const auto at_once = time_on_line(kRateBurstBytes, *impairment_.rate);
            fate.leaves = std::max(now, rate_free_ - at_once);
        }
    }
    fate.leaves += delay();
    if (fate.outcome == Fate::Outcome::pass) {
        fate.leaves = last_leaves_ = std::max(fate.leaves, last_leaves_);
    }
    ++number_;
    return fate;
}

} // namespace tw::relay
