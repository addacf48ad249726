#pragma once

#include "proxy/filter/json_line.h"
#include "proxy/filter/line_record.h"
#include "proxy/store/byte_source.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tw::analyze {

/// Checks recordings:
/// - Every line is a complete record of valid JSON.
/// - The records of each session are in order and not repeated.
/// - A session has no more records than its summary counts.
/// - No segment is missing.
/// - Every session is closed, except in a file that is being written.
///
/// Also counts the losses that the recordings report.
class RecordsCheck {
  public:
    /// Must be called before the lines of each file. `is_being_written`: a process still records to
    /// the file, so its sessions need no end.
    void begin_file(const std::string& path, bool is_being_written = false);
    void on_line(std::string_view line, const std::optional<filter::RecordLineHead>& head);
    void end_file(const store::LineReader& reader);

    /// True if no record is damaged or known to be missing, and every session has its end.
    [[nodiscard]] bool is_complete() const;
    /// Returns a summary line, and a line for each problem.
    [[nodiscard]] std::string report_text() const;

  private:
    enum class Fault : std::uint8_t {
        broken_line,
        unfinished_file,
        damaged_file,
        time_went_back,
        repeated_record,
        missing_segment,
        lost_record,
        gap,
        cut_off_session,
    };

    struct FaultCount {
        std::uint64_t count = 0;
        std::string first_place{}; ///< the file, and if known the time, of the first fault
    };

    using FaultCounts = std::array<FaultCount, 9>; ///< by Fault

    struct Session {
        std::string time{};               ///< time of the session's latest record
        std::size_t file = 0;             ///< index of the latest record's file
        bool has_first_record = false;    ///< the recording contains the session's first record
        bool has_session_records = false; ///< the recording contains records of the type session
        bool is_closed = false;           ///< closed; its summary and findings may still follow
        /// The client reconnects: the summary of its old connection follows, then the new one.
        bool is_reconnecting = false;
        std::uint64_t num_snapshots = 0;
        std::uint64_t num_messages = 0;

        /// Returns true if the session's close record is missing. Returns false if there are no
        /// session records at all, because a filter may have left them out.
        [[nodiscard]] bool lacks_close_record() const { return has_session_records && !is_closed; }
    };

    void add_faults(Fault fault, std::uint64_t count, std::string_view time = {});
    void count_cut_off_session(FaultCounts& faults, const Session& session) const;
    /// Returns all faults, including sessions that have no end in the last file.
    [[nodiscard]] FaultCounts find_faults() const;
    void track_session(std::string_view line, const filter::RecordLineHead& head);
    void compare_with_summary(const Session& session, std::string_view line);

    FaultCounts faults_;             ///< find_faults() adds the sessions that are still open
    std::vector<std::string> files_; ///< names without folders
    std::string recording_;          ///< folder and name of the current segments, or the only file
    bool is_being_written_ = false;  ///< a process still records to the last file
    std::uint64_t num_lines_ = 0;
    std::uint64_t num_sessions_ = 0;
    std::string first_time_;
    std::string last_time_;
    /// Open sessions by number, and the closed sessions of the current recording.
    std::map<std::int64_t, Session> open_sessions_;
    /// Numbers of snapshots and messages that the summaries count but the recordings lack.
    std::uint64_t num_missing_snapshots_ = 0;
    std::uint64_t num_missing_messages_ = 0;
    bool has_worlds_ =
        false; ///< some records are merged snapshots, which replace those of sessions
    bool has_new_observer_ = false; ///< a gap is due to an observer that replaced another one
    std::map<std::string, std::uint64_t> segment_numbers_; ///< latest segment number, by recording
};

/// Converts records to a CSV table (RFC 4180). Each record that has a value for at least one column
/// becomes a row. Columns of keys that every record has do not count. If a column or the condition
/// names a key of items (`items.KEY`), each item becomes a row instead.
///
/// A column's cells have one type in all rows. A list of numbers is written as `[1,2]`, even with
/// one number. A number with a fraction keeps its decimal point. The booleans of messages are 1 and
/// 0, because other messages have numbers under the same key.
class RecordsCsvWriter {
  public:
    struct Options {
        bool is_for_terminal = false; ///< escape control characters
        /// Put an apostrophe before text that a spreadsheet would take for a formula.
        bool escapes_formulas = false;
        /// Selects the items that become rows; nullopt: all items with at least one of the columns.
        std::optional<filter::LineFilter> where{};
    };

    /// `columns`: keys of records, written as in filters.
    explicit RecordsCsvWriter(const std::vector<std::string>& columns)
        : RecordsCsvWriter{columns, Options{}} {}

    RecordsCsvWriter(const std::vector<std::string>& columns, Options options);

    /// Returns the first row: the names of the columns.
    [[nodiscard]] std::string header_row() const;
    /// Appends the rows of a recording's line to `out`. Removed items have rows only if
    /// `items.removed` is a column or a key of the condition. The types of removed items are taken
    /// from earlier lines; an unknown type is empty.
    void append_rows(std::string_view line, std::string& out);

    [[nodiscard]] std::uint64_t num_rows() const { return num_rows_; }

    [[nodiscard]] bool has_item_rows() const { return rows_are_items_; }

    /// Returns whether Options::where compares this key of items.
    [[nodiscard]] bool condition_uses_key(std::string_view key) const {
        return options_.where && options_.where->uses_key(key);
    }

    /// Returns the names of the columns for which no record so far has a value. An empty text is a
    /// value.
    [[nodiscard]] std::vector<std::string> empty_columns() const;

  private:
    /// The most types that are stored to name removed items; a server has a few dozen types.
    static constexpr std::size_t kMaxTypes = 65536;

    struct Column {
        std::string name;
        /// For a column of items, the key within the item; otherwise the same as `name`.
        std::string key;
        bool is_of_items = false;      ///< the column's name is `items.KEY`
        bool is_common = false;        ///< every record has this key
        bool begins_with_text = false; ///< the current row's cell starts with text, not a number
        bool has_value = false;        ///< at least one record has a value; may be ""
        std::string cell{};            ///< the cell of the current row
    };

    /// Fills the cells of the columns `items.KEY` from an item (`is_item`), or the other cells from
    /// a record. Returns true if a cell got a value under a key that not every record has.
    [[nodiscard]] bool fill_cells(filter::JsonObject& json, bool is_item);
    void append_item_row(filter::JsonObject& item, std::string& out);
    void append_removed_rows(std::string& out);
    /// Stores the item's type, which is needed when the item is removed.
    void store_item_type(filter::JsonObject& item);
    void append_row(std::string& out);

    Options options_;
    std::vector<Column> columns_;
    bool rows_are_items_ = false;
    bool shows_removed_items_ = false;
    bool has_only_common_columns_ = false;
    /// True if the cells with the record's own keys are filled for this line.
    bool has_record_cells_ = false;
    std::int64_t session_ = 0; ///< session of the line; set only if shows_removed_items_
    std::uint64_t num_rows_ = 0;
    /// The names of types as in the records, by session and type_id.
    std::map<std::pair<std::int64_t, std::int64_t>, std::string> types_;
    filter::JsonLine line_;
    filter::JsonLine removed_item_line_;
};

/// Returns whether a text begins with the first row of a table, which names keys of records.
[[nodiscard]] bool begins_with_table_header(std::string_view text);

} // namespace tw::analyze
