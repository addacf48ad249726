#include "proxy/relay/gate.h"

#include <algorithm>
#include <new>

namespace tw::relay {

namespace {

/// Lets so many in that each place of a pool is held for that time; into a small pool, too, a few
/// at once.
TokenBucket bucket_for(std::size_t places, std::chrono::milliseconds each) {
    constexpr std::size_t kMilliseconds = 1000;
    constexpr std::size_t kLeast = 16;
    const std::size_t capacity = std::max(places, kLeast);
    const std::size_t rate = capacity * kMilliseconds / static_cast<std::size_t>(each.count());
    return {static_cast<std::uint32_t>(rate), static_cast<std::uint32_t>(capacity)};
}

/// Zero marks an entry that is free.
std::uint32_t tag_of(std::uint64_t hash) {
    return static_cast<std::uint32_t>(hash >> 32U) | 1U;
}

std::uint32_t in_ms(std::chrono::milliseconds time) {
    return static_cast<std::uint32_t>(time.count());
}

} // namespace

/// Memory from calloc is zero without being touched, so that a table costs what is used of it.
template <typename Entry>
Gate::Table<Entry> Gate::make_table(std::size_t count) {
    // NOLINTNEXTLINE(cppcoreguidelines-no-malloc)
    auto* const memory = static_cast<Entry*>(std::calloc(count, sizeof(Entry)));
    if (memory == nullptr) {
        throw std::bad_alloc{};
    }
    return Table<Entry>{memory};
}

Gate::Gate(const AdmissionLimits& limits, const AdmissionPools& pools, const KeyedHash& hash)
    : limits_{limits}, hash_{hash}, entries_{bucket_for(pools.unproven, limits.least_time)},
      requests_{bucket_for(pools.connless, limits.least_time)},
      sources_{make_table<SourceEntry>(kSources)}, waiting_{make_table<Waiting>(kWaiting)} {}

bool Gate::may_knock(const Endpoint& client, std::uint32_t now_ms) noexcept {
    const std::uint64_t hash = hash_(source_of(client));
    const std::uint32_t tag = tag_of(hash);
    const std::span set{sources_.get() + (hash % (kSources / kWays)) * kWays, kWays};
    auto found = std::find_if(set.begin(), set.end(),
                              [&](const SourceEntry& entry) { return entry.tag == tag; });
    if (found == set.end()) {
        // Who has been silent longest has the fullest bucket, so that forgetting it matters least.
        found = std::max_element(set.begin(), set.end(), [&](const auto& a, const auto& b) {
            return now_ms - a.filled_ms < now_ms - b.filled_ms;
        });
        *found = {.tag = tag, .tokens = limits_.strangers_rate, .filled_ms = now_ms};
    }
    const std::uint64_t due =
        std::uint64_t{now_ms - found->filled_ms} * limits_.strangers_rate / 1000;
    if (due != 0) {
        found->tokens = static_cast<std::uint32_t>(
            std::min<std::uint64_t>(found->tokens + due, limits_.strangers_rate));
        found->filled_ms = now_ms;
    }
    if (found->tokens == 0) {
        return false;
    }
    --found->tokens;
    return true;
}

Gate::Waiting& Gate::waiting_of(const Endpoint& client, std::uint32_t now_ms) noexcept {
    const std::uint64_t hash = hash_(client);
    const std::uint32_t tag = tag_of(hash);
    const std::span set{waiting_.get() + (hash % (kWaiting / kWays)) * kWays, kWays};
    auto found = std::find_if(set.begin(), set.end(),
                              [&](const Waiting& entry) { return entry.tag == tag; });
    if (found == set.end()) {
        found = std::max_element(set.begin(), set.end(), [&](const auto& a, const auto& b) {
            return now_ms - a.seen_ms < now_ms - b.seen_ms;
        });
        *found = {.tag = tag, .seen_ms = 0, .said = 0, .repeats = 0, .entered_ms = 0};
    }
    return *found;
}

void Gate::note(Waiting& waiting, std::span<const std::byte> datagram,
                std::uint32_t now_ms) const noexcept {
    constexpr std::size_t kLooked = 16;
    constexpr std::uint32_t kMask = 0xffffff;
    constexpr std::uint32_t kMostRepeats = 255;
    auto said = static_cast<std::uint32_t>(datagram.size());
    for (const std::byte byte : datagram.first(std::min(datagram.size(), kLooked))) {
        said = said * 16777619U ^ std::to_integer<std::uint32_t>(byte);
    }
    said = (said ^ said >> 24U) & kMask;
    const std::uint32_t since = now_ms - waiting.seen_ms;
    const bool repeats = waiting.said == said && since >= in_ms(limits_.earliest_repetition) &&
                         since <= in_ms(limits_.latest_repetition);
    const std::uint32_t before = waiting.repeats;
    waiting.repeats = (repeats ? std::min(before + 1, kMostRepeats) : 0) & kMostRepeats;
    waiting.said = said & kMask;
    waiting.seen_ms = now_ms;
}

std::uint32_t Gate::repeats_wanted() const noexcept {
    return entries_.is_below(1, 8)   ? 3
           : entries_.is_below(1, 4) ? 2
           : entries_.is_below(1, 2) ? 1
                                     : 0;
}

bool Gate::may_enter(const Endpoint& client, Standing standing, std::span<const std::byte> datagram,
                     std::uint32_t now_ms) noexcept {
    if (standing == Standing::connless) {
        return requests_.take(now_ms);
    }
    entries_.refill(now_ms);
    Waiting& waiting = waiting_of(client, now_ms);
    note(waiting, datagram, now_ms);
    const std::uint32_t wanted = repeats_wanted();
    const bool had_its_chance =
        waiting.entered_ms != 0 && now_ms - waiting.entered_ms < in_ms(limits_.second_chance);
    const bool stands_out =
        standing != Standing::stray && waiting.repeats >= wanted && !had_its_chance;
    if ((wanted != 0 && !stands_out) || !entries_.take(now_ms)) {
        return false;
    }
    waiting.entered_ms = std::max(now_ms, 1U);
    return true;
}

void Gate::forgive(const Endpoint& client) noexcept {
    const std::uint64_t hash = hash_(client);
    const std::span set{waiting_.get() + (hash % (kWaiting / kWays)) * kWays, kWays};
    for (Waiting& entry : set) {
        if (entry.tag == tag_of(hash)) {
            entry = {};
        }
    }
}

} // namespace tw::relay
