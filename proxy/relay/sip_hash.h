#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace tw::relay {

using SipKey = std::array<std::byte, 16>;

/// SipHash-2-4: who does not know the key can neither tell nor choose what it makes of anything.
class SipHash {
  public:
    /// Throws std::runtime_error where libcrypto has none.
    explicit SipHash(const SipKey& key);
    ~SipHash();
    SipHash(const SipHash&) = delete;
    SipHash& operator=(const SipHash&) = delete;
    SipHash(SipHash&&) = delete;
    SipHash& operator=(SipHash&&) = delete;

    /// Takes a microsecond or two. Errors: std::bad_alloc.
    [[nodiscard]] std::uint64_t operator()(std::span<const std::byte> bytes) const;

  private:
    struct State;
    std::unique_ptr<State> state_;
};

} // namespace tw::relay
