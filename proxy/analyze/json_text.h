#pragma once

#include <string>
#include <string_view>

#include <boost/json/fwd.hpp>

namespace tw::analyze {

/// The text with U+FFFD in the place of each byte that is not UTF-8.
[[nodiscard]] std::string utf8_text(std::string_view text);

/// A value on one line, with a space behind each comma and colon. Numbers are as short as they can
/// be and read back the same; one that JSON does not have is null. Strings hold no control
/// characters, and are made valid UTF-8.
[[nodiscard]] std::string json_text(const boost::json::value& value);

/// The text under a key of an object; empty if there is none.
[[nodiscard]] std::string_view text_of(const boost::json::object& object, std::string_view key);

} // namespace tw::analyze
