#pragma once

#include <string>
#include <string_view>

namespace tw::web {

/// The text as a gzip file, compressed quickly.
[[nodiscard]] std::string gzipped(std::string_view text);

/// What gzipped() made of a text.
[[nodiscard]] std::string gunzipped(std::string_view packed);

/// Whether who asks with this Accept-Encoding takes gzip: it is named, and not with q=0.
[[nodiscard]] bool takes_gzip(std::string_view accept_encoding);

} // namespace tw::web
