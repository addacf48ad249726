#pragma once

#include "proxy/bus/backlog.h"
#include "proxy/bus/link.h"
#include "proxy/bus/stored_lines.h"
#include "proxy/bus/window.h"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>

namespace tw::bus {

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

} // namespace tw::bus
