#include "proxy/analyze/records_check.h"
#include "proxy/base/clock.h"
#include "proxy/base/descriptors.h"
#include "proxy/base/files.h"
#include "proxy/cli/commands.h"
#include "proxy/cli/objects_file.h"
#include "proxy/cli/output_file.h"
#include "proxy/cli/recording_flags.h"
#include "proxy/cli/records_files.h"
#include "proxy/cli/settings.h"
#include "proxy/filter/keys.h"
#include "proxy/filter/line_record.h"
#include "proxy/record/json.h"
#include "proxy/record/terminal_text.h"
#include "proxy/sink/output.h"
#include "proxy/store/retention.h"

#include <cerrno>
#include <csignal>

#include <boost/algorithm/string/trim.hpp>
#include <fcntl.h>

namespace tw::cli {

namespace {

volatile std::sig_atomic_t interrupted = 0;

struct RecordsCommandFlags {
    std::vector<std::string> paths;
    std::string filter;
    std::vector<std::int64_t> sessions;
    std::string from;
    std::string to;
    std::string output = "-";
    std::vector<std::string> columns;
    std::string where;
    std::string objects_file;
    bool no_formulas = false;
    bool follow = false;
    bool verify = false;
};

/// Returns the day of the first record, such as "2026-11-21".
/// Errors: UsageError that names the flag.
std::string first_record_day(std::string_view flag, const std::string& given,
                             const std::vector<std::string>& paths) {
    constexpr std::string_view kDay = "dddd-dd-dd";
    constexpr std::string_view kBefore = R"({"v":1,"t":")";
    const store::FileStartReader begin{RecordsFiles{paths}.files().front(), 2 * kBefore.size()};
    const std::string_view bytes = begin.bytes();
    std::string day{bytes.starts_with(kBefore) ? bytes.substr(kBefore.size(), kDay.size()) : ""};
    if (!store::matches_pattern(day, kDay)) {
        throw usage_error("{0} {1}: the recording does not begin with a record whose day this "
                          "could be; add the date, for example 2026-11-21T{1}",
                          flag, given);
    }
    return day;
}

/// Parses a UTC time as in records; its end may be left out, as in "2026-11-22 18". "-60s" is the
/// time a minute ago, and "20:15" a time of the day on which the first of the files begins. Returns
/// the time without the Z, for comparison with record times as text.
/// Errors: UsageError that names the flag.
std::string parse_record_time(std::string_view flag, const std::string& given,
                              const std::vector<std::string>& paths) {
    constexpr std::string_view kShape = "dddd-dd-ddTdd:dd:dd.dddddd";
    constexpr std::string_view kEarliest = "0000-01-01T00:00:00"; // completes a shortened time
    constexpr std::array<std::size_t, 6> kEnds{4, 7, 10, 13, 16, kEarliest.size()};
    const auto error = [&] {
        return usage_error(
            "{} {}: expected a time in UTC, or the beginning of one, for example 2026-11-21T20:15; "
            "a time of the recording's first day, for example 20:15; or the time before now, for "
            "example -10min",
            flag, given);
    };
    if (given.size() > 1 && given.front() == '-') {
        try {
            const TimeAndSize age = parse_time_and_size(std::string{flag}, given.substr(1));
            if (age.bytes == 0) {
                return base::format_utc(std::time(nullptr) - age.time.count(),
                                        base::kRecordTimeFormat);
            }
        } catch (const UsageError&) {
            throw error();
        }
    }
    constexpr std::string_view kClock = "dd:dd";
    std::string text = store::matches_pattern(given.substr(0, kClock.size()), kClock)
                           ? first_record_day(flag, given, paths) + 'T' + given
                           : given;
    if (text.size() >= kEarliest.size() && text.back() == 'Z') {
        text.pop_back();
    }
    if (text.size() > kEnds[2] && text[kEnds[2]] == ' ') {
        text[kEnds[2]] = 'T';
    }
    const bool whole = std::find(kEnds.begin(), kEnds.end(), text.size()) != kEnds.end() ||
                       (text.size() > kEarliest.size() + 1 && text.size() <= kShape.size());
    const bool shaped = whole && store::matches_pattern(text, kShape.substr(0, text.size()));
    const std::string seconds =
        text.substr(0, kEarliest.size()) +
        std::string{kEarliest.substr(std::min(text.size(), kEarliest.size()))};
    // timegm() would change a day or time that does not exist, such as February 30.
    std::tm time{};
    const bool fits = shaped &&
                      ::strptime(seconds.c_str(), base::kRecordTimeFormat, &time) != nullptr &&
                      base::format_utc(::timegm(&time), base::kRecordTimeFormat) == seconds;
    if (!text.empty() && !fits) {
        throw error();
    }
    return text;
}

constexpr std::string_view kPlayerKey = "player";
constexpr std::string_view kExactNames =
    " (names are compared exactly: Ann is not ann; --columns items.player shows them)";

/// If the error is about an unknown field, adds that an objects file may define the field.
UsageError make_error_with_objects_hint(const RecordsCommandFlags& flags,
                                        const std::string& error) {
    const bool is_about_field =
        error.find("fields.", error.find(" has a key ")) != std::string::npos;
    return UsageError{
        flags.objects_file.empty() && is_about_field
            ? error + " (fields that an objects file defines need --objects; items.data has "
                      "all ints if recorded with --items all,raw)"
            : error};
}

/// Parses the condition of a flag. Returns nullopt if `text` is empty. Errors: UsageError.
std::optional<filter::LineFilter> parse_condition(const RecordsCommandFlags& flags,
                                                  std::string_view flag, const std::string& text,
                                                  filter::ModTypes described,
                                                  filter::KeyScope scope) {
    if (text.empty()) {
        return std::nullopt;
    }
    auto parsed = filter::LineFilter::parse(text, {.described = described}, scope);
    if (!parsed) {
        const bool selects_records = flag == "--filter" && !flags.columns.empty();
        throw make_error_with_objects_hint(
            flags, fmt::format("{} '{}': {}{}", flag, text, parsed.error().message,
                               selects_records ? " (--where selects rows, --filter records)" : ""));
    }
    return *std::move(parsed);
}

/// Selects lines of a recording.
class LineSelection {
  public:
    LineSelection(const RecordsCommandFlags& flags, filter::ModTypes described)
        : flags_{&flags}, wanted_sessions_{flags.sessions.begin(), flags.sessions.end()},
          filter_{parse_condition(flags, "--filter", flags.filter, described,
                                  filter::KeyScope::record)} {}

