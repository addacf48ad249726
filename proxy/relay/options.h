#pragma once

#include "proxy/base/keyed_hash.h"
#include "proxy/relay/impairment.h"
#include "proxy/relay/new_client_filter.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <boost/asio/ip/udp.hpp>

namespace tw::relay {

// Thread priorities. They matter only when the processors are busy. Errors are ignored.

/// Gives the calling thread short time slices. Forwarding threads call this. From Linux 6.12 on,
/// such a thread runs sooner after a wakeup. Its total share of the processor stays the same.
void raise_thread_priority();

/// Lowers the priority of the calling thread and of the threads that it starts later. Analysing
/// threads call this, because their delays only make records late.
void lower_thread_priority();

/// Functions with which the relay makes a server send a full snapshot to a session, for an observer
/// that does not know the earlier snapshots. The relay does not know the game's format, so its
/// owner supplies them. They must not block or allocate. A snapshot is identified by its tick.
struct ResyncFunctions {
    /// The value of `acknowledged` for no snapshot. The server then sends a full snapshot.
    static constexpr std::int32_t kNoSnapshot = -1;

    /// Writes a copy of a client's datagram into `out`, changed so that it acknowledges the
    /// snapshot `acknowledged`. Returns the copy's size; 0 if no copy can be made, or if the
    /// datagram already acknowledges that snapshot or a later one.
    std::size_t (*rewrite_acknowledgement)(std::span<const std::byte> datagram,
                                           std::int32_t acknowledged,
                                           std::span<std::byte> out) = nullptr;
    /// Returns the tick of the full snapshot in a server's datagram; nullopt if the datagram
    /// contains no full snapshot.
    std::optional<std::int32_t> (*find_full_snapshot)(std::span<const std::byte> datagram) =
        nullptr;
};

/// Decides which snapshot a client's datagrams must acknowledge after a resync request (see
/// ResyncFunctions).
///
/// Until the server sends a full snapshot, the client's datagrams are rewritten to acknowledge no
/// snapshot. Afterwards they are rewritten to acknowledge the full snapshot, until the client
/// itself acknowledges it. An older acknowledgement would make the server send deltas to snapshots
/// that the observer never got. Datagrams of a client that sends rarely are not rewritten: its
/// next datagram, which acknowledges the full snapshot, would come too late.
class ResyncState {
  public:
    /// The shortest time between two resync requests for a session.
    static constexpr std::uint32_t kMinRequestIntervalMs = 5000;
    /// A resync request ends after this time if the server sends no full snapshot.
    static constexpr std::uint32_t kSnapshotTimeoutMs = 1000;
    /// How long datagrams are rewritten after the full snapshot: the longest round trip to a
    /// client.
    static constexpr std::uint32_t kRewriteTimeMs = 2000;
    /// Until the full snapshot, a datagram is not rewritten if it came after a longer pause.
    static constexpr std::uint32_t kMaxPauseMs = 250;

    // All times are milliseconds of one clock, which wraps.

    /// Starts a resync request. `last_datagram`: when the client's latest datagram came. Returns
    /// false if the previous request is too recent.
    bool begin_resync(std::uint32_t now, std::uint32_t last_datagram) noexcept;

    /// Returns whether a resync is in progress. The caller must then call next_acknowledgement()
    /// for the client's datagrams, and search the server's datagrams for a full snapshot.
    [[nodiscard]] bool is_in_progress() const noexcept { return stage_ != Stage::none; }

    /// Returns the tick of the snapshot that the client's next datagram must acknowledge; nullopt
    /// if the datagram must stay unchanged.
    [[nodiscard]] std::optional<std::int32_t> next_acknowledgement(std::uint32_t now) noexcept;

    /// Must be called after a datagram was rewritten. Returns whether it is the first rewritten
    /// datagram since the resync request.
    bool on_datagram_rewritten() noexcept;

    /// Must be called when the server sent a full snapshot.
    void on_full_snapshot(std::uint32_t now, std::int32_t tick) noexcept;

  private:
    enum class Stage : std::uint8_t {
        none,
        requested, ///< the server has sent no full snapshot yet
        answered,  ///< datagrams are rewritten to acknowledge the full snapshot
    };

    std::uint32_t request_began_ = 0;
    std::uint32_t stage_began_ = 0;
    std::uint32_t last_datagram_ = 0; ///< when the client's previous datagram came
    std::int32_t acknowledged_ = ResyncFunctions::kNoSnapshot;
    Stage stage_ = Stage::none;
    bool has_requested_ = false; ///< true after the first resync request
    /// True if a client datagram was rewritten since the latest request for a full snapshot.
    bool has_rewritten_ = false;
};

/// The most listening addresses of a server.
inline constexpr std::size_t kMaxListeners = 16;

/// The client address that the server sees for a session.
enum class ClientAddressMode : std::uint8_t {
    shared, ///< the relay's address for all clients; their sessions differ in port
    /// One address 127.x.y.z for each client address; the server must be on 127.0.0.0/8.
    loopback,
    transparent, ///< the client's own address and port (IP_TRANSPARENT: CAP_NET_ADMIN and routing)
    automatic,   ///< `loopback` if the server is on 127.0.0.0/8, else `shared`
};

/// A server and the relay's listening addresses for the server's clients.
struct ServerOptions {
    /// The host name or address of the server. If the name has several addresses, the relay uses
    /// the first IPv4 address.
    std::string host;
    std::uint16_t port = 0;
    /// For port 0 the system chooses a port (see Relay::listen_endpoints).
    std::vector<boost::asio::ip::udp::endpoint> listen{};

    friend bool operator==(const ServerOptions&, const ServerOptions&) = default;
};

/// The relay's settings. They do not change during the relay's lifetime.
struct Options {
    ServerOptions server; ///< the first server

    /// The most sessions per server, in all threads together. The default is eight times the number
    /// of clients on a full server (128).
    std::size_t max_sessions = 1024;
    /// A session is closed after this time without a datagram in either direction.
    std::chrono::milliseconds idle_timeout{60'000};
    /// The requested size of each socket's send buffer and receive buffer. The system may grant
    /// less (net.core.rmem_max).
    int socket_buffer_bytes = 4 * 1024 * 1024;
    /// The number of forwarding threads. Each thread has its own sockets (SO_REUSEPORT); a session
    /// stays with one thread.
    unsigned threads = 1;
    /// True: threads poll their sockets without sleeping. That gives the lowest latency, but
    /// occupies a processor core for each thread.
    bool busy_poll = false;
    ClientAddressMode client_address = ClientAddressMode::shared;
    /// True: the server may see one address for all clients if it is not on 127.0.0.0/8.
    bool allow_shared_address = true;
    /// The key from which clients' loopback addresses are derived.
    base::SipKey address_key{};
    /// The function that tells which clients are verified. Null: every client counts as verified
    /// from its first datagram on, and only the number of sessions is limited.
    DatagramJudge judge_datagram = nullptr;
    NewClientLimits new_client_limits{};
    /// The functions with which the relay answers common requests with earlier answers of the
    /// server. If they are null, the relay forwards such requests. Requires `judge_datagram`.
    AnswerFunctions answer_functions{};
    /// The functions for Relay::request_full_snapshot, which has no effect if they are null.
    ResyncFunctions resync_functions{};
    /// The impairment at the start; see Relay::set_impairment.
    Impairment impairment{};
};

} // namespace tw::relay
