#include "proxy/bus/number_set.h"

#include <algorithm>
#include <charconv>
#include <iterator>

#include <fmt/format.h>

namespace tw::bus {

namespace {

std::optional<std::uint64_t> number_of(std::string_view text) {
    std::uint64_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    return error == std::errc{} && end == text.data() + text.size() ? std::optional{number}
                                                                    : std::nullopt;
}

} // namespace

void NumberSet::insert(std::uint64_t first, std::uint64_t last) {
    auto at = ranges_.upper_bound(first);
    if (at != ranges_.begin() &&
        std::prev(at)->second >= first - std::min<std::uint64_t>(first, 1)) {
        --at;
        first = at->first;
    }
    while (at != ranges_.end() && (last == UINT64_MAX || at->first <= last + 1)) {
        last = std::max(last, at->second);
        at = ranges_.erase(at);
    }
    ranges_.emplace(first, last);
}

void NumberSet::insert(const NumberSet& other) {
    for (const auto& [first, last] : other.ranges_) {
        insert(first, last);
    }
}

bool NumberSet::contains(std::uint64_t number) const {
    const auto behind = ranges_.upper_bound(number);
    return behind != ranges_.begin() && std::prev(behind)->second >= number;
}

std::uint64_t NumberSet::count(std::uint64_t first, std::uint64_t last) const {
    std::uint64_t sum = 0;
    auto range = ranges_.upper_bound(first);
    range = range == ranges_.begin() ? range : std::prev(range);
    for (; range != ranges_.end() && range->first <= last; ++range) {
        const std::uint64_t from = std::max(first, range->first);
        const std::uint64_t to = std::min(last, range->second);
        sum += from <= to ? to - from + 1 : 0;
    }
    return sum;
}

void NumberSet::forget_before(std::uint64_t number) {
    while (!ranges_.empty() && ranges_.begin()->first < number) {
        const std::uint64_t last = ranges_.begin()->second;
        ranges_.erase(ranges_.begin());
        if (last >= number) {
            ranges_.emplace(number, last);
        }
    }
}

std::string NumberSet::text() const {
    std::string text;
    for (const auto& [first, last] : ranges_) {
        text += fmt::format("{}{}", text.empty() ? "" : ",", first);
        if (last != first) {
            text += fmt::format("-{}", last);
        }
    }
    return text;
}

std::optional<NumberSet> NumberSet::read(std::string_view text) {
    NumberSet set;
    while (!text.empty()) {
        const std::string_view range = text.substr(0, text.find(','));
        text.remove_prefix(std::min(text.size(), range.size() + 1));
        const auto dash = range.find('-');
        const auto first = number_of(range.substr(0, dash));
        const auto last =
            dash == std::string_view::npos ? first : number_of(range.substr(dash + 1));
        if (!first || !last || *last < *first) {
            return std::nullopt;
        }
        set.insert(*first, *last);
    }
    return set;
}

} // namespace tw::bus
