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

/// Whether text for users has colours. `automatic`: it has colours on a terminal, unless NO_COLOR
/// is set or TERM is "dumb".
enum class Colors : std::uint8_t { automatic, always, never };

struct ConsoleStyle {
    bool is_colored = false;
    bool has_dates = false; ///< times are shown with the date
};

/// A text stream to a terminal, pipe or file. A write waits for a slow reader only as long as
/// set_write_timeout() allows. Text that is not read in time is dropped and counted.
class BoundedWaitStream {
  public:
    /// Writes to `descriptor`, and does not close it. Errors: throws std::system_error.
    explicit BoundedWaitStream(int descriptor);
    ~BoundedWaitStream();
    BoundedWaitStream(const BoundedWaitStream&) = delete;
    BoundedWaitStream& operator=(const BoundedWaitStream&) = delete;

    [[nodiscard]] std::FILE* file() const { return file_; }

    [[nodiscard]] bool is_terminal() const { return is_terminal_; }

    /// True if the output is a terminal that moves its cursor, so that a line can be replaced.
    [[nodiscard]] bool can_redraw() const { return can_redraw_; }

    [[nodiscard]] Colors colors() const { return colors_; }

    void set_colors(Colors colors) { colors_ = colors; }

    [[nodiscard]] bool is_colored() const;

    /// True for a file or pipe. False for a terminal, and for the journal, which adds the date to
    /// each line.
    [[nodiscard]] bool log_lines_need_dates() const;

    [[nodiscard]] ConsoleStyle console_style() const {
        return {.is_colored = is_colored(), .has_dates = log_lines_need_dates()};
    }

    [[nodiscard]] int descriptor() const { return descriptor_; }

    /// Sets the longest time for which a write waits for the reader. The default is 0.
    void set_write_timeout(std::chrono::milliseconds timeout) {
        write_timeout_ms_ = timeout.count();
    }

    [[nodiscard]] std::uint64_t dropped_bytes() const { return dropped_bytes_; }

    /// Writes text to the descriptor. Called by the C library for text that was printed to file().
    void write(const char* text, std::size_t size);

  private:
    int descriptor_;
    bool is_terminal_;
    bool can_redraw_;
    Colors colors_ = Colors::automatic;
    std::FILE* file_ = nullptr;
    std::atomic<std::int64_t> write_timeout_ms_{0};
    std::atomic<std::uint64_t> dropped_bytes_{0};
};

/// Erases the terminal line in which the cursor is, so that a status line can be written again.
inline constexpr std::string_view kEraseLine = "\r\033[K";

/// Returns the longest beginning of a line that fits into this many columns of a terminal. Colour
/// codes take no columns. Each character from U+1100 on counts as two columns, because most of
/// these characters take two.
[[nodiscard]] std::string cut_to_columns(std::string_view line, std::size_t columns);

/// Returns the number of columns of a terminal. This is the lesser of the system's number and the
/// environment variable COLUMNS; 80 if neither is known.
[[nodiscard]] std::size_t terminal_columns(int terminal);

/// Breaks a line between words so that it fits into this many columns; further lines are indented.
/// A command of twscope that ends the line stays whole, so that it can be copied.
[[nodiscard]] std::string wrap_words(std::string_view line, std::size_t columns);

/// Returns the columns for wrap_words(): those of a terminal; no limit for a file or pipe.
[[nodiscard]] std::size_t columns_for_wrapping(int descriptor);

/// What the status line says besides players, snapshots and findings.
struct StatusNotes {
    std::string problem{};   ///< such as "1 server silent since 12:00:03"; empty if there is none
    std::string recording{}; ///< such as "recording 3 MB to NAME"; empty without a recording
};

/// Makes the text that a live run shows to users: a status line, and lines for warnings and errors.
/// All inspecting threads share one Console; each of them has a ConsoleSink.
class Console {
  public:
    explicit Console(ConsoleStyle style) : style_{style}, findings_{style.has_dates} {}

    struct Tee {
        std::string name;
        std::string place; ///< the tee's position and tile, such as "(50,32) air"
        /// The session's state, which the status line shows while `name` is empty.
        std::string state;
    };

    void set_tee(std::uint32_t session, Tee tee);
    void remove_tee(std::uint32_t session);

    /// Adds a finding, or the explanation of an earlier finding.
    void add_finding(const record::FindingRecord& finding);
    void count_snapshots(std::uint64_t snapshots, std::uint64_t verified);

    /// Returns the lines that must be printed now: the findings since the previous call.
    /// `all`: also returns the counts of repeated findings that are not due yet.
    [[nodiscard]] std::vector<std::string> take_finding_lines(record::Timestamp now,
                                                              bool all = false);

    /// Returns the status line, at most `columns` wide. `seconds`: the time since the last call of
    /// take_status_line().
    [[nodiscard]] std::string take_status_line(record::Timestamp now, double seconds,
                                               const StatusNotes& notes, std::size_t columns);

    [[nodiscard]] std::vector<std::string>
    finding_table(const FindingLines::ExplainCommandMaker& explain);

  private:
    static constexpr std::size_t kMaxTees = 8;

    [[nodiscard]] std::string add_color(std::string_view code, std::string text) const;

    ConsoleStyle style_;
    std::mutex mutex_;
    std::map<std::uint32_t, Tee> tees_;
    FindingLines findings_;
    std::atomic<std::uint64_t> num_snapshots_{0};
    std::atomic<std::uint64_t> num_unverified_{0};
};

/// Passes the records of one thread to the console, but at most one snapshot a second of each
/// session.
class ConsoleSink final : public record::RecordSink {
  public:
    explicit ConsoleSink(Console& console) : console_{&console} {}

    void on_record(const record::Record& record) override;

  private:
    void handle_record(const record::SessionRecord& record);
    void handle_record(const record::SnapshotRecord& record);
    void handle_record(const record::FindingRecord& record);

    Console* console_;
    /// For each session, the time of the last snapshot that was passed on.
    std::unordered_map<std::uint32_t, record::Timestamp> last_shown_times_;
};

} // namespace tw::sink
