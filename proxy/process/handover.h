#pragma once

#include "proxy/base/clock.h"
#include "proxy/base/descriptors.h"
#include "proxy/base/endpoint.h"
#include "proxy/relay/counters.h"
#include "proxy/relay/handover.h"
#include "proxy/relay/options.h"
#include "proxy/relay/relay.h"

#include <chrono>
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

/// The messages between a running relay and the new one that takes over from it. The first three
/// have the same number and layout in every version.
enum class TakeoverMessage : std::uint8_t {
    hello = 1, ///< new relay: TakeoverHello
    refusal,   ///< old relay: a text with the reason
    busy,      ///< old relay: another takeover is in progress
    offer,     ///< old relay: TakeoverOffer, with the socket that accepts takeovers
    server,    ///< old relay: TakeoverServer
    listening, ///< old relay: some of that server's listening sockets
    ready,     ///< new relay: TakeoverSelection; its slow preparations are done
    sessions,  ///< old relay: some sessions, with a socket for each
    totals,    ///< old relay: relay::ServerState, one for each requested server
    rest,      ///< old relay: TakeoverRest; the old relay has stopped forwarding
    taken,     ///< new relay: everything was valid
    go,        ///< old relay: the new one may forward
    going,     ///< new relay: the new relay forwards
    left,      ///< old relay: TakeoverLeft; its observer has finished
};

/// One end of the connection between the two relays: ordered messages with descriptors.
class TakeoverLink {
  public:
    using Time = base::Clock::time_point;

    static constexpr std::size_t kMaxBytes = 65'536;
    /// Descriptors per message; Linux allows 253.
    static constexpr std::size_t kMaxDescriptors = 128;

    struct Message {
        TakeoverMessage word{};
        std::vector<std::byte> body;
        std::vector<base::UniqueFd> descriptors;
    };

    explicit TakeoverLink(base::UniqueFd socket) : socket_{std::move(socket)} {}

    /// Sends a message. Returns false if the peer is gone or does not read until the deadline.
    [[nodiscard]] bool send(TakeoverMessage word, std::span<const std::byte> body,
                            std::span<const int> descriptors, Time deadline) const;

    [[nodiscard]] bool send(TakeoverMessage word, Time deadline) const {
        return send(word, {}, {}, deadline);
    }

    /// Returns the next message; nullopt at the deadline or if the connection has ended (see
    /// closed()). A message that is too long or truncated ends the connection.
    [[nodiscard]] std::optional<Message> receive(Time deadline);

    [[nodiscard]] bool closed() const noexcept { return closed_; }

    /// Stops the peer from sending more. Messages sent before can still be received.
    void stop_receiving() const noexcept { ::shutdown(socket_.get(), SHUT_RD); }

    [[nodiscard]] int descriptor() const noexcept { return socket_.get(); }

    /// Whether the peer's process belongs to the same user or to root.
    [[nodiscard]] bool is_trusted() const noexcept;
    [[nodiscard]] bool is_of(pid_t process) const noexcept;

  private:
    [[nodiscard]] std::optional<Message> receive_now();

    base::UniqueFd socket_;
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

    /// Uses the socket of another relay. nullopt if the descriptor is no such socket.
    [[nodiscard]] static std::optional<TakeoverSocket> take_over(const std::filesystem::path& file,
                                                                 base::UniqueFd socket);

    /// Connects to the relay that listens there. Returns nullopt and sets errno if there is none.
    [[nodiscard]] static std::optional<TakeoverLink> ask(const std::filesystem::path& file);

    TakeoverSocket(TakeoverSocket&&) = default;
    TakeoverSocket& operator=(TakeoverSocket&&) = delete;
    TakeoverSocket(const TakeoverSocket&) = delete;
    TakeoverSocket& operator=(const TakeoverSocket&) = delete;
    /// Removes the file, unless another relay owns it by now.
    ~TakeoverSocket();

