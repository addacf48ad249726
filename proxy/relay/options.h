#pragma once

#include "proxy/base/keyed_hash.h"
#include "proxy/relay/impairment.h"
#include "proxy/relay/stranger_filter.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <boost/asio/ip/udp.hpp>

namespace tw::relay {

// Who goes first where processors are scarce. Both can always be asked for, and no answer changes what is done.

/// For the threads that forward: from Linux 6.12 on, a thread whose turns are short comes to its turn
/// sooner when something wakes it. It gets no more of the processor in all.
void go_first();

/// For all that looks at the traffic, whose delay only records later: the calling thread, and those it
/// starts from then on.
void go_behind();

/// How a server is made to say everything anew to a session, for an observer that does not know what
/// was said before. What datagrams say is the caller's knowledge: both functions must not wait or
/// allocate. Of answers the relay knows their number, which grows.
struct Resync {
    /// The number of no answer: who knows none gets everything.
    static constexpr std::int32_t kNothing = -1;

    /// Writes a client's datagram anew into `out` so that it says: I know what the server said in the
    /// answer `known`. Returns its size; 0: it says so already, or more, or cannot be written anew.
    std::size_t (*rewrite)(std::span<const std::byte> datagram, std::int32_t known,
                           std::span<std::byte> out) = nullptr;
    /// The number of the answer in a server's datagram, if it says everything.
    std::optional<std::int32_t> (*find_answer)(std::span<const std::byte> datagram) = nullptr;
};

/// What a session's datagrams have to say instead, for one who asked for everything.
///
/// Until the server says everything the client knows nothing. From then on it knows that answer: what
/// it says of older ones, until it has got this one, would make the server build on what the observer
/// never saw, and so would all that follows. Clients that send little are left alone: they would wait
/// for long until they say again what they know.
class ResyncTurn {
  public:
    static constexpr std::uint32_t kBetweenMs = 5000; ///< no session is asked for more often
    static constexpr std::uint32_t kGiveUpMs = 1000;  ///< after it was asked for
    static constexpr std::uint32_t kKnownMs = 2000;   ///< the longest way to a client and back
    static constexpr std::uint32_t kBusyMs = 250; ///< between two datagrams of a client that plays

    // All times are those of one clock, in milliseconds, which wraps.

    /// Asks for it. `heard`: the client's last datagram. False: it was asked for a moment ago.
    bool ask(std::uint32_t now, std::uint32_t heard) noexcept;

    /// Whether datagrams are to be looked at: the client's, and until there is an answer the server's.
    [[nodiscard]] bool wanted() const noexcept { return stage_ != Stage::none; }

    /// The client's next datagram: the answer that it is to know; nothing: it stays as it is.
    [[nodiscard]] std::optional<std::int32_t> turn(std::uint32_t now) noexcept;

    /// It was written anew. True for the first one since it was asked for.
    bool on_written() noexcept;

    /// The server has said everything.
    void on_answer(std::uint32_t now, std::int32_t number) noexcept;

  private:
    enum class Stage : std::uint8_t { none, asking, known };

    std::uint32_t asked_ = 0;
    std::uint32_t since_ = 0; ///< the beginning of the stage
    std::uint32_t heard_ = 0; ///< the client's datagram before
    std::int32_t known_ = Resync::kNothing;
    Stage stage_ = Stage::none;
    bool ever_ = false;
    bool written_ = false;
};

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
    base::SipKey address_key{};
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
