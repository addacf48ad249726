#pragma once

#include "proxy/filter/line_record.h"

#include <string>
#include <string_view>
#include <vector>

namespace tw::report {

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

} // namespace tw::report
