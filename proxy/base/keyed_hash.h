#pragma once

#include "proxy/base/endpoint.h"

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>

namespace tw::base {

/// The secret key of a SipHash.
using SipKey = std::array<std::byte, 16>;

/// The hash function SipHash-2-4. Whoever does not know the key cannot predict hashes or find an
/// input with a given hash.
class SipHash {
  public:
    /// Sets the key. Errors: throws std::runtime_error if libcrypto does not provide SipHash.
    explicit SipHash(const SipKey& key);
    ~SipHash();
    SipHash(const SipHash&) = delete;
    SipHash& operator=(const SipHash&) = delete;

    /// Returns the hash of the bytes. A call takes 1 to 2 microseconds. Errors: throws
    /// std::bad_alloc.
    [[nodiscard]] std::uint64_t operator()(std::span<const std::byte> bytes) const;

  private:
    struct State;
    std::unique_ptr<State> state_;
};

/// A range of addresses that may belong to one customer. Limits per network apply to such a range.
/// IPv4: one address. IPv6: a /64, /56 or /48.
struct Network {
    std::uint64_t address = 0;
    std::uint8_t width = 0; ///< 0: the IPv4 address or IPv6 /64; 1: the IPv6 /56; 2: the IPv6 /48
    bool v6 = false;

    friend auto operator<=>(const Network&, const Network&) = default;
};

/// The networks that contain a client's address, from the smallest to the largest.
class EnclosingNetworks {
  public:
    explicit EnclosingNetworks(const Endpoint& client) noexcept
        : count_{client.v6 ? all_.size() : 1} {
        for (std::size_t i = 0; i < count_; ++i) {
            all_[i] = {.address = 0, .width = static_cast<std::uint8_t>(i), .v6 = client.v6};
            std::memcpy(&all_[i].address, client.address.data(), sizeof all_[i].address - i);
        }
    }

    [[nodiscard]] const Network* begin() const noexcept { return all_.data(); }

    [[nodiscard]] const Network* end() const noexcept { return all_.data() + count_; }

  private:
    std::array<Network, 3> all_{};
    std::size_t count_;
};

/// Returns the smallest network with the client's address: the IPv4 address itself, or the IPv6
/// /64.
[[nodiscard]] inline Network narrowest_network(const Endpoint& client) noexcept {
    return *EnclosingNetworks{client}.begin();
}

/// A fast hash function for tables in memory. Because of the key, clients cannot choose addresses
/// with the same hash.
class KeyedHash {
  public:
    explicit KeyedHash(std::uint64_t key) noexcept : key_{key} {}

    [[nodiscard]] static KeyedHash with_random_key();

    [[nodiscard]] std::uint64_t operator()(std::uint64_t a, std::uint64_t b,
                                           std::uint64_t c) const noexcept {
        return mix(mix(mix(a ^ key_) + b) + c);
    }

    [[nodiscard]] std::uint64_t operator()(const Network& network) const noexcept {
        return (*this)(network.v6 ? 1 : 0, network.address, network.width);
    }

    [[nodiscard]] std::uint64_t operator()(const Endpoint& client) const noexcept {
        std::uint64_t high = 0;
        std::uint64_t low = 0;
        std::memcpy(&high, client.address.data(), sizeof high);
        std::memcpy(&low, client.address.data() + sizeof high, sizeof low);
        return (*this)(client.port, high, low);
    }

  private:
    /// Applies the finalizer of MurmurHash3, in which every input bit affects every output bit.
    [[nodiscard]] static constexpr std::uint64_t mix(std::uint64_t value) noexcept {
        value = (value ^ (value >> 33U)) * 0xff51afd7ed558ccdU;
        value = (value ^ (value >> 33U)) * 0xc4ceb9fe1a85ec53U;
        return value ^ (value >> 33U);
    }

    std::uint64_t key_;
};

} // namespace tw::base
