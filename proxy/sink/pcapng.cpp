#include "proxy/sink/pcapng.h"

#include "map/text.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace tw::sink {

namespace {

constexpr std::uint32_t kInterface = 1;
constexpr std::uint32_t kStatistics = 5;
constexpr std::uint32_t kUnknownLength = 0xffffffff;
constexpr std::uint32_t kSnapLength = 262144;

constexpr std::uint16_t kComment = 1;
constexpr std::uint16_t kInterfaceName = 2;
constexpr std::uint16_t kInterfaceDescription = 3;
constexpr std::uint16_t kInterfaceResolution = 9;
constexpr std::uint16_t kSectionProgram = 4;
constexpr std::uint16_t kPacketFlags = 2;

void pad(std::vector<std::byte>& out, std::size_t size) {
    out.resize(out.size() + (4 - size % 4) % 4);
}

} // namespace

void PcapngEncoder::put16(std::uint32_t value, Bytes& out) const {
    const std::array bytes{static_cast<std::byte>(value), static_cast<std::byte>(value >> 8U)};
    out.push_back(bytes[big_endian_ ? 1 : 0]);
    out.push_back(bytes[big_endian_ ? 0 : 1]);
}

void PcapngEncoder::put32(std::uint32_t value, Bytes& out) const {
    put16(big_endian_ ? value >> 16U : value, out);
    put16(big_endian_ ? value : value >> 16U, out);
}

void PcapngEncoder::put_option(std::uint16_t code, std::span<const std::byte> value,
                               Bytes& out) const {
    put16(code, out);
    put16(static_cast<std::uint32_t>(value.size()), out);
    out.insert(out.end(), value.begin(), value.end());
    pad(out, value.size());
}

void PcapngEncoder::put_option(std::uint16_t code, std::string_view text, Bytes& out) const {
    if (!text.empty()) {
        put_option(code, std::as_bytes(std::span{map::truncate_utf8(text, kMaxComment)}), out);
    }
}

std::size_t PcapngEncoder::begin(std::uint32_t type, Bytes& out) const {
    const std::size_t at = out.size();
    put32(type, out);
    put32(0, out); // the length, once it is known
    return at;
}

void PcapngEncoder::end(std::size_t begin, Bytes& out) const {
    const auto size = static_cast<std::uint32_t>(out.size() - begin + 4);
    put32(size, out);
    std::copy(out.end() - 4, out.end(), out.begin() + static_cast<std::ptrdiff_t>(begin) + 4);
}

void PcapngEncoder::section(std::string_view program, Bytes& out, std::string_view comment) const {
    const std::size_t at = begin(kPcapngSection, out);
    put32(kPcapngByteOrder, out);
    put16(1, out);
    put16(0, out);
    put32(kUnknownLength, out);
    put32(kUnknownLength, out);
    put_option(kComment, comment, out);
    put_option(kSectionProgram, program, out);
    if (!program.empty() || !comment.empty()) {
        put32(0, out);
    }
    end(at, out);
}

void PcapngEncoder::interface(const PcapngInterface& interface, Bytes& out) const {
    const std::size_t at = begin(kInterface, out);
    put16(interface.link, out);
    put16(0, out);
    put32(kSnapLength, out);
    put_option(kInterfaceName, interface.name, out);
    put_option(kInterfaceDescription, interface.description, out);
    const std::array resolution{static_cast<std::byte>(interface.resolution)};
    put_option(kInterfaceResolution, std::span<const std::byte>{resolution}, out);
    put32(0, out);
    end(at, out);
}

void PcapngEncoder::packet(const PcapngPacket& packet, Bytes& out) const {
    const std::size_t at = begin(kPacketBlock, out);
    put32(packet.interface, out);
    put32(static_cast<std::uint32_t>(packet.time >> 32U), out);
    put32(static_cast<std::uint32_t>(packet.time), out);
    put32(static_cast<std::uint32_t>(packet.frame.size()), out);
    put32(static_cast<std::uint32_t>(packet.frame.size()), out);
    out.insert(out.end(), packet.frame.begin(), packet.frame.end());
    pad(out, packet.frame.size());
    const std::size_t options = out.size();
    for (const std::string& comment : packet.comments) {
        put_option(kComment, comment, out);
    }
    if (packet.direction != PcapngPacket::Direction::unknown) {
        put16(kPacketFlags, out);
        put16(sizeof(std::uint32_t), out);
        put32(static_cast<std::uint32_t>(packet.direction), out);
    }
    if (out.size() != options) {
        put32(0, out);
    }
    end(at, out);
}

void PcapngEncoder::statistics(std::uint32_t interface, std::uint64_t time,
                               std::span<const std::string> comments, Bytes& out) const {
    const std::size_t at = begin(kStatistics, out);
    put32(interface, out);
    put32(static_cast<std::uint32_t>(time >> 32U), out);
    put32(static_cast<std::uint32_t>(time), out);
    for (const std::string& comment : comments) {
        put_option(kComment, comment, out);
    }
    put32(0, out);
    end(at, out);
}

void PcapngEncoder::block(std::uint32_t type, std::span<const std::byte> body, Bytes& out) const {
    const std::size_t at = begin(type, out);
    out.insert(out.end(), body.begin(), body.end());
    pad(out, body.size());
    end(at, out);
}

std::optional<PcapngBlock> PcapngBlock::read(std::string_view head) {
    constexpr std::uint32_t kSmallest = 12;
    PcapngBlock block;
    if (head.size() < kHead) {
        return std::nullopt;
    }
    std::memcpy(&block.type, head.data(), sizeof block.type);
    std::memcpy(&block.size, head.data() + sizeof block.type, sizeof block.size);
    return block.size >= kSmallest && block.size % 4 == 0 ? std::optional{block} : std::nullopt;
}

std::optional<PcapngBlock> BlockWalk::next() {
    const auto block = PcapngBlock::read(text_.substr(at_));
    if (!block || block->size > text_.size() - at_) {
        return std::nullopt;
    }
    at_ += block->size;
    return block;
}

} // namespace tw::sink
