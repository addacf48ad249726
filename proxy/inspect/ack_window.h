#pragma once

#include "proxy/wire/chunk.h"

#include <cstdint>
#include <optional>

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

} // namespace tw::inspect
