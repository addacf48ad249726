#include "map/text.h"

namespace tw::map {
namespace {

/// The first byte of a UTF-8 sequence.
struct LeadByte {
    std::size_t num_following; ///< number of further bytes in the sequence
    char32_t bits;             ///< the highest bits of the code point
    char32_t min_code_point;   ///< smaller code points must be encoded in fewer bytes
};

std::optional<LeadByte> decode_lead_byte(unsigned char byte) {
    if (byte < 0x80U) {
        return LeadByte{0, byte, 0};
    }
    if (byte >= 0xc2U && byte < 0xe0U) {
        return LeadByte{1, byte & 0x1fU, 0x80};
    }
    if (byte >= 0xe0U && byte < 0xf0U) {
        return LeadByte{2, byte & 0x0fU, 0x800};
    }
    if (byte >= 0xf0U && byte < 0xf5U) {
        return LeadByte{3, byte & 0x07U, 0x10000};
    }
    return std::nullopt;
}

} // namespace

std::optional<char32_t> take_code_point(std::string_view& text) {
    const auto lead = decode_lead_byte(static_cast<unsigned char>(text.front()));
    if (!lead || text.size() <= lead->num_following) {
        return std::nullopt;
    }
    char32_t value = lead->bits;
    for (std::size_t i = 1; i <= lead->num_following; ++i) {
        const auto byte = static_cast<unsigned char>(text[i]);
        if ((byte & 0xc0U) != 0x80U) {
            return std::nullopt;
        }
        value = value << 6U | (byte & 0x3fU);
    }
    if (value < lead->min_code_point || value > 0x10ffff || (value >= 0xd800 && value < 0xe000)) {
        return std::nullopt;
    }
    text.remove_prefix(lead->num_following + 1);
    return value;
}

bool is_utf8(std::string_view text) {
    while (!text.empty()) {
        if (!take_code_point(text)) {
            return false;
        }
    }
    return true;
}

std::string decode_int_text(std::span<const std::int32_t> ints) {
    std::string text;
    for (const std::int32_t value : ints) {
        for (const unsigned shift : {24U, 16U, 8U, 0U}) {
            const unsigned byte = static_cast<std::uint32_t>(value) >> shift & 0xffU;
            text.push_back(static_cast<char>(static_cast<unsigned char>((byte - 128U) & 0xffU)));
        }
    }
    if (!text.empty()) {
        text.back() = '\0';
        text.resize(text.find('\0'));
    }
    return text;
}

std::optional<std::string> decode_block_text(std::span<const std::byte> block) {
    if (block.empty() || block.back() != std::byte{0}) {
        return std::nullopt;
    }
    std::string text;
    text.reserve(block.size() - 1);
    for (const std::byte byte : block.first(block.size() - 1)) {
        text.push_back(static_cast<char>(byte));
    }
    if (text.find('\0') != std::string::npos || !is_utf8(text)) {
        return std::nullopt;
    }
    return text;
}

std::string hex_digits(std::span<const std::uint8_t> bytes) {
    constexpr std::string_view kDigits = "0123456789abcdef";
    std::string hex;
    for (const std::uint8_t byte : bytes) {
        hex.push_back(kDigits[byte >> 4U]);
        hex.push_back(kDigits[byte & 15U]);
    }
    return hex;
}

std::string_view truncate_utf8(std::string_view text, std::size_t max_bytes) {
    if (text.size() <= max_bytes) {
        return text;
    }
    std::size_t end = max_bytes;
    while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0U) == 0x80U) {
        --end;
    }
    return text.substr(0, end);
}

} // namespace tw::map
