#pragma once

#include "proxy/inspect/snapshots/attribution.h"
#include "proxy/record/records.h"
#include "proxy/record/stats.h"
#include "proxy/wire/packet.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <boost/json.hpp>

namespace tw::analyze {

/// Lists the use of each byte of one datagram, and the records that inspecting it gave.
class DatagramListing final : public inspect::Observer {
  public:
    /// `is_selected`: called with the time of each datagram, until it returns true once. `flush`:
    /// called before and after the selected datagram is read; passes all records of the datagrams
    /// that were read to on_line().
    DatagramListing(std::function<bool(record::Timestamp)> is_selected, std::function<void()> flush)
        : is_selected_{std::move(is_selected)}, flush_{std::move(flush)} {}

    /// Adds a record of the datagram that is being read, as a line of JSON.
    void on_line(std::string_view line);

    /// True if the selected datagram was read.
    [[nodiscard]] bool is_complete() const { return state_ == ReadState::complete; }

    /// Returns the listing as text. `title`: names the datagram, for example "frame 7 of a.pcap".
    [[nodiscard]] std::string text(std::string_view title) const;
    /// Returns the listing as JSON, without the names of file and frame.
    [[nodiscard]] boost::json::object json() const;

    void on_datagram(const record::RecordHeader& head,
                     std::span<const std::byte> datagram) override;
    void on_packet(const wire::Packet& packet) override;
    void on_control(const wire::Control& control) override;
    void on_accepted_payload(const inspect::AcceptedPayload& payload) override;
    void on_chunk(const wire::Chunk& chunk, wire::VitalClass taken,
                  const wire::MessageHeader* head) override;
    void on_message_fields(std::size_t bytes) override;
    void on_snap_message(const inspect::ObservedSnapMessage& part) override;
    void on_delta(const inspect::ObservedDelta& delta) override;
    void on_datagram_end() override;

  private:
    using Container = inspect::AttributedBytes::Container;

    /// Consecutive bytes with one use.
    struct ByteRun {
        Container container = Container::payload;
        std::size_t offset = 0; ///< in the container
        record::ByteGroup group = record::ByteGroup::packet;
        record::BytePart part = record::BytePart::whole;
        std::string name;
        std::size_t size = 0;   ///< number of bytes
        std::uint64_t bits = 0; ///< size in the datagram, where the payload may be compressed
        std::string hex;        ///< the bytes, or kRedacted if they may be a secret
        std::string value{};    ///< the meaning of the bytes; empty if only the records tell it
    };

    enum class ReadState : std::uint8_t { waiting, reading, after_chunks, complete };

    [[nodiscard]] bool is_reading() const {
        return state_ == ReadState::reading || state_ == ReadState::after_chunks;
    }

    void add_run(const inspect::AttributedBytes& bytes);
    /// Sets the value of the latest run that begins at this offset.
    void set_value(Container container, std::size_t offset, std::string value);
    [[nodiscard]] bool is_secret(const inspect::AttributedBytes& bytes) const;
    [[nodiscard]] static std::string use_text(const ByteRun& run);
    [[nodiscard]] std::string row_text(const ByteRun& run) const;

    std::function<bool(record::Timestamp)> is_selected_;
    std::function<void()> flush_;
    record::ByteLedger ledger_;
    inspect::ByteAttribution attribution_{
        ledger_, [this](const inspect::AttributedBytes& bytes) { add_run(bytes); }};
    ReadState state_ = ReadState::waiting;
    record::RecordHeader head_{};
    std::size_t datagram_size_ = 0;
    std::size_t payload_size_ = 0; ///< after decompression
    // Views of the bytes that are being read:
    std::span<const std::byte> datagram_;
    std::span<const std::byte> payload_; ///< after decompression
    std::span<const std::byte> delta_;
    bool is_compressed_ = false;
    bool has_secret_chunk_ = false;  ///< the chunk being read may contain a secret
    bool has_secret_fields_ = false; ///< the message whose fields are read may contain a secret
    bool is_snapshot_ = false;       ///< the chunk being read is a snapshot message
    std::vector<ByteRun> runs_;
    std::vector<std::string> records_;
};

} // namespace tw::analyze
