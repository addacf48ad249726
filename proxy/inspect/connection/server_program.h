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
    midway,      ///< packets fit a 0.7 connection whose handshake was not seen
};

/// The 0.7 handshake and tokens of one address pair: TOKEN, TOKEN, CONNECT, ACCEPT (0.7 sheet,
/// section 1.6). Each side chooses a token, and each packet carries its receiver's token.
/// Announcing a token alone changes nothing.
class SevenHandshake {
  public:
    /// A control packet of the handshake.
    [[nodiscard]] SevenChange on_control(wire::Direction direction, const wire::Packet& packet,
                                         const wire::Control& control);
    /// A packet with 0.7 layout, while no connection is known.
    [[nodiscard]] SevenChange on_seven_packet(wire::Direction direction, wire::Token token);
    /// Only the client was recorded: whether its packets agree on the token of a running
    /// connection.
    [[nodiscard]] SevenChange infer_from_client() const;
    /// A packet of chunks with a foreign token. Once both sides use foreign tokens, a new
    /// connection runs whose handshake was not seen.
    [[nodiscard]] SevenChange on_foreign_token(wire::Direction direction, wire::Token token);

    /// Whether a packet carries its receiver's token of the current connection.
    [[nodiscard]] bool token_fits(wire::Direction direction, const wire::Packet& packet);
    /// Whether a CLOSE ends an attempt to connect: a full server sends it, and a client that gives
    /// up may not know the server's token.
    [[nodiscard]] bool refuses(wire::Direction direction, const wire::Packet& packet) const;

    /// The server accepted chunks of the current connection, or the connection ended. From now on,
    /// the same handshake begins a new connection.
    void settle() { fresh_ = false; }

    /// Whether the accepting server is a DDNet server: DDNet appends its token to the ACCEPT.
    [[nodiscard]] bool accepted_by_ddnet() const { return ddnet_; }

    /// Takes over from another observer whether the server is a DDNet server.
    void take_up(bool ddnet) { ddnet_ = ddnet; }

    /// A connection of 0.6 began.
    void reset() { *this = {}; }

  private:
    using Tokens = std::array<std::optional<wire::Token>, 2>;

    std::optional<wire::Token> client_; ///< the client's token; the server's packets carry it
    /// The server's last two tokens. It chooses a new one every 16 seconds.
    std::optional<wire::Token> server_;
    std::optional<wire::Token> server_before_;
    std::optional<wire::Token> connect_; ///< the token in the client's CONNECT
    bool ddnet_ = false;
    /// The tokens of the current connection, by the direction of the packets that carry them.
    Tokens tokens_;
    std::array<int, 2> num_fitting_{}; ///< packets in a row with the same token
    bool fresh_ = false;               ///< the server has accepted no chunks of this connection yet
    /// Foreign tokens, and how many packets in a row carried them.
    Tokens foreign_tokens_;
    std::array<int, 2> num_foreign_{};
};

/// A DDNet version as clients announce it: major * 1000 + minor * 10 + patch.
using DdnetVersion = std::int32_t;

/// Which program and version a server runs, judged by its traffic: what it says, and which messages
/// and objects only some versions send. If the two contradict each other, the messages count: mods
/// number their versions freely.
class ServerProgram {
  public:
    /// The version text of a server info: "0.6.4, 16.4", "0.6, 20.1.1", "0.6.5".
    void on_info(std::string_view version);
    /// A chat line to all players. DDNet greets each new player with its version.
    void on_chat(std::string_view line);
    /// A message with a UUID from the server.
    void on_extended(const wire::MessageSpec& message);

    /// A map change. DDNet sends its capabilities first.
    void on_map_change() { vanilla_ = !ddnet_; }

    /// A verified snapshot.
    void on_snapshot(const snapshot::SnapshotView& items, const record::TypeNames& types);

    /// A new connection: the server may have been replaced by another version.
    void begin_anew() {
        at_least_ = 0;
        below_ = kUnbounded;
        snapshots_ = 0;
    }

    /// Whether the server has not told its version yet.
    [[nodiscard]] bool is_silent() const { return !announced_version_ && !says_vanilla_; }

    /// Whether further snapshots may reveal the version. Limited in number: some servers never show
    /// a difference.
    [[nodiscard]] bool wants_snapshots() const {
        return is_silent() && snapshots_ < kEnoughSnapshots;
    }

    /// Whether the server sent something that only DDNet sends.
    [[nodiscard]] bool is_ddnet() const { return ddnet_; }

    [[nodiscard]] bool is_vanilla() const { return vanilla_ || (says_vanilla_ && !ddnet_); }

    /// The newest version it can be; nullopt if that is today's.
    [[nodiscard]] std::optional<DdnetVersion> version() const;

    /// How certain the meaning of a message id is that only older versions use.
    enum class Reading : std::uint8_t {
        certain,  ///< the message is what the table says
        likely,   ///< the version is unknown, and nothing in the message contradicts the table
        mistaken, ///< the message is something else
    };
    /// How to read a message of this server.
    [[nodiscard]] Reading reading(const wire::MessageHead& head) const;

  private:
    static constexpr DdnetVersion kUnbounded = std::numeric_limits<DdnetVersion>::max();
    static constexpr int kEnoughSnapshots = 25; ///< half a second of play; DDNet greets at once

    void since(DdnetVersion version);
    void until(DdnetVersion version);

    std::optional<DdnetVersion> announced_version_;
    DdnetVersion at_least_ = 0;
    DdnetVersion below_ = kUnbounded;
    bool ddnet_ = false;   ///< sent something that vanilla does not have
    bool vanilla_ = false; ///< sent a map change without DDNet's messages before it
    bool says_vanilla_ = false;
    int snapshots_ = 0; ///< snapshots examined
};

} // namespace tw::inspect
