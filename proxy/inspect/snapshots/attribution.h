#pragma once

#include "proxy/inspect/reporter.h"
#include "proxy/record/stats.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace tw::inspect {

/// Bytes whose price on the wire is known, spent from front to back: nothing is counted twice or
/// left out.
class PricedBytes {
  public:
    /// `bits[i]`: what byte i cost on the wire.
    explicit PricedBytes(std::span<const std::uint8_t> bits) : bits_{bits} {}

    /// The next `count` bytes, as one thing.
    record::ByteCount take(std::size_t count);

    [[nodiscard]] std::size_t offset() const { return offset_; }

    [[nodiscard]] std::size_t left() const { return bits_.size() - offset_; }

  private:
    std::span<const std::uint8_t> bits_;
    std::size_t offset_ = 0;
};

/// Books every byte of the datagrams it sees on a ledger. It remembers nothing from one datagram to
/// the next, so one serves all sessions of a worker.
///
/// Framing: bits on the wire. In a compressed packet a byte costs the length of its Huffman code; the
///        end symbol and what stands behind it are booked as "compression end".
/// The parts of a delta are booked as incomplete until the last one comes; then all of them move to
/// the items, or to the reason why the delta was rejected.
class Attribution final : public Observer {
  public:
    explicit Attribution(record::Ledger& ledger) : ledger_{&ledger} {}

    void on_datagram(const record::RecordHead& head, std::span<const std::byte> datagram) override;
    void on_packet(const wire::Packet& packet) override;
    void on_control(const wire::Control& control) override;
    void on_chunks(const AcceptedChunks& chunks) override;
    void on_chunk(const wire::Chunk& chunk, wire::VitalClass taken,
                  const wire::MessageHead* head) override;
    void on_fields(std::size_t bytes) override;
    void on_part(const PartSeen& part) override;
    void on_delta(const DeltaSeen& delta) override;
    void on_datagram_end() override;

  private:
    void price_payload(const wire::Packet& packet);
    void end_message();
    void settle_parts(const DeltaSeen& delta);
    void charge_items(const DeltaSeen& delta, PricedBytes priced);

    void charge(record::ByteGroup group, record::BytePart part, std::string_view name,
                const record::ByteCount& what) {
        ledger_->charge(direction_, group, part, name, what);
    }

    /// What is not said to be something else until the datagram ends.
    enum class Stage : std::uint8_t { malformed, rejected, accepted };

    record::Ledger* ledger_;
    wire::Direction direction_ = wire::Direction::c2s;
    std::size_t datagram_size_ = 0;
    Stage stage_ = Stage::malformed;
    AcceptedChunks chunks_;
    std::array<std::uint8_t, wire::kMaxDatagramSize> prices_{};
    PricedBytes payload_{{}};
    std::string name_; ///< of the message at hand
    std::size_t message_end_ = 0;
    bool in_message_ = false;
    std::vector<std::uint8_t> delta_prices_; ///< kept for its memory
};

} // namespace tw::inspect