    [[nodiscard]] bool selects_all() const {
        return wanted_sessions_.empty() && flags_->from.empty() && flags_->to.empty() && !filter_;
    }

    /// Passes the line to `write` if it is selected. Before a session's first line in the selected
    /// time, passes the earlier records of its start and its map, marked as repeated, if they match
    /// the filter.
    void select(std::string_view line, const std::function<void(std::string_view)>& write) {
        const auto head = filter::read_line_head(line);
        if (!head) {
            return;
        }
        has_read_ = true;
        if (!wanted_sessions_.empty()) {
            sessions_.insert(head->session);
            if (!wanted_sessions_.contains(head->session)) {
                return;
            }
        }
        if (is_event(line, *head, "open")) {
            earlier_.erase(head->session); // a session of another recording had the same number
        }
        if (head->time < flags_->from) {
            store_session_start(line, *head);
            return;
        }
        if (!flags_->to.empty() && head->time >= flags_->to) {
            return;
        }
        if (const auto start = earlier_.extract(head->session)) {
            for (const std::string* each :
                 {&start.mapped().open, &start.mapped().established, &start.mapped().map}) {
                if (!each->empty()) {
                    write(*each);
                }
            }
        }
        has_filtered_ = true;
        if (!filter_ || filter_->matches(line)) {
            has_match_ = true;
            write(line);
        }
    }

