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

/// Tells which side of a captured conversation is the server.
class ServerGuess {
  public:
    /// With servers given only their traffic counts; once for each. Its port alone, or address and
    /// port.
    void only(std::uint16_t port, std::optional<boost::asio::ip::address> address);

    /// What counts where no server is given.
    enum class Taken : std::uint8_t {
        everything, ///< there is nothing but games
        game_ports, ///< what shows what it is, and what has a port of game servers
        recognised, ///< what shows what it is: a network has other traffic on any port
    };

    void take(Taken taken) { taken_ = taken; }

    [[nodiscard]] bool has_servers() const { return !wanted_.empty(); }

    enum class Side : std::uint8_t { source, destination, neither };
    /// Which end of this datagram is the server; `neither`: not traffic of a server asked for, or
    /// not taken.
    [[nodiscard]] Side server_side(const CapturedDatagram& datagram);

    /// Whether a client sent this, by its content; then the other end is the server. No server sends
    /// what clients do, but a client may send whatever it likes. Never with servers given.
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
    std::set<CaptureEndpoint> servers_; ///< found so far; bounded by kMaxServers
};

/// Why a session of a capture is over.
enum class Ended : std::uint8_t {
    idle,
    displaced, ///< another one needed its place
    turned,    ///< what was taken for its server is the client: it begins anew
};

/// Told of sessions as the relay tells of live ones.
class SessionReceiver {
  public:
    SessionReceiver() = default;
    virtual ~SessionReceiver() = default;
    SessionReceiver(const SessionReceiver&) = delete;
    SessionReceiver& operator=(const SessionReceiver&) = delete;
    SessionReceiver(SessionReceiver&&) = delete;
    SessionReceiver& operator=(SessionReceiver&&) = delete;

    /// `key`: the session's, from 1.
    virtual void on_open(std::uint64_t key, std::int64_t time, const CaptureEndpoint& client,
                         const CaptureEndpoint& server) = 0;
    /// `next`: as inspect::Inspector has it.
    virtual void on_datagram(std::uint64_t key, std::int64_t time, wire::Direction direction,
                             std::span<const std::byte> bytes, std::span<const std::byte> next) = 0;

    /// A datagram belongs to no session; it may have been announced as `next`.
    virtual void on_passed_over() {}

    /// The recorder cut one of the session's datagrams: nobody can tell what it was.
    virtual void on_cut(std::uint64_t /*key*/, std::int64_t /*time*/) {}

    /// What is known of a session that somebody saw before, as inspect::encode_checkpoint writes it.
    virtual void on_state(std::uint64_t /*key*/, std::span<const std::byte> /*state*/) {}

    virtual void on_end(std::uint64_t key, std::int64_t time, Ended why) = 0;
};

/// Sessions of files: straight to who inspects.
class InspectedSessions final : public SessionReceiver {
  public:
    /// `pseudonym_key`: empty: client addresses as they are.
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

/// Turns the datagrams of a capture into the calls the relay makes for live traffic: sessions open
/// with their first datagram and close when idle, by the capture's own clock.
///
/// When all places are taken, a connection gets that of the longest silent one who only asked without
/// a connection, else of one that was not answered for a while. Who is connected keeps its place.
class CaptureSessions {
  public:
    struct Limits {
        std::int64_t idle_timeout = 60'000'000'000; ///< nanoseconds, as the relay's default
        std::size_t max_sessions = 65536;           ///< open at one time
    };

    CaptureSessions(SessionReceiver& receiver, ServerGuess& guess, Limits limits)
        : receiver_{&receiver}, guess_{&guess}, limits_{limits} {}

    void on_datagram(const CapturedDatagram& datagram);
    /// Nothing came, and it is as late as this.
    void on_time(std::int64_t now);

    [[nodiscard]] std::size_t num_open() const { return open_.size(); }

    [[nodiscard]] std::uint64_t ignored() const { return ignored_; }

    [[nodiscard]] std::uint64_t refused() const { return refused_; }

    /// Of sessions that were open.
    [[nodiscard]] std::uint64_t cut() const { return cut_; }

    [[nodiscard]] std::int64_t now() const { return now_; }

  private:
    using Pair = std::pair<CaptureEndpoint, CaptureEndpoint>; ///< client, server

    struct PairHash {
        std::size_t operator()(const Pair& pair) const;
    };

    /// Later ones hold their place against earlier ones.
    enum class Standing : std::uint8_t {
        asked,   ///< no connection: requests for information
        begun,   ///< a connection of which one side was seen
        answered ///< both were
    };

    using Line = std::list<const Pair*>; ///< of one standing, the longest silent first

    struct Open {
        std::uint64_t key = 0;
        std::int64_t last = 0;
        bool sure = false; ///< the client has shown that it is one: the sides stay as they are
        std::array<bool, 2> seen{}; ///< in a connection, by direction
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
