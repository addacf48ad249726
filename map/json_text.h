#pragma once

#include <string>
#include <string_view>

namespace tw::map {

/// A JSON string with its quotes. Bytes that are not UTF-8 become U+FFFD.
[[nodiscard]] std::string json_quote(std::string_view text);

/// A JSON number that reads back the same; null for what is none (JSON has no infinity).
[[nodiscard]] std::string json_number(double value);

} // namespace tw::map
