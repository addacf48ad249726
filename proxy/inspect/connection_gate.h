#pragma once

#include "proxy/inspect/connection.h"
#include "proxy/inspect/reporter.h"
#include "proxy/wire/chunk.h"
#include "proxy/wire/packet.h"

#include <array>
#include <cstddef>
#include <optional>
#include <span>

namespace tw::inspect {

/// What a packet header can count.
inline constexpr std::size_t kMaxChunks = 255;
using ChunkRoom = std::array<wire::Chunk, kMaxChunks>;

/// The chunks of one packet. Spans point into the packet and into the room they were read to.
struct PacketChunks {
    PacketChunks(const wire::Packet& packet, ChunkRoom& room);

    std::span<const wire::Chunk> chunks{};
    std::span<const std::byte> rest{};      ///< behind them: nothing, or a token
    std::optional<wire::WireError> error{}; ///< a cut chunk ended them
};

/// Decides what belongs to a session's connection and comes in the right order, as the receivers
/// do: handshakes, tokens, acknowledgements, vital sequences. Counts and reports what does not.
class ConnectionGate {
  public:
    /// Whether the control packet changes what the connection is.
    [[nodiscard]] ConnectionChange on_control(const wire::Packet& packet,
                                              const wire::Control& control, Reporter& reporter);
    /// Whether a CLOSE is for this connection.
    [[nodiscard]] bool closes(const wire::Control& control, Reporter& reporter) const;

    /// The first packet of 0.7 where nothing is known yet: from now on it is that. Returns whether
    /// it became so now.
    [[nodiscard]] bool on_seven();

    /// Whether a packet of chunks changes what the connection is.
    [[nodiscard]] ConnectionChange on_chunks(const wire::Packet& packet, const PacketChunks& chunks,
                                             const Reporter& reporter);
    /// Whether the connection takes the packet's chunks. What is odd about it is reported.
    [[nodiscard]] bool accept(const wire::Packet& packet, const PacketChunks& chunks,
                              Reporter& reporter);

    /// Whether they are an anti-spoof prelude.
    [[nodiscard]] bool is_prelude(const PacketChunks& chunks, Reporter& reporter) const {
        return !with_token() && reporter.direction() == wire::Direction::s2c &&
               is_server_prelude(chunks, reporter);
    }

    /// A chunk of an accepted packet. `next`: it is to be processed, vital or not.
    [[nodiscard]] wire::VitalClass take(const wire::Chunk& chunk, Reporter& reporter) {
        record::DirectionStats& stats = reporter.direction_stats();
        ++stats.chunks;
        if (chunk.resend) {
            ++stats.resent;
        }
        return chunk.vital ? take_vital(chunk, reporter) : wire::VitalClass::next;
    }

    /// Copies were lost: sequences may have moved on unseen.
    void resynchronise() { connection_.resynchronise(); }

    [[nodiscard]] const Connection& connection() const { return connection_; }

    [[nodiscard]] bool with_token() const { return connection_.form() == TokenForm::ddnet; }

  private:
    [[nodiscard]] static bool is_server_prelude(const PacketChunks& chunks, Reporter& reporter);
    [[nodiscard]] wire::VitalClass take_vital(const wire::Chunk& chunk, Reporter& reporter);

    Connection connection_;
};

/// Bytes that nobody could decode may hold a password or a whisper, unless they are too few.
[[nodiscard]] wire::Secrecy secrecy_of_undecoded(std::span<const std::byte> bytes,
                                                 std::size_t harmless);

} // namespace tw::inspect
