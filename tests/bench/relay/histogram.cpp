#include "tests/bench/relay/histogram.h"

#include <algorithm>
#include <limits>

namespace tw::bench {

namespace {

/// The values of ten seconds at 800,000 round trips a second: 32 MB.
constexpr std::size_t kMaxValues = 8'000'000;

} // namespace

Histogram::Histogram() {
    values_.reserve(kMaxValues);
}

void Histogram::add(std::int64_t nanoseconds) {
    constexpr std::int64_t kLongest = std::numeric_limits<std::uint32_t>::max();
    if (values_.size() < kMaxValues) {
        values_.push_back(
            static_cast<std::uint32_t>(std::clamp<std::int64_t>(nanoseconds, 0, kLongest)));
    }
}

double Histogram::microseconds_at(double share) {
    if (values_.empty()) {
        return 0;
    }
    const auto last = static_cast<double>(values_.size() - 1);
    const auto nth = values_.begin() + static_cast<std::ptrdiff_t>(share * last);
    std::nth_element(values_.begin(), nth, values_.end());
    return *nth / 1000.0;
}

} // namespace tw::bench
