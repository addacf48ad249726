#include "proxy/cli/recording_flags.h"

#include "proxy/cli/inspect_flags.h"
#include "proxy/cli/output_file.h"
#include "proxy/cli/settings.h"
#include "proxy/record/terminal_text.h"

#include <charconv>
#include <chrono>
#include <utility>

#include <boost/algorithm/string/predicate.hpp>
#include <fmt/format.h>

namespace tw::cli {

namespace {

/// The size of the text in a compressed frame, for files that are not written live. If the disk
/// becomes full, the last frame is lost; smaller frames would compress less well.
constexpr std::uint64_t kOfflineFrameTextBytes = std::uint64_t{4} << 20U;

/// Limits that keep a busy server's recording manageable: a segment fits into memory and covers up
/// to an hour.
constexpr store::RetentionLimits kDefaultRotation{.age = std::chrono::hours{1},
                                                  .bytes = std::uint64_t{512} << 20U};

struct Unit {
    std::string_view name;
    std::uint64_t size;
    bool is_time;
};

constexpr std::array kLimitUnits{Unit{"s", 1, true},
                                 Unit{"min", 60, true},
                                 Unit{"h", 3600, true},
                                 Unit{"d", 86400, true},
                                 Unit{"KiB", std::uint64_t{1} << 10U, false},
                                 Unit{"MiB", std::uint64_t{1} << 20U, false},
                                 Unit{"GiB", std::uint64_t{1} << 30U, false},
                                 Unit{"TiB", std::uint64_t{1} << 40U, false}};
/// The largest number before a unit. A larger one is a typing error and would not fit into 64 bits.
constexpr std::uint64_t kMaxUnitNumber = 1'000'000;
/// The longest time. A longer one is a typing error, and three times as long does not fit into
/// nanoseconds of 64 bits.
constexpr std::chrono::seconds kMaxTime = std::chrono::hours{24} * 36525;

/// Returns the unit of size that a user meant by "G", "gb" or "gib"; empty if there is none.
std::string find_similar_size_unit(std::string_view name) {
    const auto* const like = std::ranges::find_if(kLimitUnits, [name](const Unit& unit) {
        const std::string_view letter = unit.name.substr(0, 1);
        return !unit.is_time && name != "m" && // "m" may also stand for minutes
               (boost::iequals(name, unit.name) || boost::iequals(name, letter) ||
                boost::iequals(name, std::string{letter} + "B"));
    });
    return like == kLimitUnits.end() ? std::string{} : std::string{like->name};
}

/// Returns the error for a wrong time or size. `number` and `name`: the wrong number and unit.
UsageError make_limit_error(const std::string& flag, const std::string& text, std::uint64_t number,
                            std::string_view name, std::string_view expected) {
    const std::string like = number == 0 ? std::string{} : find_similar_size_unit(name);
    return UsageError{like.empty() || like == name
                          ? fmt::format("{} {}: expected {}", flag, text, expected)
                          : fmt::format("{} {}: did you mean {}{}?", flag, text, number, like)};
}

/// Parses a size without a time. `example`: the end of the error. Errors: UsageError.
std::uint64_t parse_size(const std::string& flag, const std::string& text,
                         std::string_view example) {
    const std::string expected = fmt::format("a size (KiB, MiB, GiB, TiB), {}", example);
    const TimeAndSize parsed = parse_time_and_size(flag, text, expected);
    if (parsed.time.count() != 0) {
        throw make_limit_error(flag, text, 0, {}, expected);
    }
    return parsed.bytes;
}

std::string without_suffix(const std::string& name, std::string_view suffix) {
    return name.ends_with(suffix) ? name.substr(0, name.size() - suffix.size()) : name;
}

bool is_folder(const std::string& path) {
    std::error_code ignored;
    return path.ends_with('/') || std::filesystem::is_directory(path, ignored);
}

store::SegmentNames segment_names_in_folder(const RecordingKind& kind, const std::string& path) {
    std::string folder = path;
    while (folder.size() > 1 && folder.back() == '/') {
        folder.pop_back();
    }
    return {.folder = folder,
            .name = std::string{kind.folder_name},
            .suffix = std::string{kind.folder_suffix}};
}

store::SegmentNames segment_names_beside(const RecordingKind& kind, const std::string& given) {
    const std::filesystem::path path{given};
    const std::string folder = path.parent_path().string();
    const std::string file = path.filename().string();
    const std::string name = without_suffix(without_suffix(file, kCompressedSuffix), kind.suffix);
    return {.folder = folder.empty() ? "." : folder,
            .name = name,
            .suffix = name == file ? std::string{kind.suffix} : file.substr(name.size())};
}

/// Returns the path without the folders at its end that do not exist yet.
std::string existing_folder(const std::string& path) {
    std::error_code ignored;
    std::filesystem::path part = std::filesystem::absolute(path, ignored);
    while (part.has_relative_path() && !std::filesystem::exists(part, ignored)) {
        part = part.parent_path();
    }
    return part.string();
}

/// True for something that exists and is no file on a disk: a pipe, a device, or standard output.
bool is_stream(const std::string& path) {
    const auto facts = store::system_disk().file_status(path);
    return path == "-" || (facts && !facts->is_regular);
}

/// Opens a stream, which cannot be truncated or read again.
std::unique_ptr<store::OutputFile> open_stream(const RecordingKind& kind, const std::string& path) {
    std::error_code ignored;
    if (kind.format == &capture::capture_format() && !std::filesystem::is_fifo(path, ignored)) {
        throw usage_error("{} {}: name a file, or a pipe with a reader", kind.flag, path);
    }
    return open_output_file(kind.flag, path, *kind.format);
}

std::unique_ptr<store::OutputFile> open_recording_files(const RecordingKind& kind,
                                                        const store::RecordingOptions& options,
                                                        store::Recording::StartMode begin) {
    try {
        if (options.segments) {
            std::filesystem::create_directory(options.segments->folder);
        }
        return std::make_unique<store::Recording>(options, begin);
    } catch (const std::system_error& error) {
        throw make_open_error(kind.flag, options.path, error);
    } catch (const std::runtime_error& error) {
        throw usage_error("{} {}", kind.flag, error.what());
    }
}

constexpr std::chrono::seconds kDefaultFlightTime{60};
constexpr std::uint64_t kDefaultFlightBytes = std::uint64_t{64} << 20U;
/// The shortest time that the flight recorder keeps: the least time between two of its files.
constexpr std::chrono::nanoseconds kMinFlightTime{capture::FlightRecorder::kMinFileInterval};
/// The smallest memory of the flight recorder; less cannot hold a full server's snapshot.
constexpr std::uint64_t kMinFlightBytes = std::uint64_t{1} << 20U;

/// Returns limits and folder of --flight. A variable contains both, separated by a blank.
std::pair<std::string, std::string> split_flight_values(const std::vector<std::string>& values) {
    if (values.size() > 1) {
        return {values[0], values[1]};
    }
    const std::string& text = values.front();
    const auto blank = text.find(' ');
    if (blank == std::string::npos) {
        throw usage_error("--flight {}: expected limits and a folder, for example 60s,64MiB DIR",
                          text);
    }
    return {text.substr(0, blank), text.substr(blank + 1)};
}

} // namespace

TimeAndSize parse_time_and_size(const std::string& flag, const std::string& text,
                                std::string_view expected) {
    TimeAndSize parsed;
    for (std::string_view rest{text}; !rest.empty();) {
        const std::string_view part = rest.substr(0, rest.find(','));
        rest.remove_prefix(std::min(rest.size(), part.size() + 1));
        std::uint64_t count = 0;
        const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), count);
        const std::string_view name = part.substr(static_cast<std::size_t>(end - part.data()));
        const auto* const unit = std::find_if(kLimitUnits.begin(), kLimitUnits.end(),
                                              [&](const Unit& each) { return each.name == name; });
        if (error != std::errc{} || unit == kLimitUnits.end() || count == 0 ||
            count > kMaxUnitNumber ||
            (unit->is_time ? parsed.time.count() != 0 : parsed.bytes != 0)) {
            throw make_limit_error(flag, text, count, name, expected);
        }
        if (unit->is_time) {
            parsed.time = std::chrono::seconds{count * unit->size};
            if (parsed.time > kMaxTime) {
                throw usage_error("{} {}: expected a time of at most 100 years", flag, text);
            }
        } else {
            parsed.bytes = count * unit->size;
        }
    }
    return parsed;
}

