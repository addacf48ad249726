#include "proxy/base/keyed_hash.h"

#include <new>
#include <random>
#include <stdexcept>

#include <openssl/core_names.h>
#include <openssl/evp.h>
#include <openssl/params.h>

namespace tw::base {

namespace {

const unsigned char* as_unsigned_chars(const std::byte* bytes) {
    // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): libcrypto takes unsigned char
    return reinterpret_cast<const unsigned char*>(bytes);
}

} // namespace

struct SipHash::State {
    struct Free {
        void operator()(EVP_MAC* fetched) const noexcept { EVP_MAC_free(fetched); }

        void operator()(EVP_MAC_CTX* made) const noexcept { EVP_MAC_CTX_free(made); }
    };

    std::unique_ptr<EVP_MAC, Free> mac;
    std::unique_ptr<EVP_MAC_CTX, Free> context;
};

SipHash::SipHash(const SipKey& key) : state_{std::make_unique<State>()} {
    state_->mac.reset(EVP_MAC_fetch(nullptr, "SIPHASH", nullptr));
    state_->context.reset(state_->mac == nullptr ? nullptr : EVP_MAC_CTX_new(state_->mac.get()));
    unsigned size = sizeof(std::uint64_t);
    const std::array<OSSL_PARAM, 2> parameters{
        OSSL_PARAM_construct_uint(OSSL_MAC_PARAM_SIZE, &size), OSSL_PARAM_construct_end()};
    if (state_->context == nullptr ||
        EVP_MAC_init(state_->context.get(), as_unsigned_chars(key.data()), key.size(),
                     parameters.data()) != 1) {
        throw std::runtime_error{"libcrypto has no SipHash"};
    }
}

SipHash::~SipHash() = default;

std::uint64_t SipHash::operator()(std::span<const std::byte> bytes) const {
    // Each hash starts from a copy of the state that contains the key.
    const std::unique_ptr<EVP_MAC_CTX, State::Free> context{EVP_MAC_CTX_dup(state_->context.get())};
    std::array<unsigned char, sizeof(std::uint64_t)> hash{};
    std::size_t size = 0;
    if (context == nullptr ||
        EVP_MAC_update(context.get(), as_unsigned_chars(bytes.data()), bytes.size()) != 1 ||
        EVP_MAC_final(context.get(), hash.data(), &size, hash.size()) != 1) {
        throw std::bad_alloc{}; // these calls fail only if memory runs out
    }
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < hash.size(); ++i) {
        value |= std::uint64_t{hash[i]} << (8 * i);
    }
    return value;
}

KeyedHash KeyedHash::with_random_key() {
    std::random_device device;
    return KeyedHash{(std::uint64_t{device()} << 32U) | device()};
}

} // namespace tw::base
