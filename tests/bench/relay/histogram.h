#pragma once

#include <cstdint>
#include <vector>

namespace tw::bench {

/// Round-trip times in ns, up to four seconds each, and up to a fixed number of them.
class Histogram {
  public:
    Histogram();

    void add(std::int64_t nanoseconds);

    /// Returns the quantile `share` (0 to 1) in microseconds; 0 if there are no values.
    [[nodiscard]] double microseconds_at(double share);

    [[nodiscard]] std::size_t size() const { return values_.size(); }

  private:
    std::vector<std::uint32_t> values_;
};

} // namespace tw::bench
