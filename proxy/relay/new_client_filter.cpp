#include "proxy/relay/new_client_filter.h"

#include <limits>

namespace tw::relay {

/// Completes the answer that is being received if its first part came at least kMaxPartSpanMs ago.
/// The answer then becomes the current answer, or is discarded if it is too long to store.
void AnswerCache::finish_due_answer(AnswerPair& pair, std::uint32_t now_ms) noexcept {
    Answer& coming = pair.answers[pair.current ^ 1U];
    if (coming.asker != 0 && now_ms - coming.first_part_ms >= kMaxPartSpanMs) {
        if (coming.num_parts <= kMaxParts) {
            pair.current ^= 1U;
        }
        pair.answers[pair.current ^ 1U].asker = 0;
    }
}

void AnswerCache::add_part(std::uint8_t kind, std::uint32_t asker, AnswerPartKind part,
                           std::span<const std::byte> datagram, std::uint32_t now_ms) noexcept {
    AnswerPair& pair = (*pairs_)[kind % kMaxQuestionKinds];
    finish_due_answer(pair, now_ms);
    Answer& coming = pair.answers[pair.current ^ 1U];
    if (part == AnswerPartKind::none) {
        return;
    }
    if (coming.asker == 0 && part == AnswerPartKind::first) {
        coming.first_part_ms = now_ms;
        coming.asker = asker;
        coming.num_parts = 0;
    } else if (coming.asker != asker || part == AnswerPartKind::first) {
        return; // a second answer is not stored while the parts of an answer are being received
    }
    if (coming.num_parts >= kMaxParts || datagram.size() > kMaxPartBytes) {
        coming.num_parts = kMaxParts + 1;
        return;
    }
    Answer::Part& kept = coming.parts[coming.num_parts++];
    kept.size = static_cast<std::uint16_t>(datagram.size());
    std::ranges::copy(datagram, kept.bytes.begin());
}

const AnswerCache::Answer* AnswerCache::find_answer(std::uint8_t kind,
                                                    std::uint32_t now_ms) noexcept {
    AnswerPair& pair = (*pairs_)[kind % kMaxQuestionKinds];
    finish_due_answer(pair, now_ms);
    const Answer& current = pair.answers[pair.current];
    const bool is_recent = current.asker != 0 && now_ms - current.first_part_ms < kMaxAgeMs;
    return is_recent ? &current : nullptr;
}

namespace {

/// Returns a bucket for `places` tokens, or for 16 if `places` is less. An empty bucket is full
/// again after `refill_time`.
TokenBucket bucket_for(std::size_t places, std::chrono::milliseconds refill_time) {
    constexpr std::size_t kMilliseconds = 1000;
    constexpr std::size_t kLeast = 16;
    const std::size_t capacity = std::max(places, kLeast);
    const std::size_t rate =
        capacity * kMilliseconds / static_cast<std::size_t>(refill_time.count());
    return {static_cast<std::uint32_t>(rate), static_cast<std::uint32_t>(capacity)};
}

std::uint32_t in_ms(std::chrono::milliseconds time) {
    return static_cast<std::uint32_t>(time.count());
}

} // namespace

NewClientFilter::NewClientFilter(const NewClientLimits& limits, const SessionPoolSizes& pools,
                                 const base::KeyedHash& hash)
    : limits_{limits}, hash_{hash}, new_sessions_{bucket_for(pools.unverified,
                                                             limits.min_unverified_time)},
      forwarded_requests_{bucket_for(pools.connless, limits.min_unverified_time)},
      forwarded_common_requests_{limits.forwarded_rate},
      repeated_answers_{limits.repeated_answer_rate}, rare_requests_{limits.rare_request_rate} {}

TokenBucket& NewClientFilter::bucket_of(const base::Network& network, BucketPurpose purpose,
                                        const TokenBucket& full, std::uint32_t now_ms) noexcept {
    constexpr std::uint32_t kKeyLifetimeMs = 1U << 15U;
    const std::uint64_t hash =
        hash_(hash_(network), static_cast<std::uint64_t>(purpose), now_ms / kKeyLifetimeMs);
    NetworkBucket& found =
        network_buckets_.find_or_add(hash, {.tag = 0, .seen_ms = 0, .bucket = full}, now_ms);
    found.seen_ms = now_ms;
    found.bucket.refill(now_ms);
    return found.bucket;
}

class NewClientFilter::NetworkBuckets {
  public:
    /// `rate` and `burst`: the limit of the narrowest of the networks that contain `client`.
    NetworkBuckets(NewClientFilter& filter, const base::Endpoint& client, BucketPurpose purpose,
                   std::uint32_t rate, std::uint32_t burst, std::uint32_t now_ms) noexcept {
        if (base::is_loopback(client)) {
            return; // loopback addresses cannot be forged
        }
        for (const base::Network& network : base::EnclosingNetworks{client}) {
            // A wider network has more clients, so each step of width gives four times the tokens.
            const std::uint32_t times = 1U << (2U * network.width);
            const TokenBucket full{rate * times, burst * times};
            TokenBucket& bucket = filter.bucket_of(network, purpose, full, now_ms);
            buckets_[count_++] = &bucket;
            scarcity_ = std::max(scarcity_, bucket.scarcity());
            least_ = std::min(least_, bucket.tokens());
        }
    }

