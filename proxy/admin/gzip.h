#pragma once

#include <string>
#include <string_view>

namespace tw::admin {

/// The text as a gzip file, compressed quickly.
[[nodiscard]] std::string gzipped(std::string_view text);

} // namespace tw::admin
