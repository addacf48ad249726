#pragma once

#include "proxy/wire/message.h"
#include "proxy/wire/packet.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace tw::inspect {

/// Whether twscope saw the start of a connection, or joined the running connection.
enum class ConnectionStart : bool { missed, seen };

/// The range of acknowledgements that a receiver accepts: from the newest accepted acknowledgement
/// to the newest vital chunk that the receiver sent. The receiver drops a packet whose
/// acknowledgement is outside this range.
///
/// Source: DDNet CNetConnection::Feed.
class AckWindow {
  public:
    /// Begins a new connection. If its start was seen, the range is empty, otherwise unknown.
    void reset(ConnectionStart start);

    /// Called when the receiver sent a vital chunk. Raises the upper bound of the range.
    void on_chunk_sent(std::uint16_t sequence);
    /// Returns whether the receiver accepts the acknowledgement. An accepted acknowledgement raises
    /// the lower bound of the range.
    [[nodiscard]] bool accept_ack(std::uint16_t ack);

    /// Returns whether `ack` is only a little above the range. After several such acknowledgements
    /// in a row, moves the range forward, because datagrams of the receiver must be missing in the
    /// recording.
    [[nodiscard]] bool accept_ack_above_range(std::uint16_t ack);

  private:
    [[nodiscard]] bool is_slightly_above_range(std::uint16_t ack) const;

    /// The newest accepted acknowledgement; nullopt if it is unknown, because the start of the
    /// connection was not seen.
    std::optional<std::uint16_t> accepted_;
    std::optional<std::uint16_t> newest_sent_;
    int num_above_ = 0; ///< number of acknowledgements in a row that were a little above the range
};

/// Tracks the order of one direction's vital chunks, as their receiver does. The receiver drops
/// chunks after a gap until the sender resends the missing chunk.
class VitalOrder {
  public:
    /// Classifies a vital chunk. If the result is `next`, the receiver processes the chunk.
    wire::VitalClass classify_chunk(std::uint16_t sequence, bool resend);

    /// Must be called if only the receiver's next acknowledgement will show whether the receiver
    /// accepted this chunk.
    void on_undecided_chunk(std::uint16_t sequence);

    /// Whether the receiver waits for a missing chunk and drops later chunks.
    [[nodiscard]] bool has_gap() const { return has_gap_; }

    /// Returns the number of chunks that the receiver accepted since the last reset().
    [[nodiscard]] unsigned num_accepted_chunks() const { return num_accepted_; }

    /// Called when the receiver acknowledged all chunks up to `ack`. Returns whether the receiver
    /// got chunks that twscope did not see. If `ack` includes the missing chunk, the dropped chunks
    /// count as accepted, too.
    bool on_ack(std::uint16_t ack);
    /// Begins a new connection. If its start was seen, the first sequence number must be 1.
    void reset(ConnectionStart start);

  private:
    void drop_chunk(std::uint16_t sequence);

    std::uint16_t last_accepted_ = 0;
    /// The receiver's newest acknowledgement before the first chunk that twscope saw. Shows whether
    /// a resent chunk is new if the start of the connection was not seen.
    std::optional<std::uint16_t> first_ack_;
    unsigned num_accepted_ = 0;
    bool is_synced_ = false;
    bool has_gap_ = false;            ///< a chunk was dropped, because an earlier one is missing
    std::uint16_t first_dropped_ = 0; ///< number of the first dropped chunk after the newest gap
    std::uint16_t last_dropped_ = 0;  ///< number of the last dropped chunk
};

/// Where a packet contains the token that proves that it belongs to a connection.
enum class TokenForm : std::uint8_t {
    unknown,
    none,    ///< nowhere, because the connection has no token: vanilla up to 0.6.4
    ddnet,   ///< in the last four bytes of the payload: DDNet 0.6
    vanilla, ///< in the four bytes after the header: vanilla 0.6.5
    seven,   ///< in every header; each direction has its own token: 0.7 (see SevenHandshake)
};

/// The largest number of chunks that a packet header can announce.
inline constexpr std::size_t kMaxChunks = 255;
using ChunkBuffer = std::array<wire::Chunk, kMaxChunks>;

/// The chunks of one packet. `chunks` points into the constructor's `room`, all other spans point
/// into the packet.
struct PacketChunks {
    /// `with_token`: whether the payload ends with DDNet's token, which receivers remove before
    /// they read chunks.
    PacketChunks(const wire::Packet& packet, bool with_token, ChunkBuffer& room);

    std::span<const wire::Chunk> chunks{};
    std::span<const std::byte> rest{};      ///< the bytes after the chunks: a token, or empty
    std::optional<wire::WireError> error{}; ///< set if the last chunk is truncated
};

