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

/// What a running relay and the one that takes over from it say to each other. The first three keep
/// their numbers and their layout in every version.
enum class TakeoverWord : std::uint8_t {
    hello = 1, ///< from the new one: TakeoverGreeting
    refusal,   ///< from the old one: a text that says why not
    busy,      ///< from the old one: not now, because of another takeover
    offer,     ///< from the old one: TakeoverOffer, and the socket that takeovers ask at
    server,    ///< from the old one: TakeoverServer
    listening, ///< from the old one: some of the listening sockets of that one
    ready,     ///< from the new one: TakeoverWish; all that is slow is done
    sessions,  ///< from the old one: some sessions, and a socket for each
    totals,    ///< from the old one: relay::ServerState, of each wished for
    rest,      ///< from the old one: TakeoverRest; it forwards no more
    taken,     ///< from the new one: all was as it has to be
    go,        ///< from the old one: forward
    going,     ///< from the new one: it does
    left,      ///< from the old one: its observer has written what was left; TakeoverLeft
};

/// One end of the line between the two: whole messages with descriptors, in order.
class TakeoverLink {
  public:
    using Time = base::Clock::time_point;

    static constexpr std::size_t kMaxBytes = 65'536;
    /// The system takes 253 at once.
    static constexpr std::size_t kMaxDescriptors = 128;

    struct Message {
        TakeoverWord word{};
        std::vector<std::byte> body;
        std::vector<base::UniqueFd> descriptors;
    };

    explicit TakeoverLink(base::UniqueFd socket) : socket_{std::move(socket)} {}

    /// Nothing where the other end is gone, or takes nothing until then.
    [[nodiscard]] bool send(TakeoverWord word, std::span<const std::byte> body,
                            std::span<const int> descriptors, Time deadline) const;

    [[nodiscard]] bool send(TakeoverWord word, Time deadline) const {
        return send(word, {}, {}, deadline);
    }

    /// The next message; nothing when none came until then, or none will (see closed()). What is
    /// longer than it may be, or was cut, counts as the end of the line.
    [[nodiscard]] std::optional<Message> receive(Time deadline);

    [[nodiscard]] bool closed() const noexcept { return closed_; }

    /// The other end can say nothing more, and hears so. What it said before can be received.
    void stop_receiving() const noexcept { ::shutdown(socket_.get(), SHUT_RD); }

    [[nodiscard]] int descriptor() const noexcept { return socket_.get(); }

    /// Whether the other end's process belongs to our user, or to root.
    [[nodiscard]] bool is_trusted() const noexcept;
    [[nodiscard]] bool is_of(pid_t process) const noexcept;

  private:
    [[nodiscard]] std::optional<Message> receive_now();

    base::UniqueFd socket_;
    bool closed_ = false;
};

/// The socket in the state folder at which those who take over ask.
class TakeoverDoor {
  public:
    /// Its file. `listen`: the first address that clients connect to, as it was asked for: relays
    /// that share a folder differ by it.
    [[nodiscard]] static std::filesystem::path path_of(const std::filesystem::path& folder,
                                                       const std::string& listen);

    /// Makes the file, with mode 0600, in the place of one that a run left behind. Nothing, with
    /// errno, where it cannot; EADDRINUSE: another relay is there.
    [[nodiscard]] static std::optional<TakeoverDoor> open(const std::filesystem::path& file);

    /// That of another relay. Nothing where the descriptor is no such socket.
    [[nodiscard]] static std::optional<TakeoverDoor> take_over(const std::filesystem::path& file,
                                                               base::UniqueFd socket);

    /// Asks there. Nothing, with errno, where nobody is.
    [[nodiscard]] static std::optional<TakeoverLink> ask(const std::filesystem::path& file);

    TakeoverDoor(TakeoverDoor&&) = default;
    TakeoverDoor& operator=(TakeoverDoor&&) = delete;
    TakeoverDoor(const TakeoverDoor&) = delete;
    TakeoverDoor& operator=(const TakeoverDoor&) = delete;
    /// Removes the file, unless it is another's by now.
    ~TakeoverDoor();

    /// One that asks; nothing where there is none.
    [[nodiscard]] std::optional<TakeoverLink> accept() const;

