#pragma once

#include "proxy/bus/backlog.h"
#include "proxy/bus/link.h"

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

namespace tw::bus {

/// What JetStream answers to a published message.
struct PublishAnswer {
    std::uint64_t place = 0; ///< in the stream; 0: it was refused
    bool duplicate = false;  ///< the stream had it already
    bool too_long = false;   ///< this message will never be taken
    std::string complaint{};
};

/// Layout: {"stream":"twscope","seq":7,"duplicate":true} or {"error":{"err_code":10054,"description":"…"}}.
[[nodiscard]] PublishAnswer read_publish_answer(std::string_view json);

/// What of a run's lines is under way. Lines are numbered from 1; a line's place is its number in the
/// stream. At most kSize lines stand behind the first that is not settled.
class Window {
  public:
    /// Enough for 20,000 records a second over a line of 50 ms, and what a reader of the stream has to
    /// look through when a connection broke.
    static constexpr std::size_t kSize = 1024;

    /// Nothing is under way; all up to `settled` are settled, and whatever else is in the stream stands
    /// behind `place`.
    void begin(std::uint64_t settled, std::uint64_t place);

    /// The next line to hand over.
    [[nodiscard]] std::uint64_t next() const { return sent_ + 1; }

    [[nodiscard]] bool has_room() const { return sent_ - settled_ < kSize; }

    /// Lines that are sent and not settled.
    [[nodiscard]] std::size_t under_way() const { return under_way_; }

    /// The next line was sent.
    void send();
    /// The next line needs not be sent: it stands at this place, or is lost for good (0).
    void skip(std::uint64_t place);
    /// The lines before this one are lost. Only while none is under way.
    void jump(std::uint64_t next);
    /// False: no such line is under way.
    bool acknowledge(std::uint64_t line, std::uint64_t place);

    /// All up to here are settled.
    [[nodiscard]] std::uint64_t settled() const { return settled_; }

    /// Behind this stands whatever else of the run is in the stream.
    [[nodiscard]] std::uint64_t place() const;

  private:
    enum class State : std::uint8_t { none, sent, settled };

    struct Slot {
        State state = State::none;
        std::uint64_t place = 0;
    };

    [[nodiscard]] Slot& slot(std::uint64_t line) { return slots_[line % kSize]; }

    void settle();

    std::array<Slot, kSize> slots_{};
    std::uint64_t settled_ = 0;
    std::uint64_t sent_ = 0; ///< or skipped
    std::uint64_t place_ = 0;
    std::size_t under_way_ = 0;
};

/// What became of lines, by all connections; from any thread.
struct PublishTotals {
    std::atomic<std::uint64_t> published{0}; ///< handed over, some more than once
    std::atomic<std::uint64_t> acknowledged{0};
    std::atomic<std::uint64_t> refused{0};     ///< too long for the bus, and lost
    std::atomic<std::uint64_t> connections{0}; ///< that were made
    std::atomic<bool> connected{false};
};

/// Hands the lines of one backlog over on one connection, in order, a window at a time. Whatever goes
/// wrong ends it: the next one asks the stream what it has, and goes on behind that. So nothing is there
/// twice, however long it took, and nothing is missing.
class Sending {
  public:
    using Clock = std::chrono::steady_clock;

    /// What was acknowledged is kept for so long: a server that is killed may have said that it has
    /// what was not yet on its disk.
    static constexpr std::chrono::seconds kKeep{2};

    /// All have to outlive it.
    Sending(const Link& link, const std::string& stream, Backlog& backlog, PublishTotals& totals)
        : link_{&link}, stream_{&stream}, backlog_{&backlog}, totals_{&totals} {}

    /// `until`: the place of the stream's last message. An error is the end of the connection.
    [[nodiscard]] Tried<void> begin(std::uint64_t until);

    /// Sends what there is and takes what is acknowledged; waits for that so long where something is
    /// under way. An error is the end of the connection.
    [[nodiscard]] Tried<void> step(std::chrono::milliseconds patience);

