#pragma once

#include "proxy/record/ledger.h"
#include "proxy/record/world.h"
#include "proxy/wire/chunk.h"
#include "proxy/wire/message.h"
#include "proxy/wire/packet.h"
#include "snapshot/parts.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace tw::inspect {

/// Bytes whose price on the wire is known, spent from front to back: nothing is counted twice or
/// left out.
class PricedBytes {
  public:
    /// `bits[i]`: what byte i cost on the wire.
    explicit PricedBytes(std::span<const std::uint8_t> bits) : bits_{bits} {}

    /// The next `count` bytes, as one thing.
    record::ByteCount take(std::size_t count);

    /// The prices of the next `count` bytes, which somebody else accounts for.
    std::span<const std::uint8_t> hand_over(std::size_t count);

    [[nodiscard]] std::size_t offset() const { return offset_; }

    [[nodiscard]] std::size_t left() const { return bits_.size() - offset_; }

  private:
    std::span<const std::uint8_t> bits_;
    std::size_t offset_ = 0;
};

/// Books every byte of one session's datagrams on a ledger. Session calls it along its own way
/// through a datagram, so that both agree on what was accepted.
///
/// Units: bits on the wire. In a compressed packet a byte costs the length of its Huffman code;
///        the end symbol and what stands behind it are booked as "compression end".
/// Deltas that come in several parts are booked when the last part is there, or as incomplete when
/// it never comes; their prices are kept until then (bounded as PartAssembler's bodies are).
class Attribution {
  public:
    explicit Attribution(record::Ledger& ledger) : ledger_{&ledger} {}

    ~Attribution() = default;
    Attribution(const Attribution&) = delete; // payload_ points into prices_
    Attribution& operator=(const Attribution&) = delete;
    Attribution(Attribution&&) = delete;
    Attribution& operator=(Attribution&&) = delete;

    /// A datagram begins. What is not said to be something else until `end` counts as malformed.
    void begin(wire::Direction direction, std::span<const std::byte> datagram);
    /// It is a packet. What is not said to be something else from here on counts as rejected.
    void on_packet(const wire::Packet& packet);
    void on_control(const wire::Control& control);
    /// The packet's chunks count. `with_token`: DDNet's token stands at the end of the payload.
    void on_accepted(bool with_token, bool damaged);
    /// A chunk of an accepted packet, after it was inspected. To be called for all in order.
    void on_chunk(const wire::Chunk& chunk, wire::VitalClass taken, const record::TypeNames& types);
    void end();

    /// A new connection or map: parts of earlier snapshots will not be completed.
    void restart();

  private:
    /// Prices of the parts of one tick.
    struct OpenTick {
        snapshot::Tick tick = 0;
        record::ByteCount total;
        std::vector<std::uint8_t> bits;
    };

    void price(const wire::Packet& packet);

    void charge(record::ByteGroup group, record::BytePart part, std::string_view name,
                const record::ByteCount& what) {
        ledger_->charge(direction_, group, part, name, what);
    }

    void charge_message(const wire::Chunk& chunk, const record::TypeNames& types);
    void charge_snapshot(const wire::MessageHead& head, const record::TypeNames& types);
    void charge_part(const snapshot::Part& part, const record::TypeNames& types);
    void charge_lost(std::span<const snapshot::LostDelta> lost);
    void charge_delta(std::span<const std::byte> body, std::span<const std::uint8_t> bits,
                      const record::TypeNames& types);
    OpenTick& open_tick(snapshot::Tick tick);
    [[nodiscard]] bool is_done(snapshot::Tick tick) const;

    /// Completed ticks that are remembered: more than can lie within the assembler's reach.
    static constexpr std::size_t kDoneTicks = 64;
    static_assert(kDoneTicks > 2 * snapshot::kMaxPartAge + 1);

    enum class Stage : std::uint8_t { malformed, packet, accepted };

    record::Ledger* ledger_;
    wire::Direction direction_ = wire::Direction::c2s;
    std::size_t datagram_size_ = 0;
    Stage stage_ = Stage::malformed;
    bool with_token_ = false;
    bool damaged_ = false;
    std::array<std::uint8_t, wire::kMaxDatagramSize> prices_{};
    PricedBytes payload_{{}};
    wire::DecodedFields fields_;
    snapshot::PartAssembler parts_;
    std::vector<OpenTick> open_;
    std::array<snapshot::Tick, kDoneTicks> done_{};
    std::size_t num_done_ = 0;
};

} // namespace tw::inspect
