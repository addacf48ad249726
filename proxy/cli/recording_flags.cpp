#include "proxy/cli/recording_flags.h"

#include "proxy/cli/output_file.h"
#include "proxy/cli/settings.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <tuple>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

namespace tw::cli {

namespace {

/// What a day of a busy server makes easy to handle: a segment fits into memory, and tells an hour.
constexpr sink::RotateLimits kUsualRotation{.age = std::chrono::hours{1},
                                            .bytes = std::uint64_t{512} << 20U};

struct Unit {
    std::string_view name;
    std::uint64_t size;
    bool time;
};

constexpr std::array kSizeUnits{Unit{"s", 1, true},
                                Unit{"min", 60, true},
                                Unit{"h", 3600, true},
                                Unit{"d", 86400, true},
                                Unit{"KiB", std::uint64_t{1} << 10U, false},
                                Unit{"MiB", std::uint64_t{1} << 20U, false},
                                Unit{"GiB", std::uint64_t{1} << 30U, false},
                                Unit{"TiB", std::uint64_t{1} << 40U, false}};
/// More of a unit is a slip, and would not fit into 64 bits.
constexpr std::uint64_t kMost = 1'000'000;
/// Three times as long does not fit into nanoseconds of 64 bits; and it is a slip, too.
constexpr std::chrono::seconds kLongest = std::chrono::hours{24} * 36525;

UsageError complaint(const std::string& flag, const std::string& text) {
    return UsageError{fmt::format("{} {}: expected a time (s, min, h, d), a size (KiB, MiB, GiB, "
                                  "TiB), or both, for example 1h,512MiB",
                                  flag, text)};
}

std::string without_suffix(const std::string& name, std::string_view suffix) {
    return name.ends_with(suffix) ? name.substr(0, name.size() - suffix.size()) : name;
}

bool is_folder(const std::string& path) {
    std::error_code ignored;
    return path.ends_with('/') || std::filesystem::is_directory(path, ignored);
}

sink::SegmentNames names_in_folder(const RecordingKind& kind, const std::string& path) {
    std::string folder = path;
    while (folder.size() > 1 && folder.back() == '/') {
        folder.pop_back();
    }
    return {.folder = folder,
            .name = std::string{kind.folder_name},
            .suffix = std::string{kind.folder_suffix}};
}

sink::SegmentNames names_beside(const RecordingKind& kind, const std::string& given) {
    const std::filesystem::path path{given};
    const std::string folder = path.parent_path().string();
    const std::string file = path.filename().string();
    const std::string name = without_suffix(without_suffix(file, kCompressed), kind.suffix);
    return {.folder = folder.empty() ? "." : folder,
            .name = name,
            .suffix = name == file ? std::string{kind.suffix} : file.substr(name.size())};
}

/// Something that is there, and no file on a disk: a pipe, a device; or standard output.
bool is_stream(const std::string& path) {
    const auto facts = sink::system_disk().facts(path);
    return path == "-" || (facts && !facts->regular);
}

/// Which cannot be cut, nor read again.
std::unique_ptr<sink::RecordTarget> open_stream(const RecordingKind& kind,
                                                const std::string& path) {
    std::error_code ignored;
    if (kind.units == &sink::capture_units() && !std::filesystem::is_fifo(path, ignored)) {
        throw UsageError{
            fmt::format("{} {}: name a file, or a pipe with a reader", kind.flag, path)};
    }
    return open_plain_output(kind.flag, path, *kind.units);
}

std::unique_ptr<sink::RecordTarget> open_files(const RecordingKind& kind,
                                               const sink::RecordingOptions& options,
                                               sink::Recording::Begin begin) {
    try {
        if (options.segments) {
            std::filesystem::create_directory(options.segments->folder);
        }
        return std::make_unique<sink::Recording>(options, begin);
    } catch (const std::system_error& error) {
        throw cannot_open(kind.flag, options.path, error);
    } catch (const std::runtime_error& error) {
        throw UsageError{fmt::format("{} {}", kind.flag, error.what())};
    }
}

} // namespace

TimeAndSize parse_time_and_size(const std::string& flag, const std::string& text) {
    TimeAndSize parsed;
    for (std::string_view rest{text}; !rest.empty();) {
        const std::string_view part = rest.substr(0, rest.find(','));
        rest.remove_prefix(std::min(rest.size(), part.size() + 1));
        std::uint64_t count = 0;
        const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), count);
        const std::string_view name = part.substr(static_cast<std::size_t>(end - part.data()));
        const auto* const unit = std::find_if(kSizeUnits.begin(), kSizeUnits.end(),
                                              [&](const Unit& each) { return each.name == name; });
        if (error != std::errc{} || unit == kSizeUnits.end() || count == 0 || count > kMost ||
            (unit->time ? parsed.time.count() != 0 : parsed.bytes != 0)) {
            throw complaint(flag, text);
        }
        if (unit->time) {
            parsed.time = std::chrono::seconds{count * unit->size};
            if (parsed.time > kLongest) {
                throw UsageError{
                    fmt::format("{} {}: expected a time of at most 100 years", flag, text)};
            }
        } else {
            parsed.bytes = count * unit->size;
        }
    }
    return parsed;
}

