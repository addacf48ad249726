#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <boost/json/fwd.hpp>

namespace tw::analyze {

/// Returns the text with each byte that is not valid UTF-8 replaced by U+FFFD.
[[nodiscard]] std::string utf8_text(std::string_view text);

/// Returns a value as JSON on one line, with a space after each comma and colon. A number is
/// written as the shortest text that reads back as the same number; a number that JSON cannot
/// express becomes null. Strings are written as valid UTF-8, with control characters escaped.
[[nodiscard]] std::string json_text(const boost::json::value& value);

/// Returns the string under a key; empty if the key is missing or has another type of value.
[[nodiscard]] std::string_view text_of(const boost::json::object& object, std::string_view key);

/// True if the value under a key is true.
[[nodiscard]] bool flag_of(const boost::json::object& object, std::string_view key);

/// Returns the integer under a key; nullopt if the key is missing or has another type of value.
[[nodiscard]] std::optional<std::int64_t> number_of(const boost::json::object& object,
                                                    std::string_view key);

/// Returns the object under a key; null if the key is missing or has another type of value.
[[nodiscard]] const boost::json::object* object_of(const boost::json::object& object,
                                                   std::string_view key);
/// Like the function above; returns null if `object` is null.
[[nodiscard]] const boost::json::object* object_of(const boost::json::object* object,
                                                   std::string_view key);
/// Returns the array under a key; null if the key is missing or has another type of value.
[[nodiscard]] const boost::json::array* list_of(const boost::json::object& object,
                                                std::string_view key);

} // namespace tw::analyze
