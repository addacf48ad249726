#pragma once

#include "proxy/base/archive.h"
#include "proxy/base/clock.h"
#include "proxy/base/descriptors.h"
#include "proxy/relay/handover.h"
#include "proxy/relay/options.h"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include <sys/socket.h>
#include <sys/types.h>

namespace tw::process {

/// The messages between a running relay and the new one that takes over from it. The first three
/// have the same number and layout in every version.
enum class TakeoverMessage : std::uint8_t {
    hello = 1, ///< new relay: TakeoverHello
    refusal,   ///< old relay: a text with the reason
    busy,      ///< old relay: another takeover is in progress
    offer,     ///< old relay: TakeoverOffer, with its takeover socket and listening sockets
    ready,     ///< new relay: TakeoverSelection; its slow preparations are done
    state, ///< old relay, which has stopped forwarding: TakeoverState, with a socket per session
    going, ///< new relay: it forwards
    left,  ///< old relay: TakeoverLeft; its observer has finished
};

/// One end of the connection between the two relays: ordered messages with descriptors. A message
/// is sent in as many packets as it needs.
class TakeoverLink {
  public:
    using Time = base::Clock::time_point;

    static constexpr std::size_t kMaxPacket = 65'536;
    /// Descriptors per packet; Linux allows 253.
    static constexpr std::size_t kMaxDescriptors = 128;
    /// The longest message: a session takes a few hundred bytes, or 4 KiB until it is announced.
    static constexpr std::size_t kMaxMessage = std::size_t{256} << 20U;

    struct Message {
        TakeoverMessage kind{};
        std::vector<std::byte> body;
        std::vector<base::UniqueFd> descriptors;
    };

    /// `longest`: a longer message from the peer ends the connection; a descriptor counts as an int.
    explicit TakeoverLink(base::UniqueFd socket, std::size_t longest = kMaxMessage)
        : socket_{std::move(socket)}, longest_{longest} {}

    /// Sends a message. Returns false if the peer is gone or does not read until the deadline.
    [[nodiscard]] bool send(TakeoverMessage kind, std::span<const std::byte> body,
                            std::span<const int> descriptors, Time deadline) const;

    [[nodiscard]] bool send(TakeoverMessage kind, Time deadline) const {
        return send(kind, {}, {}, deadline);
    }

    /// Returns the next message; nullopt if it is not complete at the deadline, or the connection
    /// has ended (see closed()). A packet that is truncated or belongs to another message than the
    /// one before it, and a message that is too long, end the connection.
    [[nodiscard]] std::optional<Message> receive(Time deadline);

    [[nodiscard]] bool closed() const noexcept { return closed_; }

    /// Stops the peer from sending more. Messages sent before can still be received.
    void stop_receiving() const noexcept { ::shutdown(socket_.get(), SHUT_RD); }

    [[nodiscard]] int descriptor() const noexcept { return socket_.get(); }

    /// Whether the peer's process belongs to the same user or to root.
    [[nodiscard]] bool is_trusted() const noexcept;
    [[nodiscard]] bool is_of(pid_t process) const noexcept;

  private:
    enum class Arrived : std::uint8_t { nothing, part, message };

    [[nodiscard]] bool send_packet(std::uint8_t head, std::span<const std::byte> bytes,
                                   std::span<const int> descriptors, Time deadline) const;
    [[nodiscard]] Arrived receive_packet();

    base::UniqueFd socket_;
    std::size_t longest_;
    Message arriving_; ///< the packets of a message that is not complete yet
    bool closed_ = false;
};

/// The socket in the state folder that accepts takeover requests.
class TakeoverSocket {
  public:
    /// The path of the socket. `listen`: the first listen address as configured; it distinguishes
    /// relays that share a folder.
    [[nodiscard]] static std::filesystem::path path_of(const std::filesystem::path& folder,
                                                       const std::string& listen);

