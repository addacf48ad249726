#include "proxy/cli/output_file.h"

#include "proxy/sink/complaint.h"
#include "proxy/sink/recording.h"

#include <cerrno>
#include <chrono>

#include <fmt/format.h>
#include <spdlog/spdlog.h>

namespace tw::cli {

bool is_compressed(const std::string& flag, std::string_view path) {
    for (const std::string_view other : {".gz", ".bz2", ".xz", ".lz4", ".zip"}) {
        if (path.ends_with(other)) {
            path.remove_suffix(other.size());
            throw UsageError{fmt::format("{} {}{}: twscope compresses with zstd only; name it {}{}",
                                         flag, path, other, path, kCompressed)};
        }
    }
    return path.ends_with(kCompressed);
}

UsageError cannot_open(const std::string& flag, const std::string& path,
                       const std::system_error& error) {
    if (error.code() == std::errc::timed_out) {
        return UsageError{fmt::format("{} {}: the pipe has no reader; start it first", flag, path)};
    }
    return UsageError{fmt::format("{} {}: {}; name a file in an existing, writable folder", flag,
                                  path, error.code().message())};
}

void open_output_file(const std::string& flag, const std::string& path,
                      std::optional<sink::FileOutput>& file) {
    if (path.empty()) {
        return;
    }
    try {
        file.emplace(path);
    } catch (const std::system_error& error) {
        throw cannot_open(flag, path, error);
    }
}

std::unique_ptr<sink::RecordTarget>
open_plain_output(const std::string& flag, const std::string& path, const sink::Units& units) {
    try {
        return std::make_unique<sink::FileOutput>(path, units, std::chrono::milliseconds{0});
    } catch (const std::system_error& error) {
        if (error.code() != std::errc::timed_out) {
            throw cannot_open(flag, path, error);
        }
    }
    try {
        spdlog::warn("{} {}: the pipe has no reader yet; waiting up to {} seconds", flag, path,
                     sink::FileOutput::kReaderTime.count());
        return std::make_unique<sink::FileOutput>(path, units);
    } catch (const std::system_error& error) {
        throw cannot_open(flag, path, error);
    }
}

std::unique_ptr<sink::RecordTarget> open_records_output(const std::string& flag,
                                                        const std::string& path) {
    if (!is_compressed(flag, path)) {
        return open_plain_output(flag, path);
    }
    try {
        return std::make_unique<sink::Recording>(
            sink::RecordingOptions{
                .path = path, .compressed = true, .frame_text = kOfflineFrameText},
            sink::Recording::Begin::empty);
    } catch (const std::system_error& error) {
        throw cannot_open(flag, path, error);
    }
}

bool finish_records(const std::string& flag, sink::RecordTarget& file, std::string_view what) {
    file.finish();
    if (!file.failed()) {
        return true;
    }
    const std::string why = std::generic_category().message(file.error());
    if (file.error() == EPIPE) { // nobody asks for more, and how much more there was is not known
        sink::complain("{} {}: {}; the rest is missing", flag, file.path(), why);
    } else {
        sink::complain("{} {}: {}; {} {} are missing", flag, file.path(), why, file.lost(), what);
    }
    return false;
}

} // namespace tw::cli
