#pragma once

#include "proxy/filter/json_line.h"
#include "proxy/filter/line_record.h"
#include "proxy/sink/byte_source.h"

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tw::analyze {

/// Checks recordings: every line is a complete record of valid JSON; the records of each session are in
/// order and not repeated, and the session's summary does not count fewer; no segment is missing. Also
/// counts the losses that the recordings report.
class RecordsCheck {
  public:
    void begin_file(const std::string& path);
    void on_line(std::string_view line, const std::optional<filter::RecordLineHead>& head);
    void end_file(const sink::LineReader& reader);

    /// True if nothing is damaged or missing.
    [[nodiscard]] bool is_whole() const;
    /// Returns a summary line, and a line for each problem.
    [[nodiscard]] std::string report_text() const;

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
        std::string time{}; ///< time of the session's last record
        bool begun = false; ///< the recording contains the session from its first record on
        bool has_events = false;
        bool closed = false; ///< the session has closed, so only its summary may follow
        bool reconnects = false;
        std::uint64_t snapshots = 0;
        std::uint64_t messages = 0;
    };

    static const std::array<Row, 8>& rows();
    void count_sessions(std::string_view line, const filter::RecordLineHead& head);
    void check_counts(const Session& session, std::string_view line);

    Counts counts_;
    std::uint64_t files_ = 0;
    std::uint64_t lines_ = 0;
    std::uint64_t sessions_ = 0;
    std::string first_time_;
    std::string last_time_;
    std::map<std::int64_t, Session> open_;
    std::uint64_t cut_off_ = 0; ///< number of sessions without a closing record
    /// Number of snapshots that the summaries count but the recordings lack.
    std::uint64_t absent_snapshots_ = 0;
    std::uint64_t absent_messages_ = 0;
    std::map<std::string, std::uint64_t> numbers_; ///< number of the last segment of each recording
};

/// Converts records to a table (RFC 4180): a row for each record that has at least one of the columns,
/// apart from columns that every record has. If a column or the condition is about items (`items.KEY`),
/// there is a row for each item instead.
///
/// A column's cells have one type in all rows: a list of numbers is written as `[1,2]`, even with
/// one number; a number with a fraction keeps its point; the booleans of messages are 1 and 0,
/// because other messages have numbers under the same key.
class RecordsCsv {
  public:
    struct Options {
        bool for_terminal = false; ///< escape control characters
        /// Puts an apostrophe before text that spreadsheets take for a formula.
        bool no_formulas = false;
        /// Selects the rows of a table of items; without it, an item has a row if it has one of the
        /// columns.
        std::optional<filter::RowFilter> where{};
    };

    /// `columns`: keys in the notation of filters.
    explicit RecordsCsv(const std::vector<std::string>& columns) : RecordsCsv{columns, Options{}} {}

    RecordsCsv(const std::vector<std::string>& columns, Options options);

    /// Returns the first row: the names of the columns.
    [[nodiscard]] std::string header() const;
    /// Appends the rows of a line of a recording. Removed items have rows only if `items.removed` is a
    /// column or in the condition. Their types come from earlier lines; an unknown type is empty.
    void append(std::string_view line, std::string& out);

    /// Returns the columns of records that no line had so far, although items have such a key.
    [[nodiscard]] std::vector<std::string> empty_columns_of_items() const;

  private:
    /// Limit of the types remembered to name removed items; a server has a few dozen.
    static constexpr std::size_t kMaxTypes = 65536;

    struct Column {
        std::string name;
        /// For a column of items, the key within the item; otherwise the same as `name`.
        std::string key;
        bool item = false;
        bool common = false; ///< every record has this key
        bool text = false;   ///< the cell starts with text, not with a number
        bool seen = false;   ///< a line had this key
        std::string cell{};
    };

    /// Fills the cells of a line's columns, or of one item's columns. Returns true if the line or item
    /// gets a row because of these cells.
    [[nodiscard]] bool make_cells(filter::JsonObject& json, bool item);
    void append_item(filter::JsonObject& item, std::string& out);
    /// Appends rows for the items that the line lists as removed.
    void append_removed(std::string& out);
    /// Remembers the item's type, to name it when it is removed.
    void note_type(filter::JsonObject& item);
    void append_row(std::string& out) const;

    Options options_;
    std::vector<Column> columns_;
    bool items_ = false;       ///< rows are items
    bool removed_ = false;     ///< there are rows for removed items
    bool common_ = false;      ///< every record has all of the columns
    bool line_ready_ = false;  ///< the cells of the current line's own columns are filled
    std::int64_t session_ = 0; ///< session of the current line; set only if removed_
    /// The names of types by session and type_id, as in the records.
    std::map<std::pair<std::int64_t, std::int64_t>, std::string> types_;
    filter::JsonLine line_;
    filter::JsonLine removed_item_;
};

} // namespace tw::analyze
