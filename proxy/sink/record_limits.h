#pragma once

#include "proxy/record/records.h"
#include "proxy/sink/json_lines.h"

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

/// Hands records on, but of a session's messages only as many as fit into so many bytes a second: a
/// player who sends nothing but tiny messages is not to fill a disk with them. Snapshots, findings and
/// everything else pass. By the records' own time. What was left out is counted, and reported as a
/// finding: at once, then once a minute, and when the session closes or nothing more comes.
class MessageLimit final : public record::RecordSink {
  public:
    /// A session may be ahead of its bytes a second by this many seconds: a map's download, a burst.
    static constexpr std::uint64_t kBurstSeconds = 8;

    /// `bytes`: of the records of a session's messages, a second; 0: without a limit.
    MessageLimit(JsonLines& target, std::uint64_t bytes) : target_{&target}, bytes_{bytes} {}

    void on_record(const record::Record& record) override;

    /// Nothing more comes.
    void finish();

    /// Of all sessions.
    [[nodiscard]] std::uint64_t left_out() const { return left_out_; }

  private:
    /// Sessions beyond this are forgotten when they are within their limit.
    static constexpr std::size_t kMaxSessions = 4096;

    struct Session {
        std::int64_t room = 0; ///< bytes that it may still write at `time`
        record::Timestamp time = 0;
        record::RecordHead head{};  ///< of the last message that was left out
        std::uint64_t left_out = 0; ///< messages, since the connection began
        std::uint64_t told = 0;     ///< of these, by the last finding
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
