#include "proxy/analyze/records_check.h"

#include "proxy/filter/keys.h"
#include "proxy/record/json.h"
#include "proxy/record/terminal_text.h"
#include "proxy/store/retention.h"

#include <filesystem>

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
    return filter::JsonLine{line}.object().find_scalar_text(key) == value;
}

constexpr std::string_view kFieldsPrefix = "fields.";
constexpr std::array<std::string_view, 5> kCommonKeys{"v", "t", "type", "session", "dir"};

/// Appends a cell; quotes it if it contains separators.
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

/// True if a spreadsheet would take a cell with this text for a formula.
bool is_spreadsheet_formula(std::string_view text) {
    return !text.empty() &&
           std::string_view{"=+-@\t\r\n"}.find(text.front()) != std::string_view::npos;
}

/// Appends the shortest text that reads back as this number and has a decimal point, such as "2.0".
/// ("{:#}" of fmt 10 would write "2.".)
void append_real(double number, std::string& out) {
    const std::size_t begin = out.size();
    out += fmt::format("{}", number);
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
        const bool named = value.number.index() == 0 || (value.is_word && !count_booleans_);
        begins_with_text_ = has_value_ ? begins_with_text_ : named;
        if (!has_value_ && is_in_list_ && !named) {
            text_->push_back('[');
            needs_bracket_ = true;
        } else if (has_value_) {
            text_->push_back(needs_bracket_ ? ',' : ' ');
        }
        has_value_ = true;
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

    void begin_list() override { is_in_list_ = true; }

    /// Ends the cell. Returns true if the cell has a value.
    [[nodiscard]] bool finish() {
        text_->append(needs_bracket_ ? "]" : "");
        return has_value_;
    }

    [[nodiscard]] bool begins_with_text() const { return begins_with_text_; }

  private:
    std::string* text_;
    bool count_booleans_;
    bool is_in_list_ = false;
    bool needs_bracket_ = false; ///< the cell is a list of numbers, which needs a closing bracket
    bool begins_with_text_ = false;
    bool has_value_ = false;
};

/// Collects the pairs of type_id and id in a record's list of removed items.
class RemovedItems final : public filter::ValueVisitor {
  public:
    std::vector<std::array<std::int64_t, 2>> pairs;

    void begin_list() override {
        ++num_lists_;
        pair_size_ = 0;
    }

    bool receive_value(const filter::Value& value) override {
        const auto* const number = std::get_if<std::int64_t>(&value.number);
        if (num_lists_ > 1 && number != nullptr && *number >= 0 && !value.is_word &&
            pair_size_ < 2) {
            pair_[pair_size_++] = *number;
            if (pair_size_ == 2) {
                pairs.push_back(pair_);
            }
        }
        return false;
    }

  private:
    std::size_t num_lists_ =
        0; ///< number of lists so far: the outer list, then a list for each pair
    std::size_t pair_size_ = 0;
    std::array<std::int64_t, 2> pair_{};
};

} // namespace

void RecordsCheck::add_faults(Fault fault, std::uint64_t count, std::string_view time) {
    FaultCount& found = faults_.at(static_cast<std::size_t>(fault));
    if (found.count == 0 && count != 0) {
        found.first_place = files_.back() + (time.empty() ? "" : ", ") + std::string{time};
    }
    found.count += count;
}

void RecordsCheck::count_cut_off_session(FaultCounts& faults, const Session& session) const {
    FaultCount& found = faults.at(static_cast<std::size_t>(Fault::cut_off_session));
    if (found.count++ == 0) {
        found.first_place = files_[session.file] + ", " + session.time;
    }
}

void RecordsCheck::begin_file(const std::string& path, bool is_being_written) {
    const std::filesystem::path whole{path};
    files_.push_back(whole.filename().string());
    is_being_written_ = is_being_written;
    const auto segment = store::parse_segment_name(files_.back());
    const std::string recording = segment ? (whole.parent_path() / segment->name).string() : path;
    if (std::exchange(recording_, recording) != recording) {
        std::erase_if(open_sessions_, [](const auto& each) { return each.second.is_closed; });
    }
    if (!segment) {
        return;
    }
    const auto [last, first] = segment_numbers_.try_emplace(recording, segment->number);
    if (!first && segment->number > last->second + 1) {
        add_faults(Fault::missing_segment, segment->number - last->second - 1);
    }
    last->second = segment->number;
}

