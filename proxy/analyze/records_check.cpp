#include "proxy/analyze/records_check.h"

#include "proxy/filter/json_line.h"
#include "proxy/filter/keys.h"
#include "proxy/record/json.h"
#include "proxy/record/terminal_text.h"
#include "proxy/store/retention.h"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <utility>

#include <fmt/format.h>

namespace tw::analyze {

namespace {

constexpr std::array<std::string_view, 9> kFaultSentences{
    "line[s] that [is|are] not [a record|records]",
    "file[s] that [ends|end] in the middle of a record, or [is|are] still being written",
    "file[s] that cannot be read completely",
    "record[s] that [is|are] older than the one before [it|them] in [its|their] session",
    "record[s] that [is|are] there twice",
    "segment[s] missing in between",
    "record[s] that could not be written (records_lost)",
    "datagram[s] that [was|were] never inspected (inspect.gap)",
    "session[s] without an end: cut off, or still being recorded"};

bool has_member_value(std::string_view line, std::string_view key, std::string_view value) {
    return filter::JsonLine{line}.object().find_text(key) == value;
}

} // namespace

void RecordsCheck::add(Fault fault, std::uint64_t count, std::string_view time) {
    Problem& problem = problems_.at(static_cast<std::size_t>(fault));
    if (problem.count == 0 && count != 0) {
        problem.first = files_.back() + (time.empty() ? "" : ", ") + std::string{time};
    }
    problem.count += count;
}

void RecordsCheck::add_cut_off(Problems& problems, const Session& session) const {
    Problem& problem = problems.at(static_cast<std::size_t>(Fault::cut_off_session));
    if (problem.count++ == 0) {
        problem.first = files_[session.file] + ", " + session.time;
    }
}

void RecordsCheck::begin_file(const std::string& path, bool is_being_written) {
    const std::filesystem::path whole{path};
    files_.push_back(whole.filename().string());
    is_being_written_ = is_being_written;
    const auto segment = store::parse_segment(files_.back());
    const std::string recording = segment ? (whole.parent_path() / segment->name).string() : path;
    if (std::exchange(recording_, recording) != recording) {
        std::erase_if(open_, [](const auto& each) { return each.second.closed; });
    }
    if (!segment) {
        return;
    }
    const auto [last, first] = numbers_.try_emplace(recording, segment->number);
    if (!first && segment->number > last->second + 1) {
        add(Fault::missing_segment, segment->number - last->second - 1);
    }
    last->second = segment->number;
}

void RecordsCheck::on_line(std::string_view line,
                           const std::optional<filter::RecordLineHead>& head) {
    ++lines_;
    if (!head || !record::is_json_object(line)) {
        add(Fault::broken_line, 1);
        return;
    }
    if (record::is_repeated_record(line)) { // another segment contains the same record
        if (const auto open = open_.find(head->session); open != open_.end()) {
            open->second.file = files_.size() - 1; // the session went on in this segment
        }
        return;
    }
    if (head->type == "segment") {
        return; // a segment record describes the file, not the traffic
    }
    if (first_time_.empty() || head->time < first_time_) {
        first_time_ = head->time;
    }
    last_time_ = std::max<std::string_view>(last_time_, head->time);
    if (head->type == "records_lost") {
        add(Fault::lost_record, filter::JsonLine{line}.object().find_count("lost"), head->time);
    } else if (head->type == "finding" && has_member_value(line, "id", R"("inspect.gap")")) {
        add(Fault::gap, filter::JsonLine{line}.object().find_count("lost"), head->time);
    }
    has_worlds_ = has_worlds_ || head->type == "world";
    if (head->session != 0) {
        track_session(line, *head);
    }
}

void RecordsCheck::track_session(std::string_view line, const filter::RecordLineHead& head) {
    const bool event = head.type == "session";
    if (event && has_member_value(line, "event", R"("open")")) {
        ++sessions_;
        const auto before = open_.find(head.session);
        // The number is reused after a restart: an earlier session that is not closed was cut off.
        if (before != open_.end() && before->second.lacks_end()) {
            add_cut_off(problems_, before->second);
        }
        open_[head.session] = {.begun = true};
    } else if (!open_.contains(head.session)) {
        ++sessions_; // the session began in another file
    }
    Session& session = open_[head.session];
    session.has_events = session.has_events || event;
    if (!session.closed && head.time < session.time) {
        add(Fault::time_went_back, 1, head.time);
    }
    session.snapshots += head.type == "snapshot" ? 1U : 0U;
    session.messages += head.type == "message" ? 1U : 0U;
    session.time = head.time;
    session.file = files_.size() - 1;
    if (event) {
        session.reconnects = has_member_value(line, "reason", R"("reconnected")");
        session.closed = has_member_value(line, "event", R"("close")") && !session.reconnects;
    } else if (head.type == "summary") {
        compare_with_summary(session, line);
        if (session.closed || session.reconnects) { // a new connection's summary counts from 0
            session = {.time = session.closed ? std::string{} : session.time,
                       .file = session.file,
                       .begun = session.begun,
                       .has_events = true,
                       .closed = session.closed};
        }
    }
}

/// Compares the number of the session's records with its summary. Fewer records are no error,
/// because a run may record only some kinds of records.
void RecordsCheck::compare_with_summary(const Session& session, std::string_view line) {
    filter::JsonLine json{line};
    filter::JsonObject& summary = json.object();
    if (!session.begun || !summary.has_member("snapshots")) {
        return;
    }
    std::uint64_t messages = 0;
    for (const std::string_view key : {"c2s.messages", "c2s.control", "c2s.connless",
                                       "s2c.messages", "s2c.control", "s2c.connless"}) {
        messages += summary.find_count(key);
    }
    const auto compare = [&](std::uint64_t counted, std::uint64_t total, std::uint64_t& absent) {
        add(Fault::repeated_record, counted > total ? counted - total : 0, session.time);
        absent += counted < total ? total - counted : 0;
    };
    compare(session.snapshots, summary.find_count("snapshots.total"), absent_snapshots_);
    compare(session.messages, messages, absent_messages_);
}

void RecordsCheck::end_file(const store::LineReader& reader) {
    const store::FileEnd end = reader.source().file_end();
    const bool damaged = end == store::FileEnd::damaged || end == store::FileEnd::too_wide ||
                         end == store::FileEnd::unreadable || reader.source().skipped_bytes() != 0;
    add(Fault::damaged_file, damaged ? 1 : 0);
    const bool unfinished =
        end == store::FileEnd::within_frame || !reader.unfinished_line().empty();
    add(Fault::unfinished_file, !damaged && unfinished ? 1 : 0);
    add(Fault::broken_line, reader.skipped_bytes() != 0 ? 1 : 0);
}

RecordsCheck::Problems RecordsCheck::find_problems() const {
    Problems problems = problems_;
    for (const auto& [unused, session] : open_) {
        // Each segment repeats the openings of the sessions that go on.
        const bool may_go_on = is_being_written_ && session.file + 1 == files_.size();
        if (session.lacks_end() && !may_go_on) {
            add_cut_off(problems, session);
        }
    }
    return problems;
}

bool RecordsCheck::is_complete() const {
    return std::ranges::all_of(find_problems(),
                               [](const Problem& problem) { return problem.count == 0; });
}

std::string RecordsCheck::report_text() const {
    std::string text = fmt::format("{}, {}, {}", record::count_with_noun(files_.size(), "file[s]"),
                                   record::count_with_noun(lines_, "record[s]"),
                                   record::count_with_noun(sessions_, "session[s]"));
    text += first_time_.empty() ? "\n" : fmt::format(", {} to {}\n", first_time_, last_time_);
    const Problems problems = find_problems();
    for (std::size_t i = 0; i < problems.size(); ++i) {
        if (problems.at(i).count != 0) {
            text +=
                fmt::format("{} (first: {})\n",
                            record::count_with_noun(problems.at(i).count, kFaultSentences.at(i)),
                            problems.at(i).first);
        }
    }
    if (absent_snapshots_ + absent_messages_ != 0) {
        text += fmt::format("{} and {} that summaries count are {}, or filtered out\n",
                            record::count_with_noun(absent_snapshots_, "snapshot[s]"),
                            record::count_with_noun(absent_messages_, "message[s]"),
                            has_worlds_ ? "recorded as worlds" : "missing: not recorded");
    }
    return text + (is_complete() ? "complete\n" : "incomplete\n");
}

namespace {

constexpr std::string_view kFields = "fields.";
constexpr std::array<std::string_view, 5> kCommon{"v", "t", "type", "session", "dir"};

/// Appends a cell; quotes it if it contains separators.
void append_cell(std::string_view text, std::string& out) {
    const bool separates = std::ranges::any_of(
        text, [](char each) { return each == ',' || each == '"' || each == '\r' || each == '\n'; });
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

/// True if a spreadsheet would take a cell with this text for a formula.
bool is_spreadsheet_formula(std::string_view text) {
    return !text.empty() &&
           std::string_view{"=+-@\t\r\n"}.find(text.front()) != std::string_view::npos;
}

/// Appends the shortest text that reads back as this number and has a decimal point, such as "2.0".
/// ("{:#}" of fmt 10 would write "2.".)
void append_real(double number, std::string& out) {
    const std::size_t begin = out.size();
    fmt::format_to(std::back_inserter(out), "{}", number);
    if (out.find_first_not_of("-0123456789", begin) == std::string::npos) {
        out += ".0";
    }
}

/// Joins the values of a key into one text.
class JoinedValues final : public filter::ValueVisitor {
  public:
    /// `count_booleans`: whether to write true and false as 1 and 0.
    JoinedValues(std::string& text, bool count_booleans)
        : text_{&text}, count_booleans_{count_booleans} {}

    bool receive_value(const filter::Value& value) override {
        const bool named = value.number.index() == 0 || (value.word && !count_booleans_);
        begins_with_text_ = any_ ? begins_with_text_ : named;
        if (!any_ && in_list_ && !named) {
            text_->push_back('[');
            closes_ = true;
        } else if (any_) {
            text_->push_back(closes_ ? ',' : ' ');
        }
        any_ = true;
        if (named) {
            text_->append(value.text);
        } else if (const auto* const integer = std::get_if<std::int64_t>(&value.number)) {
            const fmt::format_int digits{*integer};
            text_->append(digits.data(), digits.size());
        } else {
            append_real(std::get<double>(value.number), *text_);
        }
        return false;
    }

    void begin_list() override { in_list_ = true; }

    /// Ends the cell. Returns true if the cell has a value.
    [[nodiscard]] bool finish() {
        text_->append(closes_ ? "]" : "");
        return any_;
    }

    [[nodiscard]] bool begins_with_text() const { return begins_with_text_; }

  private:
    std::string* text_;
    bool count_booleans_;
    bool in_list_ = false;
    bool closes_ = false; ///< the cell is a list of numbers, which needs a closing bracket
    bool begins_with_text_ = false;
    bool any_ = false;
};

/// Collects the pairs of type_id and id in a record's list of removed items.
class RemovedItems final : public filter::ValueVisitor {
  public:
    std::vector<std::array<std::int64_t, 2>> pairs;

    void begin_list() override {
        ++lists_;
        numbers_ = 0;
    }

    bool receive_value(const filter::Value& value) override {
        const auto* const number = std::get_if<std::int64_t>(&value.number);
        if (lists_ > 1 && number != nullptr && *number >= 0 && !value.word && numbers_ < 2) {
            pair_[numbers_++] = *number;
            if (numbers_ == 2) {
                pairs.push_back(pair_);
            }
        }
        return false;
    }

  private:
    std::size_t lists_ = 0; ///< number of lists so far; the first list contains the other ones
    std::size_t numbers_ = 0;
    std::array<std::int64_t, 2> pair_{};
};

} // namespace

RecordsCsv::RecordsCsv(const std::vector<std::string>& columns, Options options)
    : options_{std::move(options)}, items_{options_.where.has_value()},
      removed_{items_ && options_.where->uses_key(filter::kRowRemoved)} {
    for (const std::string& name : columns) {
        const bool item = name.starts_with(filter::kItemsPrefix);
        columns_.push_back({.name = name,
                            .key = item ? name.substr(filter::kItemsPrefix.size()) : name,
                            .item = item,
                            .common = std::ranges::find(kCommon, name) != kCommon.end()});
        items_ = items_ || item;
        removed_ = removed_ || (item && columns_.back().key == filter::kRowRemoved);
    }
    common_ = std::ranges::all_of(columns_, [](const Column& column) { return column.common; });
}

std::string RecordsCsv::header_row() const {
    std::string out;
    for (const Column& column : columns_) {
        out.append(out.empty() ? "" : ",");
        append_cell(column.name, out);
    }
    return out + "\r\n";
}

void RecordsCsv::append_rows(std::string_view line, std::string& out) {
    if (!items_) {
        line_.set_line(line);
        if (fill_cells(line_.object(), false) || common_) {
            append_row(out);
        }
        return;
    }
    if (!removed_ && options_.where && !options_.where->may_match(line)) {
        return;
    }
    line_.set_line(line);
    line_ready_ = false;
    if (removed_) {
        append_removed_rows(out); // before the line's new items, which may reuse a type number
    }
    line_.for_each_item([&](filter::JsonObject& item) {
        append_item_row(item, out);
        if (removed_) {
            store_item_type(item);
        }
        return false;
    });
}

void RecordsCsv::append_item_row(filter::JsonObject& item, std::string& out) {
    if (options_.where && !options_.where->matches_row(line_, item)) {
        return;
    }
    if (!fill_cells(item, true) && !options_.where) {
        return;
    }
    if (!std::exchange(line_ready_, true)) {
        static_cast<void>(fill_cells(line_.object(), false));
    }
    append_row(out);
}

void RecordsCsv::append_removed_rows(std::string& out) {
    session_ = line_.object().find_integer("session").value_or(0);
    RemovedItems removed;
    line_.object().visit(filter::kRowRemoved, removed);
    for (const auto& [type_id, id] : removed.pairs) {
        const auto type = types_.find({session_, type_id});
        const std::string item = fmt::format(R"({{"type":{},"type_id":{},"id":{},"{}":true}})",
                                             type == types_.end() ? "null" : type->second, type_id,
                                             id, filter::kRowRemoved);
        removed_item_.set_line(item);
        append_item_row(removed_item_.object(), out);
    }
}

void RecordsCsv::store_item_type(filter::JsonObject& item) {
    const auto name = item.find_text("type");
    const auto number = item.find_integer("type_id");
    if (name && number) {
        if (types_.size() == kMaxTypes) {
            types_.clear();
        }
        types_[{session_, *number}] = *name;
    }
}

bool RecordsCsv::fill_cells(filter::JsonObject& json, bool item) {
    bool wanted = false;
    for (Column& column : columns_) {
        if (column.item != item) {
            continue;
        }
        column.cell.clear();
        JoinedValues joined{column.cell, !item && column.key.starts_with(kFields)};
        if (item) {
            filter::visit_row(json, column.key, joined);
        } else {
            filter::visit_record(json, column.key, joined);
        }
        const bool any = joined.finish();
        column.text = joined.begins_with_text();
        wanted = wanted || (any && !column.common);
    }
    return wanted;
}

std::vector<std::string> RecordsCsv::empty_columns() const {
    std::vector<std::string> names;
    for (const Column& column : columns_) {
        if (!column.seen) {
            names.push_back(column.name);
        }
    }
    return names;
}

void RecordsCsv::append_row(std::string& out) {
    ++rows_;
    for (Column& column : columns_) {
        column.seen = column.seen || !column.cell.empty();
        if (&column != columns_.data()) {
            out.push_back(',');
        }
        if (options_.no_formulas && column.text && is_spreadsheet_formula(column.cell)) {
            column.cell.insert(0, 1, '\'');
        }
        if (options_.for_terminal) {
            append_cell(record::terminal_text(column.cell), out);
        } else {
            append_cell(column.cell, out);
        }
    }
    out.append("\r\n");
}

} // namespace tw::analyze
