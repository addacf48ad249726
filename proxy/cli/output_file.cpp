#include "proxy/cli/output_file.h"

#include "proxy/analyze/records_check.h"
#include "proxy/analyze/type_sizes.h"
#include "proxy/base/log.h"
#include "proxy/bus/subjects.h"
#include "proxy/capture/pcapng.h"
#include "proxy/cli/settings.h"
#include "proxy/filter/json_line.h"
#include "proxy/filter/line_record.h"
#include "proxy/record/findings.h"
#include "proxy/record/terminal_text.h"
#include "proxy/sink/output.h"
#include "proxy/store/byte_source.h"
#include "proxy/store/retention.h"
#include "proxy/store/zstd_frames.h"

#include <cerrno>
#include <cstdlib>

#include <unistd.h>

namespace tw::cli {

bool is_compressed(const std::string& flag, std::string_view path) {
    for (const std::string_view other : {".gz", ".bz2", ".xz", ".lz4", ".zip"}) {
        if (path.ends_with(other)) {
            path.remove_suffix(other.size());
            throw usage_error("{} {}{}: twscope compresses with zstd only; name it {}{}", flag,
                              path, other, path, kCompressedSuffix);
        }
    }
    return path.ends_with(kCompressedSuffix);
}

UsageError make_open_error(const std::string& flag, const std::string& path,
                           const std::system_error& error) {
    if (error.code() == std::errc::timed_out) {
        return usage_error("{} {}: the pipe has no reader; start it first", flag, path);
    }
    std::error_code ignored;
    const std::string file = path.substr(0, path.find_last_not_of('/') + 1);
    if (file != path && std::filesystem::is_regular_file(file, ignored)) {
        return usage_error("{} {}: {} is a file; leave out the slash, or name a folder", flag, path,
                           file);
    }
    if (error.code() == std::errc::permission_denied) {
        const bool exists = std::filesystem::exists(path, ignored);
        return usage_error(
            "{} {}: {}; let user {} write to {}, or name another place", flag, path,
            error.code().message(), ::geteuid(),
            (exists ? resolve_path(path) : resolve_path(file).parent_path()).string());
    }
    return usage_error("{} {}: {}; name a file in an existing, writable folder", flag, path,
                       error.code().message());
}

std::unique_ptr<store::OutputFile> open_output_file(const std::string& flag,
                                                    const std::string& path,
                                                    const store::RecordingFormat& format) {
    if (path.empty()) {
        return nullptr;
    }
    try {
        return std::make_unique<store::FileOutput>(path, format, std::chrono::milliseconds{0});
    } catch (const std::system_error& error) {
        if (error.code() != std::errc::timed_out) {
            throw make_open_error(flag, path, error);
        }
    }
    try {
        log::warn("{} {}: the pipe has no reader yet; waiting up to {} seconds", flag, path,
                  store::FileOutput::kReaderTimeout.count());
        return std::make_unique<store::FileOutput>(path, format);
    } catch (const std::system_error& error) {
        throw make_open_error(flag, path, error);
    }
}

namespace {

/// The most bytes that are read to recognise a file's type. The header of a table is shorter, and
/// so is a whole file that --write-objects wrote.
constexpr std::size_t kMaxBytesRead = std::size_t{1} << 18U;

/// Returns the first bytes of a regular file, decompressed if necessary; empty for anything else.
std::string read_beginning(const std::string& path) {
    std::error_code ignored;
    if (path == "-" || !std::filesystem::is_regular_file(path, ignored)) {
        return {}; // reading a pipe would consume its data
    }
    return std::string{store::FileStartReader{path, kMaxBytesRead}.bytes()};
}

/// The first bytes by which files of a type are recognised.
struct FileSignature {
    std::string_view mark;
    FileType type;
    std::string_view hint; ///< for the user: what the file is, and which command reads it
};

constexpr std::string_view kCapture = "this is a capture; use 'twscope decode'";
constexpr std::string_view kMap = "this is a map; use 'twscope map'";
constexpr std::string_view kSummary = "this is a summary";
constexpr std::array<FileSignature, 14> kFileSignatures{{
    {"\xD4\xC3\xB2\xA1", FileType::capture, kCapture},
    {"\xA1\xB2\xC3\xD4", FileType::capture, kCapture},
    {"\x4D\x3C\xB2\xA1", FileType::capture, kCapture},
    {"\xA1\xB2\x3C\x4D", FileType::capture, kCapture},
    {"\n\r\r\n", FileType::capture, kCapture},
    {"TWDEMO", FileType::capture, "this is a demo; use 'twscope decode'"},
    {"DATA", FileType::map, kMap},
    {"ATAD", FileType::map, kMap},
    {"\x89PNG", FileType::picture, "this is a picture"},
    {"{\"v\":", FileType::records, "this is a recording; use 'twscope records'"},
    {"{", FileType::objects, "this is JSON, but not a recording"},
    {"<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite name=\"twscope\"", FileType::summary,
     kSummary},
    {"PASSED after ", FileType::summary, kSummary},
    {"FAILED after ", FileType::summary, kSummary},
}};

/// Returns the entry of kFileSignatures for a file with these first bytes; null if its type is
/// unknown.
const FileSignature* find_file_signature(std::string_view begin) {
    const auto* const kind = std::ranges::find_if(
        kFileSignatures, [&](const FileSignature& each) { return begin.starts_with(each.mark); });
    return kind == kFileSignatures.end() ? nullptr : kind;
}

bool is_of_type(std::string_view begin, FileType type) {
    if (type == FileType::table) {
        return analyze::begins_with_table_header(begin);
    }
    const FileSignature* const kind = find_file_signature(begin);
    return kind != nullptr && kind->type == type &&
           (type != FileType::objects || analyze::is_unedited_objects_json(begin)) &&
           (type != FileType::capture ||
            begin.find(capture::kClientInterfaceDescription) != std::string_view::npos);
}

/// True for a compressed file of which nothing can be decompressed.
bool is_undecodable(const std::string& path) {
    std::error_code ignored;
    if (!std::filesystem::is_regular_file(path, ignored) || ::access(path.c_str(), R_OK) != 0) {
        return false;
    }
    store::ByteSource source{path};
    std::array<char, 1> byte{};
    return source.read(byte) == 0 && source.stop_reason() != store::ReadStopReason::file_end &&
           source.stop_reason() !=
               store::ReadStopReason::within_frame; // a recording that a crash cut off
}

namespace fs = std::filesystem;

bool is_same_file(const std::string& a, const std::string& b) {
    if (a.empty() || b.empty() || a == "-" || b == "-" || a.back() == '/' || b.back() == '/') {
        return false;
    }
    std::error_code ignored;
    const fs::file_status state = fs::status(a, ignored);
    if (fs::exists(state)) {
        return fs::is_regular_file(state) && fs::equivalent(a, b, ignored);
    }
    return resolve_path(a) == resolve_path(b);
}

/// Checks that a file can be written. Errors: UsageError for a file that cannot be created or
/// written.
void check_writable(const NamedOutput& output) {
    if (output.path.empty() || output.path == "-") {
        return;
    }
    std::error_code ignored;
    const bool there = fs::exists(output.path, ignored);
    const fs::path folder = fs::path{output.path}.parent_path();
    const std::string needed = there ? output.path : folder.empty() ? "." : folder.string();
    if (::access(needed.c_str(), W_OK) != 0) {
        throw make_open_error(std::string{output.flag}, output.path,
                              std::system_error{errno, std::generic_category()});
    }
}

} // namespace

void check_replaceable(const std::string& flag, const std::string& path, FileType type) {
    constexpr std::array<std::string_view, 7> kContents{
        "a capture by twscope", "a map",    "records", "what --write-objects writes", "a picture",
        "a table of records",   "a summary"};
    const std::string begin = read_beginning(path);
    if (begin.empty() ? is_undecodable(path) : !is_of_type(begin, type)) {
        throw usage_error("{} {}: contains something other than {}; name another "
                          "file, or move this one away",
                          flag, path, kContents[static_cast<std::size_t>(type)]);
    }
}

std::optional<FileType> find_file_type(const std::string& path) {
    const FileSignature* const mark = find_file_signature(read_beginning(path));
    return mark == nullptr ? std::nullopt : std::optional{mark->type};
}

std::string file_type_hint(const std::string& path, FileType wanted) {
    const FileSignature* const kind = find_file_signature(read_beginning(path));
    return kind == nullptr || kind->type == wanted ? "" : fmt::format("; {}", kind->hint);
}

bool finish_output(const std::string& flag, store::OutputFile& file, std::string_view what) {
    file.finish_writing();
    if (!file.failed()) {
        return true;
    }
    const std::string why = std::generic_category().message(file.error());
    if (file.error() == EPIPE && file.path() == "-") {
        return true; // the reader ended early, as "| head" does: no error
    }
    if (file.error() == EPIPE) { // the reader needs no more, and how much was left is unknown
        sink::print_error("{} {}: {}; the rest is missing", flag, file.path(), why);
    } else {
        sink::print_error("{} {}: {}; {} missing", flag, file.path(), why,
                          record::count_with_noun(file.num_lost_entries(), what));
    }
    return false;
}

void check_distinct_files(const std::vector<std::string>& read,
                          const std::vector<NamedOutput>& written) {
    for (auto each = written.begin(); each != written.end(); ++each) {
        for (const std::string& path : read) {
            if (is_same_file(each->path, path)) {
                throw usage_error("{} {}: is also an input; name another file", each->flag,
                                  each->path);
            }
        }
        for (auto other = written.begin(); other != each; ++other) {
            if (is_same_file(each->path, other->path)) {
                throw usage_error("{} {}: {} also writes to it; name another file", each->flag,
                                  each->path, other->flag);
            }
        }
    }
}

void check_creatable(const NamedOutput& output) {
    check_writable(output);
    std::error_code ignored;
    if (output.path.empty() || output.path == "-" || fs::exists(output.path, ignored)) {
        return;
    }
    // Some folders, such as those of /proc, are writable but have no room for files.
    std::string probe = (fs::path{output.path}.parent_path() / ".twscope-XXXXXX").string();
    if (::mkdtemp(probe.data()) == nullptr) {
        throw make_open_error(std::string{output.flag}, output.path,
                              std::system_error{errno, std::generic_category()});
    }
    ::rmdir(probe.c_str());
}

void check_outputs(const std::vector<std::string>& read, const std::vector<NamedOutput>& written) {
    check_distinct_files(read, written);
    for (const NamedOutput& output : written) {
        check_writable(output);
    }
}

void RecordLineChecks::check_line(std::string_view line) {
    for (filter::Expectation& expectation : expectations_) {
        expectation.evaluate_line(line);
    }
    count_record(line);
}

void RecordLineChecks::count_record(std::string_view line) {
    const auto head = filter::read_line_head(line);
    if (!head) {
        return;
    }
    filter::JsonLine json{line};
    filter::JsonObject& object = json.object();
    if (head->type == "finding") {
        const std::string_view quoted = object.find_scalar_text("id").value_or(R"("")");
        if (const auto finding = record::find_finding(quoted.substr(1, quoted.size() - 2))) {
            totals_.findings[static_cast<std::size_t>(*finding)] +=
                1 + object.find_count("left_out");
        }
    } else if (head->type == "session") {
        num_sessions_ += object.find_scalar_text("event") == R"("established")" ? 1U : 0U;
    } else if (head->type == "snapshot") {
        ++totals_.snapshots;
        totals_.verified += object.find_scalar_text("ok") == "true" ? 1U : 0U;
    }
}

analyze::Outcome RecordLineChecks::outcome(const analyze::FindingsToFailOn& fail_on,
                                           double seconds) const {
    auto checks = fail_on.make_checks(totals_, "--fail-on");
    analyze::add_expectation_checks(checks, expectations_, "--expect");
    return analyze::make_outcome(std::move(checks), totals_, num_sessions_, seconds);
}

std::string collected_file_name(const bus::CollectedRecord& record) {
    constexpr std::string_view kHour = "dddd-dd-ddTdd";
    const auto head = filter::read_line_head(record.line);
    const std::string_view hour = head ? head->time.substr(0, kHour.size()) : std::string_view{};
    return fmt::format("{}/{}.jsonl.zst",
                       bus::is_subject_token(record.server) ? record.server : "other",
                       store::matches_pattern(hour, kHour) ? fmt::format("{}Z", hour) : "other");
}

CollectedRecordOutput::CollectedRecordOutput(const std::string& output,
                                             std::optional<filter::Filter> filter,
                                             RecordLineChecks& checks)
    : filter_{std::move(filter)}, checks_{&checks} {
    if (output.empty()) {
        return;
    }
    std::error_code ignored;
    const std::filesystem::path path{output};
    has_folder_ = output.ends_with('/') || std::filesystem::is_directory(path, ignored);
    const bool special = std::filesystem::exists(path, ignored) && !has_folder_ &&
                         !std::filesystem::is_regular_file(path, ignored);
    try {
        if (output == "-" || special) {
            stream_ = std::make_unique<store::FileOutput>(output);
            return;
        }
        file_name_ = path.filename().string();
        is_compressed_ = has_folder_ || output.ends_with(kCompressedSuffix);
        files_ = std::make_unique<bus::CollectedFiles>(has_folder_              ? path
                                                       : path.has_parent_path() ? path.parent_path()
                                                                                : ".");
    } catch (const std::system_error& error) {
        if (error.code().value() == EBUSY) {
            throw usage_error(
                "--output {}: another collector is writing to this folder; give each its own",
                output);
        }
        throw make_open_error("--output", output, error);
    }
}

std::string CollectedRecordOutput::unconfirmed_batch() const {
    return batch_.empty() && files_ ? files_->unconfirmed_batch() : batch_;
}

int CollectedRecordOutput::write_batch(const std::string& batch,
                                       const std::vector<bus::CollectedRecord>& records) {
    unconfirmed_lines_.clear();
    std::map<std::string, std::string> texts;
    invalid_lines_ = 0;
    for (const bus::CollectedRecord& collected : records) {
        if (!filter::is_valid_record(collected.line)) {
            ++invalid_lines_;
            continue;
        }
        if (filter_ && !filter::matches_line(*filter_, collected.line)) {
            continue;
        }
        std::string& line = unconfirmed_lines_.emplace_back();
        record::append_terminal_json(collected.line, line); // escapes control characters
        if (files_) {
            const std::string name = has_folder_ ? collected_file_name(collected) : file_name_;
            texts[name].append(line).push_back('\n');
        }
    }
    batch_ = batch;
    if (!files_ || texts.empty()) {
        return 0;
    }
    for (auto& [name, text] : texts) {
        if (is_compressed_) {
            store::ZstdFrameWriter{}.append_frame(std::exchange(text, {}), text);
        }
    }
    const int error = files_->append_batch(batch, texts);
    if (error != 0) {
        unconfirmed_lines_.clear();
        batch_.clear(); // only files_ knows whether a part of the batch is written
    }
    return error;
}

/// Confirms the batch. Text on standard output cannot be taken back, so only confirmed batches are
/// written to it.
void CollectedRecordOutput::confirm_batch() {
    if (files_) {
        files_->confirm_batch();
    }
    std::string block;
    for (const std::string& line : unconfirmed_lines_) {
        checks_->check_line(line);
        if (stream_) {
            block.append(line).push_back('\n');
        }
    }
    if (stream_) {
        stream_->write(block);
    }
    unconfirmed_lines_.clear();
    batch_.clear();
    if (invalid_lines_ != 0) {
        log::warn("skipped {}: something else publishes to this stream",
                  record::count_with_noun(invalid_lines_,
                                          "message[s] that [is|are] not [a record|records]"));
    }
}

int CollectedRecordOutput::roll_back_batch() {
    const int error = files_ ? files_->roll_back_batch() : 0;
    if (error == 0) {
        unconfirmed_lines_.clear();
        batch_.clear();
    }
    return error;
}

} // namespace tw::cli
