#pragma once

#include "proxy/relay/forwarder.h"

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include <boost/asio/ip/udp.hpp>

namespace tw::relay {

/// One relay thread: waits for sockets, times and words of other threads, all by one epoll instance,
/// and lets the forwarder work.
class Shard {
  public:
    using Udp = boost::asio::ip::udp;

    /// Errors: throws std::system_error.
    Shard(const Options& options, unsigned thread, Observation& observation, Ring* ring);

    // Servers: before run(), or by call().

    /// `listen`: where its clients connect; `sockets`: sets of sockets bound to that, one set after
    /// the other, or none where another thread has them all.
    /// Errors: throws std::system_error.
    void add_server(Shared& shared, std::span<const Udp::endpoint> listen,
                    std::vector<base::UniqueFd> sockets);
    /// Closes some of its sessions; behind the last, its sockets. Returns whether it is gone.
    [[nodiscard]] bool remove_server(const Shared& shared);

    /// While it runs: does this on its thread, and waits for it. Errors: what the word throws;
    /// StartError when it does not come to it in time.
    void call(std::function<void()> word);

    /// Works until stopped; then passes on what has already come and closes the sessions.
    void run();

    /// From any thread; returns at once.
    void stop();

    /// From any thread; done as soon as the thread gets to it.
    void set_impairment(const Impairment& impairment);

    /// From any thread; see Relay::resync.
    void resync(std::uint32_t session);

    // To hand over. From one thread.

    /// Asks the thread to hold between two batches, with nothing that waits to be sent on.
    void ask_to_hold();
    /// Waits until it does; false at the deadline.
    [[nodiscard]] bool holds_until(base::Clock::time_point deadline);
    /// It goes on.
    void resume();
    /// It ends, reads nothing more, and tells the observer that its sessions go on elsewhere.
    void leave();

    /// What it forwards with: while it holds or before it runs.
    [[nodiscard]] Forwarder& forwarder() noexcept { return *forwarder_; }

  private:
    /// Returns how many datagrams there were.
    std::size_t work();
    void spin();
    void do_what_is_due();
    void do_words();
    [[nodiscard]] std::function<void()> next_word();
    [[nodiscard]] bool set_timer();
    void post(std::function<void()> word);
    void wake() noexcept;
    void drain();
    void hold();
    [[nodiscard]] bool leaves();

    std::map<const Shared*, std::vector<base::UniqueFd>>
        sockets_;          ///< that servers' clients send to
    base::UniqueFd bell_;  ///< rings when another thread says something
    base::UniqueFd timer_; ///< rings when something is due
    std::unique_ptr<Forwarder> forwarder_;
    base::Clock::time_point next_sweep_;
    std::optional<base::Clock::time_point>
        due_; ///< with impaired lines: when something has to leave
    base::Clock::time_point timer_set_to_;
    bool resting_ = false; ///< the next sweep is far away: there is nothing to look after
    bool busy_poll_;
    std::atomic<bool> stopping_{false};
    std::mutex words_mutex_;
    std::deque<std::function<void()>> words_; ///< of other threads

    /// Of a handover.
    enum class Hold : std::uint8_t { none, asked, holding, leaving };
    std::mutex hold_mutex_;
    std::condition_variable hold_changed_;
    Hold hold_ = Hold::none;
};

} // namespace tw::relay
