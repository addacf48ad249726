#include "proxy/bus/spool_folder.h"

#include "proxy/base/descriptors.h"
#include "proxy/base/files.h"
#include "proxy/bus/subjects.h"
#include "proxy/filter/json_line.h"
#include "proxy/filter/line_record.h"
#include "proxy/sink/output.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <iterator>
#include <system_error>
#include <tuple>

#include <fcntl.h>
#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

namespace tw::bus {

namespace {

constexpr std::size_t kDigits = 20;
constexpr std::size_t kRunLength = 36;
constexpr std::string_view kLines = ".jsonl";
constexpr std::string_view kState = ".state";
constexpr std::string_view kForStream = " stream=";

/// Removes `word` from the start of a text. Returns false if the text does not start with it.
bool skip_word(std::string_view& text, std::string_view word) {
    if (!text.starts_with(word)) {
        return false;
    }
    text.remove_prefix(word.size());
    return true;
}

std::optional<std::uint64_t> take_number(std::string_view& text) {
    std::uint64_t number = 0;
    const char* const end = text.data() + std::min(text.size(), kDigits);
    const auto parsed = std::from_chars(text.data(), end, number);
    if (text.size() < kDigits || parsed.ec != std::errc{} || parsed.ptr != end) {
        return std::nullopt;
    }
    text.remove_prefix(kDigits);
    return number;
}

bool is_run(std::string_view text) {
    return text.size() == kRunLength &&
           text.find_first_not_of("0123456789abcdef-") == std::string_view::npos;
}

} // namespace

std::string spool_state_text(const SpoolState& state) {
    const std::string sequence =
        state.sequence ? fmt::format("{:020}", *state.sequence) : std::string(kDigits, '-');
    return fmt::format("settled={:020} place={} server={}{}{}\n", state.settled, sequence,
                       state.server, state.stream.empty() ? "" : kForStream, state.stream);
}

std::optional<SpoolState> read_spool_state(std::string_view text) {
    SpoolState state;
    if (!skip_word(text, "settled=")) {
        return std::nullopt;
    }
    const auto settled = take_number(text);
    if (!settled || !skip_word(text, " place=")) {
        return std::nullopt;
    }
    state.settled = *settled;
    if (!skip_word(text, std::string(kDigits, '-'))) {
        state.sequence = take_number(text);
        if (!state.sequence) {
            return std::nullopt;
        }
    }
    if (!skip_word(text, " server=") || !text.ends_with('\n')) {
        return std::nullopt;
    }
    text.remove_suffix(1);
    const auto stream = text.find(kForStream);
    state.server = text.substr(0, stream);
    if (stream != std::string_view::npos) {
        state.stream = text.substr(stream + kForStream.size());
    }
    const bool named = stream == std::string_view::npos || is_subject_token(state.stream);
    return named && is_subject_server(state.server) ? std::optional{state} : std::nullopt;
}

std::string spool_file_name(std::string_view run, std::uint64_t first) {
    return fmt::format("{}-{:020}{}", run, first, kLines);
}

std::optional<SpoolFile> read_spool_file_name(std::string_view name) {
    const std::string_view run = name.substr(0, kRunLength);
    std::string_view rest = name.substr(run.size());
    if (!is_run(run) || !skip_word(rest, "-")) {
        return std::nullopt;
    }
    const auto first = take_number(rest);
    if (!first || *first == 0 || rest != kLines) {
        return std::nullopt;
    }
    return SpoolFile{.run = std::string{run}, .first = *first};
}

std::string spool_state_name(std::string_view run) {
    return std::string{run}.append(kState);
}

std::optional<std::string> run_of_state_name(std::string_view name) {
    if (!name.ends_with(kState)) {
        return std::nullopt;
    }
    name.remove_suffix(kState.size());
    return is_run(name) ? std::optional{std::string{name}} : std::nullopt;
}

namespace {

constexpr std::size_t kCheckBytes = std::size_t{256} << 10U;
constexpr std::uint64_t kSegments = 16;
constexpr std::uint64_t kLargestSegment = std::uint64_t{16} << 20U;

/// Reads a state file. Returns nullopt if it does not exist or cannot be read.
std::optional<SpoolState> state_at(const std::filesystem::path& path) {
    std::ifstream file{path};
    const std::string text{std::istreambuf_iterator<char>{file}, {}};
    return read_spool_state(text);
}

/// Returns the number of a run's first unsettled line.
std::uint64_t first_unsettled(const std::filesystem::path& state) {
    const auto known = state_at(state);
    return known ? known->settled + 1 : 1;
}

/// Returns the number of losses that a line reports; 0 for a line of another type.
std::uint64_t lost_by(std::string_view line) {
    const auto head = filter::read_line_head(line);
    return head && head->type == "records_lost" ? filter::JsonLine{line}.object().find_count("lost")
                                                : 0;
}

} // namespace

SpoolFolder::SpoolFolder(std::filesystem::path path, std::uint64_t max_bytes, sink::Disk& disk)
    : path_{std::move(path)}, max_bytes_{max_bytes},
      segment_bytes_{std::min(kLargestSegment, max_bytes / kSegments)}, disk_{&disk} {
    std::filesystem::create_directory(path_);
    for (const std::string& run : run_ids()) {
        if (!base::is_locked(path_ / spool_state_name(run))) {
            counted_.insert(run);
        }
    }
    // files without a state file do not belong to any process
    for (const FoundFile& found : list_files()) {
        if (!std::filesystem::exists(path_ / spool_state_name(found.file.run))) {
            counted_.insert(found.file.run);
        }
        bytes_ += counted_.contains(found.file.run) ? found.bytes : 0;
    }
}

std::vector<std::string> SpoolFolder::run_ids() const {
    std::vector<std::string> runs;
    std::error_code error;
    for (const auto& entry : std::filesystem::directory_iterator{path_, error}) {
        if (auto run = run_of_state_name(entry.path().filename().string())) {
            runs.push_back(*std::move(run));
        }
    }
    std::ranges::sort(runs);
    return runs;
}

std::vector<SpoolFolder::FoundFile> SpoolFolder::list_files() const {
    std::vector<FoundFile> files;
    std::error_code error;
    for (const auto& entry : std::filesystem::directory_iterator{path_, error}) {
        if (auto file = read_spool_file_name(entry.path().filename().string())) {
            std::error_code gone;
            const auto bytes = entry.file_size(gone);
            files.push_back({.file = *std::move(file), .bytes = gone ? 0 : bytes});
        }
    }
    std::ranges::sort(files, [](const FoundFile& a, const FoundFile& b) {
        return std::tie(a.file.run, a.file.first) < std::tie(b.file.run, b.file.first);
    });
    return files;
}

void SpoolFolder::make_room_for(const std::string& own_run, std::uint64_t bytes,
                                const std::function<std::optional<FileLoss>()>& drop_own) {
    if (this->total_bytes() + bytes > max_bytes_) {
        recount_bytes(own_run);
    }
    while (this->total_bytes() + bytes > max_bytes_ && drop_oldest_leftover(own_run)) {
    }
    while (this->total_bytes() + bytes > max_bytes_) {
        const auto gone = drop_own();
        if (!gone) {
            return; // only the file being written is left
        }
        count_loss(*gone);
    }
}

void SpoolFolder::count_loss(const FileLoss& loss) {
    lost_ += loss.lines;
    unreported_ += loss.lines + loss.reported;
}

SpoolFolder::FileLoss SpoolFolder::loss_in_file(const std::string& path, std::uint64_t first,
                                                std::uint64_t unsettled) {
    FileLoss loss;
    std::ifstream file{path};
    std::string line;
    for (std::uint64_t number = first; std::getline(file, line) && !file.eof(); ++number) {
        if (number >= unsettled) {
            ++loss.lines;
            loss.reported += lost_by(line);
        }
    }
    return loss;
}

std::uint64_t SpoolFolder::total_bytes() const {
    const std::lock_guard lock{mutex_};
    return bytes_;
}

void SpoolFolder::add_bytes(std::uint64_t bytes) {
    const std::lock_guard lock{mutex_};
    bytes_ += bytes;
}

void SpoolFolder::remove_file(const std::string& path, std::uint64_t bytes) {
    const std::lock_guard lock{mutex_};
    if (disk_->remove(path)) {
        bytes_ -= std::min(bytes_, bytes);
    }
}

/// Updates the size of the folder after other processes published or removed files.
void SpoolFolder::recount_bytes(const std::string& own_run) {
    const std::lock_guard lock{mutex_};
    bytes_ = 0;
    for (const FoundFile& found : list_files()) {
        const std::string& run = found.file.run;
        bytes_ += run == own_run || counted_.contains(run) ? found.bytes : 0;
    }
}

SpoolFolder::FileContents SpoolFolder::count_contents(const std::string& path) {
    const base::UniqueFd file{::open(path.c_str(), O_RDONLY | O_CLOEXEC)};
    std::string block(kCheckBytes, '\0');
    FileContents contents;
    ssize_t got = 1;
    while (file.valid() && got > 0) {
        got = ::read(file.get(), block.data(), block.size());
        const std::string_view text{block.data(),
                                    static_cast<std::size_t>(std::max<ssize_t>(got, 0))};
        const auto newline = text.rfind('\n');
        contents.lines += sink::count_lines(text);
        contents.incomplete_bytes = newline == std::string_view::npos
                                        ? contents.incomplete_bytes + text.size()
                                        : text.size() - newline - 1;
    }
    return contents;
}

/// Counts the lines missing between two files. Since files are written without gaps, the disk has
/// lost these lines.
void SpoolFolder::count_damaged_lines(const std::string& run, std::uint64_t settled) {
    std::uint64_t gone = 0;
    // the number after the last line of the previous file; 0 for the first file
    std::uint64_t behind = 0;
    std::uint64_t incomplete_bytes = 0;
    for (const FoundFile& found : list_files()) {
        if (found.file.run != run) {
            continue;
        }
        const std::uint64_t first = found.file.first;
        gone += behind != 0 && first > behind ? first - behind : 0;
        const FileContents held = count_contents((path_ / spool_file_name(run, first)).string());
        behind = std::max(first + held.lines, settled + 1);
        incomplete_bytes = held.incomplete_bytes;
    }
    if (gone != 0) {
        damaged_ += gone;
        spdlog::error(
            "lost {} records of an earlier run in the spool {}: their files are damaged or gone",
            gone, path_.string());
    }
    if (incomplete_bytes != 0) {
        spdlog::warn(
            "dropped the last {} bytes of an earlier run in the spool {}: an incomplete record",
            incomplete_bytes, path_.string());
    }
}

void SpoolFolder::count_removed_lines(std::uint64_t lines) {
    damaged_ += lines;
    if (lines != 0) {
        spdlog::error("lost {} records waiting in the spool {}: someone removed them", lines,
                      path_.string());
    }
}

bool SpoolFolder::drop_oldest_leftover(const std::string& own_run) {
    return std::ranges::any_of(list_files(), [&](const FoundFile& found) {
        return found.file.run != own_run && is_counted(found.file.run) && drop_file(found);
    });
}

/// Drops a file. Returns false if another process has already removed the file.
bool SpoolFolder::drop_file(const FoundFile& found) {
    const auto& [run, first] = found.file;
    const std::string path = (path_ / spool_file_name(run, first)).string();
    const FileLoss loss = loss_in_file(path, first, first_unsettled(path_ / spool_state_name(run)));
    const std::lock_guard lock{mutex_};
    if (!disk_->remove(path)) {
        return false;
    }
    count_loss(loss);
    bytes_ -= std::min(bytes_, found.bytes);
    return true;
}

bool SpoolFolder::is_counted(const std::string& run) const {
    const std::lock_guard lock{mutex_};
    return counted_.contains(run);
}

void SpoolFolder::add_leftover_bytes(const std::string& run, std::uint64_t bytes) {
    const std::lock_guard lock{mutex_};
    bytes_ += counted_.insert(run).second ? bytes : 0;
}

void SpoolFolder::report_unpublished(const std::string& stream) const {
    std::map<std::string, std::uint64_t> bytes;
    for (const FoundFile& found : list_files()) {
        if (is_counted(found.file.run)) {
            bytes[found.file.run] += found.bytes;
        }
    }
    for (const auto& [run, size] : bytes) {
        const auto state = state_at(path_ / spool_state_name(run));
        if (!state) {
            spdlog::warn(
                "the spool {} contains {} bytes of a run that cannot be published, because {} is "
                "unreadable: they are kept until the space is needed, or they are removed",
                path_.string(), size, spool_state_name(run));
        } else if (!state->belongs_to_stream(stream)) {
            spdlog::warn("the spool {} contains {} bytes for the stream {}, which are not "
                         "published to {}; a run that publishes there will take them",
                         path_.string(), size, state->stream, stream);
        }
    }
}

std::uint64_t SpoolFolder::waiting_lines(const std::string& own_run,
                                         const std::string& stream) const {
    constexpr std::chrono::seconds kCount{1};
    const std::lock_guard lock{waiting_mutex_};
    const auto now = std::chrono::steady_clock::now();
    if (now - waiting_counted_ >= kCount) {
        waiting_counted_ = now;
        waiting_ = count_waiting(own_run, stream);
    }
    return waiting_;
}

std::uint64_t SpoolFolder::count_waiting(const std::string& own_run,
                                         const std::string& stream) const {
    const auto found = list_files();
    std::uint64_t lines = 0;
    for (std::size_t i = 0; i < found.size(); ++i) {
        const SpoolFile& file = found[i].file;
        const auto state = file.run == own_run || !is_counted(file.run)
                               ? std::nullopt
                               : state_at(path_ / spool_state_name(file.run));
        if (!state || !state->belongs_to_stream(stream)) {
            continue;
        }
        const bool followed = i + 1 < found.size() && found[i + 1].file.run == file.run;
        const std::uint64_t behind =
            followed ? found[i + 1].file.first : file.first + count_lines(found[i]);
        const std::uint64_t from = std::max(file.first, state->settled + 1);
        lines += behind > from ? behind - from : 0;
    }
    return lines;
}

/// Returns the number of lines in a file. Counts them only once, because files of ended runs do not
/// change.
std::uint64_t SpoolFolder::count_lines(const FoundFile& last) const {
    const std::string path = (path_ / spool_file_name(last.file.run, last.file.first)).string();
    auto& [bytes, lines] = lines_[path];
    if (bytes != last.bytes) {
        bytes = last.bytes;
        lines = count_contents(path).lines;
    }
    return lines;
}

} // namespace tw::bus
