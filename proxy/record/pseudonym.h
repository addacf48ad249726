#pragma once

#include <string>

namespace tw::record {

/// Returns the text shown for a client's address. If `key` is empty: the address and port,
/// unchanged. Otherwise: a pseudonym that depends only on the address (without its port) and on the
/// key. Nobody can find the address without the key.
[[nodiscard]] std::string shown_client(std::string address_and_port, const std::string& key);

} // namespace tw::record