void RecordingFlags::add_to(Command& command) {
    command.add(
        "--rotate", &rotate, "TIME,SIZE",
        "Record in segments, FILE-20261121T161530Z-0001.jsonl.zst, starting a new one after "
        "this time or size (1h,512MiB if --output names a folder); also applies to --write");
    command.add("--keep", &keep, "TIME,SIZE",
                "Delete segments older than this time, and the oldest ones beyond this total "
                "size, but none from the last hour");
    command.add("--min-free", &min_free, "SIZE",
                "Leave this much of the disk free: delete the oldest segments if --keep is given, "
                "then stop recording until there is room");
    command.add("--message-limit", &message_limit, "SIZE",
                "Record at most this much per second of the messages of one session; what "
                "exceeds it is counted and reported; 'none' records all");
    using Sync = store::SyncPolicy;
    command.add_choice<Sync>(
        "--sync", sync, "WHEN",
        {{"none", Sync::none}, {"segment", Sync::segment}, {"1s", Sync::every_second}},
        "Sync records to disk when the system chooses, at the end of each segment, or "
        "every second");
    command.dependent_flags.push_back({{"--sync"}, {"--output", "--write"}});
}

const RecordingKind& lines_recording_kind() {
    static const RecordingKind lines{.flag = "--output",
                                     .content = "records",
                                     .suffix = ".jsonl",
                                     .folder_name = "records",
                                     .folder_suffix = ".jsonl.zst",
                                     .format = &store::record_line_format(),
                                     .readers = store::AllowedReaders::group};
    return lines;
}

