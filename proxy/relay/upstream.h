#pragma once

#include "proxy/base/descriptors.h"
#include "proxy/base/endpoint.h"
#include "proxy/base/keyed_hash.h"
#include "proxy/relay/options.h"

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <system_error>
#include <unordered_set>

#include <boost/asio/ip/udp.hpp>

namespace tw::relay {

/// Assigns an address of 127.64.0.0/10 to each client IPv4 address or IPv6 /64 while that client
/// has sessions. With such addresses, the server's limits per address, bans and anti-spoofing
/// tokens work as without the proxy.
///
/// The address is derived from the client's address by a keyed hash. Therefore a returning client
/// usually gets the same address, also in later runs with the same key, and clients cannot choose
/// an address that collides with another client's. Thread-safe.
class LoopbackAddresses {
  public:
    explicit LoopbackAddresses(const base::SipKey& key) : hash_{key} {}

    /// Assigns an address to a client's new session. Returns the address in host byte order;
    /// nullopt if no address is free.
    [[nodiscard]] std::optional<std::uint32_t> assign_address(const base::Endpoint& client);
    /// Assigns an address that another relay had assigned to this client. Returns false if the
    /// address is outside of 127.64.0.0/10 or assigned to another client.
    [[nodiscard]] bool assign_known_address(const base::Endpoint& client, std::uint32_t address);
    /// Must be called when a session of the client ends. After the client's last session, the
    /// address is free.
    void release_address(const base::Endpoint& client);

  private:
    struct Assignment {
        std::uint32_t address;
        std::uint32_t num_sessions; ///< number of sessions that use the address
    };

    std::mutex mutex_;
    base::SipHash hash_;
    std::map<base::Network, Assignment> assignments_;
    std::unordered_set<std::uint32_t> assigned_addresses_;
};

/// The socket with which the relay sends a session's datagrams to the server.
struct UpstreamSocket {
    base::UniqueFd socket;
    base::Endpoint local;  ///< the socket's local address, which the server sees as the sender
    base::Endpoint server; ///< the server address that the socket is connected to
    /// The result of UpstreamFactory::server_generation() when the socket was opened.
    std::uint32_t server_generation = 0;
    /// The client whose loopback address must be released when the socket is closed; nullopt if the
    /// client has no loopback address.
    std::optional<base::Endpoint> loopback_client;
    /// The epoll instance that the socket was added to; -1: not added.
    int epoll = -1;
};

/// Opens upstream sockets, which are connected to the server and bound to the address that `mode`
/// requires. Thread-safe.
class UpstreamFactory {
  public:
    UpstreamFactory(const boost::asio::ip::udp::endpoint& server, ClientAddressMode mode,
                    int buffer_bytes, const base::SipKey& address_key);

    /// Opens the upstream socket for a new session of this client. `error`: the system's error;
    /// address_not_available if no loopback address is free.
    [[nodiscard]] UpstreamSocket open_socket(const base::Endpoint& client, std::error_code& error);
    /// Takes over an upstream socket that another relay opened for this client. `server`: the
    /// address that the socket is connected to, which may be a former address of the server.
    /// Errors: TakeoverError if `socket` is not a UDP socket that is connected to `server`, or if
    /// the mode is `loopback` and the socket's local address cannot be assigned to the client.
    [[nodiscard]] UpstreamSocket adopt_socket(base::UniqueFd socket, const base::Endpoint& client,
                                              const base::Endpoint& server);
    void close_socket(UpstreamSocket& upstream);

    /// Sets the server's address for new sockets. Open sockets stay connected to the old address.
    void set_server_address(const boost::asio::ip::udp::endpoint& server);

    [[nodiscard]] base::Endpoint server() const;

    /// Returns how often the server's address has changed.
    [[nodiscard]] std::uint32_t server_generation() const noexcept {
        return server_generation_.load(std::memory_order_relaxed);
    }

    [[nodiscard]] ClientAddressMode mode() const noexcept { return mode_; }

  private:
    mutable std::mutex server_mutex_; ///< guards server_
    boost::asio::ip::udp::endpoint server_;
    std::atomic<std::uint32_t> server_generation_{0};
    LoopbackAddresses addresses_;
    ClientAddressMode mode_;
    int buffer_bytes_;
};

} // namespace tw::relay
