#pragma once

#include "proxy/wire/message.h"
#include "proxy/wire/packet.h"

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace tw::inspect {

/// The range of acknowledgements that one receiver accepts: from the last accepted one up to the
/// newest vital chunk it sent. It drops a packet with any other acknowledgement.
///
/// Source: DDNet CNetConnection::Feed; protocol sheet, item 10 of section 10.
class AckWindow {
  public:
    /// `from_start`: nothing was sent or acknowledged before.
    void reset(bool from_start);

    /// The receiver sent this vital chunk.
    void sent(std::uint16_t sequence);
    /// Whether the receiver accepts the acknowledgement. After that, it accepts no older one.
    [[nodiscard]] bool take(std::uint16_t ack);

    /// For captures that may lack datagrams: whether `ack` is only slightly ahead of what the
    /// receiver is known to have sent. If several acknowledgements in a row are, the receiver's
    /// datagrams are missing, and the window moves forward.
    [[nodiscard]] bool take_little_ahead(std::uint16_t ack);

  private:
    [[nodiscard]] bool is_little_ahead(std::uint16_t ack) const;

    /// The last accepted acknowledgement; nullopt if unknown, because the connection was first seen
    /// midway.
    std::optional<std::uint16_t> taken_;
    std::optional<std::uint16_t> newest_;
    int ahead_ = 0; ///< acknowledgements in a row that were slightly ahead
};

/// The order of one direction's vital chunks as the receiver tracks it: chunks after a gap are
/// dropped and sent again (protocol sheet, sections 4.3 and 4.5).
class VitalOrder {
  public:
    /// Classifies a vital chunk; the receiver processes it if the result is `next`.
    wire::VitalClass take(std::uint16_t sequence, bool resend);

    /// Skips a chunk that may or may not have been accepted; the next acknowledgement tells.
    void skip_chunk(std::uint16_t sequence);

    /// Whether the receiver waits for a missing chunk and drops the ones after it.
    [[nodiscard]] bool waiting() const { return gap_; }

    /// Number of chunks accepted since the last reset or resynchronisation.
    [[nodiscard]] unsigned taken() const { return taken_; }

    /// The receiver acknowledges all chunks up to `ack`. If this observer waits for one of them,
    /// that chunk passed unseen and will not be resent, so waiting ends; the chunks dropped after
    /// it were accepted too. Returns true if chunks passed unseen.
    bool acknowledged(std::uint16_t ack);
    /// `synced`: the connection was seen from its start, so the first sequence is 1.
    void reset(bool synced);

  private:
    void drop(std::uint16_t sequence);

    std::uint16_t last_ = 0;
    /// The last acknowledgement, if the connection was first seen midway. A complete resend is then
    /// not taken for old chunks.
    std::optional<std::uint16_t> acknowledged_;
    unsigned taken_ = 0;
    bool synced_ = false;
    bool gap_ = false; ///< a chunk was dropped because one before it is missing
    /// The last run of dropped chunks.
    std::uint16_t first_dropped_ = 0;
    std::uint16_t last_dropped_ = 0;
};

/// How packets prove that they belong to a connection.
enum class TokenForm : std::uint8_t {
    unknown,
    none,    ///< vanilla up to 0.6.4
    ddnet,   ///< four bytes at the end of the payload
    vanilla, ///< 0.6.5: after the header
    seven,   ///< 0.7: in every header, one token for each direction (server_program.h)
};

/// What a packet changed about the connection.
enum class ConnectionChange : std::uint8_t {
    none,
    established, ///< a connection was seen from its start
    midway,      ///< a running connection was found: the server talks to this client
};

/// The handshake and token of the connection on one address pair. A new handshake on the pair
/// starts a new connection (protocol sheet, sections 1.4 to 1.7 and item 5 of section 10).
class Connection {
  public:
    [[nodiscard]] ConnectionChange on_control(wire::Direction direction, const wire::Packet& packet,
                                              const wire::Control& control);
    /// Whether the server accepts this ACCEPT.
    [[nodiscard]] bool takes_accept(const wire::Control& control) const;
    /// `rest`: the bytes after the chunks. `first`: the packet's first chunk, null if it has none.
    /// `whole`: no chunk is truncated.
    [[nodiscard]] ConnectionChange on_chunks(wire::Direction direction, const wire::Packet& packet,
                                             std::span<const std::byte> rest,
                                             const wire::Chunk* first, bool whole);

    /// Whether only one side was recorded, so that the other side's state is unknown.
    void set_one_side_recorded(bool half) { one_side_recorded_ = half; }

    /// Whether the receiver accepts the token of a packet of chunks.
    [[nodiscard]] bool token_fits(const wire::Packet& packet,
                                  std::span<const std::byte> rest) const;

    [[nodiscard]] VitalOrder& order(wire::Direction direction) {
        return order_[wire::index_of(direction)];
    }

    [[nodiscard]] bool established() const { return established_; }

    [[nodiscard]] TokenForm form() const { return form_; }

    [[nodiscard]] std::optional<wire::Token> token() const { return token_; }

    [[nodiscard]] wire::Protocol protocol() const { return protocol_; }

    /// The protocol the next datagram most likely uses. Unknown after a handshake answered on a
    /// closed or guessed 0.7 connection: the client may have switched to 0.6 without tokens.
    [[nodiscard]] wire::Protocol expected() const {
        return (closed_ || guessed_seven_) && handshake_.answered ? wire::Protocol::unknown
                                                                  : protocol_;
    }

    /// Whether this is a 0.7 connection whose handshake was not seen.
    [[nodiscard]] bool is_guessed_seven() const { return guessed_seven_; }

    /// The protocol's name in records; empty if unknown.
    [[nodiscard]] std::string_view protocol_name() const;

    /// Continues a running 0.6 connection that another observer saw from its start.
    [[nodiscard]] ConnectionChange take_up(TokenForm form, std::optional<wire::Token> token);

    /// Only the client was recorded: takes the token its packets agree on as that of a running
    /// connection.
    [[nodiscard]] ConnectionChange infer_from_client();

    /// A 0.7 connection replaces the current one.
    void begin_seven(bool from_start);

    /// A datagram that can only belong to 0.7 passed.
    void on_seven() { header_tokens_ = {}; }

    /// The connection is closed. Datagrams still in flight belong to it.
    void close() {
        closed_ = true;
        granted_.reset();
    }

    /// Forgets the closed connection: no datagram belongs to it any more.
    void forget();

    [[nodiscard]] bool closed() const { return closed_; }

    /// The acknowledgements that the receiver of this direction accepts.
    [[nodiscard]] AckWindow& window(wire::Direction direction) {
        return windows_[wire::index_of(direction)];
    }

    /// Copies of datagrams were lost: sequence numbers may have advanced unseen.
    void resynchronise();

  private:
    /// A handshake in progress. It has no effect until it is complete.
    struct Handshake {
        bool connect = false;
        bool answered = false;
        TokenForm form = TokenForm::unknown;
        std::optional<wire::Token> token{};
        /// The client continued as if it had been answered.
        bool accepted = false;
        std::optional<wire::Token> accepted_token{};
    };

    /// The token that the datagrams of a possibly running connection agree on.
    struct Agreement {
        std::optional<wire::Token> token{};
        int datagrams = 0;                   ///< datagrams in a row with this token
        TokenForm form = TokenForm::unknown; ///< token form of the last datagram

        int count(std::optional<wire::Token> other) {
            datagrams = token == other ? datagrams + 1 : 1;
            token = other;
            return datagrams;
        }
    };

    /// Whether a connection with DDNet's token is open.
    [[nodiscard]] bool runs_with_token() const {
        return established_ && !closed_ && form_ == TokenForm::ddnet;
    }

    ConnectionChange establish(bool from_start);
    /// Whether the packet is the first packet of the connection set up by the handshake.
    [[nodiscard]] bool begins(wire::Direction direction, const wire::Packet& packet,
                              std::span<const std::byte> rest, const wire::Chunk* first) const;
    /// Whether enough packets have a token in their header. One packet is not enough: in 0.7 the
    /// same bit requests a resend.
    [[nodiscard]] bool has_token_in_headers(wire::Token token, bool has_chunks);
    ConnectionChange adopt(wire::Direction direction, const wire::Packet& packet,
                           std::span<const std::byte> rest, bool has_chunks);

    bool established_ = false;
    bool closed_ = false;
    bool one_side_recorded_ = false;
    bool fresh_ = false;         ///< no chunk was seen since the handshake
    bool guessed_seven_ = false; ///< a 0.7 connection whose handshake was not seen
    wire::Protocol protocol_ = wire::Protocol::unknown;
    TokenForm form_ = TokenForm::unknown;
    std::optional<wire::Token> token_;
    Handshake handshake_;
    /// The DDNet token the server sent last. It stays valid after later answers: an ACCEPT with it
    /// begins a connection.
    std::optional<wire::Token> granted_;
    Agreement unanswered_;    ///< of the client's packets in a row while the server is unseen
    Agreement header_tokens_; ///< of the server's packets in a row with a token in the header
    /// A token that is not the connection's, and its direction. If both directions carry it, it
    /// belongs to a connection whose handshake was not seen.
    std::optional<wire::Token> foreign_token_;
    wire::Direction foreign_token_direction_ = wire::Direction::c2s;
    std::array<VitalOrder, 2> order_;
    std::array<AckWindow, 2> windows_;
};

} // namespace tw::inspect
