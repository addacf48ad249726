#pragma once

#include "proxy/process/followed_server.h"
#include "proxy/process/takeover_link.h"
#include "proxy/relay/relay.h"

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>

namespace tw::process {

/// The running relay's side of a takeover. Until the new relay says that it forwards, a silent,
/// failing or misbehaving peer costs nothing: this relay resumes forwarding after a fraction of a
/// second at most. Runs on the io_context's thread.
class HandoverGiver {
  public:
    /// A server that the relay currently forwards to.
    struct Served {
        relay::ServerIndex number;
        std::string name;      ///< as TakeoverServer::name
        std::string host_name; ///< as TakeoverServer::host_name
    };

    /// The run as it is now.
    struct Now {
        std::vector<Served> servers;
        std::uint32_t observer = 0; ///< the number of the last observer
        /// The observer's process; 0: none. The observer parses untrusted traffic, so it must not
        /// be able to take over.
        pid_t observer_process = 0;
        std::uint32_t numbered_sessions = 0; ///< as SharedBlock::numbered_sessions
    };

    struct Parts {
        boost::asio::io_context* io;
        relay::Relay* relay;
        std::function<Now()> now;
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
        given,     ///< the new relay has everything; if it ends now, this relay resumes
        gone,      ///< the new relay forwards
    };

    void await_asker();
    void on_asker();
    void await_message();
    void on_message();
    void handle(const TakeoverLink::Message& message);
    void greet(std::span<const std::byte> greeting);
    void offer();
    void hand_over(const std::vector<relay::ServerIndex>& wanted);
    [[nodiscard]] std::string objection_to(const std::vector<relay::ServerIndex>& wanted) const;
    [[nodiscard]] bool give(const std::vector<relay::ServerIndex>& wanted,
                            TakeoverLink::Time held_at);
    void finish();
    void refuse(std::string_view why);
    void abort_handover(std::string_view why);
    void set_deadline(std::chrono::milliseconds patience);
    void on_deadline();

    Parts parts_;
    TakeoverSocket takeover_socket_;
    boost::asio::posix::stream_descriptor asked_;
    boost::asio::posix::stream_descriptor messages_;
    boost::asio::steady_timer deadline_;
    std::optional<TakeoverLink> link_;
    Stage stage_ = Stage::idle;
    std::vector<Served> offered_;
    std::vector<relay::ServerIndex> let_go_;
    std::size_t ended_sessions_ = 0; ///< sessions of the servers in let_go_
};

/// No relay can be taken over, or not now; what() is one line for the user.
class NoTakeoverPeer : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

/// The new relay's side of a takeover, step by step. If it is destroyed before take() returns, the
/// running relay continues unchanged. Servers are matched by name.
class HandoverTaker {
  public:
    /// Connects to the running relay and receives its offer.
    /// Errors: NoTakeoverPeer; relay::HandoverError.
    explicit HandoverTaker(std::filesystem::path file);

    [[nodiscard]] const TakeoverOffer& offer() const { return offer_; }

    /// The running relay's server with this name; null if there is none.
    [[nodiscard]] const TakeoverServer* find(std::string_view name) const;

    /// Checks whether a run with these servers can take over. Servers may be missing or new.
    /// Errors: relay::HandoverError if no server is common, or two would listen on the same
    /// address.
    void check(const std::vector<ServedServer>& wanted) const;

    /// How a server starts in the new relay.
    struct Begun {
        relay::ServerOptions where;
        /// Sockets of the running relay; empty: open new ones.
        std::vector<base::UniqueFd> listening{};
    };

    /// Returns how a server starts. If the running relay has a server of this name, it continues as
    /// the new relay's server `number`. `served.where.listen` must be what the running relay
    /// listens on; port 0 matches any. After take(), every server is a new one.
    /// Errors: relay::HandoverError if the running relay listens elsewhere for this server.
    [[nodiscard]] Begun begin(const ServedServer& served, relay::ServerIndex number);

    struct Taken {
        const TakeoverServer* from;
        relay::ServerIndex number; ///< its number in the new relay
        /// As TakeoverServer::host_name; a server of the same name may have a new one.
        std::string host_name;
    };

    [[nodiscard]] const std::vector<Taken>& taken() const { return taken_; }

    /// Takes over all sessions of these servers, after all slow preparations. `relay` must not be
    /// started yet. No relay forwards from here until it starts. Returns what was handed over.
    /// Errors: relay::HandoverError.
    [[nodiscard]] TakeoverState take(relay::Relay& relay);

    /// Tells the old relay that this one forwards. Errors: relay::HandoverError.
    void confirm_forwarding() const;

    /// The socket that accepts the next takeover. Call once, after take().
    [[nodiscard]] TakeoverSocket take_takeover_socket() {
        return {file_, std::move(takeover_socket_)};
    }

    /// Readable when the old relay has reported its end, or has ended.
    [[nodiscard]] int descriptor() const { return link_.descriptor(); }

    /// The old relay's last message and its descriptor.
    struct Left {
        TakeoverLeft said;
        base::UniqueFd checkpoint{}; ///< a file of pipeline::SessionCheckpoints, if valid
    };

    /// Returns the last message; nullopt if the old relay ended without one.
    [[nodiscard]] std::optional<Left> left();

    /// Logs differences after a takeover: servers that moved or were not continued, and threads
    /// without sockets.
    void report(const relay::Relay& relay, unsigned threads) const;

  private:
    [[nodiscard]] TakeoverLink::Message receive(TakeoverMessage wanted);
    [[nodiscard]] relay::ServerIndex number_here(relay::ServerIndex there) const;

    std::filesystem::path file_;
    TakeoverLink link_;
    TakeoverOffer offer_;
    base::UniqueFd takeover_socket_;
    /// The sockets of each server, until take().
    std::vector<std::vector<base::UniqueFd>> listening_;
    std::vector<Taken> taken_;
};

/// The network namespace of this process; 0 if unknown.
[[nodiscard]] std::uint64_t own_network();

} // namespace tw::process
