#pragma once

#include "proxy/relay/endpoint.h"

#include <cstdint>
#include <cstring>
#include <random>
#include <tuple>

namespace tw::relay {

/// A client's address without its port: what one customer of a provider has. IPv4: all of it; IPv6:
/// the /64.
struct Source {
    std::uint64_t address;
    bool v6;

    friend bool operator==(const Source&, const Source&) = default;

    friend bool operator<(const Source& left, const Source& right) {
        return std::tie(left.address, left.v6) < std::tie(right.address, right.v6);
    }
};

[[nodiscard]] inline Source source_of(const Endpoint& client) noexcept {
    Source source{.address = 0, .v6 = client.v6};
    std::memcpy(&source.address, client.address.data(), sizeof source.address);
    return source;
}

/// Hashes for tables in memory. Keyed, so that nobody can choose addresses that collide.
class KeyedHash {
  public:
    explicit KeyedHash(std::uint64_t key) noexcept : key_{key} {}

    [[nodiscard]] static KeyedHash random() {
        std::random_device device;
        return KeyedHash{(std::uint64_t{device()} << 32U) | device()};
    }

    [[nodiscard]] std::uint64_t operator()(std::uint64_t a, std::uint64_t b,
                                           std::uint64_t c) const noexcept {
        return mix(mix(mix(a ^ key_) + b) + c);
    }

    [[nodiscard]] std::uint64_t operator()(const Source& source) const noexcept {
        return (*this)(source.v6 ? 1 : 0, source.address, 0);
    }

    [[nodiscard]] std::uint64_t operator()(const Endpoint& client) const noexcept {
        std::uint64_t high = 0;
        std::uint64_t low = 0;
        std::memcpy(&high, client.address.data(), sizeof high);
        std::memcpy(&low, client.address.data() + sizeof high, sizeof low);
        return (*this)(client.port, high, low);
    }

  private:
    /// The finalizer of MurmurHash3: every input bit reaches every output bit.
    [[nodiscard]] static constexpr std::uint64_t mix(std::uint64_t value) noexcept {
        value = (value ^ (value >> 33U)) * 0xff51afd7ed558ccdU;
        value = (value ^ (value >> 33U)) * 0xc4ceb9fe1a85ec53U;
        return value ^ (value >> 33U);
    }

    std::uint64_t key_;
};

} // namespace tw::relay
