#pragma once

#include <string>

namespace tw::record {

/// Returns the text shown for a client's address. If `key` is empty, that is the address and port,
/// unchanged. Otherwise it is a pseudonym that depends only on the key and on the address without its
/// port. Without the key, nobody can find the address.
[[nodiscard]] std::string shown_client(std::string address_and_port, const std::string& key);

} // namespace tw::record
