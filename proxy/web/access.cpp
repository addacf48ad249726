#include "proxy/web/access.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <tuple>

#include <boost/asio/ip/address.hpp>
#include <boost/beast/core/string.hpp>
#include <openssl/crypto.h>
#include <openssl/sha.h>

namespace tw::web {

namespace {

using boost::beast::iequals;

constexpr std::string_view kScheme = "bearer";

using Digest = std::array<unsigned char, SHA256_DIGEST_LENGTH>;

/// Returns a digest of the text. All digests have the same length.
Digest digest_of(std::string_view text) {
    Digest digest{};
    SHA256(reinterpret_cast<const unsigned char*>(text.data()), text.size(), digest.data());
    return digest;
}

/// Returns the byte that two hexadecimal digits stand for; nullopt for any other text.
std::optional<char> parse_hex_byte(std::string_view digits) {
    constexpr int kHex = 16;
    unsigned byte = 0;
    const char* const end = digits.data() + digits.size();
    const auto read = std::from_chars(digits.data(), end, byte, kHex);
    return digits.size() == 2 && read.ec == std::errc{} && read.ptr == end
               ? std::optional{static_cast<char>(byte)}
               : std::nullopt;
}

} // namespace

std::string token_in_protocols(std::string_view protocols) {
    constexpr std::string_view kName = "bearer.";
    const auto begin = protocols.find(kName);
    if (begin == std::string_view::npos) {
        return {};
    }
    const std::string_view rest = protocols.substr(begin + kName.size());
    const std::string_view digits = rest.substr(0, rest.find_first_of(", "));
    std::string token;
    for (std::size_t i = 0; i < digits.size(); i += 2) {
        const auto byte = parse_hex_byte(digits.substr(i, 2));
        if (!byte) {
            return {};
        }
        token += *byte;
    }
    return token;
}

bool authorization_has_token(std::string_view authorization, std::string_view token) {
    const auto end = std::min(authorization.find(' '), authorization.size());
    const std::string_view shown = authorization.substr(
        std::min(authorization.find_first_not_of(' ', end), authorization.size()));
    return iequals(authorization.substr(0, end), kScheme) && !token.empty() && !shown.empty() &&
           CRYPTO_memcmp(digest_of(shown).data(), digest_of(token).data(), sizeof(Digest)) == 0;
}

std::optional<Response> refuse_access(const Request& request, AccessLevel level,
                                      const AccessOptions& options) {
    if (request.is_reserved && level != AccessLevel::health) {
        return Response{.status = 503, .body = "too many connections; try again\n"};
    }
    const bool open =
        level == AccessLevel::health || level == AccessLevel::page ||
        (level == AccessLevel::read &&
         (options.network_may_read || request.connection_origin == ConnectionOrigin::loopback));
    if (open || request.connection_origin == ConnectionOrigin::owner ||
        authorization_has_token(request.authorization, options.token)) {
        return std::nullopt;
    }
    return Response{
        .status = 401,
        .body = "this requires the token, as 'Authorization: Bearer TOKEN'" +
                (options.token_hint.empty() ? std::string{} : "; " + options.token_hint) + '\n',
        .challenge = "Bearer realm=\"twscope\""};
}

namespace {

/// Returns the host without the port: "localhost" for "localhost:9303", and "::1" for "[::1]:9303".
/// Returns an empty text if the host is invalid.
std::string_view host_name(std::string_view host) {
    std::string_view name = host;
    std::string_view port;
    if (host.starts_with('[')) {
        const auto end = host.find(']');
        if (end == std::string_view::npos) {
            return {};
        }
        name = host.substr(1, end - 1);
        port = host.substr(end + 1);
    } else if (const auto colon = host.find(':'); colon != std::string_view::npos) {
        name = host.substr(0, colon);
        port = host.substr(colon);
    }
    const bool good_port =
        port.empty() ||
        (port.starts_with(':') &&
         std::all_of(port.begin() + 1, port.end(), [](char c) { return c >= '0' && c <= '9'; }));
    return good_port ? name : std::string_view{};
}

bool is_allowed_host(const Request& request, const AccessOptions& options) {
    const std::string_view name = host_name(request.host);
    if (name.empty()) {
        return false;
    }
    boost::system::error_code error;
    std::ignore = boost::asio::ip::make_address(std::string{name}, error);
    if (!error || iequals(name, "localhost")) {
        return true;
    }
    if (request.connection_origin == ConnectionOrigin::network &&
        name.find('.') == std::string_view::npos) {
        return true;
    }
    return std::ranges::any_of(options.hosts,
                               [name](const std::string& known) { return iequals(name, known); });
}

/// Returns true if the live page caused the request, or if no web page caused it.
bool is_same_origin(const Request& request) {
    if (!request.fetch_site.empty() && request.fetch_site != "same-origin" &&
        request.fetch_site != "none") {
        return false;
    }
    if (request.origin.empty()) {
        return true;
    }
    constexpr std::string_view kSchemeEnd = "://";
    const auto scheme = request.origin.find(kSchemeEnd);
    return scheme != std::string_view::npos &&
           iequals(request.origin.substr(scheme + kSchemeEnd.size()), request.host);
}

} // namespace

std::optional<Response> refuse_foreign_origin(const Request& request,
                                              const AccessOptions& options) {
    if (request.connection_origin == ConnectionOrigin::owner) {
        return std::nullopt;
    }
    if (request.host.empty()) {
        return Response{.status = 400, .body = "exactly one Host header is required\n"};
    }
    if (!is_allowed_host(request, options)) {
        return Response{.status = 421,
                        .body = "unknown host name; use the address" +
                                (options.unknown_host_hint.empty()
                                     ? std::string{}
                                     : ", or " + options.unknown_host_hint) +
                                '\n'};
    }
    if (!request.wants_web_socket && (request.method == "GET" || request.method == "HEAD")) {
        return std::nullopt;
    }
    if (!is_same_origin(request)) {
        return Response{.status = 403, .body = "cross-origin request\n"};
    }
    const auto type = request.content_type.substr(0, request.content_type.find_first_of("; "));
    if (!request.body.empty() && !iequals(type, "text/plain") &&
        !iequals(type, "application/json")) {
        return Response{.status = 415, .body = "send text/plain or application/json\n"};
    }
    return std::nullopt;
}

std::optional<std::string_view> query_value(std::string_view query, std::string_view name) {
    while (!query.empty()) {
        const std::string_view pair = query.substr(0, query.find('&'));
        query.remove_prefix(std::min(pair.size() + 1, query.size()));
        if (pair.starts_with(name) && pair.substr(name.size(), 1) == "=") {
            return pair.substr(name.size() + 1);
        }
    }
    return std::nullopt;
}

std::optional<std::string> query_text(std::string_view query, std::string_view name) {
    const auto value = query_value(query, name);
    if (!value) {
        return std::nullopt;
    }
    std::string text;
    for (std::size_t i = 0; i < value->size(); ++i) {
        if ((*value)[i] != '%') {
            text += (*value)[i] == '+' ? ' ' : (*value)[i];
            continue;
        }
        const auto byte = parse_hex_byte(value->substr(i + 1, 2));
        if (!byte) {
            return std::nullopt;
        }
        text += *byte;
        i += 2;
    }
    return text;
}

} // namespace tw::web