    /// Prints on standard error which sessions do not exist, and why no record is selected. Returns
    /// false if a record is selected, or the reason is not known.
    [[nodiscard]] bool report_unmatched() const {
        const std::size_t found = sessions_.size() - sessions_.count(0);
        bool is_any_reported = false;
        for (const std::int64_t wanted : wanted_sessions_) {
            if (!sessions_.empty() && !sessions_.contains(wanted)) {
                sink::print_error(
                    "--session {0}: there is no session {0} in these records; there {1}", wanted,
                    record::choose_plural(found, "[is|are] ") +
                        record::count_with_noun(found, "session[s]"));
                is_any_reported = true;
            }
        }
        if (filter_ && has_filtered_ && !has_match_) {
            const std::string& near = filter_->similar_message();
            sink::print_error("no record matches --filter '{}'{}{}", flags_->filter,
                              near.empty() ? "" : fmt::format("; did you mean \"{}\"?", near),
                              filter_->uses_key(kPlayerKey) ? kExactNames : "");
            is_any_reported = true;
        }
        if (has_read_ && !has_filtered_ && !is_any_reported) {
            sink::print_error("no record is between --from and --to");
            is_any_reported = true;
        }
        return is_any_reported && !has_match_;
    }

  private:
    /// The lines that describe a session; empty if they were not read or not selected.
    struct SessionStart {
        std::string open{};
        std::string established{};
        std::string map{};
    };

    static bool is_event(std::string_view line, const filter::RecordLineHead& head,
                         std::string_view event) {
        return head.type == "session" &&
               line.find(fmt::format(R"("event":"{}")", event)) != std::string_view::npos;
    }

    void store_session_start(std::string_view line, const filter::RecordLineHead& head) {
        if (is_event(line, head, "close")) {
            earlier_.erase(head.session);
            return;
        }
        std::string SessionStart::*const part = head.type == "map"             ? &SessionStart::map
                                                : is_event(line, head, "open") ? &SessionStart::open
                                                : is_event(line, head, "established")
                                                    ? &SessionStart::established
                                                    : nullptr;
        if (part == nullptr || (filter_ && !filter_->matches(line))) {
            return;
        }
        earlier_[head.session].*part = record::as_repeated_record(line);
    }

    const RecordsCommandFlags* flags_;
    std::set<std::int64_t> wanted_sessions_; ///< empty for all
    std::set<std::int64_t> sessions_;        ///< sessions that were read; empty if all are wanted
    std::optional<filter::LineFilter> filter_;
    std::map<std::int64_t, SessionStart> earlier_; ///< lines before --from, by session
    bool has_read_ = false;                        ///< a line was read
    bool has_filtered_ = false; ///< a line of the wanted sessions and time was read
    bool has_match_ = false;    ///< a line of the wanted sessions and time matches the filter
};

/// Recognises lines that are repeated at the start of a segment, when segments are read in order.
class RepeatedLines {
  public:
    void begin_file(const std::string& path) {
        const std::filesystem::path file{path};
        const auto segment = store::parse_segment_name(file.filename().string());
        std::string recording = segment ? (file.parent_path() / segment->name).string() : path;
        if (recording != recording_) { // another recording has other sessions with the same numbers
            earlier_sessions_.clear();
            sessions_.clear();
            recording_ = std::move(recording);
        }
        earlier_sessions_.insert(sessions_.begin(), sessions_.end());
    }

    [[nodiscard]] bool is_repeated(std::string_view line) {
        if (line.substr(0, kHeadBytes).find(R"("type":"segment")") != std::string_view::npos) {
            return true; // the line names a segment's file, but segments are joined here
        }
        const bool again = record::is_repeated_record(line);
        const bool event =
            line.substr(0, kHeadBytes).find(R"("type":"session")") != std::string_view::npos;
        if (!again && !event) {
            return false;
        }
        const auto head = filter::read_line_head(line);
        if (head && head->type == "session") {
            sessions_.insert(head->session);
        }
        return again && head && earlier_sessions_.contains(head->session);
    }

  private:
    /// The record's type is within this many bytes.
    static constexpr std::size_t kHeadBytes = 64;

