#pragma once

#include "proxy/relay/admission.h"
#include "proxy/relay/answers.h"
#include "proxy/relay/impairment.h"
#include "proxy/relay/resync.h"
#include "proxy/relay/sip_hash.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <boost/asio/ip/udp.hpp>

namespace tw::relay {

/// Addresses to listen on, at most; they are numbered in a byte.
inline constexpr std::size_t kMaxListeners = 16;

/// Which address the server sees for a session.
enum class ClientAddress : std::uint8_t {
    shared,      ///< the relay's own; sessions differ by port
    loopback,    ///< a 127.x.y.z for each client address; the server must be on 127.0.0.0/8
    transparent, ///< the client's own address and port (IP_TRANSPARENT: CAP_NET_ADMIN and routing)
    automatic,   ///< loopback, where it is possible
};

/// A server, and where its clients connect.
struct ServerOptions {
    std::string host;
    std::uint16_t port = 0;
    std::vector<boost::asio::ip::udp::endpoint> listen{};

    friend bool operator==(const ServerOptions&, const ServerOptions&) = default;
};

/// How the relay is set up; fixed for its life.
struct Options {
    /// Where clients of the first server connect; port 0 lets the system choose (see Relay::listen_endpoints).
    std::vector<boost::asio::ip::udp::endpoint> listen;
    /// Name or address; of several addresses the first IPv4 one is taken, as game servers have it.
    std::string server_host;
    std::uint16_t server_port = 0;

    /// Of each server, over all threads. The default leaves room for a full server (128) eight times over.
    std::size_t max_sessions = 1024;
    /// A session without a datagram in either direction for this long is closed.
    std::chrono::milliseconds idle_timeout{60'000};
    /// Send and receive buffer of each socket; the system may grant less (net.core.rmem_max).
    int socket_buffer_bytes = 4 * 1024 * 1024;
    /// Each thread has its own sockets (SO_REUSEPORT); a session stays with one.
    unsigned threads = 1;
    /// Spin before sleeping: lowest latency for a core of its own.
    bool busy_poll = false;
    ClientAddress client_address = ClientAddress::shared;
    /// Whether clients may share an address at a server that is not on 127.0.0.0/8.
    bool insecure_shared = true;
    /// With it clients' loopback addresses are made.
    SipKey address_key{};
    /// What proves a session; null: every session is proven with its first datagram, and nothing is
    /// limited but their number.
    Prove prove = nullptr;
    AdmissionLimits admission{};
    /// How answers to common requests are repeated; nulls: they are not. Needs `prove`.
    Repeating repeating{};
    /// What Relay::resync needs; nulls: no datagram is ever touched.
    Resync resync{};
    /// At the start; see Relay::set_impairment.
    Impairment impairment{};
};

} // namespace tw::relay
