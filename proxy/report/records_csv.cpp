#include "proxy/report/records_csv.h"

#include "proxy/record/terminal_text.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

#include <fmt/format.h>

namespace tw::report {

namespace {

constexpr std::string_view kItems = "items.";
constexpr std::string_view kFindings = "findings.";
constexpr std::array<std::string_view, 5> kCommon{"v", "t", "type", "session", "dir"};

/// Appends a cell; one that holds what separates cells is quoted.
void append_cell(std::string_view text, std::string& out) {
    const bool separates = std::any_of(text.begin(), text.end(), [](char each) {
        return each == ',' || each == '"' || each == '\r' || each == '\n';
    });
    if (!separates) {
        out.append(text);
        return;
    }
    out.push_back('"');
    for (const char character : text) {
        out.append(character == '"' ? 2 : 1, character);
    }
    out.push_back('"');
}

/// Whether a spreadsheet takes a cell with this text for a formula.
bool is_formula(std::string_view text) {
    return !text.empty() &&
           std::string_view{"=+-@\t\r\n"}.find(text.front()) != std::string_view::npos;
}

/// Joins the values of a key.
class Joined final : public filter::ValueVisitor {
  public:
    explicit Joined(std::string& text) : text_{&text} {}

    bool take(const filter::Value& value) override {
        if (any_) {
            text_->push_back(' ');
        }
        const bool is_text = value.number.index() == 0 || value.word;
        begins_with_text_ = any_ ? begins_with_text_ : is_text;
        any_ = true;
        if (is_text) {
            text_->append(value.text);
        } else if (const auto* const integer = std::get_if<std::int64_t>(&value.number)) {
            const fmt::format_int digits{*integer};
            text_->append(digits.data(), digits.size());
        } else {
            fmt::format_to(std::back_inserter(*text_), "{}", std::get<double>(value.number));
        }
        return false;
    }

    [[nodiscard]] bool any() const { return any_; }

    [[nodiscard]] bool begins_with_text() const { return begins_with_text_; }

  private:
    std::string* text_;
    bool begins_with_text_ = false;
    bool any_ = false;
};

} // namespace

RecordsCsv::RecordsCsv(const std::vector<std::string>& columns, Options options)
    : options_{options} {
    for (const std::string& name : columns) {
        const bool item = name.starts_with(kItems);
        columns_.push_back(
            {.name = name,
             .key = item ? name.substr(kItems.size()) : name,
             .item = item,
             .common = std::find(kCommon.begin(), kCommon.end(), name) != kCommon.end()});
        items_ = items_ || item;
    }
    common_ = std::all_of(columns_.begin(), columns_.end(),
                          [](const Column& column) { return column.common; });
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
        room_.members.begin(line);
        if (make_cells(room_.members, false) || common_) {
            append_row(out);
        }
        return;
    }
    const auto items = filter::find_member(line, "items", room_.brackets);
    if (!items || !items->text.starts_with('[')) {
        return;
    }
    bool of_line = false; ///< its own cells are there
    for (filter::JsonWalk walk{*items}; walk.next();) {
        room_.members.begin(walk.json());
        if (!make_cells(room_.members, true)) {
            continue;
        }
        if (!std::exchange(of_line, true)) {
            filter::JsonMembers members{line};
            static_cast<void>(make_cells(members, false));
        }
        append_row(out);
    }
}

bool RecordsCsv::make_cells(filter::JsonMembers& json, bool item) {
    bool wanted = false;
    for (Column& column : columns_) {
        if (column.item != item) {
            continue;
        }
        column.cell.clear();
        Joined joined{column.cell};
        if (!item && column.key.starts_with(kFindings)) {
            filter::visit_finding_count(
                json.json().text, std::string_view{column.key}.substr(kFindings.size()), joined);
        } else {
            filter::visit_line(json, column.key, joined);
        }
        column.text = joined.begins_with_text();
        wanted = wanted || (joined.any() && !column.common);
    }
    return wanted;
}

void RecordsCsv::append_row(std::string& out) const {
    for (const Column& column : columns_) {
        if (&column != columns_.data()) {
            out.push_back(',');
        }
        const bool formula = options_.no_formulas && column.text && is_formula(column.cell);
        const std::string text = (formula ? "'" : "") + column.cell;
        append_cell(options_.for_terminal ? record::terminal_text(text) : text, out);
    }
    out.append("\r\n");
}

} // namespace tw::report
