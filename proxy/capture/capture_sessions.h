#pragma once

#include "proxy/capture/frame_reader.h"
#include "proxy/inspect/inspector.h"
#include "proxy/wire/message.h"

#include <array>
#include <cstdint>
#include <list>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace tw::capture {

/// Determines which side of a captured conversation is the server.
class ServerGuess {
  public:
    /// Adds a server. If any are added, only their traffic is used. A server is given by its port,
    /// or by address and port.
    void add_server(std::uint16_t port, std::optional<boost::asio::ip::address> address);

    /// Which traffic is used if no server was added.
    enum class Taken : std::uint8_t {
        everything, ///< use all traffic, because the capture contains only games
        game_ports, ///< use recognised traffic, and traffic on the ports of game servers
        /// Use recognised traffic only, because other programs of a network may use any port.
        recognised,
    };

    void take(Taken taken) { taken_ = taken; }

    [[nodiscard]] bool has_servers() const { return !wanted_.empty(); }

    enum class Side : std::uint8_t { source, destination, neither };
    /// Returns which end of this datagram is the server; `neither` if its traffic is not used.
    [[nodiscard]] Side server_side(const CapturedDatagram& datagram);

    /// True if the content shows that a client sent the datagram; the other end is the server then.
    /// Servers never send such content, but clients may send anything. Always false if servers were
    /// added.
    [[nodiscard]] bool shows_client(const CapturedDatagram& datagram);

  private:
    struct Wanted {
        std::uint16_t port;
        std::optional<boost::asio::ip::address> address;
    };

    [[nodiscard]] bool is_wanted(const CaptureEndpoint& endpoint) const;
    [[nodiscard]] Side recognised_side(const CapturedDatagram& datagram);
    void remember(const CaptureEndpoint& server);

    std::vector<Wanted> wanted_;
    Taken taken_ = Taken::everything;
    std::set<CaptureEndpoint> servers_; ///< servers found so far, at most kMaxServers
};

/// Why a session of a capture ended.
enum class Ended : std::uint8_t {
    idle,
    displaced, ///< closed to make room for a new connection
    /// Server and client were confused. The session starts again with the sides exchanged.
    turned,
};

/// Receives sessions as the relay reports live ones.
class SessionReceiver {
  public:
    SessionReceiver() = default;
    virtual ~SessionReceiver() = default;
    SessionReceiver(const SessionReceiver&) = delete;
    SessionReceiver& operator=(const SessionReceiver&) = delete;
    SessionReceiver(SessionReceiver&&) = delete;
    SessionReceiver& operator=(SessionReceiver&&) = delete;

    /// A session began. `key`: number of the session, from 1.
    virtual void on_open(std::uint64_t key, std::int64_t time, const CaptureEndpoint& client,
                         const CaptureEndpoint& server) = 0;
    /// Passes on a datagram of the session. `next`: see inspect::Inspector.
    virtual void on_datagram(std::uint64_t key, std::int64_t time, wire::Direction direction,
                             std::span<const std::byte> bytes, std::span<const std::byte> next) = 0;

    /// A datagram belongs to no session. An earlier call may have passed that datagram as `next`.
    virtual void on_passed_over() {}

    /// The recorder truncated one of the session's datagrams, so its content is unknown.
    virtual void on_cut(std::uint64_t /*key*/, std::int64_t /*time*/) {}

    /// Restores the state of a session from inspect::encode_checkpoint().
    virtual void on_state(std::uint64_t /*key*/, std::span<const std::byte> /*state*/) {}

    virtual void on_end(std::uint64_t key, std::int64_t time, Ended why) = 0;
};

/// Passes the sessions of files directly to the inspector.
class InspectedSessions final : public SessionReceiver {
  public:
    /// `pseudonym_key`: empty shows client addresses as they are.
    InspectedSessions(inspect::Inspector& inspector, std::string pseudonym_key)
        : inspector_{&inspector}, pseudonym_key_{std::move(pseudonym_key)} {}

