#include "proxy/cli/records_files.h"

#include "proxy/base/clock.h"
#include "proxy/capture/capture_file.h"
#include "proxy/capture/capture_run.h"
#include "proxy/cli/flags.h"
#include "proxy/cli/inspect_flags.h"
#include "proxy/cli/output_file.h"
#include "proxy/demo/demo_reader.h"
#include "proxy/filter/line_record.h"
#include "proxy/inspect/inspector.h"
#include "proxy/inspect/session.h"
#include "proxy/pipeline/map_folders.h"
#include "proxy/record/terminal_text.h"
#include "proxy/sink/json_lines.h"
#include "proxy/store/file_queue.h"

#include <cerrno>
#include <cstdio>
#include <tuple>

#include <unistd.h>

namespace tw::cli {

namespace {

constexpr std::chrono::milliseconds kFollowPollInterval{100};

/// Returns a time as in records: the start of a segment plus kToleranceSeconds. All records of the
/// previous segment are older.
std::string latest_time_before_segment(const store::Segment& segment) {
    constexpr std::int64_t kToleranceSeconds = 2; // segment names contain whole seconds
    return base::format_utc(segment.started_at + kToleranceSeconds, base::kRecordTimeFormat);
}

/// Returns the segments of a folder, except those that ended before `from`.
std::vector<std::string> segments_in_folder(const std::string& folder, std::string_view from = {}) {
    std::vector<std::string> files;
    auto segments = store::list_segments(folder);
    std::erase_if(segments, [](const store::Segment& segment) { return segment.is_capture(); });
    for (std::size_t i = 0; i < segments.size(); ++i) {
        const bool followed = i + 1 < segments.size() && segments[i + 1].name == segments[i].name;
        const auto begins_behind = [&](std::size_t segment) {
            return latest_time_before_segment(segments[segment]) > from;
        };
        // The clock may have been set back since the segment's start, so its start is checked, too.
        if (!followed || from.empty() || begins_behind(i) || begins_behind(i + 1)) {
            files.push_back((std::filesystem::path{folder} / segments[i].file).string());
        }
    }
    return files;
}

/// Returns a collector's hourly files, such as 2026-11-22T18Z.jsonl.zst. Omits the files before
/// `from`, but never the last file.
std::vector<std::string> hourly_files_in(const std::string& folder, std::string_view from = {}) {
    constexpr std::string_view kHour = "dddd-dd-ddTddZ.jsonl.zst";
    constexpr std::size_t kTime = 13;
    std::vector<std::string> files;
    std::error_code error;
    for (const auto& entry : std::filesystem::directory_iterator{folder, error}) {
        const std::string name = entry.path().filename().string();
        if (store::matches_pattern(name, kHour)) {
            files.push_back(name);
        }
    }
    std::ranges::sort(files);
    while (files.size() > 1 && files.front().substr(0, kTime) < from.substr(0, kTime)) {
        files.erase(files.begin());
    }
    for (std::string& file : files) {
        file = (std::filesystem::path{folder} / file).string();
    }
    return files;
}

/// Returns the files of a recording or a collector.
std::vector<std::string> recorded_files_in(const std::string& folder, std::string_view from = {}) {
    auto files = segments_in_folder(folder, from);
    return files.empty() ? hourly_files_in(folder, from) : files;
}

void print_file_problem(const std::string& path, const std::string& what) {
    sink::print_error("{}: {}", path == "-" ? "standard input" : path, what);
}

/// Returns why a file could not be read to its end; empty if it was.
std::string describe_unread_part(const store::LineReader& reader) {
    const std::uint64_t skipped_bytes = reader.source().skipped_bytes();
    const store::ReadStopReason end = reader.source().stop_reason();
    const std::string lines_read =
        record::count_with_noun(reader.num_lines(), "line[s] [was|were] read");
    if (end == store::ReadStopReason::window_too_large) {
        return "was compressed with too large a window (128 MiB at most can be read); recompress "
               "it: zstd -dc --long=31 FILE | zstd -o OTHER";
    }
    if (skipped_bytes != 0) {
        return fmt::format("damaged: skipped {} of compressed data; {}{}",
                           record::count_with_noun(skipped_bytes, "byte[s]"), lines_read,
                           reader.source().has_returned_damaged_text() ? ", and some may be wrong"
                                                                       : "");
    }
    if (end == store::ReadStopReason::damaged) {
        return fmt::format("damaged: cannot be decompressed any further; {}, and the last one may "
                           "be wrong",
                           lines_read);
    }
    if (end == store::ReadStopReason::read_error) {
        return "cannot be read any further; " + lines_read;
    }
    const bool is_cut_in_frame = end == store::ReadStopReason::within_frame;
    return is_cut_in_frame || !reader.unfinished_line().empty()
               ? fmt::format("ends in the middle of {}: truncated, or still being written; {}",
                             is_cut_in_frame ? "compressed data" : "a line", lines_read)
               : std::string{};
}

/// Reads all lines of a recording. `on_line`: returns whether the line is a record. `quiet`: do not
/// print what could not be read. Returns true if everything was read or `quiet` is true.
/// Errors: UsageError, as read_records().
bool read_recording(const std::string& path, bool quiet,
                    const std::function<bool(std::string_view line)>& on_line) {
    bool is_whole = true;
    const auto end_file = [&](const FileReadResult& file) {
        if (file.path == path && file.is_empty()) {
            throw usage_error("{}: is empty", path);
        }
        if (file.path == path && file.invalid_lines != 0 &&
            file.invalid_lines == file.reader.num_lines()) {
            throw usage_error("{}: contains no records{}", path,
                              file_type_hint(path, FileType::records));
        }
        is_whole = (quiet || file.report_problems()) && is_whole;
    };
    RecordsFiles{{path}}.read_files({.on_line = on_line, .on_file_end = end_file});
    return is_whole;
}

/// Passes on all records except messages. The only message that is passed on is the one with which
/// a 0.7 server tells a session its player's name.
class MessageSkippingSink final : public record::RecordSink {
  public:
    explicit MessageSkippingSink(record::RecordSink& next) : next_{&next} {}

