#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tw::test {

/// A table of RECORDS.md as the schemas have it.
struct PageTable {
    std::string heading;            ///< how the line above it begins: "## `map`"
    std::vector<std::string> lines; ///< "| `crc` | Eight hex digits. |"
};

[[nodiscard]] std::vector<PageTable> page_tables();

/// What the page says that the schemas do not, and the other way round: one line for each.
[[nodiscard]] std::vector<std::string> page_complaints(std::string_view page);

} // namespace tw::test