    std::string recording_; ///< folder and name of the current segments, or the current file
    std::set<std::int64_t> earlier_sessions_; ///< sessions in the files before the current file
    std::set<std::int64_t> sessions_;         ///< sessions in all files so far
};

bool is_terminal(const std::string& output) {
    if (output == "-") {
        return ::isatty(STDOUT_FILENO) != 0;
    }
    std::error_code ignored;
    if (!std::filesystem::is_character_file(output, ignored)) {
        return false;
    }
    const base::UniqueFd file{::open(output.c_str(), O_WRONLY | O_NOCTTY | O_CLOEXEC)};
    return ::isatty(file.get()) != 0;
}

/// Returns the keys of a table.
/// Errors: UsageError for an invalid key.
std::vector<std::string> parse_columns(const RecordsCommandFlags& flags,
                                       filter::ModTypes described) {
    std::vector<std::string> columns;
    for (const std::string& given : flags.columns) {
        const std::string name = boost::algorithm::trim_copy(given);
        const bool item = name.starts_with(filter::kItemsPrefix);
        const auto scope = item ? filter::KeyScope::item_row : filter::KeyScope::record;
        if (!filter::find_key(scope, name, described)) {
            const std::string like = filter::suggest_key(filter::KeyScope::record, name, described);
            throw make_error_with_objects_hint(
                flags,
                fmt::format("--columns: no {} has a key \"{}\"{}", item ? "item" : "record", name,
                            like.empty() ? "" : fmt::format("; did you mean \"{}\"?", like)));
        }
        columns.push_back(name);
    }
    return columns;
}

/// Returns the table that is written instead of records; nullopt if records are written.
/// Errors: UsageError for an invalid key or condition, or for a condition without a table.
std::optional<analyze::RecordsCsvWriter> make_table(const RecordsCommandFlags& flags,
                                                    filter::ModTypes described) {
    if (flags.columns.empty() && !flags.where.empty()) {
        throw UsageError{"--where selects rows of a table of items; add --columns, for example "
                         "--columns t,tick,items.player"};
    }
    if (flags.columns.empty()) {
        return std::nullopt;
    }
    auto where =
        parse_condition(flags, "--where", flags.where, described, filter::KeyScope::item_row);
    return analyze::RecordsCsvWriter{parse_columns(flags, described),
                                     {.is_for_terminal = is_terminal(flags.output),
                                      .escapes_formulas = flags.no_formulas,
                                      .where = std::move(where)}};
}

/// Writes the selected lines as records, or as rows of a table.
class SelectionWriter {
  public:
    SelectionWriter(const std::string& output, std::optional<analyze::RecordsCsvWriter> table)
        : table_{std::move(table)}, block_{table_ ? table_->header_row() : std::string{}} {
        check_replaceable("--output", output, table_ ? FileType::table : FileType::records);
        file_ = open_recording({lines_recording_kind(), output});
    }

    void write(std::string_view line) {
        if (table_) {
            const std::uint64_t before = table_->num_rows();
            table_->append_rows(line, block_);
            note_row_source(line, table_->num_rows() != before);
        } else {
            record::append_terminal_json(line, block_);
            block_.push_back('\n');
        }
        if (block_.size() >= kBlockBytes) {
            flush();
        }
    }

    void flush() {
        if (!block_.empty()) {
            file_->write(block_);
            block_.clear();
        }
        file_->do_due_work(store::OutputFile::Clock::now());
    }

    /// True if the reader of the lines has left.
    [[nodiscard]] bool is_reader_gone() const { return file_->error() == EPIPE; }

    /// Writes all buffered data, and prints on standard error what is missing. Returns true if no
    /// line is missing. `report_empty`: whether to explain why a table has no row or empty columns.
    [[nodiscard]] bool finish(bool report_empty) {
        flush();
        if (table_ && report_empty) {
            report_empty_columns();
        }
        return finish_output("--output", *file_);
    }

  private:
    static constexpr std::size_t kBlockBytes = std::size_t{1} << 18U;

    /// Remembers whether the table's rows of items come from worlds or from sessions.
    void note_row_source(std::string_view line, bool has_rows) {
        if (has_rows && table_->has_item_rows() && !(has_world_rows_ && has_session_rows_)) {
            const auto head = filter::read_line_head(line);
            (head && head->type == "world" ? has_world_rows_ : has_session_rows_) = true;
        }
    }

