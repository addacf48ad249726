#pragma once

#include "proxy/bus/backlog.h"
#include "proxy/bus/link.h"
#include "proxy/bus/options.h"
#include "proxy/bus/sending.h"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

namespace tw::bus {

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
    void complain(const std::string& what);
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
