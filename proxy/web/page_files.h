#pragma once

#include <string>
#include <string_view>

namespace tw::web {

/// Returns the text in gzip format, compressed at the fastest level.
[[nodiscard]] std::string gzip_text(std::string_view text);

/// Returns true if this Accept-Encoding header names gzip with a weight (q) above 0.
[[nodiscard]] bool accepts_gzip(std::string_view accept_encoding);

/// A file of the live page, embedded in the program.
struct PageFile {
    std::string_view path; ///< path of the request for the file
    std::string_view content_type;
    std::string_view text;
    std::string gzipped{}; ///< compressed text
};

/// Returns false if twscope was built with TW_PAGE=OFF. Then the page only says that it is missing,
/// and its script and style are empty.
[[nodiscard]] bool is_page_built();

/// Returns the file that a request for this path gets: "/", "/page.js" or "/page.css". Returns null
/// for any other path.
[[nodiscard]] const PageFile* find_page_file(std::string_view path);

/// Returns the page's Content-Security-Policy. It allows the page's own script and style, and
/// requests to the page's own origin. Inline script is not run.
[[nodiscard]] std::string_view page_security_policy();

} // namespace tw::web