    [[nodiscard]] bool empty() const noexcept { return !has_tokens(1); }

    [[nodiscard]] bool has_tokens(std::uint32_t tokens) const noexcept { return least_ >= tokens; }

    /// Returns the scarcity of the emptiest bucket.
    [[nodiscard]] TokenScarcity scarcity() const noexcept { return scarcity_; }

    /// Takes this many tokens from each bucket. Precondition: has_tokens(tokens).
    void take_tokens(std::uint32_t tokens) noexcept {
        for (std::size_t i = 0; i < count_; ++i) {
            buckets_[i]->take_tokens(tokens);
        }
    }

  private:
    std::array<TokenBucket*, 3> buckets_{};
    std::size_t count_ = 0;
    TokenScarcity scarcity_ = TokenScarcity::none;
    std::uint32_t least_ = std::numeric_limits<std::uint32_t>::max();
};

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
    const std::uint32_t before = waiting.num_repeats;
    waiting.num_repeats = (repeats    ? std::min(before + 1, kMostRepeats)
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
    const std::uint32_t most =
        std::min(limits_.new_client_rate, std::max(new_sessions_.rate() / 4, 1U));
    NetworkBuckets own{*this, client, BucketPurpose::new_sessions, most, most, now_ms};
    new_sessions_.refill(now_ms);
    WaitingClient& waiting = waiting_clients_.find_or_add(hash_(client), {}, now_ms);
    count_repetition(waiting, datagram, now_ms);
    const NewClientDecision entry{.num_repeats = static_cast<std::uint8_t>(waiting.num_repeats)};
    const auto repeats_enough = [&](TokenScarcity scarcity) {
        return scarcity == TokenScarcity::none ||
               (standing != ClientStanding::unrecognised &&
                waiting.num_repeats >= static_cast<std::uint32_t>(scarcity));
    };
    if (own.empty() || !repeats_enough(own.scarcity())) {
        return {.refusal = NewClientRefusal::network_limit, .num_repeats = entry.num_repeats};
    }
    const bool was_admitted =
        waiting.admitted_ms != 0 && now_ms - waiting.admitted_ms < in_ms(limits_.readmission_pause);
    const TokenScarcity scarcity = new_sessions_.scarcity();
    if (!repeats_enough(scarcity) || (scarcity >= TokenScarcity::below_quarter && !is_first) ||
        (scarcity != TokenScarcity::none && was_admitted) ||
        !new_sessions_.try_take_token(now_ms)) {
        return {.refusal = NewClientRefusal::too_many_new_clients,
                .num_repeats = entry.num_repeats};
    }
    own.take_tokens(1);
    waiting.admitted_ms = std::max(now_ms, 1U);
    return entry;
}

RequestDecision NewClientFilter::decide_request(const base::Endpoint& client, RequestKind request,
                                                bool has_answer, std::uint32_t now_ms) noexcept {
    NetworkBuckets own{
        *this, client, BucketPurpose::requests, limits_.request_rate, limits_.request_burst,
        now_ms};
    if (own.empty()) {
        return RequestDecision::reject_by_network_limit;
    }
    forwarded_common_requests_.refill(now_ms);
    const bool repeats = request == RequestKind::server_info && has_answer &&
                         !forwarded_common_requests_.try_take_token(now_ms);
    TokenBucket& all = repeats                        ? repeated_answers_
                       : request == RequestKind::rare ? rare_requests_
                                                      : forwarded_requests_;
    all.refill(now_ms);
    // When tokens are scarce, a request takes more tokens from its network's bucket, so that busy
    // networks are limited first.
    const std::uint32_t cost = 1U << static_cast<std::uint32_t>(all.scarcity());
    if (!own.has_tokens(cost) || !all.try_take_token(now_ms)) {
        return RequestDecision::reject_by_total_limit;
    }
    own.take_tokens(cost);
    return repeats ? RequestDecision::repeat_answer : RequestDecision::forward;
}

void NewClientFilter::lift_readmission_pause(const base::Endpoint& client) noexcept {
    if (WaitingClient* const found = waiting_clients_.find(hash_(client))) {
        *found = {};
    }
}

} // namespace tw::relay
