#pragma once

#include "proxy/relay/counters.h"

#include <optional>
#include <string>

namespace tw::run {

/// Says what was turned away or answered at the door, once a second at most.
class AdmissionReport {
  public:
    /// To be called once a second: what to log, when there is anything.
    [[nodiscard]] std::optional<std::string> check(const relay::Counters& counters);

  private:
    relay::AdmissionTotals<std::uint64_t> told_{};
    std::uint64_t refused_told_ = 0;
    std::uint64_t repeated_told_ = 0;
};

} // namespace tw::run
