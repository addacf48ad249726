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

/// The running relay's side of a takeover. Until the new relay confirms that it received everything
/// correctly, a silent, failing or misbehaving peer costs nothing: this relay resumes forwarding
/// after a fraction of a second at most. Runs on the io_context's thread.
class HandoverGiver {
  public:
    /// A server that the relay currently forwards to.
    struct Served {
        relay::ServerIndex number;
        std::string name;      ///< as TakeoverServer::name
        std::string host_name; ///< as TakeoverServer::host_name
    };

    struct Parts {
        boost::asio::io_context* io;
        relay::Relay* relay;
        std::function<std::vector<Served>()> servers;
        std::function<std::uint32_t()> observer; ///< returns the number of the last observer
        /// Returns the process id of the observer; 0: none. The observer parses untrusted traffic,
        /// so it must not be able to take over.
        std::function<pid_t()> observer_process;
        /// Returns SharedBlock::numbered_sessions.
        std::function<std::uint32_t()> numbered_sessions;
        /// Called once the new relay forwards; this relay should then end.
        std::function<void()> given;
    };

    HandoverGiver(Parts parts, TakeoverSocket takeover_socket);

    /// Starts to accept takeover requests.
    void start();

    /// Rejects further takeovers and aborts the current one.
    void stop();

    /// Whether forwarding is paused for a new relay that does not forward yet.
    [[nodiscard]] bool holds() const { return stage_ == Stage::given; }

    /// Whether a new relay has received everything and forwards or is about to.
    [[nodiscard]] bool gave() const { return stage_ == Stage::given || stage_ == Stage::gone; }

    /// The servers that the new relay does not continue; valid once it has received the others.
    [[nodiscard]] const std::vector<relay::ServerIndex>& let_go() const { return let_go_; }

    /// Reports that this relay has ended. Call it once, after `given`. `checkpoint`: a file of
    /// pipeline::SessionCheckpoints; −1: none.
    void leave(const TakeoverLeft& left, int checkpoint = -1);

  private:
    enum class Stage : std::uint8_t {
        idle,
        greeting,  ///< a peer has connected and must identify itself
        preparing, ///< the new relay opens what it needs
        /// The new relay may forward. If the new relay ends before it confirms that, this relay
        /// resumes.
        given,
        gone, ///< the new relay forwards
    };

    void await_asker();
    void on_asker();
    void await_message();
    void on_message();
    void handle(const TakeoverLink::Message& message);
    void offer();
    [[nodiscard]] bool offer(const Served& server) const;
    void hand_over(const TakeoverSelection& selection);
    [[nodiscard]] std::optional<std::string> objection_to(const TakeoverSelection& selection) const;
    [[nodiscard]] std::optional<std::string> give(const TakeoverSelection& selection,
                                                  TakeoverLink::Time held_at);
    [[nodiscard]] bool give_sessions(TakeoverLink::Time deadline);
    [[nodiscard]] bool give_totals(const TakeoverSelection& selection,
                                   TakeoverLink::Time deadline) const;
    void tell_of_let_go() const;
    void give_up(std::string_view why);
    void set_deadline(std::chrono::milliseconds patience);
    void on_deadline();
    void close_link();

    Parts parts_;
    TakeoverSocket takeover_socket_;
    boost::asio::posix::stream_descriptor asked_;
    boost::asio::posix::stream_descriptor messages_;
    boost::asio::steady_timer deadline_;
    std::optional<TakeoverLink> link_;
    Stage stage_ = Stage::idle;
    std::uint32_t given_sessions_ = 0;
    std::vector<Served> offered_;
    std::vector<relay::ServerIndex> let_go_;
    std::uint32_t ended_sessions_ = 0; ///< sessions of the servers in let_go_
};

} // namespace tw::process
