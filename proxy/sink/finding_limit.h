#pragma once

#include "proxy/record/records.h"

#include <cstddef>
#include <cstdint>
#include <unordered_map>

namespace tw::sink {

/// Hands records on, but of the findings with the same id in a session at most one a second, which
/// says how many were left out since the one before it: whoever can make findings is not to fill a
/// disk with them. By the records' own time. What was left out last is reported when the session closes.
class FindingLimit final : public record::RecordSink {
  public:
    explicit FindingLimit(record::RecordSink& target) : target_{&target} {}

    void on_record(const record::Record& record) override;

  private:
    /// Of sessions that are open; each has a few ids at most.
    static constexpr std::size_t kMaxKinds = std::size_t{1} << 16U;

    struct Kind {
        record::Timestamp written = 0;
        std::uint64_t left_out = 0;
    };

    void limit(const record::FindingRecord& finding);
    void tell_rest(const record::RecordHead& head);

    record::RecordSink* target_;
    std::unordered_map<std::uint64_t, Kind> kinds_; ///< by session and id
};

} // namespace tw::sink
