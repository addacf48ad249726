#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tw::test {

/// A table of RECORDS.md as generated from the schemas.
struct PageTable {
    std::string heading;            ///< start of the line above the table, such as "## `map`"
    std::vector<std::string> lines; ///< rows such as "| `crc` | Eight hex digits. |"
};

[[nodiscard]] std::vector<PageTable> page_tables();

/// Returns the differences between the page and the schemas, one line each.
[[nodiscard]] std::vector<std::string> page_complaints(std::string_view page);

} // namespace tw::test
