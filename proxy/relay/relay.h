#pragma once

#include "proxy/base/descriptors.h"
#include "proxy/relay/counters.h"
#include "proxy/relay/handover.h"
#include "proxy/relay/listen_socket.h"
#include "proxy/relay/options.h"
#include "proxy/relay/ring.h"

#include <chrono>
#include <functional>
#include <memory>
#include <span>
#include <system_error>
#include <vector>

namespace tw::relay {

/// Passes UDP datagrams between clients and servers, each client by its own socket, and shows copies
/// to observers. It begins with one server; others have their own addresses to listen on, table of
/// sessions and limits, but threads and rings are shared. Knows nothing of what the datagrams say.
class Relay {
  public:
    /// Resolves the server and binds the listening sockets; datagrams wait there until start().
    ///
    /// `rings`: one for each thread (that thread is its producer), or none when nobody looks. They
    ///          must outlive the relay.
    /// `observation`: what the observer sees beside them, when it is another process's; has to
    ///          outlive the relay. Null: observer 1 looks all the time, in this one.
    /// `listening`: what another relay listened on (see listening_sockets()), whose addresses
    ///          options.listen has; none: it opens its own.
    /// Errors:  throws StartError: a name that does not resolve, a port in use, a server address
    ///          that is the relay's own, a client_address mode the system or the server's address
    ///          does not allow; SharedAddressError; HandoverError.
    explicit Relay(const Options& options, std::span<Ring* const> rings = {},
                   Observation* observation = nullptr, std::vector<base::UniqueFd> listening = {});
    /// Stops and joins.
    ~Relay();
    Relay(const Relay&) = delete;
    Relay& operator=(const Relay&) = delete;
    Relay(Relay&&) = delete;
    Relay& operator=(Relay&&) = delete;

    /// Begins to forward for another server, before start() or after. Returns its number.
    /// `listening`: as the constructor's.
    /// Errors:  as the constructor's; StartError for one too many. Then nothing has changed.
    [[nodiscard]] ServerIndex add_server(const ServerOptions& options,
                                         std::vector<base::UniqueFd> listening = {});

    /// The number that add_server gives next.
    [[nodiscard]] ServerIndex next_server() const noexcept;

    /// Closes a server's sessions, and listens for it no more. Others do not notice.
    void remove_server(ServerIndex server);

    /// Starts the threads; once.
    void start();

    /// Asks the threads to end; from any thread, returns at once. What has already been received is
    /// passed on, sessions are closed and the observers hear of it.
    void stop();

    /// Waits for the threads to end. After it, everything the relay had to report is in the rings.
    void join();

    /// The addresses in use, with the ports the system chose.
    [[nodiscard]] const std::vector<boost::asio::ip::udp::endpoint>&
    listen_endpoints(ServerIndex server = 0) const noexcept;

    /// Where sessions lead that begin now.
    [[nodiscard]] base::Endpoint server_endpoint(ServerIndex server = 0) const;

    /// From now on sessions begin with the server at this address; those there are stay where they
    /// are for as long as they are answered there. From any thread.
    /// Errors: throws StartError for an address that the relay's mode does not allow.
    void set_server(const boost::asio::ip::udp::endpoint& server, ServerIndex index = 0);

    /// Where the server was before it moved, as far as that is known.
    [[nodiscard]] std::vector<base::Endpoint> former_servers(ServerIndex server = 0) const;

    /// The mode in use: never `automatic`.
    [[nodiscard]] ClientAddress client_address(ServerIndex server = 0) const noexcept;

    /// Why the last client that found no socket towards the server found none.
    [[nodiscard]] std::error_code last_session_error() const noexcept;

    /// Makes every session's lines as bad as this from now on; from any thread, at any time. What
    /// waits to be sent is sent at once, and the fates begin anew with the seed.
    void set_impairment(const Impairment& impairment);

    /// As last set.
    [[nodiscard]] Impairment impairment() const;

    /// Asks the server, by the next datagrams of this session's client, to say everything anew; see
    /// Resync. No session more often than every five seconds. From any thread.
    void resync(std::uint32_t session);

    // To hand over to another relay, of another process: hold(), tell it all, then leave() or resume().

    /// Makes all threads hold between two batches. False when one does not in time; then all go on.
    [[nodiscard]] bool hold(std::chrono::milliseconds patience);

    /// Sockets it listens on for a server: sets of one for each address, in their order, one set
    /// after the other.
    [[nodiscard]] std::vector<int> listening_sockets(ServerIndex server = 0) const;

    /// While it holds: each session with its socket.
    void for_each_session(const std::function<void(const SessionState&, int socket)>& use);

    /// While it holds: what else the other one has to know, of a server and of all.
    [[nodiscard]] ServerState handover_state(ServerIndex server) const;
    [[nodiscard]] RelayState handover_state() const;

    /// All threads go on, as if nothing had been.
    void resume();

    /// After hold(): the threads end, and their sessions go on elsewhere, but for those of the
    /// servers that are `let_go`. See join().
    void leave(std::span<const ServerIndex> let_go = {});

    // To take over, before start(). Servers go by their numbers here.

    /// Errors: HandoverError.
    void take_over(const SessionState& state, base::UniqueFd socket);
    /// Sessions that are taken over from now on may lead there, too.
    void set_former_servers(std::vector<base::Endpoint> former, ServerIndex server = 0);
    void take_over(const ServerState& state);
    void take_over(const RelayState& state);

    /// Sessions open now.
    [[nodiscard]] std::size_t num_sessions() const noexcept;

    /// Totals over all threads and servers; from any thread at any time.
    [[nodiscard]] Counters counters() const noexcept;

  private:
    struct State;
    std::unique_ptr<State> state_;
};

} // namespace tw::relay
