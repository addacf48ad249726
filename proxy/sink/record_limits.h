#pragma once

#include "proxy/record/records.h"
#include "proxy/sink/json_lines.h"

#include <cstddef>
#include <cstdint>
#include <unordered_map>

namespace tw::sink {

/// Passes records on, but limits findings to one a second for each id and session, so that no peer can
/// fill a disk with findings. (For snapshot.size_differs, each type of item has its own limit.) Each
/// finding that is passed on says how many were left out before it. The remaining numbers are reported when
/// the session closes, and at the end. Times are those of the records.
class FindingLimit final : public record::RecordSink {
  public:
    explicit FindingLimit(record::RecordSink& target) : target_{&target} {}

    void on_record(const record::Record& record) override;

    /// Ends a session. For callers that do not pass on the record of the session's end.
    void end_session(const record::RecordHead& head);

    /// Reports the remaining numbers. No further record is allowed.
    void finish();

  private:
    /// The most kinds (session and id). If there are more, kinds without a finding in the last second are
    /// forgotten. This is needed because not every caller reports the end of a session.
    static constexpr std::size_t kMaxKinds = std::size_t{1} << 16U;

    struct Kind {
        record::RecordHead head{}; ///< head of the last finding that was left out
        record::Timestamp written = 0;
        std::uint64_t left_out = 0;
    };

    void limit(const record::FindingRecord& finding);
    /// Forgets kinds without a recent finding. Does so at most once in a while.
    void make_room(record::Timestamp now);
    void report_rest(record::FindingId id, const record::RecordHead& head, std::uint64_t left_out);

    record::RecordSink* target_;
    record::Timestamp cleared_ = 0;                 ///< time at which kinds were last forgotten
    std::unordered_map<std::uint64_t, Kind> kinds_; ///< by session and id
};

/// Passes records on, but limits the messages of a session to a number of bytes a second, so that a player
/// cannot fill a disk with tiny messages. All other records pass. Messages left out are counted and
/// reported as a finding: at once, then once a minute, when the session closes, and at the end. Times are
/// those of the records.
class MessageLimit final : public record::RecordSink {
  public:
    /// A session may write this many seconds' bytes at once, for example during a map download.
    static constexpr std::uint64_t kBurstSeconds = 8;

    /// `bytes`: the most bytes a second for the records of a session's messages; 0 for no limit.
    MessageLimit(JsonLines& target, std::uint64_t bytes) : target_{&target}, bytes_{bytes} {}

    void on_record(const record::Record& record) override;

    /// Reports the remaining numbers. No further record is allowed.
    void finish();

    /// The number of messages left out, in all sessions.
    [[nodiscard]] std::uint64_t left_out() const { return left_out_; }

  private:
    /// The limit of sessions. If there are more, those that are within their limit are forgotten.
    static constexpr std::size_t kMaxSessions = 4096;

    struct Session {
        std::int64_t room = 0; ///< bytes that the session may write at `time`
        record::Timestamp time = 0;
        record::RecordHead head{};  ///< head of the last message that was left out
        std::uint64_t left_out = 0; ///< number of messages left out since the connection began
        std::uint64_t told = 0;     ///< number of messages that the last finding reported
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
