#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tw::report {

/// Makes a table of records (RFC 4180): a row for each that has one of the columns, not counting those
/// that every record has. Columns of items, `items.KEY`, make a row of each item instead.
class RecordsCsv {
  public:
    /// `columns`: keys as filters name them.
    explicit RecordsCsv(const std::vector<std::string>& columns);

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
    };

    void append_row(std::string_view line, std::string_view item, std::string& out);

    std::vector<Column> columns_;
    bool items_ = false; ///< there are columns of items
    std::string cell_;
};

} // namespace tw::report
