#pragma once

#include "proxy/filter/line_record.h"
#include "proxy/sink/line_reader.h"

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace tw::report {

/// Holds recordings against what they have to be: whole lines, each a record and well-formed JSON; in every session
/// in order, no record twice, and no more than its summary counts; no segment missing; and counts what they themselves
/// say is missing.
class RecordsCheck {
  public:
    void begin_file(const std::string& path);
    void on_line(std::string_view line, const std::optional<filter::LineHead>& head);
    void end_file(const sink::LineReader& reader);

    /// Nothing is damaged or missing.
    [[nodiscard]] bool whole() const;
    /// A line for all, and one for each thing that is wrong.
    [[nodiscard]] std::string text() const;

  private:
    struct Counts {
        std::uint64_t broken_lines = 0;
        std::uint64_t unfinished = 0;
        std::uint64_t damaged = 0;
        std::uint64_t backwards = 0;
        std::uint64_t doubled = 0;
        std::uint64_t segments = 0;
        std::uint64_t lost = 0;
        std::uint64_t gap = 0;
    };

    struct Row {
        std::uint64_t Counts::*count;
        std::string_view sentence;
    };

    struct Session {
        std::string time{}; ///< of its last record
        bool begun = false; ///< all of it is here from its first record on
        bool has_events = false;
        bool closed = false; ///< only its summary may follow
        bool reconnects = false;
        std::uint64_t snapshots = 0;
        std::uint64_t messages = 0;
    };

    static const std::array<Row, 8>& rows();
    void count_sessions(std::string_view line, const filter::LineHead& head);
    void add_up(const Session& session, std::string_view line);

    Counts counts_;
    std::uint64_t files_ = 0;
    std::uint64_t lines_ = 0;
    std::uint64_t sessions_ = 0;
    std::string first_time_;
    std::string last_time_;
    std::map<std::int64_t, Session> open_;
    std::uint64_t cut_off_ = 0;          ///< sessions that end without a close
    std::uint64_t absent_snapshots_ = 0; ///< that summaries count
    std::uint64_t absent_messages_ = 0;
    std::map<std::string, std::uint64_t> numbers_; ///< of each recording, its last segment
};

} // namespace tw::report
