#pragma once

#include "proxy/base/descriptors.h"
#include "proxy/relay/counters.h"
#include "proxy/relay/handover.h"
#include "proxy/relay/listen_socket.h"
#include "proxy/relay/options.h"
#include "proxy/relay/ring.h"

#include <chrono>
#include <memory>
#include <span>
#include <system_error>
#include <vector>

namespace tw::relay {

/// Forwards UDP datagrams between clients and servers, with one upstream socket per client, and
/// copies them to observers. A relay starts with one server. Added servers have their own listen
/// addresses, session table and limits; threads and rings are shared. The relay does not parse
/// datagrams.
class Relay {
  public:
    /// Resolves the server and binds the listening sockets. Datagrams wait in these sockets until
    /// start().
    ///
    /// `rings`: one for each thread, which is its producer, or empty without an observer. They must
    /// outlive the relay.
    /// `observation`: shared memory if the observer is another process; must outlive the relay.
    /// Null: the observer is in this process and always present, with number 1.
    /// `listening`: sockets that another relay opened for options.listen (see listening_sockets()).
    /// Empty: the relay opens its own.
    /// Errors:  throws StartError if a name does not resolve, a port is in use, the server's address
    /// is the relay's own, or the system or the server's address does not allow the client_address
    /// mode; SharedAddressError; HandoverError.
    explicit Relay(const Options& options, std::span<Ring* const> rings = {},
                   Observation* observation = nullptr, std::vector<base::UniqueFd> listening = {});
    /// Stops the threads and waits until they have ended.
    ~Relay();
    Relay(const Relay&) = delete;
    Relay& operator=(const Relay&) = delete;

    /// Adds a server, before or after start(). Returns its number. `listening`: as in the
    /// constructor.
    /// Errors:  as in the constructor; StartError if there are kMaxServers. On errors nothing
    /// changes.
    [[nodiscard]] ServerIndex add_server(const ServerOptions& options,
                                         std::vector<base::UniqueFd> listening = {});

    /// The server number that the next add_server() will return.
    [[nodiscard]] ServerIndex next_server() const noexcept;

    /// Closes a server's sessions and its listening sockets. Other servers are not affected.
    void remove_server(ServerIndex server);

    /// Starts the threads. May be called once.
    void start();

    /// Asks the threads to end; returns at once; callable from any thread. The threads forward what
    /// they have received, close the sessions and report that to the observers.
    void stop();

    /// Waits for the threads to end. Afterwards the rings contain all events of the relay.
    void join();

    /// The listening addresses, with the ports that the system chose.
    [[nodiscard]] const std::vector<boost::asio::ip::udp::endpoint>&
    listen_endpoints(ServerIndex server = 0) const noexcept;

    /// The server address for new sessions.
    [[nodiscard]] base::Endpoint server_endpoint(ServerIndex server = 0) const;

    /// Changes the server address for new sessions. An existing session keeps its old address while
    /// the server answers there. Callable from any thread.
    /// Errors: throws StartError for an address that the relay's mode does not allow.
    void set_server(const boost::asio::ip::udp::endpoint& server, ServerIndex index = 0);

    /// Earlier addresses of the server, at most UpstreamFactory::kMaxFormer.
    [[nodiscard]] std::vector<base::Endpoint> former_servers(ServerIndex server = 0) const;

    /// The mode in use: never `automatic`.
    [[nodiscard]] ClientAddress client_address(ServerIndex server = 0) const noexcept;

    /// Why the last attempt to open an upstream socket for a client failed.
    [[nodiscard]] std::error_code last_session_error() const noexcept;

    /// Replaces the impairment of all sessions; callable from any thread. Waiting datagrams are
    /// sent at once, and random decisions start again from the seed.
    void set_impairment(const Impairment& impairment);

    /// The current impairment.
    [[nodiscard]] Impairment impairment() const;

    /// Makes the server send a full snapshot to this session, by rewriting the client's next
    /// datagrams (see Resync); at most once in five seconds per session. Callable from any thread.
    void resync(std::uint32_t session);

    // Handover to a relay of another process: pause(), pass on the state, then stop_for_handover() or resume().

    /// Pauses all threads between two batches. If a thread does not pause within `timeout`, all
    /// threads go on and the result is false.
    [[nodiscard]] bool pause(std::chrono::milliseconds timeout);

    /// The listening sockets of a server: one set per thread, each with one socket per address.
    [[nodiscard]] std::vector<int> listening_sockets(ServerIndex server = 0) const;

    /// What another relay continues: the state, and the upstream socket of each of its sessions.
    struct Handover {
        RelayState state;
        std::vector<int> sockets;
    };

    /// The state with these servers and their sessions. Precondition: pause().
    [[nodiscard]] Handover handover(std::span<const ServerIndex> servers);

    /// Ends the pause of pause(): all threads go on.
    void resume();

    /// Ends the threads after pause(). The other relay continues their sessions. The sessions of the
    /// servers in `let_go` are reported as closed instead. join() must follow.
    void stop_for_handover(std::span<const ServerIndex> let_go = {});

    // Takeover from another relay, before start(). Servers are identified by their numbers in this
    // relay.

    /// Continues the sessions of the other relay, each with its upstream socket. Errors:
    /// HandoverError; this relay must then not be started.
    void take_over(const RelayState& state, std::vector<base::UniqueFd> sockets);
    /// Allows sessions that are taken over later to be connected to these addresses.
    void set_former_servers(std::vector<base::Endpoint> former, ServerIndex server = 0);

    /// The number of open sessions.
    [[nodiscard]] std::size_t num_sessions() const noexcept;

    /// Totals over all threads and servers. Callable from any thread.
    [[nodiscard]] Counters counters() const noexcept;

  private:
    struct State;
    std::unique_ptr<State> state_;
};

} // namespace tw::relay
