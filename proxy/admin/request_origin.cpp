#include "proxy/admin/request_origin.h"

#include <algorithm>
#include <cctype>
#include <tuple>

#include <boost/asio/ip/address.hpp>

namespace tw::admin {

namespace {

bool same_letters(std::string_view a, std::string_view b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](char left, char right) {
        return std::tolower(static_cast<unsigned char>(left)) ==
               std::tolower(static_cast<unsigned char>(right));
    });
}

/// "localhost" of "localhost:9303", "::1" of "[::1]:9303"; empty when it is neither.
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

bool right_host(const Request& request, const OriginOptions& options) {
    const std::string_view name = host_name(request.host);
    if (name.empty()) {
        return false;
    }
    boost::system::error_code error;
    std::ignore = boost::asio::ip::make_address(std::string{name}, error);
    if (!error || same_letters(name, "localhost")) {
        return true;
    }
    if (request.way == Way::network && name.find('.') == std::string_view::npos) {
        return true;
    }
    return std::any_of(options.hosts.begin(), options.hosts.end(),
                       [name](const std::string& known) { return same_letters(name, known); });
}

/// No page asked for it, or our own did.
bool same_origin(const Request& request) {
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
           same_letters(request.origin.substr(scheme + kSchemeEnd.size()), request.host);
}

bool good_content_type(std::string_view type) {
    const std::string_view bare = type.substr(0, type.find_first_of("; "));
    return same_letters(bare, "text/plain") || same_letters(bare, "application/json");
}

} // namespace

std::optional<Response> refuse_foreign_origin(const Request& request,
                                              const OriginOptions& options) {
    if (request.way == Way::owner) {
        return std::nullopt;
    }
    if (request.host.empty()) {
        return Response{.status = 400, .body = "exactly one Host header is required\n"};
    }
    if (!right_host(request, options)) {
        return Response{.status = 421,
                        .body = "unknown host name; use the address" +
                                (options.unknown_host_hint.empty()
                                     ? std::string{}
                                     : ", or " + options.unknown_host_hint) +
                                '\n'};
    }
    if (request.method == "GET" || request.method == "HEAD") {
        return std::nullopt;
    }
    if (!same_origin(request)) {
        return Response{.status = 403, .body = "cross-origin request\n"};
    }
    if (!request.body.empty() && !good_content_type(request.content_type)) {
        return Response{.status = 415, .body = "send text/plain or application/json\n"};
    }
    return std::nullopt;
}

std::optional<Response> refuse_foreign_socket(const Request& request,
                                              const OriginOptions& options) {
    if (auto refusal = refuse_foreign_origin(request, options)) {
        return refusal;
    }
    if (request.way != Way::owner && !same_origin(request)) {
        return Response{.status = 403, .body = "cross-origin request\n"};
    }
    return std::nullopt;
}

} // namespace tw::admin
