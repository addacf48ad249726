#include "proxy/report/stay_samples.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <string>

namespace tw::report {

namespace {

/// Of MurmurHash3: each bit depends on all of them.
std::uint64_t mixed(std::uint64_t bits) {
    bits ^= bits >> 33U;
    bits *= 0xff51afd7ed558ccd;
    bits ^= bits >> 33U;
    bits *= 0xc4ceb9fe1a85ec53;
    return bits ^ bits >> 33U;
}

/// By chance, as snapshots may come at even ticks only; the same for everybody.
bool is_chosen(snapshot::Tick tick, std::uint64_t every) {
    return mixed(static_cast<std::uint32_t>(tick)) % every == 0;
}

/// By key and named fields, which every view has of an item that anybody can name.
std::uint64_t hash_of(const RecordedItems::value_type& item) {
    return mixed(item.first + mixed(std::hash<std::string>{}(item.second->fields)));
}

} // namespace

void StaySamples::add(snapshot::Tick tick, const RecordedItems& items) {
    if (samples_.size() >= kFirst && !is_chosen(tick, every_)) {
        return;
    }
    std::uint64_t all = 0;
    std::uint64_t least = std::numeric_limits<std::uint64_t>::max();
    for (const auto& item : items) {
        if (!item.second->of_demos()) {
            const std::uint64_t hash = hash_of(item);
            all += hash;
            least = std::min(least, mixed(hash + static_cast<std::uint32_t>(tick)));
        }
    }
    samples_.push_back({.tick = tick,
                        .all = static_cast<std::uint32_t>(mixed(all)),
                        .least = static_cast<std::uint32_t>(least)});
    while (samples_.size() > kFirst + kMost) {
        every_ *= 2;
        samples_.erase(std::remove_if(samples_.begin() + kFirst, samples_.end(),
                                      [this](const Sample& sample) {
                                          return !is_chosen(sample.tick, every_);
                                      }),
                       samples_.end());
    }
}

Likeness StaySamples::compare(const StaySamples& other) const {
    Likeness likeness;
    std::uint64_t least = 0;
    auto a = samples_.begin();
    auto b = other.samples_.begin();
    while (a != samples_.end() && b != other.samples_.end()) {
        if (a->tick == b->tick) {
            ++likeness.ticks;
            likeness.equal += a->all == b->all ? 1U : 0U;
            least += a->least == b->least ? 1U : 0U;
        }
        const snapshot::Tick next = std::min(a->tick, b->tick);
        a += a->tick == next ? 1 : 0;
        b += b->tick == next ? 1 : 0;
    }
    if (likeness.ticks != 0) {
        likeness.items = static_cast<double>(least) / static_cast<double>(likeness.ticks);
    }
    return likeness;
}

} // namespace tw::report
