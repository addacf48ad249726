#pragma once

#include "proxy/wire/message.h"
#include "proxy/wire/packet.h"

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace tw::inspect {

/// What one receiver takes as acknowledgement: from the last one it took up to the newest vital
/// chunk it sent itself. A packet with another one it drops whole.
///
/// Source: DDNet CNetConnection::Feed; protocol sheet, item 10 of section 10.
class AckWindow {
  public:
    /// `from_start`: nothing was sent or acknowledged yet.
    void reset(bool from_start);

    /// The receiver sent this vital chunk.
    void sent(std::uint16_t sequence);
    /// Whether it takes the acknowledgement; if so, none before this one is taken any more.
    [[nodiscard]] bool take(std::uint16_t ack);

    /// Copies of a few datagrams may be missing here: whether it acknowledges just so much more than
    /// the receiver is known to have sent. Where all of them say so, the receiver was not heard, and
    /// has sent as much.
    [[nodiscard]] bool take_little_ahead(std::uint16_t ack);

  private:
    [[nodiscard]] bool is_little_ahead(std::uint16_t ack) const;

    /// Nothing: not known, since the connection was joined midway.
    std::optional<std::uint16_t> taken_;
    std::optional<std::uint16_t> newest_;
    int ahead_ = 0; ///< a little, in a row
};

/// Order of the vital chunks of one direction, as its receiver keeps it: what comes behind a gap is
/// dropped and comes again (protocol sheet, sections 4.3 and 4.5).
class VitalOrder {
  public:
    /// Takes a vital chunk; `next` means: process it.
    wire::VitalClass take(std::uint16_t sequence, bool resend);

    /// A chunk is not read, and its receiver may have taken it: what that acknowledges will tell.
    void pass_over(std::uint16_t sequence);

    /// A chunk was dropped because one before it is missing, which has not come since.
    [[nodiscard]] bool waiting() const { return gap_; }

    /// Chunks taken since it began, or since nothing was known.
    [[nodiscard]] unsigned taken() const { return taken_; }

    /// The receiver says what it has. Where we wait behind a gap that it does not have, chunks
    /// passed unseen, and waiting for a resend would be for ever. It has taken what we dropped behind
    /// them, too. True: some passed unseen.
    bool acknowledged(std::uint16_t ack);
    /// `synced`: the connection was seen from its start, so the first sequence is 1.
    void reset(bool synced);

  private:
    void drop(std::uint16_t sequence);

    std::uint16_t last_ = 0;
    /// Joined midway: what the receiver said it has. Who resends everything is not old for that.
    std::optional<std::uint16_t> acknowledged_;
    unsigned taken_ = 0;
    bool synced_ = false;
    bool gap_ = false; ///< a chunk was dropped because one before it is missing
    /// Those dropped last, in a row.
    std::uint16_t first_dropped_ = 0;
    std::uint16_t last_dropped_ = 0;
};

/// How a connection proves that packets belong to it.
enum class TokenForm : std::uint8_t {
    unknown,
    none,    ///< vanilla up to 0.6.4
    ddnet,   ///< four bytes at the payload's end
    vanilla, ///< 0.6.5: behind the header
    seven,   ///< 0.7: in every header, one for each direction (seven_handshake.h)
};

/// What a packet changed.
enum class ConnectionChange : std::uint8_t {
    none,
    established, ///< a connection was seen from its start
    midway, ///< one was running already when it was first seen: the server talks to this client
};

/// The handshake and token of the connection on one address pair. A new one on the same pair starts
/// over (protocol sheet, sections 1.4 to 1.7 and item 5 of section 10).
class Connection {
  public:
    [[nodiscard]] ConnectionChange on_control(wire::Direction direction, const wire::Packet& packet,
                                              const wire::Control& control);
    /// Whether the server takes this ACCEPT.
    [[nodiscard]] bool takes_accept(const wire::Control& control) const;
    /// `rest`: what stands behind the chunks. `first`: first chunk of the packet, if any. `whole`:
    /// none of them is cut.
    [[nodiscard]] ConnectionChange on_chunks(wire::Direction direction, const wire::Packet& packet,
                                             std::span<const std::byte> rest,
                                             const wire::Chunk* first, bool whole);

    /// The other side was never recorded: what it has is not known.
    void set_half(bool half) { half_ = half; }

    /// Whether the receiver takes a packet of chunks with this token.
    [[nodiscard]] bool token_fits(const wire::Packet& packet,
                                  std::span<const std::byte> rest) const;

    [[nodiscard]] VitalOrder& order(wire::Direction direction) {
        return order_[wire::index_of(direction)];
    }

    [[nodiscard]] bool established() const { return established_; }

    [[nodiscard]] TokenForm form() const { return form_; }

    [[nodiscard]] std::optional<wire::Token> token() const { return token_; }

    [[nodiscard]] wire::Protocol protocol() const { return protocol_; }

    /// What the next datagram is most likely of: who hopped from 0.7 to a 0.6 without tokens shows
    /// it by the handshake alone, and a server that answers one has no 0.7 there that was only
    /// concluded from what passed.
    [[nodiscard]] wire::Protocol expected() const {
        return (closed_ || guessed_seven_) && handshake_.answered ? wire::Protocol::unknown
                                                                  : protocol_;
    }

    /// Whether it is a connection of 0.7 whose handshake passed unseen.
    [[nodiscard]] bool is_guessed_seven() const { return guessed_seven_; }

    /// As records name it; empty while nothing is known.
    [[nodiscard]] std::string_view protocol_name() const;

    /// A connection of 0.6 is running, as somebody knows who saw it before.
    [[nodiscard]] ConnectionChange take_up(TokenForm form, std::optional<wire::Token> token);

    /// No server was heard: what its client's packets agree on is a connection of which one side was
    /// seen.
    [[nodiscard]] ConnectionChange take_one_side();

    /// A connection of 0.7 took the place of whatever was there.
    void begin_seven(bool from_start);

    /// A datagram can only be of 0.7.
    void on_seven() { headers_ = {}; }

    /// The connection is over; what is under way still belongs to it.
    void close() {
        closed_ = true;
        granted_.reset();
    }

    /// Nothing is under way any more: whatever comes now belongs to no connection that is known.
    void forget();

    [[nodiscard]] bool closed() const { return closed_; }

    /// What the receiver of a direction takes as acknowledgement.
    [[nodiscard]] AckWindow& window(wire::Direction direction) {
        return windows_[wire::index_of(direction)];
    }

    /// Copies were lost: sequences may have moved on unseen.
    void resynchronise();

  private:
    /// A handshake in progress; it changes nothing until it is complete.
    struct Handshake {
        bool connect = false;
        bool answered = false;
        TokenForm form = TokenForm::unknown;
        std::optional<wire::Token> token{};
        /// The client went on as if it had been answered.
        bool accepted = false;
        std::optional<wire::Token> accepted_token{};
    };

    /// What datagrams of a connection that may be running agree on.
    struct Agreement {
        std::optional<wire::Token> token{};
        int datagrams = 0;                   ///< that agree on it
        TokenForm form = TokenForm::unknown; ///< of the last one

        int count(std::optional<wire::Token> other) {
            datagrams = token == other ? datagrams + 1 : 1;
            token = other;
            return datagrams;
        }
    };

    /// A connection with DDNet's token is there.
    [[nodiscard]] bool runs_with_token() const {
        return established_ && !closed_ && form_ == TokenForm::ddnet;
    }

    ConnectionChange establish(bool from_start);
    /// Whether the packet is the first one of the connection that a handshake agreed on.
    [[nodiscard]] bool begins(wire::Direction direction, const wire::Packet& packet,
                              std::span<const std::byte> rest, const wire::Chunk* first) const;
    /// Whether enough packets have a token in their header. A single one may ask for a resend in 0.7,
    /// by the same bit.
    [[nodiscard]] bool has_token_in_headers(wire::Token token, bool has_chunks);
    ConnectionChange adopt(wire::Direction direction, const wire::Packet& packet,
                           std::span<const std::byte> rest, bool has_chunks);

    bool established_ = false;
    bool closed_ = false;
    bool half_ = false;          ///< only one side was recorded
    bool fresh_ = false;         ///< no chunk passed since the handshake
    bool guessed_seven_ = false; ///< of 0.7, whose handshake passed unseen
    wire::Protocol protocol_ = wire::Protocol::unknown;
    TokenForm form_ = TokenForm::unknown;
    std::optional<wire::Token> token_;
    Handshake handshake_;
    /// DDNet's token as the server said it last, whatever it answered since: an ACCEPT with it begins
    /// a connection.
    std::optional<wire::Token> granted_;
    Agreement unanswered_; ///< of the client's packets, in a row, where no server was heard
    Agreement headers_;    ///< of the server's packets that have a token in their header, in a row
    /// A token other than the connection's, and the direction it was seen in: seen in both, it is
    /// that of a connection whose handshake we missed.
    std::optional<wire::Token> stranger_;
    wire::Direction stranger_direction_ = wire::Direction::c2s;
    std::array<VitalOrder, 2> order_;
    std::array<AckWindow, 2> windows_;
};

} // namespace tw::inspect
