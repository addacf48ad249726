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

/// Hands out addresses of 127.64.0.0/10: one to each IPv4 address or IPv6 /64 that clients have,
/// whatever their ports, for as long as it has sessions. So what the server makes of an address
/// holds as it would without the proxy: limits, bans, anti-spoofing tokens.
///
/// A keyed hash says where the search for a free one begins. So a client meets the server with the
/// same address when it comes back, in another run with the same key, too; and nobody can choose an
/// address of their own that shares another's. Safe for several threads.
class LoopbackAddresses {
  public:
    explicit LoopbackAddresses(const base::SipKey& key) : hash_{key} {}

    /// An address in host byte order; nothing when all are taken.
    [[nodiscard]] std::optional<std::uint32_t> take(const base::Endpoint& client);
    /// As take, where the address was given by another relay. False: it is no address of these, or
    /// another client's.
    [[nodiscard]] bool take_over(const base::Endpoint& client, std::uint32_t address);
    void give_back(const base::Endpoint& client);

  private:
    struct Given {
        std::uint32_t address;
        std::uint32_t sessions;
    };

    std::mutex mutex_;
    base::SipHash hash_;
    std::map<base::Source, Given> given_;
    std::unordered_set<std::uint32_t> taken_;
};

/// A session's socket towards the server.
struct Upstream {
    base::UniqueFd socket;
    base::Endpoint local;                      ///< what the server sees as the sender
    base::Endpoint server;                     ///< whom it reaches
    std::uint32_t generation = 0;              ///< of that (see UpstreamFactory)
    std::optional<base::Endpoint> loopback_of; ///< whose loopback address is to be given back
    int ready_set = -1;                        ///< the epoll instance that waits for it; -1: none
};

/// Opens upstream sockets: non-blocking, connected to the server, bound as `mode` says. Safe for
/// several threads.
class UpstreamFactory {
  public:
    UpstreamFactory(boost::asio::ip::udp::endpoint server, ClientAddress mode, int buffer_bytes,
                    const base::SipKey& address_key);

    /// Errors: what the system says; address_not_available when no loopback address is left.
    [[nodiscard]] Upstream open(const base::Endpoint& client, std::error_code& error);
    /// One that another relay opened. `own_loopback`: with an address of LoopbackAddresses.
    /// Errors: HandoverError for a socket that this relay would not have opened.
    [[nodiscard]] Upstream take_over(base::UniqueFd socket, const base::Endpoint& client,
                                     bool own_loopback);
    void close(Upstream& upstream);

    /// Where the sockets lead that are opened from now on; those there are stay as they are.
    void set_server(const boost::asio::ip::udp::endpoint& server);

    [[nodiscard]] base::Endpoint server() const;

    /// Where the server was before, the latest last: at most so many are known.
    static constexpr std::size_t kMaxFormer = 8;
    [[nodiscard]] std::vector<base::Endpoint> former_servers() const;
    /// Of another relay: sockets that lead there may be taken over.
    void set_former_servers(std::vector<base::Endpoint> former);

    /// How often the server has moved.
    [[nodiscard]] std::uint32_t generation() const noexcept {
        return generation_.load(std::memory_order_relaxed);
    }

    [[nodiscard]] ClientAddress mode() const noexcept { return mode_; }

  private:
    [[nodiscard]] bool was_at(const base::Endpoint& server) const;

    mutable std::mutex server_mutex_; ///< of the two behind it
    boost::asio::ip::udp::endpoint server_;
    std::vector<base::Endpoint> former_;
    std::atomic<std::uint32_t> generation_{0};
    ClientAddress mode_;
    int buffer_bytes_;
    LoopbackAddresses addresses_;
};

/// Asks for the buffers; granting less than asked is the system's right and no error.
void set_socket_buffers(int socket, int bytes) noexcept;

/// Whether a descriptor is a UDP socket.
[[nodiscard]] bool is_udp_socket(int descriptor) noexcept;

} // namespace tw::relay
