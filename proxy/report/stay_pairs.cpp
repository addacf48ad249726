#include "proxy/report/stay_pairs.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <string_view>
#include <tuple>

namespace tw::report {

namespace {

using Key = std::tuple<std::string_view, std::string_view, std::string_view>;
using KeyOf = Key (*)(const Stay&);
using Pairs = std::vector<std::pair<std::size_t, std::size_t>>;

/// How well two stays fit: the first number counts most, and more is better.
using Fit = std::array<double, 3>;
/// Nothing: they do not.
using FitOf = std::optional<Fit> (*)(const Stay&, const Stay&);

/// Those of each view that may be paired.
using Group = std::pair<std::vector<std::size_t>, std::vector<std::size_t>>;

/// What is paired at a time, and by what.
struct Round {
    KeyOf key;
    FitOf fit;
    bool
        in_order; ///< what is too much to compare: as it appears; otherwise it is left to the next round
};

/// Of a recording of months against another one.
constexpr std::size_t kMaxCandidates = 1'000'000;

/// 1: the same ticks, and as many snapshots; 0: no tick can be in both.
double closeness(const Stay& a, const Stay& b) {
    const auto length = [](snapshot::Tick begin, snapshot::Tick end) {
        return std::max(0.0, static_cast<double>(end) - static_cast<double>(begin) + 1);
    };
    const double common = length(std::max(a.begin, b.begin), std::min(a.end, b.end));
    const double all = length(std::min(a.begin, b.begin), std::max(a.end, b.end));
    const auto [fewer, more] = std::minmax(a.snapshots, b.snapshots);
    const double snapshots = more == 0 ? 1 : static_cast<double>(fewer) / static_cast<double>(more);
    return common / std::max(1.0, all) * snapshots;
}

bool apart(const Stay& a, const Stay& b) {
    return a.end < b.begin || b.end < a.begin;
}

/// On one server all stays have the same ticks, but no two see the same: each knows which player is its
/// own, and what lies within its sight.
std::optional<Fit> same_view(const Stay& a, const Stay& b) {
    const Likeness like = apart(a, b) ? Likeness{} : a.samples.compare(b.samples);
    if (like.equal == 0 || 2 * like.equal < like.ticks) {
        return std::nullopt;
    }
    return Fit{static_cast<double>(like.equal), -static_cast<double>(like.ticks - like.equal),
               closeness(a, b) + (a.client == b.client ? 1 : 0)};
}

std::optional<Fit> similar_view(const Stay& a, const Stay& b) {
    return Fit{apart(a, b) ? 0 : a.samples.compare(b.samples).items + closeness(a, b)};
}

Pairs in_order(const Group& group) {
    Pairs pairs;
    for (std::size_t i = 0; i < std::min(group.first.size(), group.second.size()); ++i) {
        pairs.emplace_back(group.first[i], group.second[i]);
    }
    return pairs;
}

/// All that are possible, those that fit best first; of equal ones in order.
Pairs best_first(const Round& round, const Group& group, const std::vector<Stay>& a,
                 const std::vector<Stay>& b) {
    if (group.first.size() > kMaxCandidates / std::max<std::size_t>(1, group.second.size())) {
        return round.in_order ? in_order(group) : Pairs{};
    }
    std::vector<std::tuple<Fit, std::size_t, std::size_t>> candidates;
    for (const std::size_t of_a : group.first) {
        for (const std::size_t of_b : group.second) {
            if (const auto fit = round.fit(a[of_a], b[of_b])) {
                candidates.emplace_back(*fit, of_a, of_b);
            }
        }
    }
    std::stable_sort(candidates.begin(), candidates.end(), [](const auto& left, const auto& right) {
        return std::get<Fit>(left) > std::get<Fit>(right);
    });
    Pairs pairs;
    for (const auto& [unused, of_a, of_b] : candidates) {
        pairs.emplace_back(of_a, of_b);
    }
    return pairs;
}

/// Takes each pair of which neither has a partner yet.
void take_pairs(const Pairs& candidates, StayPairs& found) {
    std::set<std::size_t> free_a{found.only_a.begin(), found.only_a.end()};
    std::set<std::size_t> free_b{found.only_b.begin(), found.only_b.end()};
    for (const auto& [of_a, of_b] : candidates) {
        if (free_a.contains(of_a) && free_b.contains(of_b)) {
            free_a.erase(of_a);
            free_b.erase(of_b);
            found.pairs.emplace_back(of_a, of_b);
        }
    }
    found.only_a.assign(free_a.begin(), free_a.end());
    found.only_b.assign(free_b.begin(), free_b.end());
}

void pair_by(const Round& round, const std::vector<Stay>& a, const std::vector<Stay>& b,
             StayPairs& found) {
    std::map<Key, Group> groups;
    for (const std::size_t index : found.only_a) {
        groups[round.key(a[index])].first.push_back(index);
    }
    for (const std::size_t index : found.only_b) {
        groups[round.key(b[index])].second.push_back(index);
    }
    Pairs candidates;
    for (const auto& [unused, group] : groups) {
        const Pairs of_group = best_first(round, group, a, b);
        candidates.insert(candidates.end(), of_group.begin(), of_group.end());
    }
    take_pairs(candidates, found);
}

Key client_and_map(const Stay& stay) {
    return {stay.client, stay.map, stay.crc};
}

Key map_only(const Stay& stay) {
    return {{}, stay.map, stay.crc};
}

/// A view that begins in mid-game may not know its map.
Key nothing(const Stay& /*stay*/) {
    return {};
}

} // namespace

StayPairs pair_stays(const std::vector<Stay>& a, const std::vector<Stay>& b,
                     std::optional<std::int64_t> session_a, std::optional<std::int64_t> session_b) {
    StayPairs found;
    const auto wanted = [](const std::vector<Stay>& stays, std::optional<std::int64_t> session) {
        std::vector<std::size_t> indexes;
        for (std::size_t i = 0; i < stays.size(); ++i) {
            if (!session || stays[i].session == *session) {
                indexes.push_back(i);
            }
        }
        return indexes;
    };
    found.only_a = wanted(a, session_a);
    found.only_b = wanted(b, session_b);
    constexpr Round kRounds[]{{.key = map_only, .fit = same_view, .in_order = false},
                              {.key = nothing, .fit = same_view, .in_order = false},
                              {.key = client_and_map, .fit = similar_view, .in_order = true},
                              {.key = map_only, .fit = similar_view, .in_order = true}};
    for (const Round& round : kRounds) {
        pair_by(round, a, b, found);
    }
    take_pairs(in_order({found.only_a, found.only_b}), found);
    std::sort(found.pairs.begin(), found.pairs.end());
    return found;
}

} // namespace tw::report