void RecordingFlags::add_to(CLI::App& command) {
    command
        .add_option(
            "--rotate", rotate,
            "Record in segments, FILE-20261121T161530Z-0001.jsonl.zst, starting a new one after "
            "this time or size (1h,512MiB if --output names a folder); also applies to --write")
        ->type_name("TIME,SIZE");
    command
        .add_option("--keep", keep,
                    "Delete segments older than this time, and the oldest ones beyond this total "
                    "size, but none from the last hour")
        ->type_name("TIME,SIZE");
    command
        .add_option(
            "--min-free", min_free,
            "Leave this much of the disk free: delete the oldest segments if --keep is given, "
            "then stop recording until there is room")
        ->type_name("SIZE");
    command
        .add_option("--message-limit", message_limit,
                    "Record at most this much per second of the messages of one session; what "
                    "exceeds it is counted and reported; 'none' records all")
        ->type_name("SIZE")
        ->capture_default_str();
    command
        .add_option("--sync", sync,
                    "Sync records to disk when the system chooses, at the end of each segment, or "
                    "every second")
        ->check(CLI::IsMember({"none", "segment", "1s"}))
        ->capture_default_str();
}

const RecordingKind& recorded_lines() {
    static const RecordingKind lines{.flag = "--output",
                                     .suffix = ".jsonl",
                                     .folder_name = "records",
                                     .folder_suffix = ".jsonl.zst",
                                     .units = &sink::record_lines(),
                                     .readers = sink::Readers::all};
    return lines;
}

const RecordingKind& recorded_capture() {
    static const RecordingKind capture{.flag = "--write",
                                       .suffix = ".pcapng",
                                       .folder_name = "capture",
                                       .folder_suffix = ".pcapng",
                                       .units = &sink::capture_units(),
                                       .readers = sink::Readers::owner};
    return capture;
}

std::unique_ptr<sink::RecordTarget> open_recording(const RecordingKind& kind,
                                                   const std::string& path) {
    if (is_stream(path)) {
        return open_stream(kind, path);
    }
    return open_files(kind,
                      {.path = path,
                       .compressed = is_compressed(kind.flag, path),
                       .units = kind.units,
                       .readers = kind.readers,
                       .frame_text = kOfflineFrameText},
                      sink::Recording::Begin::empty);
}

void RecordingFlags::check(const std::string& output, const std::string& capture) const {
    std::ignore = message_bytes();
    const auto lines = options(recorded_lines(), output);
    const auto packets = options(recorded_capture(), capture);
    if (!keep.empty() && !(lines && lines->segments) && !(packets && packets->segments)) {
        throw UsageError{
            "--keep deletes segments; name a folder with --output or --write, or add --rotate"};
    }
    if (!min_free.empty() && !lines && !packets) {
        throw UsageError{"--min-free needs --output or --write with a file or folder"};
    }
    if (!rotate.empty() && !lines && !packets) {
        throw UsageError{"--rotate needs --output or --write with a file or folder"};
    }
}

std::uint64_t RecordingFlags::message_bytes() const {
    if (message_limit == "none") {
        return 0;
    }
    const TimeAndSize limit = parse_time_and_size("--message-limit", message_limit);
    if (limit.time.count() != 0 || limit.bytes == 0) {
        throw UsageError{fmt::format("--message-limit {}: expected a size, for example 1MiB, or "
                                     "'none'",
                                     message_limit)};
    }
    return limit.bytes;
}

std::optional<sink::RecordingOptions> RecordingFlags::options(const RecordingKind& kind,
                                                              const std::string& path) const {
    const bool folder = is_folder(path);
    const TimeAndSize rotation = parse_time_and_size("--rotate", rotate);
    const TimeAndSize kept = parse_time_and_size("--keep", keep);
    const TimeAndSize room = parse_time_and_size("--min-free", min_free);
    if (room.time.count() != 0) {
        throw UsageError{
            fmt::format("--min-free {}: expected a size, for example 10GiB", min_free)};
    }
    if (path.empty() || (is_stream(path) && !folder)) {
        return std::nullopt;
    }
    sink::RecordingOptions options{
        .path = path,
        .compressed =
            is_compressed(kind.flag, folder ? kind.folder_suffix : std::string_view{path}),
        .units = kind.units,
        .readers = kind.readers,
        .rotate = {.age = rotation.time, .bytes = rotation.bytes},
        .keep = {.age = kept.time, .bytes = kept.bytes},
        .least_free = room.bytes,
        .sync = sync == "1s"        ? sink::SyncPolicy::every_second
                : sync == "segment" ? sink::SyncPolicy::segment
                                    : sink::SyncPolicy::none};
    if (folder || !rotate.empty()) {
        options.segments = folder ? names_in_folder(kind, path) : names_beside(kind, path);
    }
    if (folder && rotate.empty()) {
        options.rotate = kUsualRotation;
    }
    return options;
}

std::string RecordingFlags::folder(const RecordingKind& kind, const std::string& path) const {
    const auto recording = options(kind, path);
    return recording && recording->segments ? recording->segments->folder : std::string{};
}

std::unique_ptr<sink::RecordTarget> RecordingFlags::open(const RecordingKind& kind,
                                                         const std::string& path,
                                                         sink::Recording::Begin begin) const {
    if (path.empty()) {
        return nullptr;
    }
    const auto recording = options(kind, path);
    return recording ? open_files(kind, *recording, begin) : open_stream(kind, path);
}

relay::UniqueFd RecordingFlags::open_again(const RecordingKind& kind,
                                           const std::string& path) const {
    const auto recording = options(kind, path);
    if (!recording) {
        return relay::UniqueFd{path.empty() || path == "-" ? -1
                                                           : sink::FileOutput::open_again(path)};
    }
    return relay::UniqueFd{recording->segments ? -1
                                               : sink::system_disk().open(
                                                     path, sink::Disk::How::append, kind.readers)};
}

} // namespace tw::cli
