#pragma once

#include "proxy/relay/endpoint.h"
#include "proxy/relay/options.h"
#include "proxy/relay/unique_fd.h"

#include <cstdint>
#include <mutex>
#include <optional>
#include <system_error>
#include <unordered_set>

namespace tw::relay {

/// Hands out addresses of 127.64.0.0/10, each to one session at a time. A client's address decides
/// where the search begins, so that it meets the server with the same address when it comes back
/// and a ban stays with whom it was meant for. Safe for several threads.
class LoopbackAddresses {
  public:
    /// An address in host byte order; nothing when all are taken.
    [[nodiscard]] std::optional<std::uint32_t> take(const Endpoint& client);
    void give_back(std::uint32_t address);

  private:
    std::mutex mutex_;
    std::unordered_set<std::uint32_t> taken_;
};

/// A session's socket towards the server.
struct Upstream {
    UniqueFd socket;
    Endpoint local;                        ///< what the server sees as the sender
    std::optional<std::uint32_t> loopback; ///< to be given back
};

/// Opens upstream sockets: non-blocking, connected to the server, bound as `mode` says.
class UpstreamFactory {
  public:
    UpstreamFactory(boost::asio::ip::udp::endpoint server, ClientAddress mode, int buffer_bytes);

    /// Errors: what the system says; address_not_available when no loopback address is left.
    [[nodiscard]] Upstream open(const Endpoint& client, std::error_code& error);
    void close(Upstream& upstream);

    [[nodiscard]] const Endpoint& server() const noexcept { return server_; }

    [[nodiscard]] ClientAddress mode() const noexcept { return mode_; }

  private:
    boost::asio::ip::udp::endpoint server_name_;
    Endpoint server_;
    ClientAddress mode_;
    int buffer_bytes_;
    LoopbackAddresses addresses_;
};

/// Asks for the buffers; granting less than asked is the system's right and no error.
void set_socket_buffers(int socket, int bytes) noexcept;

} // namespace tw::relay