    /// Accepts a connection; nullopt if none is pending.
    [[nodiscard]] std::optional<TakeoverLink> accept() const;

    [[nodiscard]] int descriptor() const noexcept { return socket_.get(); }

    /// Leaves the file to another relay: the destructor will not remove it.
    void keep_file() noexcept { file_.clear(); }

  private:
    TakeoverSocket(std::filesystem::path file, base::UniqueFd socket)
        : file_{std::move(file)}, socket_{std::move(socket)} {}

    std::filesystem::path file_;
    base::UniqueFd socket_;
};

/// The first message of a new relay, with its version of the format. The version must change with
/// every change of the messages or of what they contain (relay::SessionState, relay::Counters,
/// wire::ProofState).
struct TakeoverHello {
    static constexpr std::string_view kName = "twscope takeover";
    static constexpr std::uint32_t kVersion = 5;

    std::uint32_t version = kVersion;
};

/// The description of a running relay, from which the new one sees whether it fits.
struct TakeoverOffer {
    std::uint64_t network = 0;  ///< the network namespace
    std::uint32_t servers = 0;  ///< number of servers
    std::uint32_t observer = 0; ///< the number of its last observer
};

/// The description of one server of the running relay.
struct TakeoverServer {
    static constexpr std::size_t kMaxHostName = 512; ///< host names have at most 255 bytes

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

/// The numbers of the servers that the new relay continues. Sessions of other servers end.
struct TakeoverSelection {
    std::vector<relay::ServerIndex> servers;
};

/// The rest of the old relay's state, which follows after the sessions.
struct TakeoverRest {
    std::int64_t held_at = 0; ///< when forwarding stopped: nanoseconds of base::Clock
    std::uint32_t sessions = 0;
    std::uint32_t numbered_sessions = 0; ///< as SharedBlock::numbered_sessions
    std::vector<std::byte> relay;        ///< relay::RelayState
};

/// The last message of the old relay.
struct TakeoverLeft {
    std::uint32_t numbered_sessions = 0;
};

[[nodiscard]] std::vector<std::byte> written(const TakeoverHello& greeting);
[[nodiscard]] std::vector<std::byte> written(const TakeoverOffer& offer);
[[nodiscard]] std::vector<std::byte> written(const TakeoverServer& server);
[[nodiscard]] std::vector<std::byte> written(const TakeoverSelection& selection);
[[nodiscard]] std::vector<std::byte> written(const TakeoverRest& rest);
[[nodiscard]] std::vector<std::byte> written(const TakeoverLeft& left);

/// Reads the bytes of a message. Errors: relay::HandoverError if the bytes are not such a message.
[[nodiscard]] TakeoverHello read_hello(std::span<const std::byte> in);
[[nodiscard]] TakeoverOffer read_offer(std::span<const std::byte> in);
[[nodiscard]] TakeoverServer read_server(std::span<const std::byte> in);
[[nodiscard]] TakeoverSelection read_selection(std::span<const std::byte> in);
[[nodiscard]] TakeoverRest read_rest(std::span<const std::byte> in);
[[nodiscard]] TakeoverLeft read_left(std::span<const std::byte> in);

/// Collects sessions for one message.
class SessionBatch {
  public:
    /// Adds a session in the format of relay::write. Returns false if the message is full.
    [[nodiscard]] bool add(std::span<const std::byte> session, int socket);

    [[nodiscard]] std::span<const std::byte> body() const { return body_; }

    [[nodiscard]] std::span<const int> sockets() const { return sockets_; }

    void clear();

  private:
    std::vector<std::byte> body_;
    std::vector<int> sockets_;
};

/// Reads the sessions of a message, one for each descriptor.
/// Errors: relay::HandoverError.
[[nodiscard]] std::vector<relay::SessionState> read_sessions(const TakeoverLink::Message& message);

/// The network namespace of this process; 0 if unknown.
[[nodiscard]] std::uint64_t own_network();

} // namespace tw::process
