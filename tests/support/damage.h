#pragma once

#include <cstddef>
#include <random>
#include <vector>

namespace tw::test {

/// A number below `limit`.
[[nodiscard]] std::size_t below(std::mt19937& random, std::size_t limit);
[[nodiscard]] std::byte any_byte(std::mt19937& random);

/// Does one of the things that lines and enemies do to a datagram: flips a bit, cuts, inserts or
/// takes out a byte, writes over a byte or over all that follows. An empty one stays.
void damage(std::vector<std::byte>& bytes, std::mt19937& random);

} // namespace tw::test
