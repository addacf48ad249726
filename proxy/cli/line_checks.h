#pragma once

#include "proxy/filter/expectation.h"
#include "proxy/record/stats.h"
#include "proxy/report/fail_on.h"
#include "proxy/report/outcome.h"

#include <cstdint>
#include <string_view>
#include <vector>

namespace tw::cli {

/// What a run of written records is held against: expectations and findings.
class LineChecks {
  public:
    explicit LineChecks(std::vector<filter::Expectation> expectations)
        : expectations_{std::move(expectations)} {}

    void look_at(std::string_view line);

    [[nodiscard]] report::Outcome outcome(const report::FailOn& fail_on, double seconds) const;

  private:
    void count(std::string_view line);

    std::vector<filter::Expectation> expectations_;
    record::SessionStats totals_;
    std::uint32_t sessions_ = 0;
};

} // namespace tw::cli
