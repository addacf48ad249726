#pragma once

#include "proxy/bus/backlog.h"
#include "proxy/bus/link.h"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

namespace tw::bus {

/// JetStream's answer to a published message.
struct PublishAnswer {
    std::uint64_t sequence = 0; ///< sequence number in the stream; 0 if the message was rejected
    bool is_too_long = false;   ///< true if the message was rejected because it is too long
    std::string error{};
};

/// Parses JetStream's answer to a published message.
/// Layout: {"stream":"twscope","seq":7,"duplicate":true} or
/// {"error":{"err_code":10054,"description":"…"}}.
[[nodiscard]] PublishAnswer parse_publish_answer(std::string_view json);

/// Tracks which lines of a backlog are in flight: sent, but not acknowledged. Lines are numbered
/// from 1; `sequence` is a line's sequence number in the stream. A line is settled if it is in the
/// stream or lost. At most kMaxLinesInFlight lines after the last settled line are tracked.
class SendWindow {
  public:
    /// The limit of tracked lines: enough for 20,000 records a second at a round trip of 50 ms.
    /// After a connection broke, up to this many lines have to be looked up in the stream.
    static constexpr std::size_t kMaxLinesInFlight = 1024;

    /// Prepares for a new connection, without lines in flight. Lines up to the number `settled` are
    /// in the stream or lost. Later lines have sequence numbers above `sequence`.
    void begin_connection(std::uint64_t settled, std::uint64_t sequence);

    /// Returns the number of the next line to send.
    [[nodiscard]] std::uint64_t next_line_number() const {
        return last_settled_line_ + lines_.size() + 1;
    }

    [[nodiscard]] bool has_room() const { return lines_.size() < kMaxLinesInFlight; }

    [[nodiscard]] std::size_t lines_in_flight() const { return lines_in_flight_; }

    /// Marks the next line as in flight.
    void mark_line_sent();
    /// Marks the next line as settled without sending it: the stream already contains it, with the
    /// number `sequence`, or it is lost (`sequence` is 0).
    void skip_next_line(std::uint64_t sequence);
    /// Marks the lines before the line `next` as lost. Precondition: no line is in flight.
    void skip_lines_before(std::uint64_t next);
    /// Marks a line as settled: the stream has stored it with the number `sequence`, or rejected it
    /// (`sequence` is 0). Returns false if the line is not in flight.
    bool acknowledge_line(std::uint64_t line, std::uint64_t sequence);

    /// Returns the number up to which all lines are settled: in the stream, or lost.
    [[nodiscard]] std::uint64_t last_settled_line() const { return last_settled_line_; }

    /// Returns a sequence number in the stream. All lines after last_settled_line() have, or will
    /// get, greater sequence numbers.
    [[nodiscard]] std::uint64_t settled_sequence() const;

  private:
    struct TrackedLine {
        bool is_settled = false;
        std::uint64_t sequence = 0;
    };

    void advance_settled_line();

    std::deque<TrackedLine> lines_; ///< the lines after the line last_settled_line_
    std::uint64_t last_settled_line_ = 0;
    std::uint64_t sequence_ = 0;
    std::size_t lines_in_flight_ = 0;
};

/// Totals of published lines over all connections. Any thread may read them.
struct PublishTotals {
    std::atomic<std::uint64_t> published{0}; ///< number of lines sent, including repetitions
    std::atomic<std::uint64_t> acknowledged{0};
    /// Number of lines that were lost because they were too long for the bus.
    std::atomic<std::uint64_t> refused{0};
    std::atomic<std::uint64_t> connections{0}; ///< number of connections that were opened
    std::atomic<bool> connected{false};        ///< true while the publisher is connected to the bus
};

/// Publishes the lines of a backlog on one connection, in order, with at most
/// SendWindow::kMaxLinesInFlight lines in flight. Any failure ends the connection. On the next
/// connection, another BacklogSender first looks up which lines the stream contains and sends the
/// other lines. Therefore no line is missing or stored twice, even after a long interruption.
/// Errors of all functions: BusError, after which the connection is unusable.
class BacklogSender {
  public:
    using Clock = std::chrono::steady_clock;

    /// How long acknowledged lines stay in the backlog. A server that is killed may lose the lines
    /// that it has just acknowledged, because they were not yet on its disk.
    static constexpr std::chrono::seconds kAcknowledgedKeepTime{2};

    /// All arguments have to outlive the object.
    BacklogSender(const BusConnection& link, const std::string& stream, Backlog& backlog,
                  PublishTotals& totals)
        : link_{&link}, stream_{&stream}, backlog_{&backlog}, totals_{&totals} {}