/// How a packet changed the state of its connection.
enum class ConnectionChange : std::uint8_t {
    none,
    established,   ///< the packet completed a handshake and so began a connection
    joined_midway, ///< the packet shows a running connection whose handshake was not seen
};

/// Counts datagrams in a row with the same token. Enough of them show a connection whose handshake
/// was not seen.
struct TokenCount {
    std::optional<wire::Token> token{};
    int datagrams = 0; ///< number of datagrams in a row with this token

    int count_token(std::optional<wire::Token> other) {
        datagrams = token == other ? datagrams + 1 : 1;
        token = other;
        return datagrams;
    }
};

/// Tracks the 0.7 handshake and tokens of one client and server. The handshake is TOKEN, TOKEN,
/// CONNECT, ACCEPT. Each side chooses a token, and each packet contains the token that its receiver
/// chose. A TOKEN alone does not change the current connection.
class SevenHandshake {
  public:
    /// Handles a 0.7 control packet, which may belong to a handshake.
    [[nodiscard]] ConnectionChange on_control(wire::Direction direction, const wire::Packet& packet,
                                              const wire::Control& control);
    /// Handles a packet in 0.7's layout. Called while no connection is known.
    [[nodiscard]] ConnectionChange on_seven_packet(wire::Direction direction, wire::Token token);
    /// Returns `midway`, for a running connection, if several packets of the client in a row have
    /// the same token. Used for recordings that contain only the client's packets.
    [[nodiscard]] ConnectionChange infer_connection_from_client() const;
    /// Handles a packet of chunks whose token is not the current connection's. If both sides send
    /// such packets, they belong to a new connection, whose handshake was not seen.
    [[nodiscard]] ConnectionChange on_foreign_token(wire::Direction direction, wire::Token token);

    /// Whether the packet contains the token that its receiver chose for the current connection.
    [[nodiscard]] bool token_fits(wire::Direction direction, const wire::Packet& packet);
    /// Whether this CLOSE ends an attempt to connect: the server rejects the client, for example
    /// because it is full, or the client stops trying, perhaps before it knows the server's token.
    [[nodiscard]] bool ends_handshake_attempt(wire::Direction direction,
                                              const wire::Packet& packet) const;

    /// Lets another handshake with the same tokens begin a new connection. Called when the server
    /// accepted chunks of the current connection, or the connection ended.
    void allow_next_handshake() { fresh_ = false; }

    /// Whether a DDNet server sent the ACCEPT. DDNet appends its token to this packet.
    [[nodiscard]] bool is_accepted_by_ddnet() const { return ddnet_; }

    /// Continues a connection from a checkpoint. `ddnet`: whether the server is a DDNet server.
    void continue_connection(bool is_ddnet) { ddnet_ = is_ddnet; }

    /// Forgets all handshakes and tokens. Called when a 0.6 connection began.
    void reset() { *this = {}; }

  private:
    std::optional<wire::Token> client_; ///< the client's token, which the server's packets contain
    std::optional<wire::Token> server_; ///< the server's newest token; it changes every 16 seconds
    std::optional<wire::Token> server_before_; ///< the server's token before `server_`
    std::optional<wire::Token> connect_;       ///< the token in the client's CONNECT
    bool ddnet_ = false;
    bool fresh_ = false; ///< the server has accepted no chunks of this connection yet
    /// The tokens of the current connection, by the direction of the packets that contain them.
    std::array<TokenCount, 2> tokens_;
    std::array<TokenCount, 2>
        foreign_; ///< by direction: the newest token that is not the connection's
};

/// Tracks the handshake and token of the connection between one client address and one server
/// address. A new handshake between these addresses begins a new connection.
class Connection {
  public:
    [[nodiscard]] ConnectionChange on_control(wire::Direction direction, const wire::Packet& packet,
                                              const wire::Control& control);
    /// Whether the server accepts this ACCEPT, the client's last control packet of the handshake.
    [[nodiscard]] bool is_accept_valid(const wire::Control& control) const;
    /// Handles a packet of chunks. `is_one_sided`: whether the datagrams of only one side are
    /// recorded. The other side's state is then unknown.
    [[nodiscard]] ConnectionChange on_chunk_packet(wire::Direction direction,
                                                   const wire::Packet& packet,
                                                   const PacketChunks& chunks, bool is_one_sided);

    /// Whether the receiver accepts the token of this packet of chunks.
    [[nodiscard]] bool token_fits(const wire::Packet& packet,
                                  std::span<const std::byte> rest) const;

    [[nodiscard]] VitalOrder& vital_order(wire::Direction direction) {
        return order_[wire::index_of(direction)];
    }

    [[nodiscard]] bool is_established() const { return form_ != TokenForm::unknown; }

    [[nodiscard]] TokenForm form() const { return form_; }

    [[nodiscard]] std::optional<wire::Token> token() const { return token_; }

