#include "proxy/bus/spool_folder.h"

#include "proxy/base/files.h"
#include "proxy/base/log.h"
#include "proxy/base/numbers.h"
#include "proxy/bus/subjects.h"
#include "proxy/record/terminal_text.h"
#include "proxy/sink/output.h"

#include <algorithm>
#include <array>
#include <fstream>
#include <iterator>
#include <sstream>
#include <system_error>
#include <tuple>

#include <fmt/format.h>

namespace tw::bus {

namespace {

constexpr std::size_t kLineNumberDigits = 20;
constexpr std::size_t kRunIdLength = 36;
constexpr std::string_view kLinesSuffix = ".jsonl";
constexpr std::string_view kStateSuffix = ".state";

bool is_run_id(std::string_view text) {
    return text.size() == kRunIdLength &&
           text.find_first_not_of("0123456789abcdef-") == std::string_view::npos;
}

} // namespace

std::string spool_state_text(const SpoolState& state) {
    return fmt::format("settled={:020} place={} server={}{}{}\n", state.settled,
                       state.sequence ? fmt::format("{:020}", *state.sequence)
                                      : std::string(kLineNumberDigits, '-'),
                       state.server, state.stream.empty() ? "" : " stream=", state.stream);
}

std::optional<SpoolState> parse_spool_state(std::string_view text) {
    std::array<std::string, 4> values; // in the order of spool_state_text()
    std::istringstream in{std::string{text}};
    for (std::string& value : values) {
        in >> value;
        value.erase(0, value.find('=') + 1);
    }
    const auto settled = base::parse_number<std::uint64_t>(values[0]);
    const SpoolState state{.settled = settled.value_or(0),
                           .sequence = base::parse_number<std::uint64_t>(values[1]),
                           .server = values[2],
                           .stream = values[3]};
    const bool is_valid = spool_state_text(state) == text && is_server_parameter(state.server) &&
                          (state.stream.empty() || is_subject_token(state.stream));
    return is_valid ? std::optional{state} : std::nullopt;
}

std::string spool_file_name(std::string_view run, std::uint64_t first) {
    return fmt::format("{}-{:020}{}", run, first, kLinesSuffix);
}

std::optional<SpoolFile> parse_spool_file_name(std::string_view name) {
    const std::string_view run = name.substr(0, kRunIdLength);
    const std::string_view rest = name.substr(run.size());
    const auto first = base::parse_number<std::uint64_t>(
        rest.substr(std::min<std::size_t>(rest.size(), 1), kLineNumberDigits));
    if (!is_run_id(run) || !first || *first == 0 || name != spool_file_name(run, *first)) {
        return std::nullopt;
    }
    return SpoolFile{.run = std::string{run}, .first = *first};
}

std::string spool_state_file_name(std::string_view run) {
    return std::string{run}.append(kStateSuffix);
}

std::optional<std::string> parse_state_file_name(std::string_view name) {
    if (!name.ends_with(kStateSuffix)) {
        return std::nullopt;
    }
    name.remove_suffix(kStateSuffix.size());
    return is_run_id(name) ? std::optional{std::string{name}} : std::nullopt;
}

namespace {

constexpr std::uint64_t kSegmentsPerSpool = 16;
constexpr std::uint64_t kMaxSegmentBytes = std::uint64_t{16} << 20U;

} // namespace

SpoolFolder::SpoolFolder(std::filesystem::path path, std::uint64_t max_bytes, store::Disk& disk)
    : path_{std::move(path)}, max_bytes_{max_bytes}, disk_{&disk} {
    std::filesystem::create_directory(path_);
}

/// Reads a run's state file. Returns nullopt if it does not exist or cannot be read.
std::optional<SpoolState> SpoolFolder::read_run_state(const std::string& run) const {
    std::ifstream file{path_ / spool_state_file_name(run)};
    const std::string text{std::istreambuf_iterator<char>{file}, {}};
    return parse_spool_state(text);
}

std::uint64_t SpoolFolder::segment_bytes() const {
    return std::min(kMaxSegmentBytes, max_bytes_ / kSegmentsPerSpool);
}

void SpoolFolder::set_run_in_use(const std::string& run, bool in_use) {
    const std::lock_guard lock{mutex_};
    if (in_use) {
        runs_in_use_.insert(run);
    } else {
        runs_in_use_.erase(run);
    }
}

bool SpoolFolder::is_run_in_use(const std::string& run) const {
    const std::lock_guard lock{mutex_};
    return runs_in_use_.contains(run);
}

std::vector<std::string> SpoolFolder::list_run_ids() const {
    std::vector<std::string> runs;
    std::error_code error;
    for (const auto& entry : std::filesystem::directory_iterator{path_, error}) {
        if (auto run = parse_state_file_name(entry.path().filename().string())) {
            runs.push_back(*std::move(run));
        }
    }
    std::ranges::sort(runs);
    return runs;
}

std::vector<SpoolFile> SpoolFolder::list_files() const {
    std::vector<SpoolFile> files;
    std::error_code error;
    for (const auto& entry : std::filesystem::directory_iterator{path_, error}) {
        if (auto file = parse_spool_file_name(entry.path().filename().string())) {
            std::error_code gone;
            const auto bytes = entry.file_size(gone);
            file->bytes = gone ? 0 : bytes;
            files.push_back(*std::move(file));
        }
    }
    std::map<std::string, bool> foreign; // whether another process owns the run
    std::erase_if(files, [&](const SpoolFile& file) {
        const auto [known, is_new] = foreign.try_emplace(file.run);
        if (is_new) {
            known->second = !is_run_in_use(file.run) &&
                            base::is_locked(path_ / spool_state_file_name(file.run));
        }
        return known->second;
    });
    std::ranges::sort(files, {},
                      [](const SpoolFile& file) { return std::tie(file.run, file.first); });
    return files;
}

std::uint64_t SpoolFolder::drop_oldest_lines_to_fit(const std::string& own_run,
                                                    std::uint64_t bytes) {
    const auto files = list_files();
    std::uint64_t total = bytes;
    for (const SpoolFile& file : files) {
        total += file.bytes;
    }
    std::uint64_t last_dropped = 0;
    for (const bool own : {false, true}) {
        for (std::size_t i = 0; i < files.size() && total > max_bytes_; ++i) {
            const std::string& run = files[i].run;
            // Skips runs that this process has taken over: the publisher removes their files.
            if ((run == own_run) != own || (!own && is_run_in_use(run))) {
                continue;
            }
            const std::uint64_t unsettled = num_unsettled_lines(files, i);
            const std::uint64_t last = last_line_of_file(files, i);
            if (disk_->remove(path_of(files[i]))) {
                dropped_lines_ += unsettled;
                total -= files[i].bytes;
                last_dropped = own ? last : last_dropped;
            }
        }
    }
    return last_dropped;
}

void SpoolFolder::count_missing_lines(std::uint64_t lines) {
    missing_lines_ += lines;
    log::error("lost {} in the spool {}: files are damaged or gone",
               record::count_with_noun(lines, "record[s]"), path_.string());
}

/// Returns the line number of a file's last line.
std::uint64_t SpoolFolder::last_line_of_file(const std::vector<SpoolFile>& files, std::size_t at) {
    const bool is_followed = at + 1 < files.size() && files[at + 1].run == files[at].run;
    return (is_followed ? files[at + 1].first : files[at].first + count_lines(files[at])) - 1;
}

/// Returns the number of a file's lines after SpoolState::settled.
std::uint64_t SpoolFolder::num_unsettled_lines(const std::vector<SpoolFile>& files,
                                               std::size_t at) {
    const auto state = read_run_state(files[at].run);
    const std::uint64_t before = std::max(files[at].first - 1, state ? state->settled : 0);
    return std::max(last_line_of_file(files, at), before) - before;
}

std::uint64_t SpoolFolder::count_lines(const SpoolFile& file) {
    constexpr std::size_t kBlock = std::size_t{256} << 10U;
    const std::string path = path_of(file);
    const std::lock_guard lock{mutex_};
    auto& [bytes, lines] = line_counts_[path];
    if (bytes != file.bytes) {
        bytes = file.bytes;
        lines = 0;
        std::ifstream input{path, std::ios::binary};
        for (std::string block(kBlock, '\0'); input;) {
            input.read(block.data(), kBlock);
            lines += sink::count_lines({block.data(), static_cast<std::size_t>(input.gcount())});
        }
    }
    return lines;
}

LineTotals SpoolFolder::count_unpublished_lines(const std::string& own_run,
                                                const std::string& stream) {
    LineTotals totals;
    const auto files = list_files();
    for (std::size_t i = 0; i < files.size(); ++i) {
        const auto state = read_run_state(files[i].run);
        if (files[i].run != own_run && state && state->belongs_to_stream(stream)) {
            totals.lines += num_unsettled_lines(files, i);
            totals.bytes += files[i].bytes;
        }
    }
    return totals;
}

void SpoolFolder::report_unpublished_files(const std::string& stream) const {
    std::map<std::string, std::uint64_t> bytes;
    for (const SpoolFile& file : list_files()) {
        bytes[file.run] += file.bytes;
    }
    for (const auto& [run, size] : bytes) {
        const auto state = read_run_state(run);
        if (!state) {
            log::warn(
                "the spool {} contains {} bytes of a run that cannot be published, because {} is "
                "unreadable: they are kept until the space is needed, or they are removed",
                path_.string(), size, spool_state_file_name(run));
        } else if (!state->belongs_to_stream(stream)) {
            log::warn("the spool {} contains {} bytes for the stream {}, which are not "
                      "published to {}; a run that publishes there will take them",
                      path_.string(), size, state->stream, stream);
        }
    }
}

} // namespace tw::bus