    void on_record(const record::Record& record) override {
        const auto* message = std::get_if<const record::MessageRecord*>(&record);
        if (message == nullptr || (*message)->name == "sv_client_info") {
            next_->on_record(record);
        }
    }

  private:
    record::RecordSink* next_;
};

bool read_capture(const RecordSource& source, bool quiet,
                  const std::function<void(std::string_view line)>& on_line) {
    inspect::MemoryBudget memory{source.memory_bytes};
    pipeline::MapFolders maps{{}, {.memory = &memory}};
    capture::CaptureRun captures{list_capture_files({source.path}), source.servers};
    captures.set_quiet(quiet);
    LineCallbackOutput lines{on_line};
    sink::JsonLines json{{.raw = true, .objects = source.objects}, lines};
    MessageSkippingSink sparse{json};
    std::atomic<std::uint32_t> numbers{0};
    inspect::Inspector inspector{
        {.objects = source.objects, .memory_budget = &memory}, maps, sparse, numbers};
    captures.read_captures(inspector);
    json.flush();
    return !captures.is_damaged();
}

} // namespace

bool report_invalid_lines(const std::string& path, std::uint64_t count) {
    if (count != 0) {
        print_file_problem(path, "skipped " +
                                     record::count_with_noun(
                                         count, "line[s] that [is|are] not [a record|records]") +
                                     file_type_hint(path, FileType::records));
    }
    return count == 0;
}

bool FileReadResult::is_empty() const {
    std::error_code ignored;
    return reader.num_lines() == 0 && reader.unfinished_line().empty() &&
           reader.skipped_bytes() == 0 &&
           reader.source().stop_reason() == store::ReadStopReason::file_end && path != "-" &&
           !std::filesystem::is_fifo(path, ignored);
}

bool FileReadResult::report_problems() const {
    if (const std::string problem = describe_unread_part(reader); !problem.empty()) {
        print_file_problem(path, problem);
    }
    if (reader.skipped_bytes() != 0) {
        print_file_problem(path, "contains lines too long to be records; they are skipped");
    }
    const store::ReadStopReason end = reader.source().stop_reason();
    const bool damaged = end == store::ReadStopReason::damaged ||
                         end == store::ReadStopReason::window_too_large ||
                         end == store::ReadStopReason::read_error;
    return report_invalid_lines(path, invalid_lines) && !damaged &&
           reader.source().skipped_bytes() == 0 && reader.skipped_bytes() == 0;
}

RecordsFiles::RecordsFiles(const std::vector<std::string>& paths, std::string_view from) {
    for (const std::string& path : paths) {
        std::error_code ignored;
        folder_ = std::filesystem::is_directory(path, ignored) ? path : std::string{};
        if (folder_.empty()) {
            if (path != "-" && ::access(path.c_str(), R_OK) != 0) {
                throw usage_error("{}: {}", path, std::generic_category().message(errno));
            }
            files_.push_back(path);
            continue;
        }
        const auto segments = recorded_files_in(path, from);
        if (segments.empty()) {
            throw usage_error(
                "{}: contains no segments of a recording and no hourly files of a collector", path);
        }
        files_.insert(files_.end(), segments.begin(), segments.end());
    }
}

void RecordsFiles::open_file(const std::string& path, const ReadCallbacks& callbacks) {
    try {
        reader_ = std::make_unique<store::LineReader>(path);
    } catch (const std::system_error& error) {
        throw usage_error("{}: {}", path, error.code().message());
    }
    current_file_ = path;
    invalid_lines_ = 0;
    callbacks.on_file_begin(path);
}

void RecordsFiles::read_available_lines(const ReadCallbacks& callbacks) {
    const auto use_line = [&](std::string_view line) {
        invalid_lines_ += callbacks.on_line(line) ? 0U : 1U;
    };
    for (std::string_view line; !callbacks.should_stop() && reader_->next_line(line);) {
        joiner_.add_line(line, use_line);
    }
}

void RecordsFiles::close_file(const ReadCallbacks& callbacks) {
    if (!callbacks.should_stop()) {
        joiner_.flush_incomplete_record(
            [&](std::string_view line) { invalid_lines_ += callbacks.on_line(line) ? 0U : 1U; });
        callbacks.on_file_end({current_file_, *reader_, invalid_lines_});
    }
    reader_.reset();
}

void RecordsFiles::read_files(const ReadCallbacks& callbacks) {
    for (const std::string& file : files_) {
        if (callbacks.should_stop()) {
            return;
        }
        open_file(file, callbacks);
        read_available_lines(callbacks);
        close_file(callbacks);
    }
}

/// Returns the file after the current one, of the same recording or collector, even if the current
/// one was deleted.
std::string RecordsFiles::next_file(const std::vector<store::Segment>& segments) const {
    if (folder_.empty()) {
        return {};
    }
    const std::string name = std::filesystem::path{current_file_}.filename().string();
    const auto own = store::parse_segment_name(name);
    if (!own) {
        const auto hours = hourly_files_in(folder_);
        const auto next = std::ranges::upper_bound(hours, current_file_);
        return next == hours.end() ? std::string{} : *next;
    }
    const auto next = std::ranges::find_if(segments, [&](const store::Segment& segment) {
        return !segment.is_capture() && segment.name == own->name &&
               std::tie(segment.number, segment.file) > std::tie(own->number, own->file);
    });
    return next == segments.end() ? std::string{}
                                  : (std::filesystem::path{folder_} / next->file).string();
}

/// True if the current file's name now belongs to another file, or the current file was truncated.
bool RecordsFiles::is_file_replaced() const {
    auto& disk = store::system_disk();
    const auto own = disk.file_status(reader_->source().descriptor());
    const auto named = disk.file_status(current_file_);
    return own && own->is_regular &&
           ((named && !named->is_same_file(*own)) || own->size < reader_->source().position());
}

/// Reports recordings in the folder that are not followed: a folder may contain several, and
/// further ones may start in it.
void RecordsFiles::report_unfollowed_recordings(const std::vector<store::Segment>& segments) {
    const std::size_t before = recording_names_.size();
    for (const store::Segment& segment : segments) {
        if (!segment.is_capture()) {
            recording_names_.insert(segment.name);
        }
    }
    const auto own =
        store::parse_segment_name(std::filesystem::path{files_.back()}.filename().string());
    if (own && recording_names_.size() > 1 && recording_names_.size() != before) {
        print_file_problem(folder_, fmt::format("contains {} recordings; following only '{}'",
                                                recording_names_.size(), own->name));
    }
}

void RecordsFiles::follow_files(const ReadCallbacks& callbacks,
                                const std::function<bool()>& stopped) {
    const auto list_segments = [this] {
        auto segments =
            folder_.empty() ? std::vector<store::Segment>{} : store::list_segments(folder_);
        report_unfollowed_recordings(segments);
        return segments;
    };
    static_cast<void>(list_segments());
    for (const std::string& file : files_) {
        open_file(file, callbacks);
        read_available_lines(callbacks);
        if (&file != &files_.back()) {
            close_file(callbacks);
        }
    }
    while (!stopped() && !callbacks.should_stop()) {
        // Looks for the next file before reading. If the next file exists, the current file is
        // complete, so its last data is read below.
        std::string next = next_file(list_segments());
        if (next.empty() && is_file_replaced()) {
            next = current_file_;
        }
        read_available_lines(callbacks);
        if (!next.empty()) {
            close_file(callbacks);
            open_file(next, callbacks);
            continue;
        }
        callbacks.on_pause();
        std::this_thread::sleep_for(kFollowPollInterval);
    }
    read_available_lines(callbacks);
    close_file(callbacks);
}

void RecordsFiles::check_are_recordings() const {
    constexpr int kMaxLinesChecked = 16;
    for (const std::string& path : files_) {
        std::error_code ignored;
        if (!std::filesystem::is_regular_file(path, ignored)) {
            continue; // reading a pipe consumes its data
        }
        store::LineReader reader{path};
        bool any = false;
        std::string_view line;
        for (int i = 0; !any && i < kMaxLinesChecked && reader.next_line(line); ++i) {
            any = filter::is_record_line(line);
        }
        const bool nothing_yet =
            reader.num_lines() == 0 && reader.skipped_bytes() == 0 &&
            (reader.unfinished_line().empty() || reader.unfinished_line().front() == '{');
        if (!any && !nothing_yet) {
            throw usage_error("{}: contains no records{}", path,
                              file_type_hint(path, FileType::records));
        }
    }
}

void LineCallbackOutput::write(std::string_view block) {
    while (!block.empty()) {
        const std::size_t end = block.find('\n');
        on_line_(block.substr(0, end));
        block.remove_prefix(end == std::string_view::npos ? block.size() : end + 1);
    }
}

bool read_records(const std::string& path,
                  const std::function<void(std::string_view line)>& on_record) {
    return read_recording(path, false, [&on_record](std::string_view line) {
        const bool is_record = filter::is_record_line(line);
        if (is_record) {
            on_record(line);
        }
        return is_record;
    });
}

store::FileStartReader read_file_start(const std::string& path) {
    return {path, std::max(capture::kCaptureMagicSize, demo::kDemoMagic.size())};
}

bool may_be_recording(const std::string& path, const store::FileStartReader& start) {
    std::error_code ignored;
    if (std::filesystem::is_directory(path, ignored)) {
        const auto segments = store::list_segments(path);
        return segments.empty() ||
               std::any_of(segments.begin(), segments.end(),
                           [](const store::Segment& segment) { return !segment.is_capture(); });
    }
    const auto bytes = std::as_bytes(std::span{start.bytes()});
    return !capture::looks_like_capture(bytes) && !demo::looks_like_demo(bytes);
}

bool read_record_lines(const RecordSource& source, bool quiet,
                       const std::function<void(std::string_view line)>& on_line) {
    const auto use_line = [&on_line](std::string_view line) {
        on_line(line);
        return true; // no line counts as invalid, because the caller checks the lines
    };
    return may_be_recording(source.path, read_file_start(source.path))
               ? read_recording(source.path, quiet, use_line)
               : read_capture(source, quiet, on_line);
}

} // namespace tw::cli
