#pragma once

#include "proxy/capture/capture_sessions.h"
#include "proxy/sink/file_begin.h"
#include "snapshot/object_set.h"

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

namespace tw::cli {

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
