#pragma once

#include "proxy/record/records.h"
#include "proxy/sink/json_lines.h"

#include <cstddef>
#include <cstdint>
#include <map>

namespace tw::sink {

/// Passes records on, but at most one finding a second for each id and session, so that no peer can
/// fill a disk with findings. (For snapshot.size_differs, each item type has a separate limit.)
/// Each finding that is passed on contains the number of findings omitted before it. Omitted
/// findings without a later finding are reported when the session closes, and at the end of the
/// run. All times are the times of records.
class FindingRateLimiter final : public record::RecordSink {
  public:
    explicit FindingRateLimiter(record::RecordSink& target) : target_{&target} {}

    void on_record(const record::Record& record) override;

    /// Must be called at a session's end if on_record() gets no record about the end.
    void end_session(const record::RecordHeader& head);

    /// Reports omitted records that are not reported yet, and forgets all earlier records.
    void report_all_omissions();

  private:
    /// The most kinds of findings (session and id). If more occur, all omissions are reported and
    /// all kinds are forgotten, because some callers do not report a session's end.
    static constexpr std::size_t kMaxKinds = std::size_t{1} << 16U;

    struct OmittedFindings {
        record::RecordHeader head{}; ///< head of the last finding that was omitted
        record::Timestamp passed_at = 0;
        std::uint64_t num_omitted = 0;
    };

    void pass_or_omit_finding(const record::FindingRecord& finding);
    void report_omitted_findings(record::FindingId id, const record::RecordHeader& head,
                                 std::uint64_t omitted);

    record::RecordSink* target_;
    std::map<std::uint64_t, OmittedFindings>
        kinds_; ///< the key is made of session, id and item type
};

/// Passes records on, but only a limited number of bytes a second of message records per session,
/// so that a player cannot fill a disk with tiny messages. Omitted messages are counted and
/// reported as a finding: at once, then once a minute, when the session closes, and at the end of
/// the run. All times are the times of records.
class MessageRateLimiter final : public record::RecordSink {
  public:
    /// A session may write the bytes of this many seconds at once, for example during a map
    /// download.
    static constexpr std::uint64_t kBurstSeconds = 8;

    /// `bytes`: the most bytes a second of a session's message records; 0: no limit.
    MessageRateLimiter(JsonLines& target, std::uint64_t bytes)
        : target_{&target}, bytes_per_second_{bytes} {}

    void on_record(const record::Record& record) override;

    /// Reports omitted records that are not reported yet, and forgets all earlier records.
    void report_all_omissions();

    [[nodiscard]] std::uint64_t num_omitted_messages() const { return num_omitted_; }

  private:
    /// Beyond this number, all omissions are reported and all sessions are forgotten.
    static constexpr std::size_t kMaxSessions = 4096;

    struct Session {
        /// Number of bytes that the session was allowed to write at `time`.
        std::int64_t bytes_left = 0;
        record::Timestamp time = 0;
        record::RecordHeader head{};   ///< head of the last message that was omitted
        std::uint64_t num_omitted = 0; ///< number of omitted messages since the connection began
        /// Number of omitted messages that the last finding reported.
        std::uint64_t num_reported = 0;
        record::Timestamp reported_at = 0;
    };

    void pass_or_omit_message(const record::MessageRecord& message);
    void refill(Session& session, record::Timestamp now) const;
    void report_omitted_messages(Session& session);

    JsonLines* target_;
    std::uint64_t bytes_per_second_;
    std::uint64_t num_omitted_ = 0;
    std::map<std::uint32_t, Session> sessions_;
};

} // namespace tw::sink
