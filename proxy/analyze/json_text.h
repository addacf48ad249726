#pragma once

#include <string>
#include <string_view>

#include <boost/json/fwd.hpp>

namespace tw::analyze {

/// Replaces each byte that is not valid UTF-8 by U+FFFD.
[[nodiscard]] std::string utf8_text(std::string_view text);

/// Returns a value as one line, with a space after each comma and colon. Numbers are the shortest
/// text that reads back the same value; those that JSON cannot express become null. Strings contain
/// no control characters and are made valid UTF-8.
[[nodiscard]] std::string json_text(const boost::json::value& value);

/// Returns the string under a key; empty if there is none.
[[nodiscard]] std::string_view text_of(const boost::json::object& object, std::string_view key);

} // namespace tw::analyze
