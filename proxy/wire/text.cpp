#include "proxy/wire/text.h"

#include <algorithm>
#include <iterator>
#include <string_view>

namespace tw::wire {
namespace {

/// A range of first bytes of UTF-8 sequences, and the valid range of the second byte. With other
/// second bytes, the sequence would be an overlong form, a surrogate or a value above U+10FFFF
/// (Unicode standard, table 3-7).
struct LeadByte {
    std::uint8_t first, last;
    std::uint8_t size;
    std::uint8_t second_min, second_max;
};

constexpr LeadByte kLeadBytes[] = {
    {0xC2, 0xDF, 2, 0x80, 0xBF}, {0xE0, 0xE0, 3, 0xA0, 0xBF}, {0xE1, 0xEC, 3, 0x80, 0xBF},
    {0xED, 0xED, 3, 0x80, 0x9F}, {0xEE, 0xEF, 3, 0x80, 0xBF}, {0xF0, 0xF0, 4, 0x90, 0xBF},
    {0xF1, 0xF3, 4, 0x80, 0xBF}, {0xF4, 0xF4, 4, 0x80, 0x8F},
};

} // namespace

CodePoint decode_code_point(std::span<const std::byte> bytes) {
    const std::uint8_t first = std::to_integer<std::uint8_t>(bytes[0]);
    if (first < 0x80) {
        return {.value = first, .valid = true};
    }
    const auto* const lead =
        std::find_if(std::begin(kLeadBytes), std::end(kLeadBytes),
                     [first](auto row) { return first >= row.first && first <= row.last; });
    if (lead == std::end(kLeadBytes) || bytes.size() < lead->size) {
        return {};
    }
    std::uint32_t value = first & (0x7FU >> lead->size);
    for (std::size_t i = 1; i < lead->size; ++i) {
        const std::uint8_t next = std::to_integer<std::uint8_t>(bytes[i]);
        const std::uint8_t min = i == 1 ? lead->second_min : 0x80;
        const std::uint8_t max = i == 1 ? lead->second_max : 0xBF;
        if (next < min || next > max) {
            return {};
        }
        value = value << 6U | (next & 0x3FU);
    }
    return {.value = value, .size = lead->size, .valid = true};
}

namespace {

constexpr std::string_view kReplacementCharacter = "\xEF\xBF\xBD";
constexpr std::uint32_t kFirstPrintable = 32;

struct BlankRange {
    std::uint32_t first, last;
};

/// Invisible code points. This is DDNet's list, which also contains code points that are not white
/// space in Unicode.
constexpr BlankRange kBlanks[] = {
    {0x0000, 0x0020}, {0x0085, 0x0085}, {0x00A0, 0x00A0}, {0x034F, 0x034F}, {0x115F, 0x1160},
    {0x1680, 0x1680}, {0x180E, 0x180E}, {0x2000, 0x200F}, {0x2028, 0x202F}, {0x205F, 0x2064},
    {0x206A, 0x206F}, {0x2800, 0x2800}, {0x3000, 0x3000}, {0x3164, 0x3164}, {0xFE00, 0xFE0F},
    {0xFEFF, 0xFEFF}, {0xFFA0, 0xFFA0}, {0xFFF9, 0xFFFC},
};

bool is_blank(std::uint32_t code_point) {
    return std::any_of(std::begin(kBlanks), std::end(kBlanks), [code_point](BlankRange range) {
        return code_point >= range.first && code_point <= range.last;
    });
}

bool becomes_space(std::uint32_t code_point, std::uint8_t flags) {
    if (code_point >= kFirstPrintable) {
        return false;
    }
    if ((flags & kCleanAllControl) != 0) {
        return true;
    }
    return (flags & kCleanControl) != 0 && code_point != '\r' && code_point != '\n' &&
           code_point != '\t';
}

} // namespace

bool is_utf8(std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
        const CodePoint next = decode_code_point(bytes);
        if (!next.valid) {
            return false;
        }
        bytes = bytes.subspan(next.size);
    }
    return true;
}

void append_sanitized(std::span<const std::byte> bytes, std::uint8_t flags, std::string& out) {
    bool leading = (flags & kSkipBlanks) != 0;
    while (!bytes.empty()) {
        const CodePoint next = decode_code_point(bytes);
        leading = leading && next.valid && is_blank(next.value);
        if (!leading) {
            if (!next.valid) {
                out += kReplacementCharacter;
            } else if (becomes_space(next.value, flags)) {
                out += ' ';
            } else {
                out.append(as_text(bytes.first(next.size)));
            }
        }
        bytes = bytes.subspan(next.size);
    }
}

std::string sanitize_string(std::span<const std::byte> bytes, std::uint8_t flags) {
    std::string out;
    out.reserve(bytes.size());
    append_sanitized(bytes, flags, out);
    return out;
}

} // namespace tw::wire
