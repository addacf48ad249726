#include "proxy/relay/session.h"

#include <cstring>
#include <random>

namespace tw::relay {

namespace {

std::uint64_t random_seed() {
    std::random_device device;
    return (std::uint64_t{device()} << 32U) | device();
}

/// The finalizer of MurmurHash3: every input bit reaches every output bit.
constexpr std::uint64_t mix(std::uint64_t value) noexcept {
    value = (value ^ (value >> 33U)) * 0xff51afd7ed558ccdU;
    value = (value ^ (value >> 33U)) * 0xc4ceb9fe1a85ec53U;
    return value ^ (value >> 33U);
}

} // namespace

std::size_t Sessions::Hash::operator()(const Key& key) const noexcept {
    return mix(mix(mix(key.rest ^ seed) + key.high) + key.low);
}

Sessions::Key Sessions::key_of(const Endpoint& client, std::uint8_t listener) noexcept {
    Key key{};
    std::memcpy(&key.high, client.address.data(), sizeof key.high);
    std::memcpy(&key.low, client.address.data() + sizeof key.high, sizeof key.low);
    key.rest = std::uint64_t{client.scope} << 32U | std::uint64_t{client.port} << 16U |
               std::uint64_t{listener} << 8U | std::uint64_t{client.v6 ? 1U : 0U};
    return key;
}

Sessions::Sessions(std::size_t expected) : by_client_(expected, Hash{random_seed()}) {
    all_.reserve(expected);
}

Session* Sessions::find(const Endpoint& client, std::uint8_t listener) noexcept {
    const auto found = by_client_.find(key_of(client, listener));
    return found == by_client_.end() ? nullptr : found->second;
}

Session& Sessions::insert(std::unique_ptr<Session> session) {
    Session& inserted = *session;
    by_client_.emplace(key_of(session->tap.client, session->listener), session.get());
    all_.push_back(std::move(session));
    return inserted;
}

} // namespace tw::relay
