#pragma once

#include "proxy/base/descriptors.h"
#include "proxy/relay/counters.h"
#include "proxy/relay/listen_socket.h"
#include "proxy/relay/options.h"
#include "proxy/relay/relay_thread.h"
#include "proxy/relay/ring.h"

#include <chrono>
#include <memory>
#include <mutex>
#include <span>
#include <system_error>
#include <utility>
#include <vector>

#include <boost/asio/ip/udp.hpp>

namespace tw::relay {

/// Returns the kind of client address that the server will see, never `automatic`. Errors:
/// StartError; SharedAddressError if the clients would share an address and `may_share` is false.
[[nodiscard]] ClientAddressMode choose_client_address_mode(ClientAddressMode wanted, bool may_share,
                                                           const base::Endpoint& server);

/// Forwards UDP datagrams between clients and servers, with one upstream socket per client, and
/// copies them to an observer. A relay starts with one server. Each added server has its own
/// listening addresses, session table and limits; all servers share the threads and the rings. The
/// relay does not parse datagrams.
class Relay {
  public:
    /// Resolves the server's name and binds the listening sockets. Datagrams wait in the sockets
    /// until start().
    ///
    /// `rings`: one ring for each thread; empty without an observer. The rings must outlive the
    /// relay.
    /// `observation`: memory that is shared with the observer's process; must outlive the relay.
    /// Null: the observer runs in this process, all the time, and has the number 1.
    /// `listening`: sockets that another relay opened for options.server (see listening_sockets()).
    /// Empty: the relay opens new sockets.
    /// Errors:  throws StartError if a name does not resolve, a port is in use, the relay listens
    /// on the server's address, or options.client_address is impossible for the system or the
    /// server; SharedAddressError; TakeoverError.
    explicit Relay(const Options& options, std::span<Ring* const> rings = {},
                   ObserverSharedMemory* observation = nullptr,
                   std::vector<base::UniqueFd> listening = {});
    /// Stops the threads and waits until they have ended.
    ~Relay();
    Relay(const Relay&) = delete;
    Relay& operator=(const Relay&) = delete;

    /// Adds a server, before or after start(). Returns its number. `listening`: as in the
    /// constructor.
    /// Errors:  as in the constructor; StartError after kMaxServers servers. On errors nothing
    /// changes.
    [[nodiscard]] ServerIndex add_server(const ServerOptions& options,
                                         std::vector<base::UniqueFd> listening = {});

    /// The number that the next add_server() will return.
    [[nodiscard]] ServerIndex next_server_index() const noexcept {
        return static_cast<ServerIndex>(servers_.size());
    }

    /// Closes a server's sessions and its listening sockets. Other servers are not affected.
    void remove_server(ServerIndex server);

    /// Starts the threads. Must not be called twice.
    void start();

    /// Asks the threads to end, and returns at once. Callable from any thread. The threads forward
    /// the datagrams that have arrived, close the sessions and report their ends to the observer.
    void stop();

    /// Waits until the threads have ended. All events of the relay are then in the rings.
    void join();

    /// Returns a server's listening addresses, with the ports that the system chose.
    [[nodiscard]] const std::vector<boost::asio::ip::udp::endpoint>&
    listen_endpoints(ServerIndex server = 0) const noexcept {
        return servers_[server]->listen;
    }

    /// The address to which new sessions connect.
    [[nodiscard]] base::Endpoint server_endpoint(ServerIndex server = 0) const {
        return servers_[server]->upstreams.server();
    }

    /// Changes the server's address for new sessions. An existing session stays connected to the
    /// old address while the server answers there. Callable from any thread. Errors: throws
    /// StartError for an address that client_address_mode() does not allow.
    void set_server_address(const boost::asio::ip::udp::endpoint& server, ServerIndex index = 0);

    /// Returns the kind of client address that the server sees, never `automatic`.
    [[nodiscard]] ClientAddressMode client_address_mode(ServerIndex server = 0) const noexcept {
        return servers_[server]->upstreams.mode();
    }

    /// Returns the error of the latest failed attempt to open a client's upstream socket.
    [[nodiscard]] std::error_code last_session_error() const noexcept {
        return {numbers_.last_open_error.load(std::memory_order_relaxed), std::system_category()};
    }

    /// Replaces the impairment of all sessions. Callable from any thread. Waiting datagrams are
    /// sent at once, and random decisions start again from the seed.
    void set_impairment(const Impairment& impairment);

    [[nodiscard]] Impairment impairment() const;

    /// Makes the server send a full snapshot to this session: the relay changes the client's next
    /// datagrams (see ResyncFunctions). Has no effect if the previous request for the session was
    /// less than five seconds ago. Callable from any thread.
    void request_full_snapshot(std::uint32_t session);

    // Takeover by a relay of another process: call pause_threads() and takeover_state(), pass the
    // state to the other relay, then call stop_for_takeover() or resume_threads().

    /// Pauses all threads. If one does not pause within `timeout`, resumes all and returns false.
    [[nodiscard]] bool pause_threads(std::chrono::milliseconds timeout);

    /// Returns a server's listening sockets, in sets of one socket per listening address.
    [[nodiscard]] std::vector<int> listening_sockets(ServerIndex server = 0) const;

    /// The data that another relay needs to continue sessions: their state, and their upstream
    /// sockets in the order of the sessions in `state`.
    struct TakeoverData {
        HandedOverState state;
        std::vector<int> sockets;
    };

    /// Returns the state of these servers for another relay. Precondition: the threads are paused.
    [[nodiscard]] TakeoverData takeover_state(std::span<const ServerIndex> servers);

    void resume_threads();

    /// Ends the threads after pause_threads(), without closing the sessions that another relay
    /// continues. Closes only the sessions of the servers in `closed_servers`. The caller must then
    /// call join().
    void stop_for_takeover(std::span<const ServerIndex> closed_servers = {});

    /// Takes over from another relay, before start(). `servers`: this relay's numbers of the
    /// servers in `state`. `sockets`: the upstream sockets of the sessions in `state`, in the same
    /// order. Errors: TakeoverError; this relay must then not be started.
    void take_over(const HandedOverState& state, std::span<const ServerIndex> servers,
                   std::vector<base::UniqueFd> sockets);

    [[nodiscard]] std::size_t num_sessions() const noexcept;

    /// Returns the counters' sums over all threads and servers. Callable from any thread.
    [[nodiscard]] Counters counters() const noexcept { return totals(*observation_); }

  private:
    void open_server(const ServerOptions& wanted, std::vector<base::UniqueFd> listening);
    void check_no_forwarding_loop(const SharedServerData& added) const;
    [[nodiscard]] std::pair<std::size_t, std::size_t>
    locate_listening_socket(const SharedServerData& server, std::size_t socket) const;
    [[nodiscard]] Listener& listener(const SharedServerData& server, std::size_t socket) const;
    void add_handed_over_session(const SharedServerData& server, HandedOverSession session,
                                 base::UniqueFd socket);

    Options options_;
    /// The counters if no memory is shared with an observer's process; else null.
    std::unique_ptr<ObserverSharedMemory> own_observation_;
    ObserverSharedMemory* observation_;
    LastSessionNumbers numbers_;
    /// The servers, including removed ones, indexed by server number.
    std::vector<std::unique_ptr<SharedServerData>> servers_;
    mutable std::mutex impairment_mutex_;
    Impairment impairment_;
    ThreadPause pause_;
    std::vector<std::unique_ptr<RelayThread>> relay_threads_;
};

} // namespace tw::relay
