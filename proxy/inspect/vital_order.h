#pragma once

#include "proxy/wire/chunk.h"

#include <cstdint>
#include <optional>

namespace tw::inspect {

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

} // namespace tw::inspect
