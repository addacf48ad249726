#include "proxy/relay/new_client_filter.h"

#include <limits>
#include <new>

namespace tw::relay {

/// Checks whether the first part of the answer that is being received came kMaxPartsMs ago. If so,
/// makes that answer the current one, or discards it if it is too long to store.
void AnswerCache::replace_current(AnswerPair& pair, std::uint32_t now_ms) noexcept {
    Answer& coming = pair.answers[pair.current ^ 1U];
    if (coming.asker != 0 && now_ms - coming.began_ms >= kMaxPartsMs) {
        if (coming.num_parts <= kMaxParts) {
            pair.current ^= 1U;
        }
        pair.answers[pair.current ^ 1U].asker = 0;
    }
}

void AnswerCache::add_part(std::uint8_t kind, std::uint32_t asker, const AnswerPart& part,
                           std::span<const std::byte> datagram, std::uint32_t now_ms) noexcept {
    AnswerPair& pair = (*pairs_)[kind % kMaxQuestions];
    replace_current(pair, now_ms);
    Answer& coming = pair.answers[pair.current ^ 1U];
    if (coming.asker == 0 && part.is_first) {
        coming.began_ms = now_ms;
        coming.asker = asker;
        coming.num_parts = 0;
    } else if (coming.asker != asker || part.is_first) {
        return; // a second answer is not stored while the parts of an answer are being received
    }
    if (coming.num_parts >= kMaxParts || datagram.size() > kMaxBytes) {
        coming.num_parts = kMaxParts + 1;
        return;
    }
    Answer::Part& kept = coming.parts[coming.num_parts++];
    kept.size = static_cast<std::uint16_t>(datagram.size());
    std::ranges::copy(datagram, kept.bytes.begin());
}

const AnswerCache::Answer* AnswerCache::find(std::uint8_t kind, std::uint32_t now_ms) noexcept {
    AnswerPair& pair = (*pairs_)[kind % kMaxQuestions];
    replace_current(pair, now_ms);
    const Answer& current = pair.answers[pair.current];
    const bool is_recent = current.asker != 0 && now_ms - current.began_ms < kMaxAgeMs;
    return is_recent ? &current : nullptr;
}

namespace {

/// Returns a bucket with room for `places` new sessions, at least 16. An empty bucket is full again
/// after the time `each`.
TokenBucket make_session_bucket(std::size_t places, std::chrono::milliseconds each) {
    constexpr std::size_t kMilliseconds = 1000;
    constexpr std::size_t kLeast = 16;
    const std::size_t capacity = std::max(places, kLeast);
    const std::size_t rate = capacity * kMilliseconds / static_cast<std::size_t>(each.count());
    return {static_cast<std::uint32_t>(rate), static_cast<std::uint32_t>(capacity)};
}

/// Returns the tag of a table entry. It is never zero, because zero marks a free entry.
std::uint32_t tag_of(std::uint64_t hash) {
    return static_cast<std::uint32_t>(hash >> 32U) | 1U;
}

std::uint32_t in_ms(std::chrono::milliseconds time) {
    return static_cast<std::uint32_t>(time.count());
}

} // namespace

/// Allocates a zeroed table. calloc does not touch the table, so unused parts take no memory.
template <typename Entry>
NewClientFilter::Table<Entry> NewClientFilter::make_table(std::size_t count) {
    // NOLINTNEXTLINE(cppcoreguidelines-no-malloc)
    auto* const memory = static_cast<Entry*>(std::calloc(count, sizeof(Entry)));
    if (memory == nullptr) {
        throw std::bad_alloc{};
    }
    return Table<Entry>{memory};
}

NewClientFilter::NewClientFilter(const NewClientLimits& limits, const SessionPoolSizes& pools,
                                 const base::KeyedHash& hash)
    : limits_{limits}, hash_{hash}, entries_{make_session_bucket(pools.unverified,
                                                                 limits.least_time)},
      requests_{make_session_bucket(pools.connless, limits.least_time)}, asked_{limits.asked_rate,
                                                                                limits.asked_rate},
      repeated_{limits.repeated_rate, limits.repeated_rate}, reserved_{limits.reserved_rate,
                                                                       limits.reserved_rate},
      networks_{make_table<NetworkBucket>(kNetworks)}, waiting_{make_table<WaitingClient>(
                                                           kWaitingClients)} {}

NewClientFilter::NetworkBucket& NewClientFilter::bucket_of(const base::Network& network,
                                                           BucketPurpose purpose,
                                                           const BucketRate& rate,
                                                           std::uint32_t now_ms) noexcept {
    constexpr std::uint32_t kKeyLifetimeMs = 1U << 15U;
    const std::uint64_t hash =
        hash_(hash_(network), static_cast<std::uint64_t>(purpose), now_ms / kKeyLifetimeMs);
    const std::uint32_t tag = tag_of(hash);
    const std::span set{networks_.get() + (hash % (kNetworks / kWays)) * kWays, kWays};
    auto found = std::find_if(set.begin(), set.end(),
                              [&](const NetworkBucket& entry) { return entry.tag == tag; });
    if (found == set.end()) {
        // A new, full bucket replaces the least recently used bucket, which is the fullest.
        found = std::max_element(set.begin(), set.end(), [&](const auto& a, const auto& b) {
            return now_ms - a.filled_ms < now_ms - b.filled_ms;
        });
        *found = {.tag = tag, .tokens = rate.burst, .filled_ms = now_ms};
    }
    const std::uint64_t due = std::uint64_t{now_ms - found->filled_ms} * rate.per_second / 1000;
    if (due != 0) {
        found->tokens =
            static_cast<std::uint32_t>(std::min<std::uint64_t>(found->tokens + due, rate.burst));
        found->filled_ms = now_ms;
    }
    return *found;
}

class NewClientFilter::NetworkBuckets {
  public:
    NetworkBuckets(NewClientFilter& filter, const base::Endpoint& client, BucketPurpose purpose,
                   const BucketRate& rate, std::uint32_t now_ms) noexcept {
        if (base::is_loopback(client)) {
            return; // loopback addresses cannot be forged
        }
        for (const base::Network& network : base::Networks{client}) {
            // A wider network has more clients, so each step of width gives four times the tokens.
            const std::uint32_t times = 1U << (2U * network.width);
            const BucketRate of_all{.per_second = rate.per_second * times,
                                    .burst = rate.burst * times};
            NetworkBucket& bucket = filter.bucket_of(network, purpose, of_all, now_ms);
            buckets_[count_++] = &bucket;
            scarcity_ = std::max(scarcity_, scarcity_of(bucket.tokens, of_all.burst));
            least_ = std::min(least_, bucket.tokens);
        }
    }

