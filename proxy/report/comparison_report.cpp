#include "proxy/report/comparison_report.h"

#include "proxy/record/terminal_text.h"
#include "proxy/report/json_text.h"

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include <boost/json.hpp>
#include <fmt/format.h>

namespace tw::report {

namespace json = boost::json;
using record::terminal_text;

namespace {

/// More pairs, and more stays without a partner, are not listed for people.
constexpr std::size_t kListed = 32;

std::string plural(std::uint64_t count, std::string_view what) {
    return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

std::string describe(const Stay& stay) {
    return terminal_text(fmt::format("session {} ({}{}{})", stay.session, stay.client,
                                     stay.map.empty() ? "" : ", ", stay.map));
}

std::string describe(const PairTotals& totals) {
    std::string text =
        fmt::format("{} in both, {} different, {} only in A, {} only in B",
                    plural(totals.both, "tick"), totals.different, totals.only[0], totals.only[1]);
    if (const auto left_out = totals.left_out[0] + totals.left_out[1]; left_out != 0) {
        text += fmt::format(", {} skipped (too far apart in the files)", left_out);
    }
    return text;
}

const Stay& stay_of(const ComparisonReport& report, std::size_t view, std::size_t pair) {
    const auto& [a, b] = report.pairs->pairs[pair];
    return (*report.stays[view])[view == 0 ? a : b];
}

std::string pairs_text(const ComparisonReport& report) {
    std::string text;
    for (std::size_t i = 0; i < report.pairs->pairs.size(); ++i) {
        if (i == kListed) {
            text += fmt::format("... and {} more\n", report.pairs->pairs.size() - i);
            break;
        }
        text += fmt::format("A {}\nB {}\n  {}\n", describe(stay_of(report, 0, i)),
                            describe(stay_of(report, 1, i)), describe(report.comparison->pair(i)));
    }
    const std::pair<char, const std::vector<std::size_t>*> lonely[] = {
        {'A', &report.pairs->only_a}, {'B', &report.pairs->only_b}};
    for (std::size_t view = 0; view < std::size(lonely); ++view) {
        const auto& [name, stays] = lonely[view];
        for (std::size_t i = 0; i < stays->size() && i < kListed; ++i) {
            text += fmt::format("{} {}\n"
                                "  without a counterpart, not compared\n",
                                name, describe((*report.stays[view])[(*stays)[i]]));
        }
        if (stays->size() > kListed) {
            text += fmt::format("... and {} more\n", stays->size() - kListed);
        }
    }
    return text;
}

std::string counts_text(const GameComparison& comparison) {
    std::size_t objects = 6;
    std::size_t fields = 5;
    for (const auto& [key, count] : comparison.counts()) {
        objects = std::max(objects, terminal_text(key.first).size());
        fields = std::max(fields, terminal_text(key.second).size());
    }
    std::string text = fmt::format("{:{}}  {:{}}  {:>11}  {:>10}\n", "object", objects, "field",
                                   fields, "differences", "first tick");
    for (const auto& [key, count] : comparison.counts()) {
        text += fmt::format("{:{}}  {:{}}  {:>11}  {:>10}\n", terminal_text(key.first), objects,
                            terminal_text(key.second), fields, count.items, count.first);
    }
    if (comparison.uncounted() != 0) {
        text += fmt::format("... and {} of other objects and fields\n", comparison.uncounted());
    }
    return text;
}

std::string skipped_text(const ComparisonReport& report) {
    std::string text;
    for (std::size_t view = 0; view < report.files.size(); ++view) {
        const char name = view == 0 ? 'A' : 'B';
        if (report.unusable[view] != 0) {
            text +=
                fmt::format("{} of {} not compared: recorded without items, or based on records "
                            "that are missing\n",
                            plural(report.unusable[view], "snapshot"), name);
        }
        if (report.behind[view] != 0) {
            text += fmt::format("{} of {} not compared: at or behind the tick before them\n",
                                plural(report.behind[view], "snapshot"), name);
        }
    }
    return text;
}

json::object both_json(const std::array<std::uint64_t, 2>& counts) {
    return {{"a", counts[0]}, {"b", counts[1]}};
}

json::object stay_json(const Stay& stay) {
    return {{"session", stay.session},
            {"client", stay.client},
            {"map", stay.map},
            {"snapshots", stay.snapshots}};
}

json::object ticks_json(const PairTotals& totals) {
    return {{"both", totals.both},
            {"different", totals.different},
            {"only_a", totals.only[0]},
            {"only_b", totals.only[1]},
            {"left_out", totals.left_out[0] + totals.left_out[1]}};
}

json::value value_json(const std::string& text) {
    json::error_code error;
    json::value value = json::parse(text, error);
    return error ? json::value{text} : value;
}

json::value first_json(const ComparisonReport& report) {
    const auto& first = report.comparison->first();
    if (!first) {
        return nullptr;
    }
    return json::object{{"tick", first->tick},
                        {"session_a", stay_of(report, 0, first->pair).session},
                        {"session_b", stay_of(report, 1, first->pair).session},
                        {"type", first->type},
                        {"type_id", first->type_id},
                        {"id", first->id},
                        {"field", first->field.field},
                        {"a", value_json(first->field.a)},
                        {"b", value_json(first->field.b)}};
}

} // namespace

std::string comparison_text(const ComparisonReport& report) {
    const GameComparison& comparison = *report.comparison;
    const PairTotals totals = comparison.totals();
    std::string text = fmt::format("A is {}\nB is {}\n\n{}\n", terminal_text(report.files[0]),
                                   terminal_text(report.files[1]), pairs_text(report));
    if (comparison.unlike() != 0) {
        text += fmt::format("{} not compared: one side has only their raw ints, from when their "
                            "type was unnamed or a mod's, the other only their named fields\n",
                            plural(comparison.unlike(), "item"));
    }
    if (comparison.of_demos() != 0) {
        text += fmt::format("{} not compared: only 0.7 demos contain them\n",
                            plural(comparison.of_demos(), "item"));
    }
    text += skipped_text(report);
    if (const auto& first = comparison.first()) {
        text += fmt::format(
            "First difference: tick {}, {} {}, {}: {} in A, {} in B (session {} and {})\n\n{}\n",
            first->tick, terminal_text(first->type), first->id, terminal_text(first->field.field),
            terminal_text(first->field.a), terminal_text(first->field.b),
            stay_of(report, 0, first->pair).session, stay_of(report, 1, first->pair).session,
            counts_text(comparison));
    }
    return text + fmt::format("{}: {}\n",
                              comparison.equal() ? "equal"
                              : totals.both == 0 ? "different: no tick in common"
                                                 : "different",
                              describe(totals));
}

std::string comparison_json(const ComparisonReport& report) {
    const GameComparison& comparison = *report.comparison;
    json::array pairs;
    for (std::size_t i = 0; i < report.pairs->pairs.size(); ++i) {
        pairs.push_back(json::object{{"a", stay_json(stay_of(report, 0, i))},
                                     {"b", stay_json(stay_of(report, 1, i))},
                                     {"ticks", ticks_json(comparison.pair(i))}});
    }
    const auto lonely = [&](const std::vector<std::size_t>& stays, std::size_t view) {
        json::array list;
        for (const std::size_t stay : stays) {
            list.push_back(stay_json((*report.stays[view])[stay]));
        }
        return list;
    };
    json::array differences;
    for (const auto& [key, count] : comparison.counts()) {
        differences.push_back(json::object{{"type", key.first},
                                           {"field", key.second},
                                           {"differences", count.items},
                                           {"first_tick", count.first}});
    }
    const json::object all{
        {"equal", comparison.equal()},
        {"a", utf8_text(report.files[0])},
        {"b", utf8_text(report.files[1])},
        {"ticks", ticks_json(comparison.totals())},
        {"first", first_json(report)},
        {"differences", std::move(differences)},
        {"uncounted", comparison.uncounted()},
        {"not_compared", comparison.unlike() + comparison.of_demos()},
        {"unusable_snapshots", both_json(report.unusable)},
        {"snapshots_behind", both_json(report.behind)},
        {"pairs", std::move(pairs)},
        {"without_partner", json::object{{"a", lonely(report.pairs->only_a, 0)},
                                         {"b", lonely(report.pairs->only_b, 1)}}}};
    std::string text;
    record::append_terminal_json(json::serialize(all), text);
    return text + '\n';
}

} // namespace tw::report