    [[nodiscard]] int descriptor() const noexcept { return socket_.get(); }

    /// The file is another's from now on.
    void keep_file() noexcept { file_.clear(); }

  private:
    TakeoverDoor(std::filesystem::path file, base::UniqueFd socket)
        : file_{std::move(file)}, socket_{std::move(socket)} {}

    std::filesystem::path file_;
    base::UniqueFd socket_;
};

/// What a new relay says first: who it is, and which version of the format it speaks. Every change
/// of what is handed over, or of what stands in it (relay::SessionState, relay::Counters,
/// wire::ProofState), is a new version.
struct TakeoverGreeting {
    static constexpr std::string_view kName = "twscope takeover";
    static constexpr std::uint32_t kVersion = 5;

    std::uint32_t version = kVersion;
};

/// What a running relay says of itself, so that another one can see whether it fits.
struct TakeoverOffer {
    std::uint64_t network = 0;  ///< the network namespace
    std::uint32_t servers = 0;  ///< that it forwards to
    std::uint32_t observer = 0; ///< the number of its last observer
};

/// What it says of each of its servers.
struct TakeoverServer {
    static constexpr std::size_t kMaxHostName = 512; ///< host names have at most 255 bytes

    relay::ServerIndex number = 0; ///< there
    std::string name{};            ///< of the configuration; empty: it is the only one
    std::vector<base::Endpoint> listen{};
    std::uint32_t listening_sockets = 0;
    base::Endpoint server{};
    std::string host_name{};              ///< "game.test:8303"; empty: it goes by an address
    std::vector<base::Endpoint> former{}; ///< where it was before
    relay::ClientAddress mode = relay::ClientAddress::shared;
};

/// Which of those the new one goes on with, by their numbers; the others' sessions end.
struct TakeoverWish {
    std::vector<relay::ServerIndex> servers;
};

/// What stands behind the sessions.
struct TakeoverRest {
    std::int64_t held_at = 0; ///< when it stopped forwarding: nanoseconds of relay::Clock
    std::uint32_t sessions = 0;
    std::uint32_t numbered_sessions = 0; ///< as SharedBlock
    std::vector<std::byte> relay;        ///< relay::RelayState
};

/// What the old one says when it ends.
struct TakeoverLeft {
    std::uint32_t numbered_sessions = 0;
};

[[nodiscard]] std::vector<std::byte> written(const TakeoverGreeting& greeting);
[[nodiscard]] std::vector<std::byte> written(const TakeoverOffer& offer);
[[nodiscard]] std::vector<std::byte> written(const TakeoverServer& server);
[[nodiscard]] std::vector<std::byte> written(const TakeoverWish& wish);
[[nodiscard]] std::vector<std::byte> written(const TakeoverRest& rest);
[[nodiscard]] std::vector<std::byte> written(const TakeoverLeft& left);

/// Errors: relay::HandoverError for what no relay says.
[[nodiscard]] TakeoverGreeting read_greeting(std::span<const std::byte> in);
[[nodiscard]] TakeoverOffer read_offer(std::span<const std::byte> in);
[[nodiscard]] TakeoverServer read_server(std::span<const std::byte> in);
[[nodiscard]] TakeoverWish read_wish(std::span<const std::byte> in);
[[nodiscard]] TakeoverRest read_rest(std::span<const std::byte> in);
[[nodiscard]] TakeoverLeft read_left(std::span<const std::byte> in);

/// Several sessions as one message holds them; sessions are added as long as they fit.
class SessionBatch {
  public:
    /// False: it is full. `session`: as relay::write writes it.
    [[nodiscard]] bool add(std::span<const std::byte> session, int socket);

    [[nodiscard]] std::span<const std::byte> body() const { return body_; }

    [[nodiscard]] std::span<const int> sockets() const { return sockets_; }

    void clear();

  private:
    std::vector<std::byte> body_;
    std::vector<int> sockets_;
};

/// The sessions of a message: as many as it has descriptors.
/// Errors: relay::HandoverError.
[[nodiscard]] std::vector<relay::SessionState> read_sessions(const TakeoverLink::Message& message);

/// The network namespace this process is in; 0 where nobody can tell.
[[nodiscard]] std::uint64_t own_network();

} // namespace tw::process
