#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <boost/json.hpp>

namespace tw::wire::test {

using Bytes = std::vector<std::byte>;

/// Returns a group of tests/data/spec/vectors.json.
[[nodiscard]] const boost::json::array& vectors(std::string_view group);
/// Returns a group of vectors-0.7.json.
[[nodiscard]] const boost::json::array& seven_vectors(std::string_view group);

[[nodiscard]] Bytes from_hex(std::string_view hex);
[[nodiscard]] std::string to_hex(std::span<const std::byte> bytes);
[[nodiscard]] Bytes hex_at(const boost::json::value& row, std::string_view key);
/// Copies the first bytes to a heap block of exactly this size, so that the address sanitizer
/// detects reads past its end.
[[nodiscard]] Bytes prefix(std::span<const std::byte> bytes, std::size_t size);

} // namespace tw::wire::test
