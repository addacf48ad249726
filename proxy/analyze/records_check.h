#pragma once

#include "proxy/filter/line_record.h"
#include "proxy/sink/byte_source.h"

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tw::analyze {

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

/// Makes a table of records (RFC 4180): a row for each that has one of the columns, not counting those
/// that every record has. Columns of items, `items.KEY`, make a row of each item instead.
class RecordsCsv {
  public:
    /// How the text of cells is written.
    struct Options {
        bool for_terminal = false; ///< what a terminal may obey is escaped
        bool no_formulas = false;  ///< an apostrophe before what spreadsheets take for a formula
    };

    /// `columns`: keys as filters name them.
    explicit RecordsCsv(const std::vector<std::string>& columns) : RecordsCsv{columns, Options{}} {}

    RecordsCsv(const std::vector<std::string>& columns, Options options);

    /// The first row: the names of the columns.
    [[nodiscard]] std::string header() const;
    /// Appends the rows of a line of a recording.
    void append(std::string_view line, std::string& out);

  private:
    struct Column {
        std::string name;
        std::string key; ///< within its item, or as `name`
        bool item = false;
        bool common = false; ///< every record has it
        bool text = false;   ///< its cell begins with text, not with a number
        std::string cell{};
    };

    /// Makes the cells of the columns of a line, or of those of one of its items. Returns whether any of them is
    /// what the row is made for.
    [[nodiscard]] bool make_cells(filter::JsonMembers& json, bool item);
    void append_row(std::string& out) const;

    Options options_;
    std::vector<Column> columns_;
    bool items_ = false;  ///< there are columns of items
    bool common_ = false; ///< and none but those that every record has
    filter::LineRoom room_;
};

} // namespace tw::analyze
