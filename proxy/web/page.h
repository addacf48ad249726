#pragma once

#include <memory>
#include <string>
#include <string_view>

namespace tw::web {

/// A file of the live page, as it was when twscope was built.
struct Asset {
    std::string_view content_type;
    std::string_view text;
    std::shared_ptr<const std::string> gzipped{};
};

/// False if twscope was built with TW_PAGE=OFF: then page_html() says so, and the other two are empty.
[[nodiscard]] bool has_page();

[[nodiscard]] const Asset& page_html();
[[nodiscard]] const Asset& page_script();
[[nodiscard]] const Asset& page_style();

/// Its Content-Security-Policy: nothing but its own script and style, and requests to where it came
/// from; nothing that stands in the page itself is run.
[[nodiscard]] std::string_view page_policy();

} // namespace tw::web