    void report_empty_columns() const {
        if (has_world_rows_ && has_session_rows_) {
            sink::print_error("rows are of worlds and of sessions, so most are there twice; add "
                              "--filter world or --filter snapshot");
        }
        bool is_explained = false;
        for (const std::string& name : table_->empty_columns()) {
            const bool is_of_items = name.starts_with(filter::kItemsPrefix);
            if (!is_of_items && filter::find_key(filter::KeyScope::item, name)) {
                sink::print_error("--columns {0}: no value in these records; items have it as "
                                  "{1}{0}",
                                  name, filter::kItemsPrefix);
                is_explained = true;
            } else if (table_->num_rows() != 0) {
                sink::print_error("--columns {}: empty in every row{}", name,
                                  name.starts_with("items.at.") ? " (recorded without --maps?)"
                                                                : "");
            }
        }
        if (table_->num_rows() == 0 && !is_explained) {
            sink::print_error(
                "no row: {}",
                !table_->has_item_rows()
                    ? "these columns have no value in any of these records"
                    : fmt::format("no item matches{}, or the records' items are "
                                  "unknown (recorded with --items none, or not "
                                  "verified?), or none changed in this time (--items "
                                  "changed lists all items every 10 s)",
                                  table_->condition_uses_key(kPlayerKey) ? kExactNames : ""));
        }
    }

    std::unique_ptr<store::OutputFile> file_;
    std::optional<analyze::RecordsCsvWriter> table_;
    bool has_world_rows_ = false;
    bool has_session_rows_ = false;
    std::string block_;
};

/// Returns true if the user named this file and it is empty. A segment in a folder may be empty.
bool is_named_and_empty(const FileReadResult& file, const RecordsCommandFlags& flags) {
    return file.is_empty() && std::ranges::find(flags.paths, file.path) != flags.paths.end();
}

int check_records(const RecordsCommandFlags& flags, RecordsFiles& files) {
    analyze::RecordsCheck check;
    files.read_files({
        .on_file_begin =
            [&](const std::string& path) { check.begin_file(path, base::is_locked(path)); },
        .on_line =
            [&](std::string_view line) {
                check.on_line(line, filter::read_line_head(line));
                return true; // `check` counts the invalid lines itself
            },
        .on_file_end =
            [&](const FileReadResult& file) {
                if (is_named_and_empty(file, flags)) {
                    throw usage_error("{}: is empty", file.path);
                }
                check.end_file(file.reader);
            },
    });
    sink::print_wrapped(stdout, check.report_text());
    return check.is_complete() ? 0 : kExitFailed;
}

int write_selection(const RecordsCommandFlags& flags, RecordsFiles& files) {
    wire::ModDescription mod;
    read_objects_file(flags.objects_file, mod);
    const filter::ModTypes described = filter::types_of_mod(mod);
    LineSelection selection{flags, described};
    std::vector<std::string> read = files.files();
    read.push_back(flags.objects_file);
    check_outputs(read, {{"--output", flags.output}});
    auto table = make_table(flags, described);
    files.check_are_recordings();
    SelectionWriter writer{flags.output, std::move(table)};
    RepeatedLines repetitions;
    bool is_whole = true;
    bool is_any_read = false;
    bool is_any_empty = false;
    const auto use_line = [&](std::string_view line) {
        if (!filter::is_record_line(line)) {
            return false;
        }
        is_any_read = true;
        if (repetitions.is_repeated(line)) {
            return true;
        }
        if (selection.selects_all()) {
            writer.write(line);
        } else {
            selection.select(line, [&](std::string_view each) { writer.write(each); });
        }
        return true;
    };
    const RecordsFiles::ReadCallbacks callbacks{
        .on_file_begin = [&](const std::string& path) { repetitions.begin_file(path); },
        .on_line = use_line,
        .on_file_end =
            [&](const FileReadResult& file) {
                is_whole = file.report_problems() && is_whole;
                if (is_named_and_empty(file, flags)) {
                    sink::print_error("{}: is empty", file.path);
                    is_any_empty = !flags.follow; // a followed recording may not have begun
                }
            },
        .on_pause = [&] { writer.flush(); },
        .should_stop = [&] { return writer.is_reader_gone(); }};
    if (flags.follow) {
        for (const int signal : {SIGINT, SIGTERM}) {
            std::signal(signal, [](int) { interrupted = 1; });
        }
        files.follow_files(callbacks, [] { return interrupted != 0; });
    } else {
        files.read_files(callbacks);
    }
    const bool is_explained = selection.report_unmatched() || !is_any_read;
    if (!writer.finish(!is_explained) || !is_whole) {
        return kExitFailed;
    }
    return is_any_empty ? kExitUsage : 0;
}

/// Checks the flags and brings times into a form in which they can be compared.
/// Errors: UsageError, also for flags without effect when records are only checked.
void check_flags(RecordsCommandFlags& flags) {
    flags.from = parse_record_time("--from", flags.from, flags.paths);
    flags.to = parse_record_time("--to", flags.to, flags.paths);
    if (!flags.to.empty() && flags.from >= flags.to) {
        throw usage_error("--from {}: must be before --to {}", flags.from, flags.to);
    }
    const std::pair<std::string_view, bool> choosing[] = {
        {"--filter", !flags.filter.empty()},  {"--session", !flags.sessions.empty()},
        {"--from", !flags.from.empty()},      {"--to", !flags.to.empty()},
        {"--output", flags.output != "-"},    {"--columns", !flags.columns.empty()},
        {"--where", !flags.where.empty()},    {"--objects", !flags.objects_file.empty()},
        {"--no-formulas", flags.no_formulas}, {"--follow", flags.follow}};
    for (const auto& [flag, given] : choosing) {
        if (flags.verify && given) {
            throw usage_error("--verify checks the whole recording; drop {}", flag);
        }
    }
}

int run_records(const RecordsCommandFlags& given) {
    RecordsCommandFlags flags = given;
    check_flags(flags);
    RecordsFiles files{flags.paths, flags.verify ? std::string_view{} : flags.from};
    if (flags.output.ends_with(".csv") && flags.columns.empty()) {
        throw UsageError{"a table needs --columns, for example --columns t,tick,items.player"};
    }
    if (flags.verify) {
        return check_records(flags, files);
    }
    return write_selection(flags, files);
}

void add_table_flags(Command& command, RecordsCommandFlags& flags) {
    command.add_list("--columns", flags.columns, "KEY,...",
                     "Write a CSV table of these keys; with keys of items, such as items.player, "
                     "one row per item");
    command.add("--where", &flags.where, "EXPRESSION",
                "In a table of items, only the rows that match, for example 'type == "
                "character and player == ann'; 'removed' selects items that are gone");
    command.add_switch(
        "--no-formulas", flags.no_formulas,
        "In a table, put an apostrophe before text that a spreadsheet would take for a "
        "formula: it begins with =, +, - or @");
}

} // namespace