    /// Nothing is under way, and there is nothing to send now.
    [[nodiscard]] bool idle() const { return window_.under_way() == 0 && !more_; }

    /// Nothing comes any more: what is acknowledged needs not be kept.
    void finish() { backlog_->settle(window_.settled(), window_.place()); }

  private:
    struct Mark {
        Clock::time_point time;
        std::uint64_t settled;
        std::uint64_t place;
    };

    [[nodiscard]] bool find_next(std::string_view& line);
    [[nodiscard]] Tried<void> send_all();
    [[nodiscard]] Tried<void> send(std::string_view line);
    [[nodiscard]] Tried<void> take_answers(std::chrono::milliseconds patience);
    [[nodiscard]] Tried<void> take_answer(natsMsg* answer);
    void settle(Clock::time_point now);

    const Link* link_;
    const std::string* stream_;
    Backlog* backlog_;
    PublishTotals* totals_;
    NatsInbox inbox_;
    NatsSubscription answers_;
    Window window_;
    StoredLines stored_;
    Lines lines_;              ///< read from the backlog
    std::size_t at_ = 0;       ///< in their text, where line number_ begins
    std::uint64_t number_ = 0; ///< of the line there
    bool more_ = true;
    Clock::time_point answered_{};
    Clock::time_point marked_{};
    std::deque<Mark> marks_;
};

/// Publishes backlogs on a thread of its own: first what runs before this one left, then this run's.
/// Whatever happens to the bus, it tries again, for ever.
class Publisher {
  public:
    using Clock = std::chrono::steady_clock;
    /// Something that an earlier run left; null: there is nothing more, for now.
    using Leftovers = std::function<std::unique_ptr<Backlog>()>;

    /// `backlog` has to outlive it. Starts nothing yet: threads of the NATS library are to begin behind
    /// whatever confines this process.
    Publisher(PublishOptions options, Backlog& backlog, Leftovers leftovers);
    ~Publisher();
    Publisher(const Publisher&) = delete;
    Publisher& operator=(const Publisher&) = delete;
    Publisher(Publisher&&) = delete;
    Publisher& operator=(Publisher&&) = delete;

    /// There are more lines. Starts the thread when it is called for the first time. `all`: this, the
    /// backlog and the leftovers, which stay for as long as the thread runs.
    void wake(const std::shared_ptr<void>& all);

    /// Waits until all that was appended is acknowledged, at most so long; then ends the thread. What the
    /// library does not come back from, because the bus stands still, is left to itself.
    void finish(std::chrono::milliseconds patience);

    [[nodiscard]] const PublishTotals& totals() const { return totals_; }

  private:
    void run();
    /// Until the connection breaks, or all is done. Returns why it broke.
    [[nodiscard]] Tried<void> serve();
    [[nodiscard]] Tried<void> publish_leftovers(const Link& link);
    /// False: an earlier run left something, which comes first.
    [[nodiscard]] Tried<bool> publish(const Link& link, Backlog& backlog, bool to_its_end);
    void print_error(const std::string& what);
    void went_on(const Sending& sending);
    void compare_limits(const StreamLimits& there);
    [[nodiscard]] bool stopping();
    [[nodiscard]] bool out_of_time();
    void wait(std::chrono::milliseconds time);

    PublishOptions options_;
    std::string where_;
    Backlog* backlog_;
    Leftovers leftovers_;
    std::unique_ptr<Backlog> leftover_;
    Clock::time_point looked_{}; ///< for leftovers
    PublishTotals totals_;
    std::string complaint_;          ///< the last one
    std::uint64_t acknowledged_ = 0; ///< before this connection
    bool compared_ = false;
    std::mutex mutex_;
    std::condition_variable wake_;
    bool woken_ = false;
    bool stop_ = false;
    bool ended_ = true; ///< the thread, or it never began
    std::condition_variable end_;
    Clock::time_point deadline_{};
    std::thread thread_;
};

} // namespace tw::bus
