#pragma once

#include <string>
#include <string_view>

namespace tw::web {

/// Returns the text in gzip format, compressed at the fastest level.
[[nodiscard]] std::string gzipped(std::string_view text);

/// Returns the text that gzipped() compressed.
[[nodiscard]] std::string gunzipped(std::string_view packed);

/// True if this Accept-Encoding header accepts gzip: it names gzip, and not with q=0.
[[nodiscard]] bool accepts_gzip(std::string_view accept_encoding);

} // namespace tw::web
