#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tw::record {

/// Returns a text with the forms for this count: of "[one|many]" the first for 1 and the second
/// otherwise, and "[s]" is left out for 1.
[[nodiscard]] std::string for_count(std::uint64_t count, std::string_view text);

/// Returns the count and for_count(): "1 file", "2 files" of "file[s]".
[[nodiscard]] std::string counted(std::uint64_t count, std::string_view noun);

} // namespace tw::record
