#pragma once

#include <charconv>
#include <optional>
#include <string_view>
#include <system_error>

namespace tw::base {

/// Parses a number. Returns nullopt if the text contains anything else, or if the number does not
/// fit into the type.
template <typename Number>
[[nodiscard]] std::optional<Number> parse_number(std::string_view text) {
    Number number{};
    const char* const end = text.data() + text.size();
    const auto read = std::from_chars(text.data(), end, number);
    return read.ec == std::errc{} && read.ptr == end ? std::optional{number} : std::nullopt;
}

} // namespace tw::base
