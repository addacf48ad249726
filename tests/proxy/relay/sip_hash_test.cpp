// Covers: proxy/base/keyed_hash.cpp
#include "proxy/base/keyed_hash.h"

#include <vector>

#include <doctest/doctest.h>

TEST_CASE("SipHash-2-4 is what its authors say it is") {
    tw::base::SipKey key{};
    for (std::size_t i = 0; i < key.size(); ++i) {
        key[i] = static_cast<std::byte>(i);
    }
    const tw::base::SipHash hash{key};
    std::vector<std::byte> bytes;
    CHECK(hash(bytes) == 0x726fdb47dd0e0e31U); // the hash of no bytes, then of 00 01 … 0e
    for (std::size_t i = 0; i < 15; ++i) {
        bytes.push_back(static_cast<std::byte>(i));
    }
    CHECK(hash(bytes) == 0xa129ca6149be45e5U);
    CHECK(hash(bytes) == 0xa129ca6149be45e5U);
}
