#pragma once

#include "proxy/record/records.h"
#include "proxy/sink/finding_lines.h"

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace tw::sink {

/// Whether text for users has colours. `automatic`: it has on a terminal, unless NO_COLOR is set or TERM
/// is dumb.
enum class Colors : std::uint8_t { automatic, always, never };

/// A text stream to a terminal, pipe or file. A write never waits longer than its time limit. Text that
/// the reader does not take within that time is dropped and counted.
class PromptStream {
  public:
    /// The stream does not close `descriptor`. Errors: throws std::system_error.
    explicit PromptStream(int descriptor);
    ~PromptStream();
    PromptStream(const PromptStream&) = delete;
    PromptStream& operator=(const PromptStream&) = delete;

    [[nodiscard]] std::FILE* file() const { return file_; }

    [[nodiscard]] bool is_terminal() const { return terminal_; }

    /// True if the output is a terminal that moves its cursor, so that a line can be replaced.
    [[nodiscard]] bool redraws() const { return redraws_; }

    [[nodiscard]] Colors colors() const { return colors_; }

    void set_colors(Colors colors) { colors_ = colors; }

    [[nodiscard]] bool is_colored() const;

    [[nodiscard]] int descriptor() const { return descriptor_; }

    /// Sets how long a write may wait for the reader. The default is not to wait.
    void set_patience(std::chrono::milliseconds patience) { patience_ms_ = patience.count(); }

    [[nodiscard]] std::uint64_t dropped_bytes() const { return dropped_bytes_; }

    /// Writes text that was printed to file().
    void write(const char* text, std::size_t size);

  private:
    int descriptor_;
    bool terminal_;
    bool redraws_;
    Colors colors_ = Colors::automatic;
    std::FILE* file_ = nullptr;
    std::atomic<std::int64_t> patience_ms_{0};
    std::atomic<std::uint64_t> dropped_bytes_{0};
};

/// Erases the terminal line with the cursor, so that a status line can be written again.
inline constexpr std::string_view kEraseLine = "\r\033[K";

/// Returns the beginning of a line that fits into this many columns of a terminal. Colours take no
/// columns. A character from U+1100 on is counted as two columns, as most of them are.
[[nodiscard]] std::string cut_to_columns(std::string_view line, std::size_t columns);

/// Returns the width of a terminal: COLUMNS, or what the terminal says, or 80.
[[nodiscard]] std::size_t columns_of(int terminal);

/// The text of a live run for users: a status line, and every warning or error. All workers share one
/// Console; each worker has its own ConsoleSink.
class Console {
  public:
    explicit Console(bool colours) : colours_{colours} {}

    struct Tee {
        std::string name;
        std::string place; ///< position and tile, such as "(50,32) air"
        std::string state; ///< the session's state; it is shown until a snapshot gives `place`
    };

    void set_tee(std::uint32_t session, Tee tee);
    void forget(std::uint32_t session);

    /// Adds a finding, or the explanation of an earlier one.
    void add_finding(const record::FindingRecord& finding);
    /// Adds a line about the whole run. The line is shown with the next ones, and is not counted as a
    /// finding.
    void add_notice(std::string line, record::Severity severity);
    void count(std::uint64_t snapshots, std::uint64_t verified);

    /// Returns the notices and findings that are to be printed since the last call. With `all`, also
    /// repeated findings whose number is still growing.
    [[nodiscard]] std::vector<std::string> lines(record::Timestamp now, bool all = false);

    /// Returns the status line. `seconds`: the time since the last call. `recording`: what is recorded,
    /// and where; empty if nothing is.
    [[nodiscard]] std::string status(record::Timestamp now, double seconds,
                                     const std::string& recording);

    /// Returns the table of all findings; see FindingLines::table().
    [[nodiscard]] std::vector<std::string>
    finding_table(const FindingLines::ExplainCommand& explain);

  private:
    static constexpr std::size_t kMaxTees = 8;

    [[nodiscard]] std::string colour(std::string_view code, std::string text) const;

    bool colours_;
    std::mutex mutex_;
    std::map<std::uint32_t, Tee> tees_;
    std::vector<std::string> notices_; ///< few, because callers report each subject once
    FindingLines findings_;
    std::atomic<std::uint64_t> snapshots_{0};
    std::atomic<std::uint64_t> unverified_{0};
};

/// Passes one worker's records to the console; a session's snapshots at most once a second.
class ConsoleSink final : public record::RecordSink {
  public:
    explicit ConsoleSink(Console& console) : console_{&console} {}

    void on_record(const record::Record& record) override;

  private:
    void see(const record::SessionRecord& record);
    void see(const record::SnapshotRecord& record);
    void see(const record::FindingRecord& record);

    Console* console_;
    std::unordered_map<std::uint32_t, record::Timestamp> shown_;
};

} // namespace tw::sink
