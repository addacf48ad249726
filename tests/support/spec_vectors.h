#pragma once

#include "tests/support/hex.h"

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include <boost/json.hpp>

namespace tw::test {

/// Returns a file of tests/data/spec, which is parsed once.
[[nodiscard]] const boost::json::object& spec_file(const std::string& name);
/// Returns a group of vectors.json.
[[nodiscard]] const boost::json::array& vectors(std::string_view group);
/// Returns a group of vectors-0.7.json.
[[nodiscard]] const boost::json::array& seven_vectors(std::string_view group);

/// Returns the text under a key; `otherwise` if the key is missing or has no text.
[[nodiscard]] std::string text_at(const boost::json::object& row, std::string_view key,
                                  std::string_view otherwise = {});
/// Returns the integer under a key; `otherwise` if the key is missing.
[[nodiscard]] std::int64_t integer_at(const boost::json::object& row, std::string_view key,
                                      std::int64_t otherwise);

[[nodiscard]] Bytes hex_at(const boost::json::value& row, std::string_view key);
/// Copies the first bytes to a heap block of exactly this size, so that the address sanitizer
/// detects reads past its end.
[[nodiscard]] Bytes prefix(std::span<const std::byte> bytes, std::size_t size);

} // namespace tw::test
