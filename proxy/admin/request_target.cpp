#include "proxy/admin/request_target.h"

#include <algorithm>

#include <boost/beast/core/string.hpp>

namespace tw::admin {

RequestTarget read_request_target(std::string_view text) {
    constexpr std::string_view kScheme = "http://";
    RequestTarget target;
    if (boost::beast::iequals(text.substr(0, kScheme.size()), kScheme)) {
        text.remove_prefix(kScheme.size());
        target.host = text.substr(0, text.find_first_of("/?"));
        text.remove_prefix(target.host->size());
    }
    const std::size_t path = std::min(text.find('?'), text.size());
    target.path = path == 0 ? "/" : text.substr(0, path);
    target.query = text.substr(std::min(path + 1, text.size()));
    return target;
}

} // namespace tw::admin
