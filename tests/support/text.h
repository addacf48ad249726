#pragma once

#include <cstddef>
#include <span>
#include <string_view>

namespace tw::test {

[[nodiscard]] inline bool contains(std::string_view text, std::string_view part) {
    return text.find(part) != std::string_view::npos;
}

[[nodiscard]] inline std::span<const std::byte> as_bytes(std::string_view text) {
    return std::as_bytes(std::span{text.data(), text.size()});
}

} // namespace tw::test
