#include "proxy/run/page_address.h"

#include <boost/asio/ip/address.hpp>
#include <fmt/format.h>

namespace tw::run {

PageAddress page_address(const admin::HttpAddress& where, const std::string& host,
                         bool open_reading) {
    const auto address = boost::asio::ip::make_address(where.address);
    const bool is_open = !address.is_loopback() && open_reading;
    const std::string named = !host.empty() && !address.is_loopback() ? host
                              : address.is_unspecified()              ? "localhost"
                              : address.is_v6() ? fmt::format("[{}]", where.address)
                                                : where.address;
    return {.url = fmt::format("http://{}:{}/", named, where.port),
            .is_open = is_open,
            .reads_freely = address.is_loopback() || is_open};
}

} // namespace tw::run
