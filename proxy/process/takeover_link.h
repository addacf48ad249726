#pragma once

#include "proxy/base/clock.h"
#include "proxy/base/descriptors.h"
#include "proxy/relay/options.h"
#include "proxy/relay/session.h"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <sys/socket.h>
#include <sys/types.h>

namespace tw::process {

/// The messages between a running relay (the old relay) and the relay that takes over from it (the
/// new relay). The first three messages have the same number and layout in every version.
enum class TakeoverMessage : std::uint8_t {
    hello = 1, ///< from the new relay: TakeoverHello
    refusal,   ///< from the old relay: why it rejects the takeover, as text
    busy,      ///< from the old relay: another takeover is in progress
    /// From the old relay: TakeoverOffer, with the takeover socket and the listening sockets.
    offer,
    /// From the new relay, whose slow preparations are finished: the numbers of the servers that it
    /// continues, as a vector of relay::ServerIndex. Sessions of other servers end.
    ready,
    /// From the old relay, which has stopped forwarding: TakeoverState, with a socket per session.
    state,
    forwarding, ///< from the new relay: it forwards
    /// From the old relay: its observer has finished. Contains the highest session number in its
    /// records, as a 32-bit number.
    ended,
};

/// One end of the connection between the old and the new relay. It carries messages with
/// descriptors, in order. A long message is sent in several packets.
class TakeoverLink {
  public:
    using Time = base::Clock::time_point;

    static constexpr std::size_t kMaxPacketBytes = 65'536;
    /// The longest message, in bytes. A session takes a few hundred bytes; a session that is not
    /// announced to the observer takes up to 4 KiB.
    static constexpr std::size_t kMaxMessageBytes = std::size_t{256} << 20U;

    struct Message {
        TakeoverMessage kind{};
        std::vector<std::byte> body;
        std::vector<base::UniqueFd> descriptors;
    };

    /// `max_message`: the longest message that the peer may send, in bytes; a descriptor counts as
    /// sizeof(int). A longer message ends the connection.
    explicit TakeoverLink(base::UniqueFd socket, std::size_t max_message = kMaxMessageBytes)
        : socket_{std::move(socket)}, max_message_{max_message} {}

    /// Sends a message. Returns false if the peer is gone, or does not read until the deadline.
    [[nodiscard]] bool send(TakeoverMessage kind, std::span<const std::byte> body,
                            std::span<const int> descriptors, Time deadline) const;

    [[nodiscard]] bool send(TakeoverMessage kind, Time deadline) const {
        return send(kind, {}, {}, deadline);
    }

    /// Returns the next message; nullopt if the message is not complete at the deadline, or the
    /// connection has ended (see is_closed()). The connection ends if a packet is truncated, if a
    /// message begins before the previous message is complete, or if a message is too long.
    [[nodiscard]] std::optional<Message> receive(Time deadline);

    [[nodiscard]] bool is_closed() const noexcept { return closed_; }

    /// Blocks further messages from the peer. Earlier messages can still be received.
    void stop_receiving() const noexcept { ::shutdown(socket_.get(), SHUT_RD); }

    [[nodiscard]] int descriptor() const noexcept { return socket_.get(); }

    /// Returns whether the peer's process belongs to this process's user or to root, and is not
    /// `excluded` (0: no process).
    [[nodiscard]] bool is_trusted(pid_t excluded = 0) const noexcept;

  private:
    [[nodiscard]] bool send_packet(std::uint8_t first_byte, std::span<const std::byte> bytes,
                                   std::span<const int> descriptors, Time deadline) const;
    [[nodiscard]] bool add_packet(base::ReceivedPacket& packet, std::span<const std::byte> bytes);

    base::UniqueFd socket_;
    std::size_t max_message_;
    Message incomplete_; ///< the received part of a message that is not complete yet
    bool closed_ = false;
};

/// The listening socket in the state folder to which new relays connect.
class TakeoverSocket {
  public:
    /// Returns the path of a relay's takeover socket. `listen`: the relay's first listening
    /// address, as configured; it distinguishes relays that share a folder.
    [[nodiscard]] static std::filesystem::path path_of(const std::filesystem::path& folder,
                                                       const std::string& listen);

    /// Creates the socket with mode 0600. Replaces the file of a relay that has ended. Returns
    /// nullopt and sets errno on failure; EADDRINUSE: another relay uses the file.
    [[nodiscard]] static std::optional<TakeoverSocket> open(const std::filesystem::path& file);

    /// Connects to the relay that listens on this file. Returns nullopt and sets errno on failure.
    [[nodiscard]] static std::optional<TakeoverLink> connect(const std::filesystem::path& file);

    /// Takes over a socket that another relay has opened. `file`: the path of the socket.
    TakeoverSocket(std::filesystem::path file, base::UniqueFd socket)
        : file_{std::move(file)}, socket_{std::move(socket)} {}

    TakeoverSocket(TakeoverSocket&&) = default;
    TakeoverSocket& operator=(TakeoverSocket&&) = delete;
    TakeoverSocket(const TakeoverSocket&) = delete;
    TakeoverSocket& operator=(const TakeoverSocket&) = delete;
    /// Removes the file, unless the object was moved from or keep_socket_file() was called.
    ~TakeoverSocket();

    /// Accepts a connection from a new relay; nullopt on failure. Limits the peer's messages to
    /// 1024 bytes.
    [[nodiscard]] std::optional<TakeoverLink> accept() const;

    [[nodiscard]] int descriptor() const noexcept { return socket_.get(); }

    /// Makes the destructor leave the file in place, for another relay.
    void keep_socket_file() noexcept { file_.clear(); }

  private:
    std::filesystem::path file_;
    base::UniqueFd socket_;
};

/// The first message of a new relay. kVersion must be increased with every change of the messages
/// or of their parts (relay::HandedOverState, relay::Counters, wire::ClientTrustState).
struct TakeoverHello {
    static constexpr std::string_view kName = "twscope takeover";
    static constexpr std::uint32_t kVersion = 8;

    std::string name{kName};
    std::uint32_t version = kVersion;
    /// kExampleClient as the new relay's records show it. The text shows whether both relays use
    /// the same secret for pseudonyms. Empty: the new relay has no observer, or did not send the
    /// text.
    std::string example_client{};
};

/// The client address whose recorded form TakeoverHello::example_client contains.
inline constexpr std::string_view kExampleClient = "192.0.2.1:8303";

struct TakeoverServer {
    relay::ServerIndex number = 0; ///< the server's number in the old relay
    std::string name{}; ///< the server's name in the configuration; empty for a single server
    std::vector<base::Endpoint> listen_endpoints{};
    std::uint32_t num_listening_sockets = 0;
    base::Endpoint server_endpoint{};
    /// The configured host name and port, such as "game.test:8303"; empty if an IP address is
    /// configured.
    std::string host_name{};
    relay::ClientAddressMode mode = relay::ClientAddressMode::shared;
};

/// Describes the old relay, so that the new relay can decide whether it can take over.
struct TakeoverOffer {
    /// The number of the old relay's network namespace; 0 if unknown.
    std::uint64_t network_namespace = 0;
    std::uint32_t observer_number = 0; ///< the number of the old relay's latest observer
    std::vector<TakeoverServer> servers{};
};

/// The state of the old relay, with which the new relay continues.
struct TakeoverState {
    /// When the old relay stopped forwarding, in nanoseconds of base::Clock.
    std::int64_t paused_at = 0;
    /// The highest session number in the records of the old relay's observers.
    std::uint32_t last_recorded_session = 0;
    relay::HandedOverState relay{};
};

} // namespace tw::process
