#pragma once

#include "proxy/capture/capture_sessions.h"
#include "proxy/sink/byte_source.h"
#include "proxy/sink/retention.h"
#include "snapshot/objects.h"

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace CLI {
class Validator;
} // namespace CLI

namespace tw::cli {

/// Sessions are counted from 1.
[[nodiscard]] CLI::Validator session_number();
/// The same, or 0 for the worlds of all sessions.
[[nodiscard]] CLI::Validator session_or_worlds();

/// A time in UTC as records have it, or its beginning up to a whole number, to be compared with theirs as
/// text; without the Z. Errors: UsageError that names the flag.
[[nodiscard]] std::string time_of(std::string_view flag, const std::string& given);

/// Says on standard error what of a file could not be read, and how much could. Returns false for one that is
/// damaged: one that is cut short, as by a crash, is as whole as it can be.
[[nodiscard]] bool all_was_read(const std::string& path, const sink::LineReader& reader);

/// Says on standard error that the last of the lines has no end, and how many have.
void report_cut_line(const std::string& path, std::uint64_t lines);

/// Says on standard error how many lines of a file were left out because they are no records. Returns
/// whether there were none.
bool report_no_records(const std::string& path, std::uint64_t lines);

/// The files that recordings are read from: as they are named, and of a folder its segments in the
/// order in which they were begun.
class RecordsFiles {
  public:
    /// `from`: of a folder, segments that ended before this time are left out; empty: none are.
    /// Errors: UsageError for what is not there.
    explicit RecordsFiles(const std::vector<std::string>& paths, std::string_view from = {});

    [[nodiscard]] const std::vector<std::string>& files() const { return files_; }

    struct Use {
        std::function<void(const std::string& path)> begin;
        std::function<void(std::string_view line)> line;
        std::function<void(const sink::LineReader& reader)> end;
        std::function<void()> pause; ///< when there is nothing more for now
        /// Asked before each line: whether nobody wants the rest. The file at hand has no end then.
        std::function<bool()> enough = [] { return false; };
    };

    /// Reads all of them to their ends. Errors: UsageError for a file that cannot be opened.
    void read(const Use& use);
    /// Then waits for more: in the last file, in another one under its name, and in further segments of the same
    /// recording in a folder. Until `stopped`.
    void follow(const Use& use, const std::function<bool()>& stopped);

  private:
    void open(const std::string& path, const Use& use);
    void read_on(const Use& use);
    void close(const Use& use);
    [[nodiscard]] std::string next_file(const std::vector<sink::Segment>& segments) const;
    [[nodiscard]] bool replaced() const;
    void report_unfollowed(const std::vector<sink::Segment>& segments);

    std::vector<std::string> files_;
    std::string folder_;          ///< the last path, where it is one
    std::set<std::string> names_; ///< of the recordings in it
    std::string current_;
    std::unique_ptr<sink::LineReader> reader_;
};

/// Reads all lines of a recording, or of a folder with its segments, and says on standard error what of
/// it could not be read. Returns whether that was nothing. Errors: UsageError, as RecordsFiles.
[[nodiscard]] bool read_records(const std::string& path,
                                const std::function<void(std::string_view line)>& use);

/// A capture, demo or recording, or a folder with the segments of one.
struct RecordsOrigin {
    std::string path;
    capture::ServerGuess servers; ///< of a capture: whose traffic counts
    const snapshot::ObjectSet* objects = nullptr;
    std::size_t memory_bytes = 0; ///< of a capture: that histories may take
};

/// What tells a capture from a recording.
[[nodiscard]] sink::FileBegin look_at_begin(const std::string& path);

/// Whether it is read as records: all that does not begin as captures and demos do, so that a recording that
/// is empty or begins with a torn line is still one. Of a folder, whether it has segments of records.
[[nodiscard]] bool holds_records(const std::string& path, const sink::FileBegin& begin);

/// Reads all lines; those of a capture as `decode --raw` writes them. Returns whether it could be read
/// to its end. `quiet`: what is odd about it is not reported.
/// Errors: UsageError, CaptureError for what is neither.
[[nodiscard]] bool read_lines(const RecordsOrigin& origin, bool quiet,
                              const std::function<void(std::string_view line)>& use);

/// The lines of a file one by one. It is read on another thread, a little ahead.
class RecordFeed {
  public:
    explicit RecordFeed(RecordsOrigin origin);
    ~RecordFeed();
    RecordFeed(const RecordFeed&) = delete;
    RecordFeed& operator=(const RecordFeed&) = delete;
    RecordFeed(RecordFeed&&) = delete;
    RecordFeed& operator=(RecordFeed&&) = delete;

    /// The next line; it lives until the next call. Errors: as read_lines.
    [[nodiscard]] std::optional<std::string_view> next();

    /// At the end: whether it could be read that far.
    [[nodiscard]] bool whole() const { return whole_; }

  private:
    static constexpr std::size_t kBlockBytes = std::size_t{256} << 10U;
    static constexpr std::size_t kBlocks = 8; ///< read ahead

    void run();
    void hand_over();
    /// False: there are no more.
    [[nodiscard]] bool fetch();

    RecordsOrigin origin_;
    std::string gathered_; ///< of the reading thread
    std::string block_;    ///< of the other
    std::size_t at_ = 0;   ///< in block_

    std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<std::string> blocks_;
    std::exception_ptr failure_;
    bool done_ = false;
    bool unwanted_ = false;
    bool whole_ = true;
    std::thread thread_;
};

} // namespace tw::cli
