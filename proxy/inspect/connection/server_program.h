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

/// How a 0.7 packet changed the state of its connection.
enum class SevenConnectionChange : std::uint8_t {
    none,
    established, ///< both sides completed a handshake
    midway,      ///< the packets so far show a 0.7 connection whose handshake was not seen
};

/// Tracks the 0.7 handshake and tokens of one client and server. The handshake is TOKEN, TOKEN,
/// CONNECT, ACCEPT. Each side chooses a token, and each packet contains the token that its receiver
/// chose. A TOKEN alone does not change the current connection.
class SevenHandshake {
  public:
    /// Handles a 0.7 control packet, which may belong to a handshake.
    [[nodiscard]] SevenConnectionChange
    on_control(wire::Direction direction, const wire::Packet& packet, const wire::Control& control);
    /// Handles a packet in 0.7's layout. Called while no connection is known.
    [[nodiscard]] SevenConnectionChange on_seven_packet(wire::Direction direction,
                                                        wire::Token token);
    /// Returns `midway`, for a running connection, if several packets of the client in a row have
    /// the same token. Used for recordings that contain only the client's packets.
    [[nodiscard]] SevenConnectionChange infer_from_client() const;
    /// Handles a packet of chunks whose token is not the current connection's. If both sides send
    /// such packets, they belong to a new connection, whose handshake was not seen.
    [[nodiscard]] SevenConnectionChange on_foreign_token(wire::Direction direction,
                                                         wire::Token token);

    /// Whether the packet contains the token that its receiver chose for the current connection.
    [[nodiscard]] bool token_fits(wire::Direction direction, const wire::Packet& packet);
    /// Whether this CLOSE ends an attempt to connect: the server rejects the client, for example
    /// because it is full, or the client stops trying, perhaps before it knows the server's token.
    [[nodiscard]] bool ends_handshake_attempt(wire::Direction direction,
                                              const wire::Packet& packet) const;

    /// Lets another handshake with the same tokens begin a new connection. Called when the server
    /// accepted chunks of the current connection, or the connection ended.
    void end_handshake() { fresh_ = false; }

    /// Whether a DDNet server sent the ACCEPT. DDNet appends its token to this packet.
    [[nodiscard]] bool is_accepted_by_ddnet() const { return ddnet_; }

    /// Continues a connection from a checkpoint. `ddnet`: whether the server is a DDNet server.
    void continue_connection(bool ddnet) { ddnet_ = ddnet; }

    /// Forgets all handshakes and tokens. Called when a 0.6 connection began.
    void reset() { *this = {}; }

  private:
    using Tokens = std::array<std::optional<wire::Token>, 2>;

    std::optional<wire::Token> client_; ///< the client's token, which the server's packets contain
    std::optional<wire::Token> server_; ///< the server's newest token; it changes every 16 seconds
    std::optional<wire::Token> server_before_; ///< the server's token before `server_`
    std::optional<wire::Token> connect_;       ///< the token in the client's CONNECT
    bool ddnet_ = false;
    /// The tokens of the current connection, by the direction of the packets that contain them.
    Tokens tokens_;
    std::array<int, 2> num_fitting_{}; ///< by direction: packets in a row with the same token
    bool fresh_ = false;               ///< the server has accepted no chunks of this connection yet
    Tokens foreign_tokens_; ///< by direction: the newest token that is not the connection's
    std::array<int, 2> num_foreign_{}; ///< by direction: packets in a row with the foreign token
};

/// A DDNet version as clients announce it: major * 1000 + minor * 10 + patch.
using DdnetVersion = std::int32_t;

/// Finds out which program and version a server runs: from the version that the server announces,
/// and from messages and objects that only some versions send. Such messages and objects outweigh
/// the announced version, because mods choose their version numbers freely.
class ServerProgram {
  public:
    /// Called when the server sent a server info. `version`: the version text in it, for example
    /// "0.6.4, 16.4", "0.6, 20.1.1" or "0.6.5".
    void on_info(std::string_view version);
    /// Called when the server sent a chat line that no player wrote. DDNet greets each new player
    /// with a line that contains the server's version.
    void on_chat(std::string_view line);
    /// Called when the server sent a message that is identified by a UUID.
    void on_uuid_message(const wire::MessageSpec& message);

    /// Called when the server sent a map change. DDNet sends its capabilities before the map
    /// change, so a server that has sent no DDNet message before is vanilla.
    void on_map_change() { vanilla_ = !ddnet_; }

    /// Searches a verified snapshot for objects that only some versions send.
    void on_snapshot(const snapshot::SnapshotView& items, const record::TypeNames& types);

    /// Forgets which messages and objects were seen, because the server may now run another
    /// version. Called when a new connection begins.
    void forget_evidence() {
        at_least_ = 0;
        below_ = kUnbounded;
        snapshots_ = 0;
    }

    [[nodiscard]] bool is_version_unannounced() const {
        return !announced_version_ && !says_vanilla_;
    }

    /// Whether the next snapshot should be passed to on_snapshot(): the server has not announced
    /// its version, and fewer than kEnoughSnapshots were examined.
    [[nodiscard]] bool wants_snapshots() const {
        return is_version_unannounced() && snapshots_ < kEnoughSnapshots;
    }

    /// Whether the server sent a message or object that only DDNet sends.
    [[nodiscard]] bool is_ddnet() const { return ddnet_; }

    [[nodiscard]] bool is_vanilla() const { return vanilla_ || (says_vanilla_ && !ddnet_); }

    /// Returns the announced version if messages and objects do not contradict it, otherwise the
    /// newest version that sends these messages and objects; nullopt if no upper limit is known.
    [[nodiscard]] std::optional<DdnetVersion> version() const;

    /// Whether a message id has the meaning that the message table lists. In some versions of
    /// servers, some ids have another meaning.
    enum class Interpretation : std::uint8_t {
        certain,  ///< the id has the meaning in the table
        likely,   ///< the version is unknown, but the body fits the message in the table
        mistaken, ///< this server uses the id for another message, which is unknown
    };
    /// Returns how to interpret the id of a message of this server.
    [[nodiscard]] Interpretation interpretation(const wire::MessageHeader& head) const;

  private:
    static constexpr DdnetVersion kUnbounded = std::numeric_limits<DdnetVersion>::max();
    /// The most snapshots that are examined (half a second of play), because some servers never
    /// send anything that shows their version.
    static constexpr int kEnoughSnapshots = 25;

    void require_since(DdnetVersion version);
    void require_before(DdnetVersion version);

    std::optional<DdnetVersion> announced_version_;
    DdnetVersion at_least_ = 0;
    DdnetVersion below_ = kUnbounded;
    bool ddnet_ = false;   ///< the server sent a message or object that vanilla does not have
    bool vanilla_ = false; ///< the server sent a map change without DDNet's messages before it
    bool says_vanilla_ = false;
    int snapshots_ = 0; ///< number of examined snapshots
};

} // namespace tw::inspect
