#pragma once

#include "proxy/record/records.h"
#include "proxy/wire/message.h"
#include "proxy/wire/packet.h"
#include "snapshot/snapshot.h"

#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <string_view>

namespace tw::inspect {

/// What a packet of 0.7 did to the connection.
enum class SevenChange : std::uint8_t {
    none,
    established, ///< both sides completed a handshake
    midway,      ///< packets fit a 0.7 connection of which nothing was known
};

/// The handshake and tokens of 0.7 on one address pair: TOKEN, TOKEN, CONNECT, ACCEPT (0.7 sheet,
/// section 1.6). Each side draws a token, and every packet carries its receiver's. An announcement
/// alone changes nothing.
class SevenHandshake {
  public:
    /// A control packet of the handshake.
    [[nodiscard]] SevenChange on_control(wire::Direction direction, const wire::Packet& packet,
                                         const wire::Control& control);
    /// A packet that is laid out as 0.7, seen where nothing is known.
    [[nodiscard]] SevenChange on_fitting(wire::Direction direction, wire::Token token);
    /// No server was heard: what its client's packets agree on is a connection of which one side was
    /// seen.
    [[nodiscard]] SevenChange take_one_side() const;
    /// A packet of chunks that is not of the connection at hand. Once both sides agree, they are of
    /// one whose handshake passed unseen.
    [[nodiscard]] SevenChange on_stranger(wire::Direction direction, wire::Token token);

    /// Whether a packet of the connection at hand carries its receiver's token.
    [[nodiscard]] bool token_fits(wire::Direction direction, const wire::Packet& packet);
    /// Whether a CLOSE is about a connection that does not exist yet: a server that is full answers
    /// so, and a client that gives up may not know the server's token.
    [[nodiscard]] bool refuses(wire::Direction direction, const wire::Packet& packet) const;

    /// The server took chunks of the connection at hand, or it is over: the same handshake begins
    /// another one now.
    void settle() { fresh_ = false; }

    /// The server that accepted is one of DDNet: it puts its token behind the ACCEPT.
    [[nodiscard]] bool accepted_by_ddnet() const { return ddnet_; }

    /// Another observer knew whether the server is one of DDNet.
    void take_up(bool ddnet) { ddnet_ = ddnet; }

    /// A connection of 0.6 began.
    void reset() { *this = {}; }

  private:
    using Tokens = std::array<std::optional<wire::Token>, 2>;

    std::optional<wire::Token> client_; ///< announced by the client: what the server writes
    /// Announced by the server, which draws another every 16 seconds: the last two.
    std::optional<wire::Token> server_;
    std::optional<wire::Token> server_before_;
    std::optional<wire::Token> connect_; ///< the one that the client's CONNECT carries
    bool ddnet_ = false;
    /// The tokens of the connection at hand, by the direction of the packets that carry them.
    Tokens tokens_;
    std::array<int, 2> fitting_{}; ///< packets in a row that fit, with one token
    bool fresh_ = false;           ///< the server has no chunks of the connection at hand
    /// Tokens that are not the connection's, and how often they came in a row.
    Tokens strangers_;
    std::array<int, 2> strange_{};
};

/// A DDNet version as clients announce it: major * 1000 + minor * 10 + patch.
using DdnetVersion = std::int32_t;

/// What program a server is, as far as its own traffic shows: what it says of itself, and messages
/// and objects that only some versions send. Where the two contradict each other, what it sends
/// counts: mods number their versions as they like.
///
/// Sources: protocol sheet, sections 5.3, 7.2 and 11; DDNet CGameContext::OnClientEnter and
///          CServer::CacheServerInfo, which print GAME_VERSION.
class ServerProgram {
  public:
    /// The version of a server info: "0.6.4, 16.4", "0.6, 20.1.1", "0.6.5".
    void on_info(std::string_view version);
    /// A line of chat to everybody. DDNet greets who enters with its version.
    void on_chat(std::string_view line);
    /// A message from the server, one of those with a UUID.
    void on_extended(const wire::MessageSpec& message);

    /// A map change. DDNet sends its capabilities first.
    void on_map_change() { vanilla_ = !ddnet_; }

    /// A verified snapshot.
    void on_snapshot(const snapshot::SnapshotView& items, const record::TypeNames& types);

    /// A new connection: the program may be another, but most likely is not.
    void begin_anew() {
        at_least_ = 0;
        below_ = kUnbounded;
        snapshots_ = 0;
    }

    /// Whether it still has to be asked for what it says of itself.
    [[nodiscard]] bool is_silent() const { return !said_ && !says_vanilla_; }

    /// Whether snapshots may still tell more. Not for ever: a server may never show what differs.
    [[nodiscard]] bool wants_snapshots() const {
        return is_silent() && snapshots_ < kEnoughSnapshots;
    }

    /// It sent what only DDNet sends.
    [[nodiscard]] bool is_ddnet() const { return ddnet_; }

    [[nodiscard]] bool is_vanilla() const { return vanilla_ || (says_vanilla_ && !ddnet_); }

    /// The newest it can be; nothing when that is today's.
    [[nodiscard]] std::optional<DdnetVersion> version() const;

    /// What is known of a message whose number only older versions send.
    enum class Reading : std::uint8_t {
        certain,  ///< it is what the table says
        likely,   ///< the version is unknown, and nothing in the message contradicts the table
        mistaken, ///< it is something else
    };
    /// How to read a message of this server.
    [[nodiscard]] Reading reading(const wire::MessageHead& head) const;

  private:
    static constexpr DdnetVersion kUnbounded = std::numeric_limits<DdnetVersion>::max();
    static constexpr int kEnoughSnapshots = 25; ///< half a second of play; DDNet greets at once

    void since(DdnetVersion version);
    void until(DdnetVersion version);

    std::optional<DdnetVersion> said_;
    DdnetVersion at_least_ = 0;
    DdnetVersion below_ = kUnbounded;
    bool ddnet_ = false;   ///< sends what vanilla does not know
    bool vanilla_ = false; ///< sent a map, and nothing that DDNet sends before
    bool says_vanilla_ = false;
    int snapshots_ = 0; ///< that were looked at
};

} // namespace tw::inspect
