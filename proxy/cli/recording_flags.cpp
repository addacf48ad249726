#include "proxy/cli/recording_flags.h"

#include "proxy/cli/output_file.h"
#include "proxy/cli/settings.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <string_view>
#include <system_error>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

namespace tw::cli {

namespace {

/// What a day of a busy server makes easy to handle: a segment fits into memory, and tells an hour.
constexpr sink::RotateLimits kUsualRotation{.age = std::chrono::hours{1},
                                            .bytes = std::uint64_t{512} << 20U};
constexpr std::string_view kLines = ".jsonl";

struct Unit {
    std::string_view name;
    std::uint64_t size;
    bool time;
};

constexpr std::array kUnits{Unit{"s", 1, true},
                            Unit{"min", 60, true},
                            Unit{"h", 3600, true},
                            Unit{"d", 86400, true},
                            Unit{"KiB", std::uint64_t{1} << 10U, false},
                            Unit{"MiB", std::uint64_t{1} << 20U, false},
                            Unit{"GiB", std::uint64_t{1} << 30U, false},
                            Unit{"TiB", std::uint64_t{1} << 40U, false}};
/// More of a unit is a slip, and would not fit into 64 bits.
constexpr std::uint64_t kMost = 1'000'000;

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

/// What stands in a folder that --output names.
sink::SegmentNames names_in_folder(const std::string& output) {
    std::string folder = output;
    while (folder.size() > 1 && folder.back() == '/') {
        folder.pop_back();
    }
    return {.folder = folder, .name = "records", .suffix = ".jsonl.zst"};
}

sink::SegmentNames names_beside(const std::string& output) {
    const std::filesystem::path path{output};
    const std::string folder = path.parent_path().string();
    const std::string file = path.filename().string();
    const std::string name = without_suffix(without_suffix(file, kCompressed), kLines);
    return {.folder = folder.empty() ? "." : folder,
            .name = name,
            .suffix = name == file ? std::string{kLines} : file.substr(name.size())};
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
        const auto* const unit = std::find_if(kUnits.begin(), kUnits.end(),
                                              [&](const Unit& each) { return each.name == name; });
        if (error != std::errc{} || unit == kUnits.end() || count == 0 || count > kMost ||
            (unit->time ? parsed.time.count() != 0 : parsed.bytes != 0)) {
            throw complaint(flag, text);
        }
        if (unit->time) {
            parsed.time = std::chrono::seconds{count * unit->size};
        } else {
            parsed.bytes = count * unit->size;
        }
    }
    return parsed;
}

void RecordingFlags::add_to(CLI::App& command) {
    command
        .add_option("--rotate", rotate,
                    "Record in segments, FILE-20261121T161530Z-0001.jsonl.zst, and begin the next "
                    "one after this time or size; 1h,512MiB where --output names a folder")
        ->type_name("TIME,SIZE");
    command
        .add_option("--keep", keep,
                    "Delete the oldest segments: those older than this time, and what is beyond "
                    "this size in all; never one of the last hour")
        ->type_name("TIME,SIZE");
    command
        .add_option("--sync", sync,
                    "When records have to be on the disk itself: whenever the system likes, when "
                    "a file is left for the next one, or every second")
        ->check(CLI::IsMember({"none", "segment", "1s"}))
        ->capture_default_str();
}

std::optional<sink::RecordingOptions> RecordingFlags::options(const std::string& output) const {
    const bool folder = is_folder(output);
    const TimeAndSize rotation = parse_time_and_size("--rotate", rotate);
    const TimeAndSize kept = parse_time_and_size("--keep", keep);
    if (!keep.empty() && rotate.empty() && !folder) {
        throw UsageError{"--keep deletes segments: let --output name a folder, or give --rotate"};
    }
    const auto facts = sink::system_disk().facts(output);
    if (output.empty() || output == "-" || (facts && !facts->regular && !folder)) {
        if (!rotate.empty()) {
            throw UsageError{"--rotate needs --output with the name of a file or folder"};
        }
        return std::nullopt;
    }
    sink::RecordingOptions options{.path = output,
                                   .compressed = folder || output.ends_with(kCompressed),
                                   .rotate = {.age = rotation.time, .bytes = rotation.bytes},
                                   .keep = {.age = kept.time, .bytes = kept.bytes},
                                   .sync = sync == "1s"        ? sink::SyncPolicy::every_second
                                           : sync == "segment" ? sink::SyncPolicy::segment
                                                               : sink::SyncPolicy::none};
    if (folder || !rotate.empty()) {
        options.segments = folder ? names_in_folder(output) : names_beside(output);
    }
    if (folder && rotate.empty()) {
        options.rotate = kUsualRotation;
    }
    return options;
}

std::string RecordingFlags::folder(const std::string& output) const {
    const auto recording = options(output);
    return recording && recording->segments ? recording->segments->folder : std::string{};
}

std::unique_ptr<sink::RecordTarget> RecordingFlags::open(const std::string& output,
                                                         sink::Recording::Begin begin) const {
    if (output.empty()) {
        return nullptr;
    }
    const auto recording = options(output);
    if (!recording) {
        return open_plain_output("--output", output);
    }
    try {
        if (recording->segments) {
            std::filesystem::create_directory(recording->segments->folder);
        }
        return std::make_unique<sink::Recording>(*recording, begin);
    } catch (const std::system_error& error) {
        throw cannot_open("--output", output, error);
    } catch (const std::runtime_error& error) {
        throw UsageError{fmt::format("--output {}", error.what())};
    }
}

} // namespace tw::cli
