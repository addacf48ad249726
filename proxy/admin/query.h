#pragma once

#include <charconv>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

namespace tw::admin {

/// What stands behind the first `name=` of a query, as it stands there; nothing when there is none.
[[nodiscard]] std::optional<std::string_view> value_in(std::string_view query,
                                                       std::string_view name);

/// The same with `%20` and `+` read; nothing when it is not written as it has to be.
[[nodiscard]] std::optional<std::string> text_in(std::string_view query, std::string_view name);

/// The number there; nothing when it is none, or too large.
template <typename Number>
[[nodiscard]] std::optional<Number> number_in(std::string_view query, std::string_view name) {
    const auto digits = value_in(query, name);
    if (!digits) {
        return std::nullopt;
    }
    Number number{};
    const char* const end = digits->data() + digits->size();
    const auto read = std::from_chars(digits->data(), end, number);
    return read.ec == std::errc{} && read.ptr == end ? std::optional{number} : std::nullopt;
}

} // namespace tw::admin
