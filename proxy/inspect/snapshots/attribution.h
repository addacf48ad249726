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

/// The bytes of a payload, each with the number of bits that it takes on the network. The caller takes
/// them from front to back, so that each byte is counted exactly once.
class PricedBytes {
  public:
    /// `bits[i]`: the bits on the network for byte i.
    explicit PricedBytes(std::span<const std::uint8_t> bits) : bits_{bits} {}

    /// Takes the next `count` bytes. Returns their number and their bits.
    record::ByteCount take(std::size_t count);

    [[nodiscard]] std::size_t offset() const { return offset_; }

    [[nodiscard]] std::size_t left() const { return bits_.size() - offset_; }

  private:
    std::span<const std::uint8_t> bits_;
    std::size_t offset_ = 0;
};

/// Counts the bytes of all datagrams by what they are used for, in a record::Ledger. Keeps no state
/// between datagrams, so one object serves all sessions of a worker.
///
/// The bytes of a delta's parts count as incomplete until the last part arrives. Then they are moved to
/// the delta's items, or to the reason why the delta was rejected.
///
/// Units:   bits on the network. In a compressed packet, a byte counts as the bits of its Huffman code.
///          The end symbol and the bits after it count as "compression end".
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

    /// How far the datagram was accepted. At its end, the bytes that are left are counted by this.
    enum class AcceptanceStage : std::uint8_t { malformed, rejected, accepted };

    record::Ledger* ledger_;
    wire::Direction direction_ = wire::Direction::c2s;
    std::size_t datagram_size_ = 0;
    AcceptanceStage stage_ = AcceptanceStage::malformed;
    AcceptedChunks chunks_;
    std::array<std::uint8_t, wire::kMaxDatagramSize> prices_{};
    PricedBytes payload_{{}};
    std::string name_; ///< name of the current message
    std::size_t message_end_ = 0;
    bool in_message_ = false;
    /// Bits of each byte of a delta; a member to reuse memory.
    std::vector<std::uint8_t> delta_prices_;
};

} // namespace tw::inspect