    void on_open(std::uint64_t key, std::int64_t time, const CaptureEndpoint& client,
                 const CaptureEndpoint& server) override;
    void on_datagram(std::uint64_t key, std::int64_t time, wire::Direction direction,
                     std::span<const std::byte> bytes, std::span<const std::byte> next) override;

    void on_passed_over() override { inspector_->on_passed_over(); }

    void on_cut(std::uint64_t key, std::int64_t time) override;

    void on_state(std::uint64_t key, std::span<const std::byte> state) override;
    void on_end(std::uint64_t key, std::int64_t time, Ended why) override;

  private:
    inspect::Inspector* inspector_;
    std::string pseudonym_key_;
};

/// Turns the datagrams of a capture into the calls that the relay makes for live traffic. Sessions
/// open with their first datagram and close when idle, by the capture's own clock.
///
/// If all places are taken, a new connection replaces the session that was silent longest among
/// those without a connection, or else among those whose connection was not answered for a while. A
/// connected session is never replaced.
class CaptureSessions {
  public:
    struct Limits {
        std::int64_t idle_timeout = 60'000'000'000; ///< nanoseconds, as the relay's default
        std::size_t max_sessions = 65536;           ///< sessions open at the same time
    };

    CaptureSessions(SessionReceiver& receiver, ServerGuess& guess, Limits limits)
        : receiver_{&receiver}, guess_{&guess}, limits_{limits} {}

    void on_datagram(const CapturedDatagram& datagram);
    /// Advances the time without a datagram.
    void on_time(std::int64_t now);

    [[nodiscard]] std::size_t num_open() const { return open_.size(); }

    [[nodiscard]] std::uint64_t ignored() const { return ignored_; }

    [[nodiscard]] std::uint64_t refused() const { return refused_; }

    /// Truncated datagrams of open sessions.
    [[nodiscard]] std::uint64_t cut() const { return cut_; }

    [[nodiscard]] std::int64_t now() const { return now_; }

  private:
    using Pair = std::pair<CaptureEndpoint, CaptureEndpoint>; ///< client and server

    struct PairHash {
        std::size_t operator()(const Pair& pair) const;
    };

    /// How far a session got. A higher state is not replaced by a lower one.
    enum class Standing : std::uint8_t {
        asked,   ///< no connection, only requests for information
        begun,   ///< a connection with one side seen
        answered ///< a connection with both sides seen
    };

    using Line = std::list<const Pair*>; ///< sessions of one standing, the longest silent first

    struct Open {
        std::uint64_t key = 0;
        std::int64_t last = 0;
        bool sure = false;          ///< the content has shown which side is the client
        std::array<bool, 2> seen{}; ///< directions of the connection in which a datagram was seen
        Standing standing = Standing::asked;
        Line::iterator place{};
    };

    using Sessions = std::unordered_map<Pair, Open, PairHash>;

    [[nodiscard]] Sessions::iterator find(const CapturedDatagram& datagram,
                                          wire::Direction& direction);
    [[nodiscard]] Sessions::iterator open(const CapturedDatagram& datagram);
    void on_cut(Sessions::iterator session);
    [[nodiscard]] bool make_room(bool connection);
    void note(Sessions::iterator session, wire::Direction direction, bool connection);
    void end(Sessions::iterator session, Ended why);
    void close_idle();

    SessionReceiver* receiver_;
    ServerGuess* guess_;
    Limits limits_;
    Sessions open_;
    std::array<Line, 3> lines_; ///< by standing
    std::uint64_t next_key_ = 1;
    std::uint64_t ignored_ = 0;
    std::uint64_t refused_ = 0;
    std::uint64_t cut_ = 0;
    std::int64_t now_ = 0;
    std::int64_t next_sweep_ = 0;
};

} // namespace tw::capture