void RecordsCheck::on_line(std::string_view line,
                           const std::optional<filter::RecordLineHead>& head) {
    ++num_lines_;
    if (!head || !record::is_json_object(line)) {
        add_faults(Fault::broken_line, 1);
        return;
    }
    if (record::is_repeated_record(line)) { // another segment contains the same record
        if (const auto open = open_sessions_.find(head->session); open != open_sessions_.end()) {
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
        add_faults(Fault::lost_record, filter::JsonLine{line}.object().find_count("lost"),
                   head->time);
    } else if (head->type == "finding" && has_member_value(line, "id", R"("inspect.gap")")) {
        add_faults(Fault::gap, filter::JsonLine{line}.object().find_count("lost"), head->time);
        has_new_observer_ =
            has_new_observer_ || has_member_value(line, "name", R"("new_observer")");
    }
    has_worlds_ = has_worlds_ || head->type == "world";
    if (head->session != 0) {
        track_session(line, *head);
    }
}

void RecordsCheck::track_session(std::string_view line, const filter::RecordLineHead& head) {
    const bool event = head.type == "session";
    if (event && has_member_value(line, "event", R"("open")")) {
        ++num_sessions_;
        const auto before = open_sessions_.find(head.session);
        // twscope was restarted, so the number is reused. An earlier session that is not closed was
        // cut off.
        if (before != open_sessions_.end() && before->second.lacks_close_record()) {
            count_cut_off_session(faults_, before->second);
        }
        open_sessions_[head.session] = {.has_first_record = true};
    } else if (!open_sessions_.contains(head.session)) {
        ++num_sessions_; // the session began in another file
    }
    Session& session = open_sessions_[head.session];
    session.has_session_records = session.has_session_records || event;
    if (!session.is_closed && head.time < session.time) {
        add_faults(Fault::time_went_back, 1, head.time);
    }
    session.num_snapshots += head.type == "snapshot" ? 1U : 0U;
    session.num_messages += head.type == "message" ? 1U : 0U;
    session.time = head.time;
    session.file = files_.size() - 1;
    if (event) {
        session.is_reconnecting = has_member_value(line, "reason", R"("reconnected")");
        session.is_closed =
            has_member_value(line, "event", R"("close")") && !session.is_reconnecting;
    } else if (head.type == "summary") {
        compare_with_summary(session, line);
        if (session.is_closed || session.is_reconnecting) { // the next summary counts from 0
            session = {.time = session.is_closed ? std::string{} : session.time,
                       .file = session.file,
                       .has_first_record = session.has_first_record,
                       .has_session_records = true,
                       .is_closed = session.is_closed};
        }
    }
}

/// Compares the number of the session's records with its summary. A lower number is not an error,
/// because a run may record only some kinds of records.
void RecordsCheck::compare_with_summary(const Session& session, std::string_view line) {
    filter::JsonLine json{line};
    filter::JsonObject& summary = json.object();
    if (!session.has_first_record || !summary.has_member("snapshots")) {
        return;
    }
    std::uint64_t messages = 0;
    std::uint64_t rejected = 0; // control packets that may have no record
    for (const std::string side : {"c2s", "s2c"}) {
        const std::uint64_t control = summary.find_count(side + ".control");
        messages += control + summary.find_count(side + ".messages") +
                    summary.find_count(side + ".connless");
        rejected += std::min(control, summary.find_count(side + ".not_accepted") +
                                          summary.find_count(side + ".wrong_token"));
    }
    const auto compare = [&](std::uint64_t counted, std::uint64_t total, std::uint64_t& absent) {
        add_faults(Fault::repeated_record, counted > total ? counted - total : 0, session.time);
        absent += counted < total ? total - counted : 0;
    };
    compare(session.num_snapshots, summary.find_count("snapshots.total"), num_missing_snapshots_);
    const bool may_be_complete =
        session.num_messages <= messages && messages - session.num_messages <= rejected;
    compare(session.num_messages, may_be_complete ? session.num_messages : messages,
            num_missing_messages_);
}

void RecordsCheck::end_file(const store::LineReader& reader) {
    const store::ReadStopReason end = reader.source().stop_reason();
    const bool damaged =
        end == store::ReadStopReason::damaged || end == store::ReadStopReason::window_too_large ||
        end == store::ReadStopReason::read_error || reader.source().skipped_bytes() != 0;
    add_faults(Fault::damaged_file, damaged ? 1 : 0);
    const bool unfinished =
        end == store::ReadStopReason::within_frame || !reader.unfinished_line().empty();
    add_faults(Fault::unfinished_file, !damaged && unfinished ? 1 : 0);
    add_faults(Fault::broken_line, reader.skipped_bytes() != 0 ? 1 : 0);
}

RecordsCheck::FaultCounts RecordsCheck::find_faults() const {
    FaultCounts faults = faults_;
    for (const auto& [unused, session] : open_sessions_) {
        // Each segment repeats the first record of every open session, which updates `file`.
        const bool may_go_on = is_being_written_ && session.file + 1 == files_.size();
        if (session.lacks_close_record() && !may_go_on) {
            count_cut_off_session(faults, session);
        }
    }
    return faults;
}

bool RecordsCheck::is_complete() const {
    return std::ranges::all_of(find_faults(),
                               [](const FaultCount& found) { return found.count == 0; });
}

std::string RecordsCheck::report_text() const {
    std::string text = fmt::format("{}, {}, {}", record::count_with_noun(files_.size(), "file[s]"),
                                   record::count_with_noun(num_lines_, "record[s]"),
                                   record::count_with_noun(num_sessions_, "session[s]"));
    text += first_time_.empty() ? "\n" : fmt::format(", {} to {}\n", first_time_, last_time_);
    const FaultCounts faults = find_faults();
    for (std::size_t i = 0; i < faults.size(); ++i) {
        if (faults.at(i).count != 0) {
            const bool is_restart = has_new_observer_ && i == static_cast<std::size_t>(Fault::gap);
            text += fmt::format("{} (first: {}){}\n",
                                record::count_with_noun(faults.at(i).count, kFaultSentences.at(i)),
                                faults.at(i).first_place,
                                is_restart ? "; up to a second of records before a new observer "
                                             "is missing, too"
                                           : "");
        }
    }
    if (num_missing_snapshots_ + num_missing_messages_ != 0) {
        text += fmt::format("not in these records: {}{} and {} (filtered out, or not recorded)\n",
                            record::count_with_noun(num_missing_snapshots_, "session snapshot[s]"),
                            has_worlds_ ? " (worlds stand for them)" : "",
                            record::count_with_noun(num_missing_messages_, "message[s]"));
    }
    return text + (!is_complete()      ? "incomplete\n"
                   : is_being_written_ ? "complete so far; still being recorded\n"
                                       : "complete\n");
}

RecordsCsvWriter::RecordsCsvWriter(const std::vector<std::string>& columns, Options options)
    : options_{std::move(options)}, rows_are_items_{options_.where.has_value()},
      shows_removed_items_{rows_are_items_ && options_.where->uses_key(filter::kRemovedRowKey)} {
    for (const std::string& name : columns) {
        const bool is_of_items = name.starts_with(filter::kItemsPrefix);
        columns_.push_back(
            {.name = name,
             .key = is_of_items ? name.substr(filter::kItemsPrefix.size()) : name,
             .is_of_items = is_of_items,
             .is_common = std::ranges::find(kCommonKeys, name) != kCommonKeys.end()});
        rows_are_items_ = rows_are_items_ || is_of_items;
        shows_removed_items_ =
            shows_removed_items_ || (is_of_items && columns_.back().key == filter::kRemovedRowKey);
    }
    has_only_common_columns_ =
        std::ranges::all_of(columns_, [](const Column& column) { return column.is_common; });
}

std::string RecordsCsvWriter::header_row() const {
    std::string out;
    for (const Column& column : columns_) {
        out.append(out.empty() ? "" : ",");
        append_cell(column.name, out);
    }
    return out + "\r\n";
}

void RecordsCsvWriter::append_rows(std::string_view line, std::string& out) {
    if (!rows_are_items_) {
        line_.set_line(line);
        if (fill_cells(line_.object(), false) || has_only_common_columns_) {
            append_row(out);
        }
        return;
    }
    if (!shows_removed_items_ && options_.where && !options_.where->may_match(line)) {
        return;
    }
    line_.set_line(line);
    has_record_cells_ = false;
    if (shows_removed_items_) {
        append_removed_rows(out); // before the line's new items, which may reuse a type number
    }
    line_.for_each_item([&](filter::JsonObject& item) {
        append_item_row(item, out);
        if (shows_removed_items_) {
            store_item_type(item);
        }
        return false;
    });
}

void RecordsCsvWriter::append_item_row(filter::JsonObject& item, std::string& out) {
    if (options_.where && !options_.where->matches_row(line_, item)) {
        return;
    }
    if (!fill_cells(item, true) && !options_.where) {
        return;
    }
    if (!std::exchange(has_record_cells_, true)) {
        static_cast<void>(fill_cells(line_.object(), false));
    }
    append_row(out);
}

void RecordsCsvWriter::append_removed_rows(std::string& out) {
    session_ = line_.object().find_integer("session").value_or(0);
    RemovedItems removed;
    line_.object().visit_values(filter::kRemovedRowKey, removed);
    for (const auto& [type_id, id] : removed.pairs) {
        const auto type = types_.find({session_, type_id});
        const std::string item = fmt::format(R"({{"type":{},"type_id":{},"id":{},"{}":true}})",
                                             type == types_.end() ? "null" : type->second, type_id,
                                             id, filter::kRemovedRowKey);
        removed_item_line_.set_line(item);
        append_item_row(removed_item_line_.object(), out);
    }
}

void RecordsCsvWriter::store_item_type(filter::JsonObject& item) {
    const auto name = item.find_scalar_text("type");
    const auto number = item.find_integer("type_id");
    if (name && number) {
        if (types_.size() == kMaxTypes) {
            types_.clear();
        }
        types_[{session_, *number}] = *name;
    }
}

bool RecordsCsvWriter::fill_cells(filter::JsonObject& json, bool is_item) {
    bool wanted = false;
    for (Column& column : columns_) {
        if (column.is_of_items != is_item) {
            continue;
        }
        column.cell.clear();
        JoinedValues joined{column.cell, !is_item && column.key.starts_with(kFieldsPrefix)};
        if (is_item) {
            filter::visit_row_item(json, column.key, joined);
        } else {
            filter::visit_record(json, column.key, joined);
        }
        const bool any = joined.finish();
        column.begins_with_text = joined.begins_with_text();
        column.has_value = column.has_value || any;
        wanted = wanted || (any && !column.is_common);
    }
    return wanted;
}

std::vector<std::string> RecordsCsvWriter::empty_columns() const {
    std::vector<std::string> names;
    for (const Column& column : columns_) {
        if (!column.has_value) {
            names.push_back(column.name);
        }
    }
    return names;
}

void RecordsCsvWriter::append_row(std::string& out) {
    ++num_rows_;
    for (Column& column : columns_) {
        if (&column != columns_.data()) {
            out.push_back(',');
        }
        if (options_.escapes_formulas && column.begins_with_text &&
            is_spreadsheet_formula(column.cell)) {
            column.cell.insert(0, 1, '\'');
        }
        if (options_.is_for_terminal) {
            column.cell = record::escape_for_terminal(column.cell);
        }
        append_cell(column.cell, out);
    }
    out.append("\r\n");
}

bool begins_with_table_header(std::string_view text) {
    const std::size_t end = text.find("\r\n");
    std::string_view header = text.substr(0, end);
    bool has_only_keys = end != std::string_view::npos && !header.empty();
    while (has_only_keys && !header.empty()) {
        const std::string_view key = header.substr(0, header.find(','));
        header.remove_prefix(std::min(header.size(), key.size() + 1));
        const bool is_of_items = key.starts_with(filter::kItemsPrefix);
        const std::string_view name = key.substr(is_of_items ? filter::kItemsPrefix.size() : 0);
        const bool may_be_of_mod = name.starts_with(kFieldsPrefix) || name.starts_with("names.");
        has_only_keys = may_be_of_mod || filter::find_key(is_of_items ? filter::KeyScope::item_row
                                                                      : filter::KeyScope::record,
                                                          key);
    }
    return has_only_keys;
}

} // namespace tw::analyze