void add_records_command(Command& command) {
    command.about = "Read recordings: filter, convert, follow, verify";
    RecordsCommandFlags& flags = add_settings_and_action(command, run_records);
    command
        .add("file", &flags.paths, "FILE",
             "Files of records, compressed or not, or folders of segments; - means standard input")
        .is_required = true;
    command.add("--filter", &flags.filter, "EXPRESSION",
                "Only matching records, for example 'snapshot and tick > 500' "
                "(proxy/filter/FILTERS.md); of items, it sees only those listed");
    command.add_number("--session", &flags.sessions, 0, kMaxSessionNumber,
                       "Only this session, or 0 for worlds and the run's totals (repeatable)");
    command.add("--from", &flags.from, "TIME",
                "Only from this UTC time on; it may be shortened, as in 2026-11-21T20:15, or 20:15 "
                "for the day of the first record, or -10min for the last ten minutes");
    command.add("--to", &flags.to, "TIME", "Only before this time");
    command.add("-o,--output", &flags.output, "FILE",
                "Output file; - means standard output, a name ending in .zst is compressed");
    add_table_flags(command, flags);
    add_objects_flag(command, flags.objects_file, ", whose fields --filter can name");
    command.add_switch("-f,--follow", flags.follow,
                       "At the end, wait for more records, also in new segments, until Ctrl-C");
    command.add_switch("--verify", flags.verify,
                       "Only verify: complete lines, order, missing segments, and losses that the "
                       "records report; exit with 3 on any problem");
}

} // namespace tw::cli