    [[nodiscard]] bool empty() const noexcept { return !has_tokens(1); }

    [[nodiscard]] bool has_tokens(std::uint32_t tokens) const noexcept { return least_ >= tokens; }

    /// Returns the scarcity of the emptiest bucket.
    [[nodiscard]] Scarcity scarcity() const noexcept { return scarcity_; }

    /// Takes this many tokens from each bucket. Precondition: has_tokens(tokens).
    void take_tokens(std::uint32_t tokens) noexcept {
        for (std::size_t i = 0; i < count_; ++i) {
            buckets_[i]->tokens -= tokens;
        }
    }

  private:
    std::array<NetworkBucket*, 3> buckets_{};
    std::size_t count_ = 0;
    Scarcity scarcity_ = Scarcity::none;
    std::uint32_t least_ = std::numeric_limits<std::uint32_t>::max();
};

NewClientFilter::WaitingClient& NewClientFilter::waiting_client_of(const base::Endpoint& client,
                                                                   std::uint32_t now_ms) noexcept {
    const std::uint64_t hash = hash_(client);
    const std::uint32_t tag = tag_of(hash);
    const std::span set{waiting_.get() + (hash % (kWaitingClients / kWays)) * kWays, kWays};
    auto found = std::find_if(set.begin(), set.end(),
                              [&](const WaitingClient& entry) { return entry.tag == tag; });
    if (found == set.end()) {
        found = std::max_element(set.begin(), set.end(), [&](const auto& a, const auto& b) {
            return now_ms - a.seen_ms < now_ms - b.seen_ms;
        });
        *found = {.tag = tag, .seen_ms = 0, .datagram_hash = 0, .repeats = 0, .admitted_ms = 0};
    }
    return *found;
}

void NewClientFilter::count_repetition(WaitingClient& waiting, std::span<const std::byte> datagram,
                                       std::uint32_t now_ms) const noexcept {
    constexpr std::size_t kHashedBytes = 16;
    constexpr std::uint32_t kMask = 0xffffff;
    constexpr std::uint32_t kMostRepeats = 255;
    auto hash = static_cast<std::uint32_t>(datagram.size());
    for (const std::byte byte : datagram.first(std::min(datagram.size(), kHashedBytes))) {
        hash = hash * 16777619U ^ std::to_integer<std::uint32_t>(byte);
    }
    hash = (hash ^ hash >> 24U) & kMask;
    const std::uint32_t since = now_ms - waiting.seen_ms;
    const bool repeats = waiting.datagram_hash == hash &&
                         since >= in_ms(limits_.earliest_repetition) &&
                         since <= in_ms(limits_.latest_repetition);
    const bool one_lost = waiting.datagram_hash == hash &&
                          since >= 2 * in_ms(limits_.earliest_repetition) &&
                          since <= 2 * in_ms(limits_.latest_repetition);
    const std::uint32_t before = waiting.repeats;
    waiting.repeats = (repeats    ? std::min(before + 1, kMostRepeats)
                       : one_lost ? before
                                  : 0) &
                      kMostRepeats;
    waiting.datagram_hash = hash & kMask;
    waiting.seen_ms = now_ms;
}

NewClientDecision NewClientFilter::decide_new_client(const base::Endpoint& client,
                                                     ClientStanding standing, bool is_first,
                                                     std::span<const std::byte> datagram,
                                                     std::uint32_t now_ms) noexcept {
    // A network gets at most a quarter of the rate for all clients.
    const std::uint32_t most = std::min(limits_.strangers_rate, std::max(entries_.rate() / 4, 1U));
    const BucketRate rate{.per_second = most, .burst = most};
    NetworkBuckets own{*this, client, BucketPurpose::begin, rate, now_ms};
    entries_.refill(now_ms);
    WaitingClient& waiting = waiting_client_of(client, now_ms);
    count_repetition(waiting, datagram, now_ms);
    const NewClientDecision entry{.repeats = static_cast<std::uint8_t>(waiting.repeats)};
    const auto repeats_enough = [&](Scarcity scarcity) {
        return scarcity == Scarcity::none ||
               (standing != ClientStanding::stray &&
                waiting.repeats >= static_cast<std::uint32_t>(scarcity));
    };
    if (own.empty() || !repeats_enough(own.scarcity())) {
        return {.refusal = Refusal::flood, .repeats = entry.repeats};
    }
    const bool was_admitted =
        waiting.admitted_ms != 0 && now_ms - waiting.admitted_ms < in_ms(limits_.second_chance);
    const Scarcity scarcity = entries_.scarcity();
    if (!repeats_enough(scarcity) || (scarcity >= Scarcity::quarter && !is_first) ||
        (scarcity != Scarcity::none && was_admitted) || !entries_.try_take_token(now_ms)) {
        return {.refusal = Refusal::crowd, .repeats = entry.repeats};
    }
    own.take_tokens(1);
    waiting.admitted_ms = std::max(now_ms, 1U);
    return entry;
}

RequestDecision NewClientFilter::decide_request(const base::Endpoint& client, RequestKind request,
                                                bool has_answer, std::uint32_t now_ms) noexcept {
    const BucketRate rate{.per_second = limits_.requests_rate, .burst = limits_.requests_burst};
    NetworkBuckets own{*this, client, BucketPurpose::ask, rate, now_ms};
    if (own.empty()) {
        return RequestDecision::flood;
    }
    asked_.refill(now_ms);
    const bool repeats =
        request == RequestKind::common && has_answer && !asked_.try_take_token(now_ms);
    TokenBucket& all = repeats                            ? repeated_
                       : request == RequestKind::reserved ? reserved_
                                                          : requests_;
    all.refill(now_ms);
    // When tokens are scarce, a request takes more tokens from its network's bucket, so that busy
    // networks are limited first.
    const std::uint32_t cost = 1U << static_cast<std::uint32_t>(all.scarcity());
    if (!own.has_tokens(cost) || !all.try_take_token(now_ms)) {
        return RequestDecision::crowd;
    }
    own.take_tokens(cost);
    return repeats ? RequestDecision::repeat : RequestDecision::server;
}

void NewClientFilter::remember_verified_client(const base::Endpoint& client) noexcept {
    const std::uint64_t hash = hash_(client);
    const std::span set{waiting_.get() + (hash % (kWaitingClients / kWays)) * kWays, kWays};
    for (WaitingClient& entry : set) {
        if (entry.tag == tag_of(hash)) {
            entry = {};
        }
    }
}

} // namespace tw::relay
