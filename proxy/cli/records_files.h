#pragma once

#include "proxy/capture/capture_sessions.h"
#include "proxy/sink/output.h"
#include "proxy/sink/split_lines.h"
#include "proxy/store/byte_source.h"
#include "proxy/store/retention.h"
#include "snapshot/objects.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tw::cli {

/// The largest session number. Session numbers start at 1.
inline constexpr std::int64_t kMaxSessionNumber = std::numeric_limits<std::uint32_t>::max();

/// Prints on standard error how many lines of a file were skipped because they are not records.
/// Returns true if no line was skipped.
bool report_invalid_lines(const std::string& path, std::uint64_t count);

/// What was read from a file, and what could not be read.
struct FileReadResult {
    const std::string& path;
    const store::LineReader& reader;
    std::uint64_t invalid_lines = 0; ///< lines that are not records

    /// Returns true if the file contains no text. Returns false for a pipe, which may be empty.
    [[nodiscard]] bool is_empty() const;

    /// Prints on standard error which part of the file could not be read, how many lines were read,
    /// and how many of them are not records. Returns false if the file is damaged or contains lines
    /// that are not records. A file that a crash truncated does not count as damaged.
    [[nodiscard]] bool report_problems() const;
};

/// Reads the files of recordings, in the order given. A folder stands for its segments, in the
/// order of their start. Records that --max-line split are joined.
class RecordsFiles {
  public:
    /// `from`: skips segments of a folder that ended before this time; empty to skip none.
    /// Errors: UsageError for a path that does not exist.
    explicit RecordsFiles(const std::vector<std::string>& paths, std::string_view from = {});

    [[nodiscard]] const std::vector<std::string>& files() const { return files_; }

    /// Checks that all files are recordings: a record is among their first lines, or they are still
    /// empty. Errors: UsageError that says what the file is instead.
    void check_are_recordings() const;

    struct ReadCallbacks {
        std::function<void(const std::string& path)> on_file_begin = [](const auto&) {};
        /// Returns whether the line is a record.
        std::function<bool(std::string_view line)> on_line;
        std::function<void(const FileReadResult& file)> on_file_end = [](const auto&) {};
        std::function<void()> on_pause = [] {}; ///< called if there is no more data at the moment
        /// Called before each line. If it returns true, reading stops, and on_file_end is not
        /// called for the current file.
        std::function<bool()> should_stop = [] { return false; };
    };

    /// Reads all files to their ends.
    /// Errors: UsageError for a file that cannot be opened.
    void read_files(const ReadCallbacks& callbacks);
    /// Reads all files. Then reads what is added until `stopped` returns true: data in the last
    /// file, a new file of the same name, and further segments of the recording in its folder.
    void follow_files(const ReadCallbacks& callbacks, const std::function<bool()>& stopped);

  private:
    void open_file(const std::string& path, const ReadCallbacks& callbacks);
    void read_available_lines(const ReadCallbacks& callbacks);
    void close_file(const ReadCallbacks& callbacks);
    [[nodiscard]] std::string next_file(const std::vector<store::Segment>& segments) const;
    [[nodiscard]] bool is_file_replaced() const;
    void report_unfollowed_recordings(const std::vector<store::Segment>& segments);

    std::vector<std::string> files_;
    std::string folder_;                    ///< the last path, if it is a folder
    std::set<std::string> recording_names_; ///< names of the recordings in folder_
    std::string current_file_;
    std::uint64_t invalid_lines_ = 0; ///< lines of the current file that are not records
    std::unique_ptr<store::LineReader> reader_;
    sink::LineJoiner joiner_;
};

/// An output that passes each line to a function.
class LineCallbackOutput final : public sink::Output {
  public:
    explicit LineCallbackOutput(std::function<void(std::string_view line)> on_line)
        : on_line_{std::move(on_line)} {}

    void write(std::string_view block) override;

  private:
    std::function<void(std::string_view line)> on_line_;
};

/// Reads all lines of a recording, or of a folder with segments, and prints on standard error which
/// part could not be read. Returns true if everything could be read.
/// Errors: UsageError as for RecordsFiles, for an empty file, and for a file without records.
[[nodiscard]] bool read_records(const std::string& path,
                                const std::function<void(std::string_view line)>& on_record);

/// The source of record lines: a capture, demo or recording, or a folder with segments.
struct RecordSource {
    std::string path;
    capture::ServerDetector servers; ///< for a capture: the servers whose traffic is read
    const snapshot::ObjectSet* objects = nullptr;
    std::size_t memory_bytes = 0; ///< for a capture: the memory limit of inspection
};

/// Reads a file's first bytes, which distinguish captures from recordings.
[[nodiscard]] store::FileStartReader read_file_start(const std::string& path);

/// True for a folder with segments of records, and for a file that starts neither like a capture
/// nor like a demo, such as an empty or damaged recording.
[[nodiscard]] bool may_be_recording(const std::string& path, const store::FileStartReader& start);

/// Reads all record lines. For a capture, these are the lines of `decode --items raw` without most
/// messages. Returns true if the source could be read to its end. `quiet`: do not print what could
/// not be read. Errors: UsageError; CaptureError for a file of an unknown type.
[[nodiscard]] bool read_record_lines(const RecordSource& source, bool quiet,
                                     const std::function<void(std::string_view line)>& on_line);

} // namespace tw::cli
