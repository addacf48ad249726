#pragma once

#include <optional>
#include <string_view>

namespace tw::admin {

/// What a request asks for; views of the line that does.
struct RequestTarget {
    std::optional<std::string_view> host{}; ///< counts, where it is named, and the header does not
    std::string_view path{};                ///< "/api/state"
    std::string_view query{};               ///< what is behind the question mark
};

/// Takes "/path?query" apart, or "http://host/path?query": who asks through a proxy may send that,
/// and every server of HTTP/1.1 has to take it (RFC 9112, 3.2.2).
[[nodiscard]] RequestTarget read_request_target(std::string_view text);

} // namespace tw::admin