const RecordingKind& capture_recording_kind() {
    static const RecordingKind capture{.flag = "--write",
                                       .content = "a capture",
                                       .suffix = ".pcapng",
                                       .folder_name = "capture",
                                       .folder_suffix = ".pcapng",
                                       .format = &capture::capture_format(),
                                       .readers = store::AllowedReaders::owner};
    return capture;
}

std::unique_ptr<store::OutputFile> open_recording(const NamedRecording& recording) {
    const auto& [kind, path] = recording;
    if (is_stream(path)) {
        return open_stream(kind, path);
    }
    return open_recording_files(kind,
                                {.path = path,
                                 .compressed = is_compressed(kind.flag, path),
                                 .format = kind.format,
                                 .readers = kind.readers,
                                 .frame_text_bytes = kOfflineFrameTextBytes},
                                store::Recording::StartMode::empty);
}

void RecordingFlags::check_recordings(std::span<const NamedRecording> recordings) const {
    const NamedRecording* file = nullptr;
    bool has_segments = false;
    for (const NamedRecording& each : recordings) {
        const auto found = disk_options(each);
        file = file == nullptr && found ? &each : file;
        has_segments = has_segments || (found && found->segments);
    }
    if (!keep.empty() && !has_segments) {
        throw usage_error("--keep deletes segments; {}, or add --rotate",
                          file == nullptr
                              ? "name a folder with --output or --write"
                              : fmt::format("{0} {1} is a file: write {1}/ for a folder",
                                            file->kind.flag, file->path));
    }
    for (const auto& [flag, value] :
         {std::pair{"--min-free", &min_free}, std::pair{"--rotate", &rotate}}) {
        if (!value->empty() && file == nullptr) {
            throw usage_error("{} needs --output or --write with a file or folder", flag);
        }
    }
}

