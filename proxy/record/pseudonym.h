#pragma once

#include <string>

namespace tw::record {

/// How a client's address is shown: as it is when `key` is empty, else under a name that is the
/// same for the same address (without its port) and key, and tells nobody without the key the
/// address.
[[nodiscard]] std::string shown_client(std::string address_and_port, const std::string& key);

} // namespace tw::record
