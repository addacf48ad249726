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
    [[nodiscard]] bool is_above_range(std::uint16_t ack) const;

    /// The newest accepted acknowledgement; nullopt if it is unknown, because the start of the
    /// connection was not seen.
    std::optional<std::uint16_t> newest_accepted_ack_;
    std::optional<std::uint16_t> newest_sent_chunk_;
    /// Number of acknowledgements in a row that were a little above the range.
    int num_acks_above_range_ = 0;
};

/// Tracks the order of one direction's vital chunks, as their receiver does. The receiver drops
/// chunks after a gap until the sender resends the missing chunk.
class VitalChunkOrder {
  public:
    /// Classifies a vital chunk. If the result is `next`, the receiver processes the chunk.
    wire::VitalClass classify_chunk(std::uint16_t sequence, bool resend);

    /// Must be called if only the receiver's next acknowledgement will show whether the receiver
    /// accepted this chunk.
    void on_undecided_chunk(std::uint16_t sequence);

    /// Whether the receiver waits for a missing chunk and drops later chunks.
    [[nodiscard]] bool has_gap() const { return has_gap_; }

    /// Returns the number of chunks that the receiver accepted since the last reset().
    [[nodiscard]] unsigned num_accepted_chunks() const { return num_accepted_chunks_; }

    /// Called when the receiver acknowledged all chunks up to `ack`. Returns whether the receiver
    /// got chunks that twscope did not see. If `ack` includes the missing chunk, the dropped chunks
    /// count as accepted, too.
    bool on_ack(std::uint16_t ack);
    /// Begins a new connection. If its start was seen, the first sequence number must be 1.
    void reset(ConnectionStart start);

  private:
    void store_dropped_chunk(std::uint16_t sequence);

    std::uint16_t last_accepted_chunk_ = 0;
    /// The receiver's newest acknowledgement before the first chunk that twscope saw. Shows whether
    /// a resent chunk is new if the start of the connection was not seen.
    std::optional<std::uint16_t> ack_before_first_chunk_;
    unsigned num_accepted_chunks_ = 0;
    bool is_position_known_ = false; ///< `last_accepted_chunk_` is set
    bool has_gap_ = false;           ///< a chunk was dropped, because an earlier one is missing
    /// Number of the first dropped chunk after the newest gap.
    std::uint16_t first_dropped_chunk_ = 0;
    std::uint16_t last_dropped_chunk_ = 0;
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

/// The chunks of one packet. `chunks` points into the constructor's `buffer`, all other spans point
/// into the packet.
struct PacketChunks {
    /// `ends_with_token`: whether the payload ends with DDNet's token, which receivers remove
    /// before they read chunks.
    PacketChunks(const wire::Packet& packet, bool ends_with_token, ChunkBuffer& buffer);

    std::span<const wire::Chunk> chunks{};
    std::span<const std::byte> trailing_bytes{}; ///< the bytes after the chunks: a token, or empty
    std::optional<wire::WireError> error{};      ///< set if the last chunk is truncated
};

/// How a packet changed the state of its connection.
enum class ConnectionChange : std::uint8_t {
    none,
    established,   ///< the packet completed a handshake and so began a connection
    joined_midway, ///< the packet shows a running connection whose handshake was not seen
};

/// Counts consecutive datagrams with the same token. Several such datagrams show a connection whose
/// handshake was not seen.
struct RepeatedTokenCounter {
    std::optional<wire::Token> token{};
    int num_datagrams = 0; ///< number of consecutive datagrams with this token