    [[nodiscard]] wire::Protocol protocol() const {
        return !is_established()           ? wire::Protocol::unknown
               : form_ == TokenForm::seven ? wire::Protocol::seven
                                           : wire::Protocol::six;
    }

    /// Returns the protocol that the next datagram most likely uses. It is unknown if the server
    /// answered a 0.6 handshake after the connection was closed, or during a 0.7 connection whose
    /// handshake was not seen: the client may then have switched to 0.6 without tokens.
    [[nodiscard]] wire::Protocol expected_protocol() const {
        return (closed_ || guessed_seven_) && handshake_.answered ? wire::Protocol::unknown
                                                                  : protocol();
    }

    /// Whether this is a 0.7 connection whose handshake was not seen.
    [[nodiscard]] bool is_guessed_seven() const { return guessed_seven_; }

    /// Returns the protocol's name in records; empty if unknown.
    [[nodiscard]] std::string_view protocol_name() const;

    /// Continues a running 0.6 connection from another observer process's checkpoint.
    [[nodiscard]] ConnectionChange continue_connection(TokenForm form,
                                                       std::optional<wire::Token> token) {
        return establish(form, token, ConnectionStart::missed);
    }

    /// Adopts a running connection if several packets of the client in a row have the same token.
    /// Used for recordings that contain only the client's packets.
    [[nodiscard]] ConnectionChange infer_connection_from_client();

    /// Starts a 0.7 connection, which replaces the current one.
    void begin_seven_connection(ConnectionStart start);

    /// Restarts the count of header tokens. Called when a datagram looks like a 0.7 packet.
    void on_seven_datagram() { header_tokens_ = {}; }

    /// Marks the connection as closed. Datagrams that are still in flight belong to it.
    void close() {
        closed_ = true;
        granted_.reset();
    }

    /// Forgets the closed connection. Later datagrams do not belong to it.
    void forget_closed_connection();

    [[nodiscard]] bool is_closed() const { return closed_; }

    /// Returns the range of acknowledgements that the receiver of this direction's packets accepts.
    [[nodiscard]] AckWindow& ack_window(wire::Direction direction) {
        return windows_[wire::index_of(direction)];
    }

    /// Called when copies of datagrams were lost. The next sequence numbers and acknowledgements
    /// are then accepted, whatever they are.
    void on_missed_datagrams() { reset_vital_order(ConnectionStart::missed); }

  private:
    /// A handshake in progress. It does not change the connection until it is complete.
    struct Handshake {
        bool answered = false;
        TokenForm form = TokenForm::unknown;
        std::optional<wire::Token> token{};
        /// The client sent an ACCEPT although no answer of the server was seen.
        bool accepted = false;
        std::optional<wire::Token> accepted_token{}; ///< the token of the client's ACCEPT
    };

    [[nodiscard]] bool is_open_with_ddnet_token() const {
        return !closed_ && form_ == TokenForm::ddnet;
    }

    ConnectionChange establish(TokenForm form, std::optional<wire::Token> token,
                               ConnectionStart start);
    /// Forgets the vital chunks and acknowledgements of both directions.
    void reset_vital_order(ConnectionStart start);
    /// Whether the packet is the first packet of the connection that `handshake_` sets up.
    [[nodiscard]] bool begins_connection(wire::Direction direction, const wire::Packet& packet,
                                         const PacketChunks& chunks, bool is_one_sided) const;
    ConnectionChange adopt_connection(wire::Direction direction, const wire::Packet& packet,
                                      const PacketChunks& chunks);

    bool closed_ = false;
    bool fresh_ = false;                  ///< no chunk was seen since the handshake
    bool guessed_seven_ = false;          ///< this is a 0.7 connection whose handshake was not seen
    TokenForm form_ = TokenForm::unknown; ///< unknown: no connection is established
    std::optional<wire::Token> token_;
    Handshake handshake_;
    /// The newest DDNet token that the server sent in a handshake. An ACCEPT with this token begins
    /// a connection, even after other answers of the server.
    std::optional<wire::Token> granted_;
    /// The token of the client's packets before the connection is known, and the token form of the
    /// newest of these packets. For infer_connection_from_client().
    TokenCount unanswered_;
    TokenForm unanswered_form_ = TokenForm::unknown;
    /// The token in the headers of the server's packets, before the connection is known.
    TokenCount header_tokens_;
    /// The newest token that is not the connection's, and the direction of its packet. If packets
    /// of both directions have this token, it belongs to a connection whose handshake was not seen.
    std::optional<wire::Token> foreign_token_;
    wire::Direction foreign_token_direction_ = wire::Direction::c2s;
    std::array<VitalOrder, 2> order_;
    std::array<AckWindow, 2> windows_;
};

} // namespace tw::inspect
