#pragma once

#include "proxy/process/server_names.h"
#include "proxy/process/signals.h"
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
#include <boost/asio/steady_timer.hpp>

namespace tw::process {

/// Hands the running relay's servers and sessions over to a new relay process. If the new relay
/// fails, is silent or misbehaves before it reports that it forwards, this relay resumes forwarding
/// after a fraction of a second at most. Runs on the io_context's thread, which waits while no
/// relay forwards.
class TakeoverResponder {
  public:
    struct RelayStatus {
        /// The servers that the relay forwards to. Only `number`, `name` and `host_name` are set.
        std::vector<TakeoverServer> servers;
        std::uint32_t observer_number = 0; ///< the number of the latest observer
        /// The observer's process id; 0: no observer runs. The observer must not be able to take
        /// over, because it parses untrusted traffic.
        pid_t observer_pid = 0;
        std::uint32_t last_recorded_session = 0; ///< the highest session number in records
    };

    struct Dependencies {
        boost::asio::io_context* io;
        relay::Relay* relay;
        std::function<RelayStatus()> relay_status{};
        /// Called when the new relay forwards. This relay must then end.
        std::function<void()> on_handed_over{};
        std::string example_client{}; ///< kExampleClient as this relay's records show it
    };

    TakeoverResponder(Dependencies parts, TakeoverSocket takeover_socket);

    /// Starts to accept takeover requests.
    void start();

    /// Rejects further takeover requests and aborts a takeover in progress.
    void stop();

    [[nodiscard]] bool has_handed_over() const { return stage_ == Stage::handed_over; }

    /// Returns the servers that the new relay does not continue. Precondition: has_handed_over().
    [[nodiscard]] const std::vector<relay::ServerIndex>& servers_not_continued() const {
        return not_continued_;
    }

    /// Tells the new relay that this relay has ended. Must be called once, after `on_handed_over`
    /// was called. `last_recorded_session`: the highest session number in records. `checkpoint`: a
    /// file with pipeline::SessionCheckpoints; −1: no file.
    void report_end(std::uint32_t last_recorded_session, int checkpoint = -1);

  private:
    enum class Stage : std::uint8_t {
        idle,
        connected,   ///< a peer has connected and must identify itself
        preparing,   ///< the new relay prepares to take over
        handed_over, ///< the new relay forwards
    };

    void on_connection();
    void on_message();
    void handle_message(const TakeoverLink::Message& message);
    void handle_hello(std::span<const std::byte> greeting);
    void send_offer();
    void hand_over_servers(const std::vector<relay::ServerIndex>& wanted);
    [[nodiscard]] std::string
    find_takeover_problem(const std::vector<relay::ServerIndex>& wanted) const;
    [[nodiscard]] bool send_state(const std::vector<relay::ServerIndex>& wanted,
                                  TakeoverLink::Time paused_at);
    [[nodiscard]] std::string_view await_forwarding();
    void reject_takeover(std::string_view why);
    void abort_takeover(std::string_view why);
    void set_deadline(std::chrono::milliseconds timeout);

    Dependencies parts_;
    TakeoverSocket takeover_socket_;
    ReadableWatch connections_;
    ReadableWatch messages_;
    boost::asio::steady_timer deadline_;
    std::optional<TakeoverLink> link_;
    Stage stage_ = Stage::idle;
    std::vector<TakeoverServer> offered_servers_;
    std::vector<relay::ServerIndex> not_continued_;
    std::size_t num_ended_sessions_ = 0; ///< number of sessions of the servers in not_continued_
};

/// Thrown if no relay runs that can be taken over now. what() is one line for the user.
class NoTakeoverPeerError : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

/// Takes over servers and sessions from a running relay process, step by step, for a new relay. If
/// the object is destroyed before take_sessions() returns, the running relay continues unchanged. A
/// server that both relays have is recognised by its name.
class TakeoverRequester {
  public:
    /// Connects to the running relay and receives its offer. `example_client`: see TakeoverHello.
    /// Errors: NoTakeoverPeerError; relay::TakeoverError.
    explicit TakeoverRequester(std::filesystem::path file, std::string example_client = {});

    [[nodiscard]] const TakeoverOffer& offer() const { return offer_; }

    /// Returns the running relay's server with this name, or null.
    [[nodiscard]] const TakeoverServer* find_server(std::string_view name) const;

    /// Checks whether a run with these servers can take over. Servers may be new, and servers of
    /// the running relay may be missing. Errors: relay::TakeoverError if the relays have no server
    /// in common, or two servers would listen on the same address.
    void check_servers(const std::vector<ConfiguredServer>& wanted) const;

    struct PreparedServer {
        relay::ServerOptions options;
        /// The running relay's listening sockets; empty: the new relay opens new sockets.
        std::vector<base::UniqueFd> listening{};
    };

    /// Returns the options and listening sockets with which a server starts. If the running relay
    /// has a server of this name, its sessions continue at the new relay's server `number`.
    /// `served.options.listen` must be the running relay's listening addresses for the server; port
    /// 0 stands for any port. After take_sessions(), the running relay's servers are ignored.
    /// Errors: relay::TakeoverError if the running relay has other listening addresses for this
    /// server.
    [[nodiscard]] PreparedServer prepare_server(const ConfiguredServer& served,
                                                relay::ServerIndex number);

    struct ContinuedServer {
        const TakeoverServer* old_server;
        relay::ServerIndex number; ///< the server's number in the new relay
        /// The host name and port in the new relay's configuration; empty for an IP address.
        std::string host_name;
    };

    /// Takes over all sessions of the servers for which prepare_server() was called. All slow
    /// preparations must be finished, because no relay forwards from this call on until `relay` is
    /// started. Precondition: `relay` is not started. Returns the state that was handed over.
    /// Errors: relay::TakeoverError.
    [[nodiscard]] TakeoverState take_sessions(relay::Relay& relay);

    /// Tells the old relay that this relay forwards. Errors: relay::TakeoverError.
    void confirm_forwarding() const;

    /// Returns the socket for the next takeover. Must be called once, after take_sessions().
    [[nodiscard]] TakeoverSocket take_takeover_socket() {
        return {file_, std::move(takeover_socket_)};
    }

    /// Returns a descriptor that is readable when the old relay has reported its end, or has ended.
    [[nodiscard]] int descriptor() const { return link_.descriptor(); }

    /// The old relay's last message and its descriptor.
    struct EndReport {
        std::uint32_t last_recorded_session = 0; ///< the highest session number in its records
        /// A file with pipeline::SessionCheckpoints; invalid if the old relay sent no file.
        base::UniqueFd checkpoint{};
    };

    /// Returns the old relay's last message; nullopt if the old relay ended without that message.
    [[nodiscard]] std::optional<EndReport> receive_end_report();

    /// Logs what the takeover changed: servers that moved or are no longer relayed, and how many of
    /// the relay's `threads` are idle because they got no sockets.
    void log_takeover_changes(const relay::Relay& relay, unsigned threads) const;

  private:
    [[nodiscard]] TakeoverLink::Message receive(TakeoverMessage wanted);

    std::filesystem::path file_;
    TakeoverLink link_;
    TakeoverOffer offer_;
    base::UniqueFd takeover_socket_;
    /// The listening sockets of each server in offer_, until take_sessions().
    std::vector<std::vector<base::UniqueFd>> listening_;
    std::vector<ContinuedServer> continued_;
};

/// Returns the number of this process's network namespace; 0 if unknown.
[[nodiscard]] std::uint64_t own_network_namespace_number();

} // namespace tw::process