    /// Creates the socket with mode 0600 and replaces a stale file. Returns nullopt and sets errno
    /// on failure; EADDRINUSE: another relay uses it.
    [[nodiscard]] static std::optional<TakeoverSocket> open(const std::filesystem::path& file);

    /// Connects to the relay that listens there. Returns nullopt and sets errno if there is none.
    [[nodiscard]] static std::optional<TakeoverLink> ask(const std::filesystem::path& file);

    /// Continues with a socket that another relay has opened. `file`: the path of that socket.
    TakeoverSocket(std::filesystem::path file, base::UniqueFd socket)
        : file_{std::move(file)}, socket_{std::move(socket)} {}

    TakeoverSocket(TakeoverSocket&&) = default;
    TakeoverSocket& operator=(TakeoverSocket&&) = delete;
    TakeoverSocket(const TakeoverSocket&) = delete;
    TakeoverSocket& operator=(const TakeoverSocket&) = delete;
    /// Removes the file, unless another relay owns it by now.
    ~TakeoverSocket();

    /// Accepts a connection, for short messages from the peer; nullopt if none is pending.
    [[nodiscard]] std::optional<TakeoverLink> accept() const;

    [[nodiscard]] int descriptor() const noexcept { return socket_.get(); }

    /// Leaves the file to another relay: the destructor will not remove it.
    void keep_file() noexcept { file_.clear(); }

  private:
    std::filesystem::path file_;
    base::UniqueFd socket_;
};

/// The first message of a new relay, with the version of its messages. The version must change with
/// every change of the messages or of what they contain (relay::RelayState, relay::Counters,
/// wire::ProofState).
struct TakeoverHello {
    static constexpr std::string_view kName = "twscope takeover";
    static constexpr std::uint32_t kVersion = 6;

    std::string name{kName};
    std::uint32_t version = kVersion;
};

auto members(base::Of<TakeoverHello> auto& hello) {
    return std::tie(hello.name, hello.version);
}

struct TakeoverServer {
    relay::ServerIndex number = 0; ///< its number in the running relay
    std::string name{};            ///< its name in the configuration; empty for a single server
    std::vector<base::Endpoint> listen{};
    std::uint32_t listening_sockets = 0;
    base::Endpoint server{};
    /// The server's host name and port, such as "game.test:8303"; empty if the server is configured
    /// by address.
    std::string host_name{};
    std::vector<base::Endpoint> former{}; ///< its earlier addresses
    relay::ClientAddress mode = relay::ClientAddress::shared;
};

auto members(base::Of<TakeoverServer> auto& server) {
    return std::tie(server.number, server.name, server.listen, server.listening_sockets,
                    server.server, server.host_name, server.former, server.mode);
}

/// The description of a running relay, from which the new one sees whether it fits.
struct TakeoverOffer {
    std::uint64_t network = 0;  ///< the network namespace
    std::uint32_t observer = 0; ///< the number of its last observer
    std::vector<TakeoverServer> servers{};
};

auto members(base::Of<TakeoverOffer> auto& offer) {
    return std::tie(offer.network, offer.observer, offer.servers);
}

/// The numbers of the servers that the new relay continues. Sessions of other servers end.
struct TakeoverSelection {
    std::vector<relay::ServerIndex> servers;
};

auto members(base::Of<TakeoverSelection> auto& selection) {
    return std::tie(selection.servers);
}

/// The state that the new relay continues.
struct TakeoverState {
    std::int64_t held_at = 0;            ///< when forwarding stopped: nanoseconds of base::Clock
    std::uint32_t numbered_sessions = 0; ///< as SharedBlock::numbered_sessions
    relay::RelayState relay{};
};

auto members(base::Of<TakeoverState> auto& state) {
    return std::tie(state.held_at, state.numbered_sessions, state.relay);
}

/// The last message of the old relay.
struct TakeoverLeft {
    std::uint32_t numbered_sessions = 0;
};

auto members(base::Of<TakeoverLeft> auto& left) {
    return std::tie(left.numbered_sessions);
}

} // namespace tw::process
