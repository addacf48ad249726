#pragma once

#include "proxy/wire/chunk.h"
#include "proxy/wire/message.h"
#include "proxy/wire/packet.h"

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace tw::inspect {

using wire::Direction;

/// Order of the vital chunks of one direction, as its receiver keeps it: what comes behind a gap is
/// dropped and comes again (protocol sheet, sections 4.3 and 4.5).
class VitalOrder {
  public:
    /// Takes a vital chunk; `next` means: process it.
    wire::VitalClass take(std::uint16_t sequence, bool resend);

    /// A chunk was dropped because one before it is missing, which has not come since.
    [[nodiscard]] bool waiting() const { return gap_; }

    /// The receiver says what it has. Where we wait behind a gap that it does not have, chunks
    /// passed unseen, and waiting for a resend would be for ever.
    void acknowledged(std::uint16_t ack);
    /// `synced`: the connection was seen from its start, so the first sequence is 1.
    void reset(bool synced);

  private:
    std::uint16_t last_ = 0;
    bool synced_ = false;
    bool gap_ = false; ///< a chunk was dropped because one before it is missing
};

/// How a connection proves that packets belong to it.
enum class TokenForm : std::uint8_t {
    unknown,
    none,    ///< vanilla up to 0.6.4
    ddnet,   ///< four bytes at the payload's end
    vanilla, ///< 0.6.5: behind the header
};

/// What a packet changed.
enum class ConnectionChange : std::uint8_t {
    none,
    established, ///< a connection was seen from its start
    midway,      ///< one was running already when it was first seen
};

/// The handshake and token of the connection on one address pair. A new one on the same pair starts
/// over (protocol sheet, sections 1.4 to 1.7 and item 5 of section 10).
class Connection {
  public:
    [[nodiscard]] ConnectionChange on_control(wire::Direction direction, const wire::Packet& packet,
                                              const wire::Control& control);
    /// `rest`: what stands behind the chunks. `first`: first chunk of the packet, if any.
    [[nodiscard]] ConnectionChange on_chunks(wire::Direction direction, const wire::Packet& packet,
                                             std::span<const std::byte> rest,
                                             const wire::Chunk* first);

    /// Whether the receiver takes a packet of chunks with this token.
    [[nodiscard]] bool token_fits(const wire::Packet& packet,
                                  std::span<const std::byte> rest) const;

    [[nodiscard]] VitalOrder& order(wire::Direction direction) {
        return order_[direction == wire::Direction::s2c ? 1 : 0];
    }

    [[nodiscard]] bool established() const { return established_; }

    [[nodiscard]] TokenForm form() const { return form_; }

    [[nodiscard]] std::optional<wire::Token> token() const { return token_; }

    [[nodiscard]] wire::Protocol protocol() const { return protocol_; }

    [[nodiscard]] std::string_view protocol_name() const;

    void set_seven() { protocol_ = wire::Protocol::seven; }

    /// Copies were lost: sequences may have moved on unseen.
    void resynchronise();

  private:
    /// A handshake in progress; it changes nothing until it is complete.
    struct Handshake {
        bool connect = false;
        bool answered = false;
        TokenForm form = TokenForm::unknown;
        std::optional<wire::Token> token{};
    };

    ConnectionChange establish(bool from_start);
    ConnectionChange adopt(wire::Direction direction, const wire::Packet& packet,
                           std::span<const std::byte> rest);

    bool established_ = false;
    wire::Protocol protocol_ = wire::Protocol::unknown;
    TokenForm form_ = TokenForm::unknown;
    std::optional<wire::Token> token_;
    Handshake handshake_;
    /// A token other than the connection's, and the direction it was seen in: seen in both, it is
    /// that of a connection whose handshake we missed.
    std::optional<wire::Token> stranger_;
    wire::Direction stranger_direction_ = wire::Direction::c2s;
    std::array<VitalOrder, 2> order_;
};

} // namespace tw::inspect