    /// Looks up which lines the stream contains. `until`: the sequence number of the stream's last
    /// message. Call this function first.
    void look_up_stored_lines(std::uint64_t until);

    /// Sends available lines and processes acknowledgements. Waits up to `timeout` for
    /// acknowledgements if lines are in flight.
    void send_and_receive(std::chrono::milliseconds timeout);

    /// Returns true if no line is in flight and no line waits to be sent.
    [[nodiscard]] bool is_idle() const {
        return window_.lines_in_flight() == 0 && !has_unsent_lines_;
    }

    /// Removes all acknowledged lines from the backlog now, without waiting for
    /// kAcknowledgedKeepTime.
    void settle_acknowledged_lines() {
        backlog_->settle_lines(window_.last_settled_line(), window_.settled_sequence());
    }

  private:
    struct AcknowledgedLines {
        Clock::time_point time;
        std::uint64_t settled;
        std::uint64_t sequence;
    };

    [[nodiscard]] bool find_next_line(std::string_view& line);
    void send_lines();
    void send_line(std::string_view line);
    void count_refused_line(std::string_view what, std::string_view limit);
    void process_answers(std::chrono::milliseconds timeout);
    void process_answer(natsMsg* answer);
    void settle_old_lines(Clock::time_point now);

    const BusConnection* link_;
    const std::string* stream_;
    Backlog* backlog_;
    PublishTotals* totals_;
    NatsInbox inbox_;
    NatsSubscription answers_;
    SendWindow window_;
    StoredLines stored_lines_;
    bool has_unsent_lines_ = true;
    Clock::time_point last_answer_{};
    Clock::time_point last_settling_{};
    std::deque<AcknowledgedLines> acknowledged_lines_;
};

/// Publishes backlogs on a separate thread: first the backlogs of earlier runs, then the backlog of
/// this run. If the bus fails, tries again without a limit. The thread shares the ownership: it may
/// outlive the owner if the NATS library hangs.
class Publisher : public std::enable_shared_from_this<Publisher> {
  public:
    using Clock = std::chrono::steady_clock;

    /// Creates this run's backlog. The constructor starts no thread: threads of the NATS library
    /// have to start after this process was confined.
    /// Errors: throws std::system_error if the spool cannot be opened.
    explicit Publisher(PublishOptions options);
    ~Publisher();
    Publisher(const Publisher&) = delete;
    Publisher& operator=(const Publisher&) = delete;

    [[nodiscard]] Backlog& backlog() { return *backlog_; }

    /// Returns the spool; null if lines wait in memory.
    [[nodiscard]] const SpoolFolder* spool_folder() const { return folder_ ? &*folder_ : nullptr; }

    /// Tells the publishing thread that lines were appended. The first call starts the thread.
    void wake_thread();

    /// Waits at most `timeout` until all appended lines are acknowledged, then ends the thread. If
    /// the NATS library hangs, leaves the thread running.
    void finish_publishing(std::chrono::milliseconds timeout);

    [[nodiscard]] const PublishTotals& totals() const { return totals_; }

  private:
    void run();
    /// Connects and publishes until all lines are published. Errors: BusError if the connection
    /// breaks.
    void publish_over_connection();
    void publish_earlier_backlogs(const BusConnection& link);
    [[nodiscard]] bool take_over_earlier_backlog();
    /// Publishes a backlog. Stops and returns false if it finds the backlog of an earlier run,
    /// which must be published first.
    [[nodiscard]] bool publish_backlog(const BusConnection& link, Backlog& backlog);
    void report_recovery(const BacklogSender& sender);
    void log_limit_differences(const StreamLimits& there);
    [[nodiscard]] bool is_past_deadline();

    PublishOptions options_;
    std::string bus_urls_; ///< the URLs for log messages, without passwords
    std::optional<SpoolFolder> folder_;
    std::optional<Backlog> backlog_;
    std::unique_ptr<Backlog> earlier_backlog_; ///< an earlier run's lines that are being published
    Clock::time_point last_search_{}; ///< time of the latest search for earlier runs' lines
    PublishTotals totals_;
    std::string last_error_; ///< the error that was logged last
    /// Number of lines that were acknowledged before this connection.
    std::uint64_t acknowledged_before_ = 0;
    bool has_compared_limits_ = false; ///< true if log_limit_differences() was called
    std::mutex mutex_;
    std::condition_variable wakeup_;
    bool is_woken_ = false;
    bool is_stopping_ = false;
    bool is_ended_ = true; ///< true if the thread has ended or was never started
    std::condition_variable thread_ended_;
    Clock::time_point deadline_{};
    std::thread thread_;
};

} // namespace tw::bus
