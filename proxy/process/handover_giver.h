#pragma once

#include "proxy/process/handover.h"
#include "proxy/relay/relay.h"

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>

namespace tw::process {

/// The running relay's side of a takeover: answers who asks, and hands over. Until the other one
/// says that all it got was as it has to be, nothing is lost by its silence, its end or its
/// mistakes: forwarding goes on, after a fraction of a second at most. On the io_context's thread.
class HandoverGiver {
  public:
    /// A server that is forwarded to now.
    struct Served {
        relay::ServerIndex number;
        std::string name;      ///< as TakeoverServer
        std::string host_name; ///< as TakeoverServer
    };

    struct Parts {
        boost::asio::io_context* io;
        relay::Relay* relay;
        std::function<std::vector<Served>()> servers;
        std::function<std::uint32_t()> observer; ///< the number of the last one
        /// Of that: it reads what strangers send, and must not take over what it was taken from. 0: none
        std::function<pid_t()> observer_process;
        std::function<std::uint32_t()> numbered_sessions; ///< as SharedBlock
        std::function<void()> given; ///< the other one forwards: it is time to end
    };

    HandoverGiver(Parts parts, TakeoverDoor door);

    /// Begins to answer.
    void start();

    /// No more is handed over; what was begun ends here.
    void stop();

    /// Whether the relay holds for another one, which does not forward yet.
    [[nodiscard]] bool holds() const { return stage_ == Stage::given; }

    /// Whether another one has all, and forwards, or is about to.
    [[nodiscard]] bool gave() const { return stage_ == Stage::given || stage_ == Stage::gone; }

    /// The servers that the other one does not go on with, once it has the others.
    [[nodiscard]] const std::vector<relay::ServerIndex>& let_go() const { return let_go_; }

    /// Says that all has ended here. Once, after given(). `checkpoint`: a file of run::SessionCheckpoints; −1: none.
    void leave(const TakeoverLeft& left, int checkpoint = -1);

  private:
    enum class Stage : std::uint8_t {
        idle,
        greeting,  ///< somebody is there and has to say who
        preparing, ///< it opens what it needs
        given,     ///< it may forward; if it ends before it says so, we do again
        gone,      ///< it does
    };

    void await_asker();
    void on_asker();
    void await_word();
    void on_word();
    void obey(const TakeoverLink::Message& message);
    void offer();
    [[nodiscard]] bool offer(const Served& server) const;
    void hand_over(const TakeoverWish& wish);
    [[nodiscard]] std::optional<std::string> objection_to(const TakeoverWish& wish) const;
    [[nodiscard]] std::optional<std::string> give(const TakeoverWish& wish,
                                                  TakeoverLink::Time held_at);
    [[nodiscard]] bool give_sessions(TakeoverLink::Time deadline);
    [[nodiscard]] bool give_totals(const TakeoverWish& wish, TakeoverLink::Time deadline) const;
    void tell_of_let_go() const;
    void give_up(std::string_view why);
    void set_deadline(std::chrono::milliseconds patience);
    void on_deadline();
    void close_link();

    Parts parts_;
    TakeoverDoor door_;
    boost::asio::posix::stream_descriptor asked_;
    boost::asio::posix::stream_descriptor words_;
    boost::asio::steady_timer deadline_;
    std::optional<TakeoverLink> link_;
    Stage stage_ = Stage::idle;
    std::uint32_t given_sessions_ = 0;
    std::vector<Served> offered_;
    std::vector<relay::ServerIndex> let_go_;
    std::uint32_t ended_sessions_ = 0; ///< of those
};

} // namespace tw::process
