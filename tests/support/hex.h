#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tw::test {

using Bytes = std::vector<std::byte>;

[[nodiscard]] inline Bytes from_hex(std::string_view hex) {
    Bytes out;
    for (std::size_t i = 0; i + 1 < hex.size(); i += 2) {
        out.push_back(
            static_cast<std::byte>(std::stoul(std::string{hex.substr(i, 2)}, nullptr, 16)));
    }
    return out;
}

[[nodiscard]] inline std::string to_hex(std::span<const std::byte> bytes) {
    constexpr std::string_view kDigits = "0123456789abcdef";
    std::string out;
    for (const std::byte byte : bytes) {
        out += kDigits[std::to_integer<std::size_t>(byte) >> 4U];
        out += kDigits[std::to_integer<std::size_t>(byte) & 15U];
    }
    return out;
}

} // namespace tw::test
