#pragma once

#include "proxy/admin/listening.h"

#include <string>

namespace tw::run {

/// How people reach a page.
struct PageAddress {
    std::string url;           ///< "http://127.0.0.1:9303/"
    bool is_open = false;      ///< whoever reaches it from another machine may read it
    bool reads_freely = false; ///< no token is needed to read it
};

/// `host`: a name it goes by; empty: none is known. Precondition: it is no unix socket.
[[nodiscard]] PageAddress page_address(const admin::HttpAddress& where, const std::string& host,
                                       bool open_reading);

} // namespace tw::run
