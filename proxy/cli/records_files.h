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
inline constexpr std::int64_t kLastSession = std::numeric_limits<std::uint32_t>::max();

/// Prints on standard error which part of a file could not be read, and how many lines were read.
/// Returns false if the file is damaged. A file that a crash truncated does not count as damaged.
[[nodiscard]] bool report_unread_data(const std::string& path, const store::LineReader& reader);

/// Prints on standard error how many lines of a file were skipped because they are not records.
/// Returns true if no line was skipped.
bool report_invalid_lines(const std::string& path, std::uint64_t lines);

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
    void require_recordings() const;

    struct ReadCallbacks {
        std::function<void(const std::string& path)> begin;
        std::function<void(std::string_view line)> line;
        std::function<void(const store::LineReader& reader)> end;
        std::function<void()> pause = [] {}; ///< called if there is no more data at the moment
        /// Called before each line. If it returns true, reading stops, and `end` is not called for
        /// the current file.
        std::function<bool()> enough = [] { return false; };
    };

    /// Reads all files to their ends.
    /// Errors: UsageError for a file that cannot be opened.
    void read(const ReadCallbacks& use);
    /// Continues after read() until `stopped` returns true: reads data that is added to the last
    /// file, a new file of the same name, and further segments of the recording in its folder.
    void follow(const ReadCallbacks& use, const std::function<bool()>& stopped);

  private:
    void open(const std::string& path, const ReadCallbacks& use);
    void read_lines_so_far(const ReadCallbacks& use);
    void close(const ReadCallbacks& use);
    [[nodiscard]] std::string next_file(const std::vector<store::Segment>& segments) const;
    [[nodiscard]] bool is_file_replaced() const;
    void report_unfollowed(const std::vector<store::Segment>& segments);

    std::vector<std::string> files_;
    std::string folder_;          ///< the last path, if it is a folder
    std::set<std::string> names_; ///< names of the recordings in that folder
    std::string current_;
    std::unique_ptr<store::LineReader> reader_;
    sink::LineJoiner joiner_;
};

/// Cuts the blocks of an output into lines.
class LineSplitter final : public sink::Output {
  public:
    explicit LineSplitter(std::function<void(std::string_view line)> use) : use_{std::move(use)} {}

    void write(std::string_view block) override;

  private:
    std::function<void(std::string_view line)> use_;
};

/// Reads all lines of a recording, or of a folder with segments, and prints on standard error which
/// part could not be read. Returns true if everything could be read.
/// Errors: UsageError, as RecordsFiles, and for a file with lines of which none is a record.
[[nodiscard]] bool read_records(const std::string& path,
                                const std::function<void(std::string_view line)>& use);

/// The source of record lines: a capture, demo or recording, or a folder with segments.
struct RecordsOrigin {
    std::string path;
    capture::ServerDetector servers; ///< for a capture: the servers whose traffic is read
    const snapshot::ObjectSet* objects = nullptr;
    std::size_t memory_bytes = 0; ///< for a capture: the memory limit of inspection
};

/// Reads a file's first bytes, which distinguish captures from recordings.
[[nodiscard]] store::FileStartReader read_file_begin(const std::string& path);

/// True if the path is read as records: a folder with segments of records, or a file that starts
/// neither like a capture nor like a demo. So an empty or damaged recording counts, too.
[[nodiscard]] bool holds_records(const std::string& path, const store::FileStartReader& begin);

/// Reads all record lines. A capture gives the lines that `decode --items raw` writes, without most
/// messages. Returns true if the source could be read to its end. `quiet`: does not report
/// oddities. Errors: UsageError; CaptureError for a file of an unknown type.
[[nodiscard]] bool read_lines(const RecordsOrigin& origin, bool quiet,
                              const std::function<void(std::string_view line)>& use);

} // namespace tw::cli
