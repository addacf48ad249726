#pragma once

#include "proxy/admin/listening.h"
#include "proxy/relay/keyed_hash.h"

#include <memory>
#include <string>
#include <string_view>

namespace tw::admin {

struct ServedFile;

/// What was asked. Views live as long as the call that hands them over.
struct Request {
    std::string_view method{}; ///< "GET"
    std::string_view path{};   ///< "/api/state", without a query
    std::string_view query{};  ///< what is behind the question mark
    std::string_view host{}; ///< of the one Host header; empty when there is none or there are more
    std::string_view origin{};
    std::string_view fetch_site{}; ///< Sec-Fetch-Site
    std::string_view content_type{};
    std::string_view authorization{}; ///< of the one there is, like `host`
    std::string_view body{};
    Way way = Way::loopback; ///< by which it came
    bool spare = false;      ///< it has a seat for health checks only (see Seats)
    bool upgrade = false;    ///< asks for a WebSocket
    std::string from{};      ///< who asks, for people: an address, or "the unix socket"
    relay::Source peer{};    ///< who asks; all that come by a unix socket are one
};

struct Response {
    unsigned status = 200;
    std::string content_type = "text/plain; charset=utf-8";
    std::string body{};
    std::string allow{};          ///< of a 405: the methods there are
    std::string challenge{};      ///< of a 401: WWW-Authenticate
    std::string content_policy{}; ///< Content-Security-Policy; empty: nothing may be loaded
    /// What `body` is when compressed by gzip, for who takes it so; an empty `body` is made of it for who
    /// does not. Null: it is compressed when worth it.
    std::shared_ptr<const std::string> gzipped{};
    std::shared_ptr<const ServedFile> file{}; ///< instead of `body`
    std::string file_name{};                  ///< what browsers call it; as recorders name files
};

} // namespace tw::admin
