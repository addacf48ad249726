#pragma once

#include <memory>
#include <string>
#include <string_view>

namespace tw::web {

/// Returns the text in gzip format, compressed at the fastest level.
[[nodiscard]] std::string gzip_text(std::string_view text);

/// Returns the text that gzip_text() compressed.
[[nodiscard]] std::string gunzip_text(std::string_view packed);

/// Returns true if this Accept-Encoding header accepts gzip: it names gzip, and not with q=0.
[[nodiscard]] bool accepts_gzip(std::string_view accept_encoding);

/// A file of the live page, embedded in the program.
struct PageFile {
    std::string_view content_type;
    std::string_view text;
    std::shared_ptr<const std::string> gzipped{};
};

/// Returns false if twscope was built with TW_PAGE=OFF. Then page_html() only says that the page is
/// missing, and page_script() and page_style() are empty.
[[nodiscard]] bool is_page_built();

[[nodiscard]] const PageFile& page_html();
[[nodiscard]] const PageFile& page_script();
[[nodiscard]] const PageFile& page_style();

/// Returns the page's Content-Security-Policy. It allows the page's own script and style, and
/// requests to the page's own origin. Inline script is not run.
[[nodiscard]] std::string_view page_security_policy();

} // namespace tw::web
