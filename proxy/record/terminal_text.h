#pragma once

#include <string>
#include <string_view>

namespace tw::record {

/// Text that is safe on a terminal: control characters, what turns the direction of writing and
/// what is no UTF-8 are shown as escapes.
[[nodiscard]] std::string terminal_text(std::string_view text);

} // namespace tw::record
