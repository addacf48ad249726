#pragma once

#include <cstdint>
#include <vector>

namespace tw::bench {

/// Round-trip times, all of them kept (in ns, up to four seconds) up to a limit fixed beforehand.
class Histogram {
  public:
    Histogram();

    void add(std::int64_t nanoseconds);

    /// The value below which `share` (0 to 1) of all lie, in microseconds; 0 when there are none.
    [[nodiscard]] double microseconds_at(double share);

    [[nodiscard]] std::size_t size() const { return values_.size(); }

  private:
    std::vector<std::uint32_t> values_;
};

} // namespace tw::bench
