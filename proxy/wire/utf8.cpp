#include "proxy/wire/utf8.h"

#include <algorithm>
#include <iterator>

namespace tw::wire {
namespace {

/// The shape of a sequence by its first byte. The bounds of the second byte shut out overlong
/// forms, surrogates and what lies past U+10FFFF (Unicode standard, table 3-7).
struct Lead {
    std::uint8_t first, last;
    std::uint8_t size;
    std::uint8_t second_min, second_max;
};

constexpr Lead kLeads[] = {
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
    const auto* const lead = std::find_if(std::begin(kLeads), std::end(kLeads), [first](auto row) {
        return first >= row.first && first <= row.last;
    });
    if (lead == std::end(kLeads) || bytes.size() < lead->size) {
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

} // namespace tw::wire
