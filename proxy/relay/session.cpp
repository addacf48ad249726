#include "proxy/relay/session.h"

#include <cstring>
#include <utility>

namespace tw::relay {

namespace {

/// Stands for all networks (base::Network) that contain a client's address. There are always fewer.
constexpr std::size_t kMaxNetworksPerClient = 8;

void add_if_counted(std::uint32_t* count, std::int32_t number) noexcept {
    if (count != nullptr) {
        *count += static_cast<std::uint32_t>(number);
    }
}

} // namespace

SessionIndex::ClientKey SessionIndex::key_of(const base::Endpoint& client,
                                             ListenerIndex listener) noexcept {
    ClientKey key{};
    std::memcpy(&key.high, client.address.data(), sizeof key.high);
    std::memcpy(&key.low, client.address.data() + sizeof key.high, sizeof key.low);
    key.rest = std::uint64_t{client.scope} << 32U | std::uint64_t{client.port} << 16U |
               std::uint64_t{listener} << 1U | std::uint64_t{client.v6 ? 1U : 0U};
    return key;
}

SessionIndex::SessionIndex(std::size_t expected)
    : by_client_(expected, KeyHash{base::KeyedHash::with_random_key()}),
      by_network_(expected, KeyHash{base::KeyedHash::with_random_key()}) {
    all_.reserve(expected);
}

Session* SessionIndex::find(const base::Endpoint& client, ListenerIndex listener) noexcept {
    const auto found = by_client_.find(key_of(client, listener));
    return found == by_client_.end() ? nullptr : found->second;
}

Session& SessionIndex::insert(std::unique_ptr<Session>&& session) {
    Session& inserted = *session;
    const ClientKey key = key_of(session->observed.client, session->listener);
    all_.emplace_back();
    try {
        by_client_.emplace(key, session.get());
        if (session->counts_against_limit) {
            add_to_counts(*session);
        }
    } catch (...) {
        by_client_.erase(key);
        all_.pop_back();
        throw;
    }
    session->index = all_.size() - 1;
    all_.back() = std::move(session);
    sessions_of_standing(inserted.standing).push_back(inserted);
    return inserted;
}

std::unique_ptr<Session> SessionIndex::remove(Session& session) {
    by_client_.erase(key_of(session.observed.client, session.listener));
    if (std::exchange(session.counts_against_limit, false)) {
        remove_from_counts(session, kMaxNetworksPerClient);
    }
    sessions_of_standing(session.standing).erase(SessionsByAge::s_iterator_to(session));
    const std::size_t index = session.index;
    std::unique_ptr<Session> removed = std::exchange(all_[index], nullptr);
    if (index + 1 != all_.size()) {
        all_[index] = std::move(all_.back());
        all_[index]->index = index;
    }
    all_.pop_back();
    return removed;
}

void SessionIndex::set_standing(Session& session, ClientStanding standing) noexcept {
    sessions_of_standing(session.standing).erase(SessionsByAge::s_iterator_to(session));
    if (session.counts_against_limit) {
        for (const base::Network& network : base::EnclosingNetworks{session.observed.client}) {
            if (const auto found = by_network_.find(network); found != by_network_.end()) {
                add_if_counted(found->second.counter_of(session.standing), -1);
                add_if_counted(found->second.counter_of(standing), 1);
            }
        }
    }
    session.standing = standing;
    sessions_of_standing(standing).push_back(session);
}

void SessionIndex::count_against_limit(Session& session) {
    add_to_counts(session);
    session.counts_against_limit = true;
}

std::uint32_t* SessionIndex::NetworkSessionCounts::counter_of(ClientStanding standing) noexcept {
    return standing == ClientStanding::verified ? &verified
           : standing == ClientStanding::unrecognised || standing == ClientStanding::unverified
               ? &unverified
               : nullptr;
}

SessionIndex::NetworkSessionCounts
SessionIndex::counts_of(const base::Network& network) const noexcept {
    const auto found = by_network_.find(network);
    return found == by_network_.end() ? NetworkSessionCounts{} : found->second;
}

void SessionIndex::add_to_counts(const Session& session) {
    std::size_t counted = 0;
    try {
        for (const base::Network& network : base::EnclosingNetworks{session.observed.client}) {
            NetworkSessionCounts& counts = by_network_[network];
            ++counts.against_limit;
            add_if_counted(counts.counter_of(session.standing), 1);
            ++counted;
        }
    } catch (...) {
        remove_from_counts(session, counted);
        throw;
    }
}

void SessionIndex::remove_from_counts(const Session& session, std::size_t networks) noexcept {
    for (const base::Network& network : base::EnclosingNetworks{session.observed.client}) {
        const auto found = by_network_.find(network);
        if (networks-- == 0 || found == by_network_.end()) {
            return;
        }
        add_if_counted(found->second.counter_of(session.standing), -1);
        if (--found->second.against_limit == 0) {
            by_network_.erase(found);
        }
    }
}

Session* SessionIndex::find_most_silent_session(ClientStanding standing,
                                                std::uint32_t now_ms) noexcept {
    Session* found = nullptr;
    std::uint32_t longest = kSilentMs;
    for (Session& each : sessions_of_standing(standing)) {
        const std::uint32_t silent = now_ms - each.last_heard_ms;
        if (silent >= longest && (found == nullptr || silent > longest)) {
            found = &each;
            longest = silent;
        }
    }
    return found;
}

} // namespace tw::relay
