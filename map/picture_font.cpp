#include "map/picture_font.h"

#include <array>

namespace tw::map {
namespace {

constexpr std::array<std::uint16_t, 26> kLetters = {
    025755, 065656, 034443, 065556, 074647, 074644, 034553, 055755, 072227,
    011152, 055655, 044447, 057755, 065555, 025552, 065644, 025573, 065655,
    034216, 072222, 055557, 055552, 055775, 055255, 055222, 071247};
constexpr std::array<std::uint16_t, 10> kDigits = {075557, 026227, 071747, 071717, 055711,
                                                   074717, 074757, 071111, 075757, 075717};

} // namespace

std::uint16_t glyph(char c) {
    if (c >= 'a' && c <= 'z') {
        return kLetters.at(static_cast<std::size_t>(c - 'a'));
    }
    if (c >= 'A' && c <= 'Z') {
        return kLetters.at(static_cast<std::size_t>(c - 'A'));
    }
    if (c >= '0' && c <= '9') {
        return kDigits.at(static_cast<std::size_t>(c - '0'));
    }
    return c == '-' ? 000700 : 0;
}

} // namespace tw::map
