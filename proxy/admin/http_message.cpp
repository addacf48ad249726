#include "proxy/admin/http_message.h"

#include "proxy/admin/request_target.h"

#include <boost/beast/core/string.hpp>
#include <boost/beast/http/error.hpp>

namespace tw::admin {

namespace beast = boost::beast;
namespace http = beast::http;

std::string_view http_text(beast::string_view text) {
    return {text.data(), text.size()};
}

std::string_view single_field(const HttpMessage& message, http::field name) {
    return message.count(name) == 1 ? http_text(message[name]) : std::string_view{};
}

Request request_from(const HttpMessage& message) {
    const RequestTarget target = read_request_target(http_text(message.target()));
    const std::string_view host = single_field(message, http::field::host);
    return {.method = http_text(message.method_string()),
            .path = target.path,
            .query = target.query,
            .host = host.empty() ? host : target.host.value_or(host),
            .origin = http_text(message[http::field::origin]),
            .fetch_site = http_text(message["Sec-Fetch-Site"]),
            .content_type = http_text(message[http::field::content_type]),
            .authorization = single_field(message, http::field::authorization),
            .body = message.body()};
}

bool expects_continue(const HttpMessage& message) {
    return message.version() >= kHttp11 &&
           beast::iequals(message[http::field::expect], "100-continue");
}

std::optional<Response> complaint(const boost::system::error_code& error) {
    if (error == http::error::header_limit || error == http::error::buffer_overflow) {
        return Response{.status = 431, .body = "headers too long\n"};
    }
    if (error == http::error::body_limit) {
        return Response{.status = 413, .body = "body too long\n"};
    }
    if (error.category() == make_error_code(http::error::bad_method).category() &&
        error != http::error::end_of_stream && error != http::error::partial_message) {
        return Response{.status = 400, .body = "not an HTTP request\n"};
    }
    return std::nullopt;
}

} // namespace tw::admin
