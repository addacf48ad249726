#include "proxy/bus/spool_folder.h"

#include "proxy/base/files.h"
#include "proxy/base/numbers.h"
#include "proxy/bus/subjects.h"
#include "proxy/sink/output.h"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <system_error>
#include <tuple>

#include <fmt/format.h>
#include <spdlog/spdlog.h>

namespace tw::bus {

namespace {

constexpr std::size_t kDigits = 20;
constexpr std::size_t kRunLength = 36;
constexpr std::string_view kLines = ".jsonl";
constexpr std::string_view kState = ".state";
constexpr std::string_view kNoSequence = "--------------------";

/// Removes the key, a value and a space from the start of a text, and returns the value. Returns
/// nullopt if the text does not start with the key.
std::optional<std::string_view> take_value(std::string_view& text, std::string_view key) {
    if (!text.starts_with(key)) {
        return std::nullopt;
    }
    const std::string_view value = text.substr(key.size(), text.find(' ') - key.size());
    text.remove_prefix(std::min(text.size(), key.size() + value.size() + 1));
    return value;
}

bool is_run_id(std::string_view text) {
    return text.size() == kRunLength &&
           text.find_first_not_of("0123456789abcdef-") == std::string_view::npos;
}

} // namespace

std::string spool_state_text(const SpoolState& state) {
    return fmt::format("settled={:020} place={} server={}{}{}\n", state.settled,
                       state.sequence ? fmt::format("{:020}", *state.sequence)
                                      : std::string{kNoSequence},
                       state.server, state.stream.empty() ? "" : " stream=", state.stream);
}

std::optional<SpoolState> read_spool_state(std::string_view text) {
    if (!text.ends_with('\n')) {
        return std::nullopt;
    }
    text.remove_suffix(1);
    const auto settled =
        base::parse_number<std::uint64_t>(take_value(text, "settled=").value_or(""));
    const auto sequence = take_value(text, "place=").value_or("");
    const auto server = take_value(text, "server=").value_or("");
    const auto stream = take_value(text, "stream=");
    SpoolState state{.settled = settled.value_or(0),
                     .sequence = base::parse_number<std::uint64_t>(sequence),
                     .server = std::string{server},
                     .stream = std::string{stream.value_or("")}};
    const bool is_valid = settled && (state.sequence || sequence == kNoSequence) &&
                          is_subject_server(server) && (!stream || is_subject_token(*stream)) &&
                          text.empty();
    return is_valid ? std::optional{std::move(state)} : std::nullopt;
}

std::string spool_file_name(std::string_view run, std::uint64_t first) {
    return fmt::format("{}-{:020}{}", run, first, kLines);
}

std::optional<SpoolFile> read_spool_file_name(std::string_view name) {
    const std::string_view run = name.substr(0, kRunLength);
    const std::string_view rest = name.substr(run.size());
    const auto first = base::parse_number<std::uint64_t>(
        rest.substr(std::min<std::size_t>(rest.size(), 1), kDigits));
    if (!is_run_id(run) || !first || *first == 0 || name != spool_file_name(run, *first)) {
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
    return is_run_id(name) ? std::optional{std::string{name}} : std::nullopt;
}

namespace {

constexpr std::uint64_t kSegments = 16;
constexpr std::uint64_t kLargestSegment = std::uint64_t{16} << 20U;

/// Reads a state file. Returns nullopt if it does not exist or cannot be read.
std::optional<SpoolState> read_state_file(const std::filesystem::path& path) {
    std::ifstream file{path};
    const std::string text{std::istreambuf_iterator<char>{file}, {}};
    return read_spool_state(text);
}

} // namespace

SpoolFolder::SpoolFolder(std::filesystem::path path, std::uint64_t max_bytes, store::Disk& disk)
    : path_{std::move(path)}, max_bytes_{max_bytes}, disk_{&disk} {
    std::filesystem::create_directory(path_);
}

std::uint64_t SpoolFolder::segment_bytes() const {
    return std::min(kLargestSegment, max_bytes_ / kSegments);
}

void SpoolFolder::set_run_owned(const std::string& run, bool owned) {
    const std::lock_guard lock{mutex_};
    if (owned) {
        owned_.insert(run);
    } else {
        owned_.erase(run);
    }
}

bool SpoolFolder::is_run_owned(const std::string& run) const {
    const std::lock_guard lock{mutex_};
    return owned_.contains(run);
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
    std::map<std::string, bool> foreign; // whether another process owns the run
    std::erase_if(files, [&](const FoundFile& found) {
        const std::string& run = found.file.run;
        const auto [known, is_new] = foreign.try_emplace(run);
        if (is_new) {
            known->second = !is_run_owned(run) && base::is_locked(path_ / spool_state_name(run));
        }
        return known->second;
    });
    std::ranges::sort(files, [](const FoundFile& a, const FoundFile& b) {
        return std::tie(a.file.run, a.file.first) < std::tie(b.file.run, b.file.first);
    });
    return files;
}

std::uint64_t SpoolFolder::drop_oldest_lines_for(const std::string& own_run, std::uint64_t bytes) {
    const auto files = list_files();
    std::uint64_t total = bytes;
    for (const FoundFile& found : files) {
        total += found.bytes;
    }
    std::uint64_t last_dropped = 0;
    for (const bool own : {false, true}) {
        for (std::size_t i = 0; i < files.size() && total > max_bytes_; ++i) {
            const auto& [run, first] = files[i].file;
            // Skips runs that this process has taken over: the publisher removes their files.
            if ((run == own_run) != own || (!own && is_run_owned(run))) {
                continue;
            }
            const std::uint64_t unsettled = unsettled_lines(files, i);
            const std::uint64_t last = last_line(files, i);
            if (disk_->remove(file_path(files[i].file))) {
                dropped_ += unsettled;
                total -= files[i].bytes;
                last_dropped = own ? last : last_dropped;
            }
        }
    }
    return last_dropped;
}

void SpoolFolder::count_missing_lines(std::uint64_t lines) {
    missing_ += lines;
    spdlog::error("lost {} records in the spool {}: their files are damaged or gone", lines,
                  path_.string());
}

std::string SpoolFolder::file_path(const SpoolFile& file) const {
    return (path_ / spool_file_name(file.run, file.first)).string();
}

/// Returns the number of a file's last line.
std::uint64_t SpoolFolder::last_line(const std::vector<FoundFile>& files, std::size_t at) {
    const SpoolFile& file = files[at].file;
    const bool followed = at + 1 < files.size() && files[at + 1].file.run == file.run;
    return followed ? files[at + 1].file.first - 1 : file.first + count_lines(files[at]) - 1;
}

/// Returns the number of a file's lines that were not published yet.
std::uint64_t SpoolFolder::unsettled_lines(const std::vector<FoundFile>& files, std::size_t at) {
    const auto& [run, first] = files[at].file;
    const auto state = read_state_file(path_ / spool_state_name(run));
    const std::uint64_t before = std::max(first - 1, state ? state->settled : 0);
    const std::uint64_t last = last_line(files, at);
    return last > before ? last - before : 0;
}

std::uint64_t SpoolFolder::count_lines(const FoundFile& found) {
    constexpr std::size_t kBlock = std::size_t{256} << 10U;
    const std::string path = file_path(found.file);
    const std::lock_guard lock{mutex_};
    auto& [bytes, lines] = lines_[path];
    if (bytes != found.bytes) {
        bytes = found.bytes;
        lines = 0;
        std::ifstream file{path, std::ios::binary};
        for (std::string block(kBlock, '\0'); file;) {
            file.read(block.data(), kBlock);
            lines += sink::count_lines({block.data(), static_cast<std::size_t>(file.gcount())});
        }
    }
    return lines;
}

SpoolFolder::UnpublishedTotals SpoolFolder::count_unpublished(const std::string& own_run,
                                                              const std::string& stream) {
    constexpr std::chrono::seconds kLook{1};
    const std::lock_guard lock{leftovers_mutex_};
    const auto now = std::chrono::steady_clock::now();
    if (now - looked_ < kLook) {
        return leftovers_;
    }
    looked_ = now;
    leftovers_ = {};
    const auto files = list_files();
    for (std::size_t i = 0; i < files.size(); ++i) {
        const auto state = read_state_file(path_ / spool_state_name(files[i].file.run));
        if (files[i].file.run != own_run && state && state->belongs_to_stream(stream)) {
            leftovers_.lines += unsettled_lines(files, i);
            leftovers_.bytes += files[i].bytes;
        }
    }
    return leftovers_;
}

void SpoolFolder::report_unpublished_files(const std::string& stream) const {
    std::map<std::string, std::uint64_t> bytes;
    for (const FoundFile& found : list_files()) {
        bytes[found.file.run] += found.bytes;
    }
    for (const auto& [run, size] : bytes) {
        const auto state = read_state_file(path_ / spool_state_name(run));
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

} // namespace tw::bus
