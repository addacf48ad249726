#pragma once

#include "proxy/record/records.h"
#include "proxy/sink/json_lines.h"

#include <cstddef>
#include <cstdint>
#include <unordered_map>

namespace tw::sink {

/// Passes records on, but limits findings: one a second for each id and session (of
/// snapshot.size_differs: for each type of item, too), so that no peer can fill a disk with
/// findings. Each finding that is passed on says how many were left out before it. The rest is
/// reported when the session closes, and at the end. Time is the records' own.
class FindingLimit final : public record::RecordSink {
  public:
    explicit FindingLimit(record::RecordSink& target) : target_{&target} {}

    void on_record(const record::Record& record) override;

    /// Ends a session. For callers that do not pass on the record of its end.
    void end_session(const record::RecordHead& head);

    /// Reports the remaining counts. No record may follow.
    void finish();

  private:
    /// The most kinds (session and id). Beyond it, kinds without a finding in the last second are
    /// forgotten, as not every caller learns that a session ended.
    static constexpr std::size_t kMaxKinds = std::size_t{1} << 16U;

    struct Kind {
        record::RecordHead head{}; ///< head of the last finding that was left out
        record::Timestamp written = 0;
        std::uint64_t left_out = 0;
    };

    void limit(const record::FindingRecord& finding);
    /// Forgets kinds without a recent finding, at limited frequency.
    void make_room(record::Timestamp now);
    void report_rest(record::FindingId id, const record::RecordHead& head, std::uint64_t left_out);

    record::RecordSink* target_;
    record::Timestamp cleared_ = 0;                 ///< when kinds were last forgotten
    std::unordered_map<std::uint64_t, Kind> kinds_; ///< by session and id
};

/// Passes records on, but limits a session's messages to a number of bytes a second, so that a
/// player cannot fill a disk with tiny messages. All other records pass. Messages left out are
/// counted and reported as a finding: at once, then once a minute, when the session closes, and at
/// the end. Time is the records' own.
class MessageLimit final : public record::RecordSink {
  public:
    /// A session may exceed its limit by this many seconds' bytes, as for a map download.
    static constexpr std::uint64_t kBurstSeconds = 8;

    /// `bytes`: bytes a second for the records of a session's messages; 0 for no limit.
    MessageLimit(JsonLines& target, std::uint64_t bytes) : target_{&target}, bytes_{bytes} {}

    void on_record(const record::Record& record) override;

    /// Reports the remaining counts. No record may follow.
    void finish();

    /// Messages left out in all sessions.
    [[nodiscard]] std::uint64_t left_out() const { return left_out_; }

  private:
    /// Beyond this number, sessions that are within their limit are forgotten.
    static constexpr std::size_t kMaxSessions = 4096;

    struct Session {
        std::int64_t room = 0; ///< bytes that the session may write at `time`
        record::Timestamp time = 0;
        record::RecordHead head{};  ///< head of the last message that was left out
        std::uint64_t left_out = 0; ///< messages left out since the connection began
        std::uint64_t told = 0;     ///< messages that the last finding reported
        record::Timestamp told_at = 0;
    };

    void take(const record::MessageRecord& message);
    void fill(Session& session, record::Timestamp now) const;
    void tell(Session& session);
    void make_room(record::Timestamp now);

    JsonLines* target_;
    std::uint64_t bytes_;
    std::uint64_t left_out_ = 0;
    std::unordered_map<std::uint32_t, Session> sessions_;
};

} // namespace tw::sink
