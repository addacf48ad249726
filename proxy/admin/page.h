#pragma once

#include <string>
#include <string_view>

namespace tw::admin {

/// The live page: page.html as it was when twscope was built.
[[nodiscard]] std::string_view page_html();

/// Its Content-Security-Policy: nothing but its own script and style, known by their hashes, and
/// requests to where it came from.
[[nodiscard]] std::string page_policy();

} // namespace tw::admin
