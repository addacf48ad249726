#pragma once

#include "proxy/record/records.h"

#include <cstddef>
#include <cstdint>
#include <unordered_map>

namespace tw::sink {

/// Hands records on, but of the findings with the same id in a session at most one a second, which
/// says how many were left out since the one before it: whoever can make findings is not to fill a
/// disk with them. By the records' own time. What was left out last is reported when the session
/// closes, and at the end.
class FindingLimit final : public record::RecordSink {
  public:
    explicit FindingLimit(record::RecordSink& target) : target_{&target} {}

    void on_record(const record::Record& record) override;

    /// A session has closed, for who is not handed the record of that.
    void end_session(const record::RecordHead& head);

    /// Nothing more comes.
    void finish();

  private:
    /// Of sessions that are open; each has a few ids at most. Of more those are forgotten of which none
    /// came for a second: not all who use this are told of every session's end.
    static constexpr std::size_t kMaxKinds = std::size_t{1} << 16U;

    struct Kind {
        record::RecordHead head{}; ///< of the last one that was left out
        record::Timestamp written = 0;
        std::uint64_t left_out = 0;
    };

    void limit(const record::FindingRecord& finding);
    /// Forgets kinds of which none came for a while; not more often than they can come.
    void make_room(record::Timestamp now);
    void tell_rest(record::FindingId id, const record::RecordHead& head, std::uint64_t left_out);

    record::RecordSink* target_;
    record::Timestamp cleared_ = 0;                 ///< when there was no room last
    std::unordered_map<std::uint64_t, Kind> kinds_; ///< by session and id
};

} // namespace tw::sink