    int count_datagram_with(std::optional<wire::Token> other) {
        num_datagrams = token == other ? num_datagrams + 1 : 1;
        token = other;
        return num_datagrams;
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
    /// Returns `joined_midway` if several packets of the client in a row have the same token, which
    /// shows a running connection. Used for recordings that contain only the client's packets.
    [[nodiscard]] ConnectionChange infer_connection_from_client() const;
    /// Handles a packet of chunks whose token is not the current connection's. If both sides send
    /// such packets, they belong to a new connection, whose handshake was not seen.
    [[nodiscard]] ConnectionChange on_foreign_token(wire::Direction direction, wire::Token token);

    /// Whether the packet contains the token that its receiver chose for the current connection.
    [[nodiscard]] bool has_expected_token(wire::Direction direction, const wire::Packet& packet);
    /// Whether this CLOSE ends an attempt to connect. A server rejects a client with a CLOSE, for
    /// example if the server is full. A client stops trying with a CLOSE, perhaps before it knows
    /// the server's token.
    [[nodiscard]] bool ends_handshake_attempt(wire::Direction direction,
                                              const wire::Packet& packet) const;

    /// Lets another handshake with the same tokens begin a new connection. Called when the server
    /// accepted chunks of the current connection, or the connection ended.
    void allow_next_handshake() { awaits_first_chunks_ = false; }

    /// Whether a DDNet server sent the ACCEPT. DDNet appends its token to this packet.
    [[nodiscard]] bool is_accepted_by_ddnet() const { return is_accepted_by_ddnet_; }

    /// Continues a connection from a checkpoint. `is_ddnet`: whether the server is a DDNet server.
    void continue_connection(bool is_ddnet) { is_accepted_by_ddnet_ = is_ddnet; }

    /// Forgets all handshakes and tokens. Called when a 0.6 connection began.
    void reset() { *this = {}; }

  private:
    /// The client's token, which the server's packets contain.
    std::optional<wire::Token> client_token_;
    /// The server's newest token. Servers change their token every 16 seconds.
    std::optional<wire::Token> server_token_;
    /// The server's token before `server_token_`.
    std::optional<wire::Token> previous_server_token_;
    std::optional<wire::Token> connect_token_;
    bool is_accepted_by_ddnet_ = false;
    bool awaits_first_chunks_ = false; ///< the server accepted no chunks of this connection so far
    /// The tokens of the current connection, by the direction of the packets that contain them.
    std::array<RepeatedTokenCounter, 2> connection_tokens_;
    /// The newest token of each direction that is not the connection's token.
    std::array<RepeatedTokenCounter, 2> foreign_tokens_;
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
    [[nodiscard]] bool has_expected_token(const wire::Packet& packet,
                                          std::span<const std::byte> rest) const;

    [[nodiscard]] VitalChunkOrder& vital_order(wire::Direction direction) {
        return vital_orders_[wire::index_of(direction)];
    }

    [[nodiscard]] bool is_established() const { return token_form_ != TokenForm::unknown; }

    [[nodiscard]] TokenForm token_form() const { return token_form_; }

    [[nodiscard]] std::optional<wire::Token> token() const { return token_; }

    [[nodiscard]] wire::Protocol protocol() const {
        return !is_established()                 ? wire::Protocol::unknown
               : token_form_ == TokenForm::seven ? wire::Protocol::seven
                                                 : wire::Protocol::six;
    }

    /// Returns the protocol that the next datagram most likely uses. Returns `unknown` if the
    /// server answered a 0.6 handshake after the connection was closed, or during a 0.7 connection
    /// whose handshake was not seen. The client may then have switched to 0.6 without tokens.
    [[nodiscard]] wire::Protocol expected_protocol() const {
        return (is_closed_ || is_guessed_seven_) && handshake_.is_answered ? wire::Protocol::unknown
                                                                           : protocol();
    }

    /// Whether this is a 0.7 connection whose handshake was not seen.
    [[nodiscard]] bool is_guessed_seven() const { return is_guessed_seven_; }

    /// Returns the protocol's name in records; empty if unknown.
    [[nodiscard]] std::string_view protocol_name() const;

    /// Continues a running 0.6 connection from another observer process's checkpoint.
    [[nodiscard]] ConnectionChange continue_connection(TokenForm form,
                                                       std::optional<wire::Token> token) {
        return establish_connection(form, token, ConnectionStart::missed);
    }

    /// Adopts a running connection if several packets of the client in a row have the same token.
    /// Used for recordings that contain only the client's packets.
    [[nodiscard]] ConnectionChange infer_connection_from_client();

    /// Starts a 0.7 connection, which replaces the current one.
    void begin_seven_connection(ConnectionStart start);

    /// Restarts the count of header tokens. Called when a datagram looks like a 0.7 packet.
    void on_seven_datagram() { header_token_counter_ = {}; }

    /// Marks the connection as closed. Datagrams that are still in flight belong to it.
    void close() {
        is_closed_ = true;
        granted_token_.reset();
    }

    /// Forgets the closed connection. Later datagrams do not belong to it.
    void forget_closed_connection();

    [[nodiscard]] bool is_closed() const { return is_closed_; }

    /// Returns the range of acknowledgements that the receiver of this direction's packets accepts.
    [[nodiscard]] AckWindow& ack_window(wire::Direction direction) {
        return ack_windows_[wire::index_of(direction)];
    }

    /// Called when copies of datagrams were lost. The next sequence numbers and acknowledgements
    /// are then accepted, whatever they are.
    void on_missed_datagrams() { reset_vital_order(ConnectionStart::missed); }

  private:
    /// A handshake in progress. It does not change the connection until it is complete.
    struct Handshake {
        bool is_answered = false;
        TokenForm token_form = TokenForm::unknown;
        std::optional<wire::Token> token{};
        /// Whether the client sent an ACCEPT. Used if no answer of the server was seen.
        bool is_accept_seen = false;
        std::optional<wire::Token> accept_token{};
    };

    [[nodiscard]] bool is_open_with_ddnet_token() const {
        return !is_closed_ && token_form_ == TokenForm::ddnet;
    }

    ConnectionChange establish_connection(TokenForm form, std::optional<wire::Token> token,
                                          ConnectionStart start);
    /// Forgets the vital chunks and acknowledgements of both directions.
    void reset_vital_order(ConnectionStart start);
    /// Whether the packet is the first packet of the connection that `handshake_` sets up.
    [[nodiscard]] bool begins_connection(wire::Direction direction, const wire::Packet& packet,
                                         const PacketChunks& chunks, bool is_one_sided) const;
    ConnectionChange adopt_connection(wire::Direction direction, const wire::Packet& packet,
                                      const PacketChunks& chunks);

    bool is_closed_ = false;
    bool awaits_first_chunk_ = false; ///< no chunk was seen since the handshake
    bool is_guessed_seven_ = false;   ///< this is a 0.7 connection whose handshake was not seen
    TokenForm token_form_ = TokenForm::unknown; ///< unknown: no connection is established
    std::optional<wire::Token> token_;
    Handshake handshake_;
    /// The newest DDNet token that the server sent in a handshake. An ACCEPT with this token begins
    /// a connection, even after other answers of the server.
    std::optional<wire::Token> granted_token_;
    /// The token of the client's packets before the connection is known, and the token form of the
    /// newest of these packets. Used by infer_connection_from_client().
    RepeatedTokenCounter client_token_counter_;
    TokenForm client_token_form_ = TokenForm::unknown;
    /// The token in the headers of the server's packets, before the connection is known.
    RepeatedTokenCounter header_token_counter_;
    /// The newest token that is not the connection's token, and the direction of its packet. If
    /// packets of both directions have this token, it belongs to a connection whose handshake was
    /// not seen.
    std::optional<wire::Token> foreign_token_;
    wire::Direction foreign_token_direction_ = wire::Direction::c2s;
    std::array<VitalChunkOrder, 2> vital_orders_;
    std::array<AckWindow, 2> ack_windows_;
};

} // namespace tw::inspect
