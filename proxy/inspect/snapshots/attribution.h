#pragma once

#include "proxy/inspect/reporter.h"
#include "proxy/record/stats.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>

namespace tw::inspect {

/// Reads a payload from front to back and tells how many bits its bytes take on the network.
class PayloadBitCounter {
  public:
    /// `bits[i]`: the number of bits that byte i takes on the network.
    explicit PayloadBitCounter(std::span<const std::uint8_t> bits) : bit_counts_{bits} {}

    /// Advances by `count` decompressed bytes, or to the end. Returns the number of these bytes,
    /// and how many bits they take in the compressed payload.
    record::ByteCount count_next_bytes(std::size_t count);

    [[nodiscard]] std::size_t offset() const { return offset_; }

    [[nodiscard]] std::size_t bytes_left() const { return bit_counts_.size() - offset_; }

  private:
    std::span<const std::uint8_t> bit_counts_;
    std::size_t offset_ = 0;
};

/// Consecutive bytes of a datagram with one use.
struct AttributedBytes {
    /// The bytes in which `offset` counts. A delta has bytes of its own, because parts of it may
    /// have come in earlier datagrams.
    enum class Container : std::uint8_t { datagram, payload, delta };

    Container container = Container::payload; ///< `payload`: after decompression
    std::size_t offset = 0;
    record::ByteGroup group = record::ByteGroup::packet;
    record::BytePart part = record::BytePart::whole;
    std::string_view name{}; ///< valid during the call
    record::ByteCount count{};
};

/// Counts the bytes of all datagrams by their use, in a record::ByteLedger. Keeps no state between
/// datagrams, so one object serves all sessions of a worker.
///
/// The bytes of a delta's parts count as "incomplete" until the last part arrives. Then they count
/// for the delta's items, or for the reason why the delta was rejected.
///
/// Units:   bits on the network. In a compressed packet, a byte takes the bits of its Huffman code.
///          The end symbol and the bits after it count as "compression end".
class ByteAttribution final : public Observer {
  public:
    using Listener = std::function<void(const AttributedBytes&)>;

    /// `listener`: called with all bytes of each datagram, in their order; may be empty.
    explicit ByteAttribution(record::ByteLedger& ledger, Listener listener = {})
        : ledger_{&ledger}, listener_{std::move(listener)} {}

    void on_datagram(const record::RecordHeader& head,
                     std::span<const std::byte> datagram) override;
    void on_packet(const wire::Packet& packet) override;
    void on_control(const wire::Control& control) override;
    void on_accepted_payload(const AcceptedPayload& chunks) override;
    void on_chunk(const wire::Chunk& chunk, wire::VitalClass taken,
                  const wire::MessageHeader* head) override;
    void on_message_fields(std::size_t bytes) override;
    void on_snap_message(const ObservedSnapMessage& part) override;
    void on_delta(const ObservedDelta& delta) override;
    void on_datagram_end() override;

  private:
    void count_payload_bits(const wire::Packet& packet);
    void count_bytes_after_fields();
    void uncount_incomplete_parts(const ObservedDelta& delta);
    void count_items(const ObservedDelta& delta, PayloadBitCounter bits);

    /// Counts bytes of the payload that payload_counter_ has just passed.
    void add_bytes(record::ByteGroup group, record::BytePart part, std::string_view name,
                   const record::ByteCount& count) {
        add_bytes_at({.offset = payload_counter_.offset() - count.bytes,
                      .group = group,
                      .part = part,
                      .name = name,
                      .count = count});
    }

    /// Counts the next `size` bytes of a delta. `bits`: advanced by these bytes.
    void add_delta_bytes(record::ByteGroup group, record::BytePart part, std::string_view name,
                         std::size_t size, PayloadBitCounter& bits);

    void add_bytes_at(const AttributedBytes& bytes) {
        ledger_->add_bytes(direction_, bytes.group, bytes.part, bytes.name, bytes.count);
        if (listener_) {
            listener_(bytes);
        }
    }

    /// How far the current datagram was accepted. on_datagram_end() counts the remaining bytes of
    /// the datagram accordingly.
    enum class AcceptanceStage : std::uint8_t { malformed, rejected, accepted };

    record::ByteLedger* ledger_;
    Listener listener_;
    wire::Direction direction_ = wire::Direction::c2s;
    std::size_t datagram_size_ = 0;
    std::size_t header_size_ = 0;
    AcceptanceStage acceptance_stage_ = AcceptanceStage::malformed;
    AcceptedPayload accepted_payload_;
    std::array<std::uint8_t, wire::kMaxDatagramSize> bit_counts_{};
    PayloadBitCounter payload_counter_{{}};
    std::string message_name_;
    std::size_t message_end_ = 0;
    bool in_message_ = false;
    /// The bits of each byte of a delta. This is a member so that its memory is reused.
    std::vector<std::uint8_t> delta_bit_counts_;
};

} // namespace tw::inspect
