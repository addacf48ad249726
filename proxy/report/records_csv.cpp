#include "proxy/report/records_csv.h"

#include "proxy/filter/json_scan.h"
#include "proxy/filter/line_record.h"

#include <algorithm>
#include <array>
#include <iterator>

#include <fmt/format.h>

namespace tw::report {

namespace {

constexpr std::string_view kItems = "items.";
constexpr std::array<std::string_view, 5> kCommon{"v", "t", "type", "session", "dir"};

/// Appends a cell; one that holds what separates cells is quoted.
void append_cell(std::string_view text, std::string& out) {
    if (text.find_first_of(",\"\r\n") == std::string_view::npos) {
        out.append(text);
        return;
    }
    out.push_back('"');
    for (const char character : text) {
        out.append(character == '"' ? 2 : 1, character);
    }
    out.push_back('"');
}

/// Joins the values of a key.
class Joined final : public filter::ValueVisitor {
  public:
    explicit Joined(std::string& text) : text_{&text} {}

    bool take(const filter::Value& value) override {
        if (any_) {
            text_->push_back(' ');
        }
        any_ = true;
        if (value.number.index() == 0 || value.word) {
            text_->append(value.text);
        } else if (const auto* const integer = std::get_if<std::int64_t>(&value.number)) {
            fmt::format_to(std::back_inserter(*text_), "{}", *integer);
        } else {
            fmt::format_to(std::back_inserter(*text_), "{}", std::get<double>(value.number));
        }
        return false;
    }

    [[nodiscard]] bool any() const { return any_; }

  private:
    std::string* text_;
    bool any_ = false;
};

} // namespace

RecordsCsv::RecordsCsv(const std::vector<std::string>& columns) {
    for (const std::string& name : columns) {
        const bool item = name.starts_with(kItems);
        columns_.push_back(
            {.name = name,
             .key = item ? name.substr(kItems.size()) : name,
             .item = item,
             .common = std::find(kCommon.begin(), kCommon.end(), name) != kCommon.end()});
        items_ = items_ || item;
    }
}

std::string RecordsCsv::header() const {
    std::string out;
    for (const Column& column : columns_) {
        out.append(out.empty() ? "" : ",");
        append_cell(column.name, out);
    }
    return out + "\r\n";
}

void RecordsCsv::append(std::string_view line, std::string& out) {
    if (!items_) {
        append_row(line, {}, out);
        return;
    }
    const auto items = filter::find_member(line, "items");
    if (!items || !items->starts_with('[')) {
        return;
    }
    for (filter::JsonWalk walk{*items}; walk.next();) {
        append_row(line, walk.value(), out);
    }
}

void RecordsCsv::append_row(std::string_view line, std::string_view item, std::string& out) {
    const std::size_t begin = out.size();
    // A row of what every record has is wanted only where nothing else is asked for.
    bool wanted = std::all_of(columns_.begin(), columns_.end(),
                              [](const Column& column) { return column.common; });
    for (const Column& column : columns_) {
        if (&column != columns_.data()) {
            out.push_back(',');
        }
        cell_.clear();
        Joined joined{cell_};
        filter::visit_line(column.item ? item : line, column.key, joined);
        wanted = wanted || (joined.any() && (items_ ? column.item : !column.common));
        append_cell(cell_, out);
    }
    if (wanted) {
        out.append("\r\n");
    } else {
        out.resize(begin);
    }
}

} // namespace tw::report