std::uint64_t RecordingFlags::max_message_bytes() const {
    return message_limit == "none"
               ? 0
               : parse_size("--message-limit", message_limit, "for example 1MiB, or 'none'");
}

std::uint64_t RecordingFlags::min_free_bytes() const {
    return parse_size("--min-free", min_free, "for example 10GiB");
}

std::optional<store::RecordingOptions>
RecordingFlags::disk_options(const NamedRecording& recording) const {
    const auto& [kind, path] = recording;
    const bool folder = is_folder(path);
    const TimeAndSize rotation = parse_time_and_size("--rotate", rotate);
    const TimeAndSize kept = parse_time_and_size("--keep", keep);
    const std::uint64_t least_free = min_free_bytes();
    if (path.empty() || (is_stream(path) && !folder)) {
        return std::nullopt;
    }
    store::RecordingOptions options{
        .path = path,
        .compressed =
            is_compressed(kind.flag, folder ? kind.folder_suffix : std::string_view{path}),
        .format = kind.format,
        .readers = kind.readers,
        .segment_limits = {.age = rotation.time, .bytes = rotation.bytes},
        .keep = {.age = kept.time, .bytes = kept.bytes},
        .min_free_bytes = least_free,
        .sync = sync};
    if (folder || !rotate.empty()) {
        options.segments =
            folder ? segment_names_in_folder(kind, path) : segment_names_beside(kind, path);
    }
    if (folder && rotate.empty()) {
        options.segment_limits = kDefaultRotation;
    }
    return options;
}

namespace {

std::string nothing_recorded_text(const std::string& min_free, const std::string& path,
                                  std::uint64_t free, std::uint64_t recorded) {
    return fmt::format("--min-free {}: the disk of {} has {} free{}, less than that: nothing is "
                       "recorded until there is room",
                       min_free, path, record::size_text(free),
                       recorded == 0 ? ""
                                     : " and " + record::size_text(recorded) + " of the recording");
}

} // namespace

std::vector<std::string>
RecordingFlags::disk_space_warnings(std::span<const NamedRecording> recordings) const {
    std::vector<std::string> found;
    for (const NamedRecording& each : recordings) {
        const auto planned = disk_options(each);
        if (!planned) {
            continue;
        }
        auto& disk = store::system_disk();
        if (!planned->segments || keep.empty()) {
            const std::uint64_t free = disk.free_bytes(existing_folder(each.path));
            if (free < planned->min_free_bytes) {
                found.push_back(nothing_recorded_text(min_free, each.path, free, 0));
            }
            continue;
        }
        const std::string& folder = planned->segments->folder;
        std::uint64_t recorded = 0;
        for (const store::Segment& segment : store::list_segments(folder, &*planned->segments)) {
            const auto facts = disk.file_status(folder + '/' + segment.file);
            recorded += facts ? facts->size : 0;
        }
        const std::uint64_t free = disk.free_bytes(existing_folder(folder));
        const bool is_known = free <= UINT64_MAX - recorded;
        if (is_known && free + recorded < planned->min_free_bytes) {
            found.push_back(nothing_recorded_text(min_free, each.path, free, recorded));
        } else if (is_known && planned->keep.bytes != 0 &&
                   free + recorded < planned->keep.bytes + planned->min_free_bytes) {
            found.push_back(fmt::format(
                "--keep {}: the disk of {} has {} free, and the recording already has {}; {}", keep,
                each.path, record::size_text(free), record::size_text(recorded),
                min_free.empty()
                    ? "keep less, or add --min-free 1GiB: it deletes the oldest segments before "
                      "the disk is full, which would stop the recording"
                    : fmt::format("to leave {} free, segments are deleted earlier", min_free)));
        }
    }
    return found;
}

