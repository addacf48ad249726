#pragma once

#include "proxy/record/records.h"

#include <cstdint>
#include <cstdio>

namespace tw::report {

/// Prints the first warnings and errors as they come, a line each. Why a demo ends it leaves to who
/// reads the file, who knows its name.
class FindingPrinter final : public record::RecordSink {
  public:
    /// More than these are in the records and the totals only.
    static constexpr std::uint64_t kMaxShown = 20;

    explicit FindingPrinter(std::FILE* out) : out_{out} {}

    void on_record(const record::Record& record) override;

  private:
    std::FILE* out_;
    std::uint64_t seen_ = 0;
};

} // namespace tw::report
