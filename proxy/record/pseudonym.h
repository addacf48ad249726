#pragma once

#include <string>

namespace tw::record {

/// How to show a client's address. Without a key: unchanged. With a key: a pseudonym that depends
/// on the address (without its port) and the key only, and does not reveal the address to anybody
/// without the key.
[[nodiscard]] std::string shown_client(std::string address_and_port, const std::string& key);

} // namespace tw::record