std::string RecordingFlags::describe_place(const NamedRecording& recording) const {
    const auto planned = disk_options(recording);
    if (!planned) {
        return recording.path == "-" ? "standard output" : recording.path;
    }
    std::error_code ignored;
    const auto path = std::filesystem::absolute(recording.path, ignored).lexically_normal();
    std::string text = path.string() + (planned->segments ? " in segments" : "");
    if (planned->segments && !keep.empty()) {
        text += fmt::format(", keeping {} and always the last hour", keep);
    } else if (min_free.empty()) {
        text += ", with no size limit (--keep sets one for a folder)";
    }
    if (!min_free.empty()) {
        text += ", leaving " + min_free + " free";
    }
    const std::uint64_t free = store::system_disk().free_bytes(existing_folder(path.string()));
    return free == UINT64_MAX ? text
                              : fmt::format("{}, {} free now", text, record::size_text(free));
}

std::string RecordingFlags::segment_folder(const NamedRecording& recording) const {
    const auto found = disk_options(recording);
    return found && found->segments ? found->segments->folder : std::string{};
}

std::unique_ptr<store::OutputFile>
RecordingFlags::open_live_recording(const NamedRecording& recording,
                                    store::Recording::StartMode begin) const {
    if (recording.path.empty()) {
        return nullptr;
    }
    const auto found = disk_options(recording);
    return found ? open_recording_files(recording.kind, *found, begin)
                 : open_stream(recording.kind, recording.path);
}

void FlightRecorderFlags::add_to(Command& command) {
    command
        .add("--flight", &values, "TIME,SIZE DIR",
             "Keep the latest datagrams in memory, for example 60s,64MiB, and write them to "
             "this folder as a capture on SIGUSR2, from the live page, or on a --flight-on "
             "finding; it contains passwords, so it requires --show-secrets")
        .max_values = 2;
    command.add_list(
        "--flight-on", triggers, "ID,...",
        "Findings that trigger --flight: ids, or a minimum severity (info, warning, error)");
    command.add_switch("--flight-all", writes_all_sessions,
                       "On a finding, write all sessions instead of only the one it is about");
}

std::filesystem::path FlightRecorderFlags::folder() const {
    return require_writable_folder("--flight", split_flight_values(values).second);
}

std::optional<capture::FlightRecorderOptions>
FlightRecorderFlags::options(bool show_secrets, std::size_t memory_mib) const {
    if (!is_enabled()) {
        if (!triggers.empty() || writes_all_sessions) {
            throw UsageError{"--flight-on and --flight-all need --flight, for example --flight "
                             "60s,64MiB DIR"};
        }
        return std::nullopt;
    }
    if (!show_secrets) {
        throw UsageError{"--flight: a capture contains every byte, passwords and whispers "
                         "included, and cannot be redacted; add --show-secrets to allow it"};
    }
    const auto kept = parse_time_and_size("--flight", split_flight_values(values).first);
    if (kept.time.count() != 0 && kept.time < kMinFlightTime) {
        throw usage_error("--flight {}: keep at least 5 s, the shortest time between files",
                          split_flight_values(values).first);
    }
    const std::uint64_t bytes = kept.bytes == 0 ? kDefaultFlightBytes : kept.bytes;
    if (bytes < kMinFlightBytes || bytes > (std::uint64_t{memory_mib} << 20U) / 2) {
        throw usage_error("--flight {}: keep at least 1 MiB, and at most half of --memory ({} MiB)",
                          values.front(), memory_mib);
    }
    return capture::FlightRecorderOptions{
        .folder = folder(),
        .time = std::chrono::nanoseconds{kept.time.count() == 0 ? kDefaultFlightTime : kept.time}
                    .count(),
        .bytes = bytes,
        .triggers = parse_findings_to_fail_on("--flight-on", triggers).selected_findings(),
        .includes_all_sessions = writes_all_sessions};
}

} // namespace tw::cli
