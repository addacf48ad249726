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

// Thread priorities, which matter only when processors are busy. Failures are ignored.

/// For forwarding threads: gives the calling thread short time slices. From Linux 6.12 on, such a
/// thread is scheduled sooner after a wakeup. Its total share of the processor stays the same.
void raise_thread_priority();

/// For analysing threads, whose delays only make records late: lowers the priority of the calling
/// thread and of the threads that it starts later.
void lower_thread_priority();

/// Makes a server send a full snapshot to a session, for an observer that does not know the earlier
/// snapshots. The relay does not know the datagrams' format, so the caller supplies both functions.
/// They must not block or allocate. Here an answer is a snapshot, and its number is the tick.
struct Resync {
    /// A value of `known`: the client's datagram shall acknowledge no answer, so that the server sends
    /// a full one.
    static constexpr std::int32_t kNothing = -1;

    /// Rewrites a client's datagram into `out` so that it acknowledges the answer `known`. Returns
    /// the size; 0 if a rewrite is impossible, or unnecessary because the datagram acknowledges that
    /// answer or a later one.
    std::size_t (*rewrite)(std::span<const std::byte> datagram, std::int32_t known,
                           std::span<std::byte> out) = nullptr;
    /// Returns the number of the answer in a server's datagram if the answer is complete in itself.
    std::optional<std::int32_t> (*find_answer)(std::span<const std::byte> datagram) = nullptr;
};

/// Decides which answer a session's datagrams must acknowledge after a resync request.
///
/// Until the server sends a full answer, the client's datagrams are rewritten to acknowledge no
/// answer. Afterwards they acknowledge that full answer until the client has really received it: an
/// older acknowledgement would make the server send deltas to answers that the observer never saw.
/// Clients that send rarely are left unchanged, because their next acknowledgement would take too
/// long.
class ResyncState {
  public:
    /// The shortest time between two requests for a session.
    static constexpr std::uint32_t kBetweenMs = 5000;
    /// An unanswered request ends after this time.
    static constexpr std::uint32_t kAnswerTimeoutMs = 1000;
    /// Datagrams are rewritten for this long after the full answer: the longest round trip to a client.
    static constexpr std::uint32_t kRewriteMs = 2000;
    /// The longest pause between datagrams of a playing client. After a longer one, no request begins.
    static constexpr std::uint32_t kMaxPauseMs = 250;

    // All times are milliseconds of the same clock, which wraps.

    /// Starts a resync. `heard`: time of the client's last datagram. Returns false if the last
    /// request is too recent.
    bool begin_request(std::uint32_t now, std::uint32_t heard) noexcept;

    /// Whether a resync is in progress. If so, the client's datagrams must be examined, and the
    /// server's datagrams until the server has sent a full answer.
    [[nodiscard]] bool in_progress() const noexcept { return stage_ != Stage::none; }

    /// Returns the answer that the client's next datagram must acknowledge; nullopt if the datagram
    /// must stay unchanged.
    [[nodiscard]] std::optional<std::int32_t> next_acknowledgement(std::uint32_t now) noexcept;

    /// Notes that a datagram was rewritten. Returns whether it is the first one since the request.
    bool on_rewritten() noexcept;

    /// Notes that the server sent a full answer.
    void on_answer(std::uint32_t now, std::int32_t number) noexcept;

  private:
    enum class Stage : std::uint8_t { none, asking, known };

    std::uint32_t asked_ = 0;
    std::uint32_t since_ = 0; ///< when the current stage began
    std::uint32_t heard_ = 0; ///< time of the client's previous datagram
    std::int32_t known_ = Resync::kNothing;
    Stage stage_ = Stage::none;
    bool ever_asked_ = false;
    bool written_ = false;
};

/// The most listening addresses of a server. The index of an address must fit into a byte.
inline constexpr std::size_t kMaxListeners = 16;

/// Which address the server sees for a session.
enum class ClientAddress : std::uint8_t {
    shared, ///< the relay's own address; sessions differ in port
    /// One address 127.x.y.z for each client address; the server must be on 127.0.0.0/8.
    loopback,
    transparent, ///< the client's own address and port (IP_TRANSPARENT: CAP_NET_ADMIN and routing)
    automatic,   ///< loopback if possible, else shared
};

/// A server and the addresses where its clients connect.
struct ServerOptions {
    std::string host;
    std::uint16_t port = 0;
    std::vector<boost::asio::ip::udp::endpoint> listen{};

    friend bool operator==(const ServerOptions&, const ServerOptions&) = default;
};

/// The relay's settings, fixed for its lifetime.
struct Options {
    /// The addresses where clients of the first server connect. For port 0 the system chooses a port
    /// (see Relay::listen_endpoints).
    std::vector<boost::asio::ip::udp::endpoint> listen;
    /// Name or address of the first server. If a name has several addresses, the relay uses the first
    /// IPv4 address.
    std::string server_host;
    std::uint16_t server_port = 0;

    /// The most sessions per server, over all threads. The default is eight times a full server
    /// (128).
    std::size_t max_sessions = 1024;
    /// A session without a datagram in either direction for this long is closed.
    std::chrono::milliseconds idle_timeout{60'000};
    /// The size of each socket's send buffer and receive buffer; the system may grant less
    /// (net.core.rmem_max).
    int socket_buffer_bytes = 4 * 1024 * 1024;
    /// The number of forwarding threads. Each thread has its own sockets (SO_REUSEPORT); a session
    /// stays with one thread.
    unsigned threads = 1;
    /// Poll without sleeping: lowest latency, but it occupies a core.
    bool busy_poll = false;
    ClientAddress client_address = ClientAddress::shared;
    /// Whether clients may share an address at a server that is not on 127.0.0.0/8.
    bool insecure_shared = true;
    /// The key from which clients' loopback addresses are derived.
    base::SipKey address_key{};
    /// Tells which sessions are verified. Null: every session counts as verified from its first
    /// datagram on, and only the number of sessions is limited.
    Prove prove = nullptr;
    AdmissionLimits admission{};
    /// The functions with which the relay repeats answers to common requests. If they are null,
    /// answers are never repeated. Requires `prove`.
    AnswerFunctions repeating{};
    /// The functions for Relay::resync. If they are null, no datagram is ever rewritten.
    Resync resync{};
    /// The impairment at the start; see Relay::set_impairment.
    Impairment impairment{};
};

} // namespace tw::relay
