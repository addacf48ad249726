#include "proxy/record/pseudonym.h"

#include <array>

#include <fmt/format.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

namespace tw::record {

std::string shown_client(std::string address_and_port, const std::string& key) {
    if (key.empty()) {
        return address_and_port;
    }
    const auto colon = address_and_port.rfind(':');
    const std::string address = address_and_port.substr(0, colon);
    std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
    unsigned length = 0;
    HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()),
         reinterpret_cast<const unsigned char*>(address.data()), address.size(), digest.data(),
         &length);
    return fmt::format("client-{:02x}{:02x}{:02x}{:02x}:{}", digest[0], digest[1], digest[2],
                       digest[3], address_and_port.substr(colon + 1));
}

} // namespace tw::record
