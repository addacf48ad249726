#pragma once

#include "proxy/base/descriptors.h"
#include "proxy/base/endpoint.h"
#include "proxy/base/keyed_hash.h"
#include "proxy/relay/options.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <system_error>
#include <unordered_set>
#include <vector>

namespace tw::relay {

/// Assigns one address of 127.64.0.0/10 to each client IPv4 address or IPv6 /64, for as long as that
/// client has sessions. So the server's per-address limits, bans and anti-spoofing tokens work as
/// without the proxy.
///
/// A keyed hash gives the first candidate for an address. So a returning client usually gets the
/// same address, also in later runs with the same key, and clients cannot choose an address that
/// collides with another's. Thread-safe.
class LoopbackAddresses {
  public:
    explicit LoopbackAddresses(const base::SipKey& key) : hash_{key} {}

    /// Assigns an address to a client's new session. Returns it in host byte order; nullopt if no
    /// address is free.
    [[nodiscard]] std::optional<std::uint32_t> assign(const base::Endpoint& client);
    /// Like assign(), for an address that another relay assigned. Returns false if the address is outside
    /// of 127.64.0.0/10 or assigned to another client.
    [[nodiscard]] bool take_over(const base::Endpoint& client, std::uint32_t address);
    /// Ends a session's use of the client's address; after the last session, the address is free.
    void release_address(const base::Endpoint& client);

  private:
    struct Assignment {
        std::uint32_t address;
        std::uint32_t sessions; ///< number of the client's sessions
    };

    std::mutex mutex_;
    base::SipHash hash_;
    std::map<base::Network, Assignment> assignments_;
    std::unordered_set<std::uint32_t> taken_;
};

struct Upstream {
    base::UniqueFd socket;
    base::Endpoint local;         ///< the sender address that the server sees
    base::Endpoint server;        ///< the server address that the socket is connected to
    std::uint32_t generation = 0; ///< UpstreamFactory::generation() when the socket was opened
    /// The client whose loopback address must be given back when the socket is closed; nullopt if
    /// there is no such address.
    std::optional<base::Endpoint> loopback_of;
    /// The epoll instance that the socket was added to; -1: none.
    int ready_set = -1;
};

/// Opens non-blocking upstream sockets, connected to the server and bound according to `mode`.
/// Thread-safe.
class UpstreamFactory {
  public:
    UpstreamFactory(boost::asio::ip::udp::endpoint server, ClientAddress mode, int buffer_bytes,
                    const base::SipKey& address_key);

    /// Opens the socket of a new session for this client. Errors: the system's error;
    /// address_not_available if no loopback address is free.
    [[nodiscard]] Upstream open(const base::Endpoint& client, std::error_code& error);
    /// Continues with a socket that another relay opened. `own_loopback`: the socket's local address
    /// was assigned by LoopbackAddresses.
    /// Errors: HandoverError for a socket that this relay would not have opened.
    [[nodiscard]] Upstream take_over(base::UniqueFd socket, const base::Endpoint& client,
                                     bool own_loopback);
    void close(Upstream& upstream);

    /// Sets the server address for new sockets; open sockets stay connected.
    void set_server(const boost::asio::ip::udp::endpoint& server);

    [[nodiscard]] base::Endpoint server() const;

    static constexpr std::size_t kMaxFormer = 8;
    /// Earlier addresses of the server, the latest one last, at most kMaxFormer.
    [[nodiscard]] std::vector<base::Endpoint> former_servers() const;
    /// Adds earlier addresses that another relay used, so that sockets connected to them can be taken
    /// over.
    void set_former_servers(std::vector<base::Endpoint> former);

    /// How often the server's address has changed.
    [[nodiscard]] std::uint32_t generation() const noexcept {
        return generation_.load(std::memory_order_relaxed);
    }

    [[nodiscard]] ClientAddress mode() const noexcept { return mode_; }

  private:
    [[nodiscard]] bool is_known_server(const base::Endpoint& server) const;

    mutable std::mutex server_mutex_; ///< guards server_ and former_
    boost::asio::ip::udp::endpoint server_;
    std::vector<base::Endpoint> former_;
    std::atomic<std::uint32_t> generation_{0};
    ClientAddress mode_;
    int buffer_bytes_;
    LoopbackAddresses addresses_;
};

} // namespace tw::relay
