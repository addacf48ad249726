#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tw::sink {

/// Link types of captures (tcpdump.org/linktypes.html).
inline constexpr std::uint16_t kLinkEthernet = 1;

/// Type of the block that begins a section, and the file; the same in either order of bytes.
inline constexpr std::uint32_t kPcapngSection = 0x0a0d0d0a;
/// What stands in it to tell the order of bytes.
inline constexpr std::uint32_t kPcapngByteOrder = 0x1a2b3c4d;

/// Where packets of a capture passed.
struct PcapngInterface {
    std::string_view name{}; ///< empty: none
    std::string_view description{};
    std::uint16_t link = kLinkEthernet;
    std::uint8_t resolution = 9; ///< of times: so many digits of a second
};

struct PcapngPacket {
    enum class Direction : std::uint8_t { unknown, inbound, outbound };

    std::uint32_t interface = 0; ///< in the order in which they were described
    std::uint64_t time = 0;      ///< since 1970, in the interface's resolution
    std::span<const std::byte> frame{};
    Direction direction = Direction::unknown;
    std::span<const std::string> comments{};
};

/// Makes the blocks of a pcapng file, to be appended in order: a section, its interfaces, packets.
/// Sections may follow each other; each begins its interfaces anew.
/// Source: draft-ietf-opsawg-pcapng.
class PcapngEncoder {
  public:
    using Bytes = std::vector<std::byte>;

    /// The type of a packet's block.
    static constexpr std::uint32_t kPacketBlock = 6;
    /// Longer comments are cut.
    static constexpr std::size_t kMaxComment = 1024;

    explicit PcapngEncoder(bool big_endian = false) : big_endian_{big_endian} {}

    /// `program`: who writes it; `comment`: what is to be said about all of it; empty: not said.
    void section(std::string_view program, Bytes& out, std::string_view comment = {}) const;
    void interface(const PcapngInterface& interface, Bytes& out) const;
    void packet(const PcapngPacket& packet, Bytes& out) const;
    /// Totals of an interface, of which none are given: a place for what belongs to no packet.
    void statistics(std::uint32_t interface, std::uint64_t time,
                    std::span<const std::string> comments, Bytes& out) const;

    /// Of a type that is not among those above.
    void block(std::uint32_t type, std::span<const std::byte> body, Bytes& out) const;

  private:
    void put16(std::uint32_t value, Bytes& out) const;
    void put32(std::uint32_t value, Bytes& out) const;
    void put_option(std::uint16_t code, std::span<const std::byte> value, Bytes& out) const;
    void put_option(std::uint16_t code, std::string_view text, Bytes& out) const;
    [[nodiscard]] std::size_t begin(std::uint32_t type, Bytes& out) const;
    void end(std::size_t begin, Bytes& out) const;

    bool big_endian_;
};

/// What a block begins with; nothing for what is none, in this machine's byte order.
struct PcapngBlock {
    std::uint32_t type = 0;
    std::uint32_t size = 0; ///< of all of it

    static constexpr std::size_t kHead = 8;

    [[nodiscard]] static std::optional<PcapngBlock> read(std::string_view head);
};

/// Goes from block to block, as far as they are whole.
class BlockWalk {
  public:
    explicit BlockWalk(std::string_view text) : text_{text} {}

    /// The next one, which it goes behind.
    [[nodiscard]] std::optional<PcapngBlock> next();

    /// Bytes that it has gone over.
    [[nodiscard]] std::size_t at() const { return at_; }

  private:
    std::string_view text_;
    std::size_t at_ = 0;
};

} // namespace tw::sink
