#include "proxy/analyze/comparison_report.h"

#include "proxy/record/json.h"
#include "proxy/record/terminal_text.h"
#include "snapshot/item.h"
#include "snapshot/objects.h"

#include <tuple>

#include <fmt/format.h>

namespace tw::analyze {

namespace json = boost::json;
using snapshot::ItemKey;
using snapshot::Tick;

using record::escape_for_terminal;

namespace {

constexpr std::string_view kItemPresent = R"("there")";
constexpr std::string_view kItemMissing = R"("not there")";

json::object parse_fields(const std::string& text) {
    json::error_code error;
    json::value value = json::parse(text, error);
    return !error && value.is_object() ? value.get_object() : json::object{};
}

std::string field_text(const json::object& fields, std::string_view name) {
    const json::value* value = fields.if_contains(name);
    return value == nullptr ? std::string{kItemMissing} : json::serialize(*value);
}

/// Returns the named fields that differ: those of `a` in order, then those that only `b` has.
std::vector<FieldDifference> compare_fields(const json::object& a, const json::object& b) {
    std::vector<FieldDifference> found;
    const auto note = [&](std::string_view name) {
        found.push_back({std::string{name}, field_text(a, name), field_text(b, name)});
    };
    for (const auto& field : a) {
        const json::value* other = b.if_contains(field.key());
        if (other == nullptr || *other != field.value()) {
            note(field.key());
        }
    }
    for (const auto& field : b) {
        if (!a.contains(field.key())) {
            note(field.key());
        }
    }
    return found;
}

std::vector<FieldDifference> compare_ints(const std::vector<std::int64_t>& a,
                                          const std::vector<std::int64_t>& b) {
    const auto int_in = [](const std::vector<std::int64_t>& ints, std::size_t index) {
        return index < ints.size() ? fmt::to_string(ints[index]) : std::string{kItemMissing};
    };
    std::vector<FieldDifference> found;
    for (std::size_t i = 0; i < std::max(a.size(), b.size()); ++i) {
        if (i >= a.size() || i >= b.size() || a[i] != b[i]) {
            found.push_back({fmt::format("int_{}", i), int_in(a, i), int_in(b, i)});
        }
    }
    return found;
}

bool is_demo(const RecordedItems& items) {
    return std::ranges::any_of(items, [](const auto& item) { return item.second->is_demo_only(); });
}

/// True if the type has a name, not only a UUID.
bool is_named(const RecordedItem& item) {
    return !item.type.empty() && item.type.find('-') == std::string::npos;
}

/// The report lists at most this many pairs of map visits, and as many unpaired map visits.
constexpr std::size_t kMaxListed = 32;
constexpr std::string_view kRecordingNames = "AB";

std::string describe(const MapVisit& visit) {
    std::string text = fmt::format("session {} (", visit.session);
    for (const std::string& known : {visit.name, visit.client, visit.map}) {
        text += known.empty() ? "" : known + ", ";
    }
    return escape_for_terminal(text + fmt::format("ticks {} to {})", visit.begin, visit.end));
}

std::string describe(const VisitPairTotals& totals) {
    std::string text =
        fmt::format("{} in both, {} different, {} only in A, {} only in B",
                    record::count_with_noun(totals.common_ticks, "tick[s]"), totals.different_ticks,
                    totals.unpaired_ticks[0], totals.unpaired_ticks[1]);
    if (totals.dropped_snapshots != 0) {
        text += fmt::format(", {} skipped (too far apart in the files)", totals.dropped_snapshots);
    }
    return text;
}

const MapVisit& visit_of_pair(const ComparisonReport& report, std::size_t recording,
                              std::size_t pair) {
    const auto& [a, b] = report.pairs->pairs[pair];
    return report.readers[recording]->visits()[recording == 0 ? a : b];
}

std::string unlisted_count_text(std::size_t count) {
    return count > kMaxListed ? fmt::format("... and {} more\n", count - kMaxListed)
                              : std::string{};
}

/// Returns true if all snapshots of the recording are worlds (`worlds`), or all are of sessions
/// (`worlds` is false).
bool has_only_view_kind(const ComparisonReport& report, std::size_t recording, bool worlds) {
    return std::ranges::all_of(
        report.readers[recording]->visits(),
        [worlds](const MapVisit& visit) { return (visit.session == 0) == worlds; });
}

/// If one recording has only worlds and the other only sessions, returns advice how to make
/// comparable recordings; otherwise an empty text.
std::string comparable_views_advice(const ComparisonReport& report) {
    for (const std::size_t worlds : {0U, 1U}) {
        if (has_only_view_kind(report, worlds, true) &&
            has_only_view_kind(report, 1 - worlds, false)) {
            const char other = kRecordingNames[1 - worlds];
            return fmt::format(
                "{0} holds only worlds and {1} only sessions: make {1} from its capture with '{2}'",
                kRecordingNames[worlds], other, report.worlds_command);
        }
    }
    return {};
}

std::string pairs_text(const ComparisonReport& report) {
    std::string text;
    if (!comparable_views_advice(report).empty()) {
        return text;
    }
    const std::size_t pairs = report.pairs->pairs.size();
    for (std::size_t i = 0; i < std::min(pairs, kMaxListed); ++i) {
        text += fmt::format("A {}\nB {}\n  {}\n", describe(visit_of_pair(report, 0, i)),
                            describe(visit_of_pair(report, 1, i)),
                            describe(report.differences->pairs[i]));
    }
    text += unlisted_count_text(pairs);
    for (std::size_t recording = 0; recording < kRecordingNames.size(); ++recording) {
        const auto& unpaired = report.pairs->unpaired[recording];
        for (std::size_t i = 0; i < std::min(unpaired.size(), kMaxListed); ++i) {
            text += fmt::format("{} {}\n  not compared: {}\n", kRecordingNames[recording],
                                describe(report.readers[recording]->visits()[unpaired[i].visit]),
                                unpaired[i].is_ambiguous ? "more than one counterpart is possible"
                                                         : "no counterpart by name or address, map "
                                                           "and ticks");
        }
        text += unlisted_count_text(unpaired.size());
    }
    return text;
}

std::string difference_counts_text(const GameDifferences& found) {
    std::size_t objects = 6;
    std::size_t fields = 5;
    for (const auto& [key, count] : found.counts) {
        objects = std::max(objects, escape_for_terminal(key.first).size());
        fields = std::max(fields, escape_for_terminal(key.second).size());
    }
    std::string text = fmt::format("{:{}}  {:{}}  {:>11}  {:>10}\n", "object", objects, "field",
                                   fields, "differences", "first tick");
    for (const auto& [key, count] : found.counts) {
        text +=
            fmt::format("{:{}}  {:{}}  {:>11}  {:>10}\n", escape_for_terminal(key.first), objects,
                        escape_for_terminal(key.second), fields, count.items, count.first_tick);
    }
    if (found.uncounted_differences != 0) {
        text +=
            fmt::format("... and {} of other objects and fields\n", found.uncounted_differences);
    }
    return text;
}

std::string uncompared_text(const ComparisonReport& report) {
    std::string text;
    const auto add = [&text](std::uint64_t count, std::string_view what, std::string_view of,
                             std::string_view why) {
        if (count != 0) {
            text += fmt::format("{}{} not compared: {}\n", record::count_with_noun(count, what), of,
                                why);
        }
    };
    add(report.differences->incomparable_items, "item[s]", "",
        "one side has only their raw ints, from when their type was unnamed or a mod's, the other "
        "only their named fields");
    add(report.differences->demo_only_items, "item[s]", "", "only 0.7 demos contain them");
    for (std::size_t recording = 0; recording < kRecordingNames.size(); ++recording) {
        const auto of = fmt::format(" of {}", kRecordingNames[recording]);
        add(report.readers[recording]->unusable_snapshot_count(), "snapshot[s]", of,
            "recorded without items, or based on records that are missing");
        add(report.readers[recording]->late_snapshot_count(), "snapshot[s]", of,
            "at or behind the tick before them");
    }
    return text;
}

std::string comparison_result(const ComparisonReport& report) {
    if (report.pairs->pairs.empty()) {
        const std::string views_differ = comparable_views_advice(report);
        return "not compared: " + (views_differ.empty()
                                       ? "no session of A could be aligned with one of B"
                                       : views_differ);
    }
    if (report.differences->sum_pairs().common_ticks == 0) {
        return "different: no tick in common";
    }
    return report.differences->are_games_equal() ? "equal" : "different";
}

json::object visit_json(const MapVisit& visit) {
    return {{"session", visit.session},
            {"name", visit.name},
            {"client", visit.client},
            {"map", visit.map},
            {"begin", visit.begin},
            {"end", visit.end},
            {"snapshots", visit.num_snapshots}};
}

json::object ticks_json(const VisitPairTotals& totals) {
    return {{"both", totals.common_ticks},
            {"different", totals.different_ticks},
            {"only_a", totals.unpaired_ticks[0]},
            {"only_b", totals.unpaired_ticks[1]},
            {"left_out", totals.dropped_snapshots}};
}

json::value value_json(const std::string& text) {
    json::error_code error;
    json::value value = json::parse(text, error);
    return error ? json::value(text) : value;
}

json::value first_difference_json(const ComparisonReport& report) {
    const auto& first = report.differences->first;
    if (!first) {
        return nullptr;
    }
    return json::object{{"map", visit_of_pair(report, 0, first->pair).map},
                        {"tick", first->tick},
                        {"session_a", visit_of_pair(report, 0, first->pair).session},
                        {"session_b", visit_of_pair(report, 1, first->pair).session},
                        {"type", first->type},
                        {"type_id", first->key.type},
                        {"id", first->key.id},
                        {"field", first->field.field},
                        {"a", value_json(first->field.a)},
                        {"b", value_json(first->field.b)}};
}

json::array unpaired_json(const ComparisonReport& report, std::size_t recording) {
    json::array list;
    for (const UnpairedVisit& each : report.pairs->unpaired[recording]) {
        list.push_back(visit_json(report.readers[recording]->visits()[each.visit]));
        list.back().get_object()["ambiguous"] = each.is_ambiguous;
    }
    return list;
}

} // namespace

std::optional<std::vector<FieldDifference>> compare_items(const RecordedItem& a,
                                                          const RecordedItem& b) {
    const bool both_data = a.data && b.data;
    std::vector<FieldDifference> found;
    if (both_data && *a.data == *b.data) {
        return found;
    }
    if (!both_data && a.fields.empty() != b.fields.empty()) {
        return std::nullopt;
    }
    if (!a.fields.empty() && !b.fields.empty() && a.fields != b.fields) {
        found = compare_fields(parse_fields(a.fields), parse_fields(b.fields));
    }
    return found.empty() && both_data ? compare_ints(*a.data, *b.data) : found;
}

void GameComparison::drop_oldest_snapshot(WaitingQueue& waiting) {
    waiting.snapshots.pop_front();
    --num_waiting_[waiting.recording];
}

void GameComparison::on_snapshot(std::size_t pair, std::size_t recording, Tick tick,
                                 std::shared_ptr<const RecordedItems> items) {
    VisitPairTotals& totals = differences_.pairs[pair];
    WaitingQueue& waiting = waiting_pairs_[pair];
    while (waiting.recording != recording && !waiting.snapshots.empty()) {
        const Tick other_tick = waiting.snapshots.front().tick;
        if (other_tick > tick) {
            ++totals.unpaired_ticks[recording];
            return;
        }
        const auto other = std::move(waiting.snapshots.front().items);
        drop_oldest_snapshot(waiting);
        if (other_tick == tick) {
            compare_snapshots(pair, tick, recording == 0 ? *items : *other,
                              recording == 0 ? *other : *items);
            return;
        }
        ++totals.unpaired_ticks[waiting.recording];
    }
    waiting.recording = recording;
    waiting.snapshots.push_back({tick, std::move(items)});
    ++num_waiting_[recording];
    if (num_waiting_[0] + num_waiting_[1] > kMaxWaitingSnapshots) {
        ++totals.dropped_snapshots;
        drop_oldest_snapshot(waiting);
    }
}

void GameComparison::count_unpaired_ticks() {
    for (std::size_t i = 0; i < waiting_pairs_.size(); ++i) {
        WaitingQueue& waiting = waiting_pairs_[i];
        differences_.pairs[i].unpaired_ticks[waiting.recording] += waiting.snapshots.size();
        num_waiting_[waiting.recording] -= waiting.snapshots.size();
        waiting.snapshots.clear();
    }
}

bool GameDifferences::are_games_equal() const {
    const VisitPairTotals all = sum_pairs();
    return all.common_ticks != 0 && all.different_ticks == 0;
}

VisitPairTotals GameDifferences::sum_pairs() const {
    VisitPairTotals all;
    for (const VisitPairTotals& pair : pairs) {
        all.common_ticks += pair.common_ticks;
        all.different_ticks += pair.different_ticks;
        all.unpaired_ticks[0] += pair.unpaired_ticks[0];
        all.unpaired_ticks[1] += pair.unpaired_ticks[1];
        all.dropped_snapshots += pair.dropped_snapshots;
    }
    return all;
}

void GameComparison::compare_snapshots(std::size_t pair, Tick tick, const RecordedItems& a,
                                       const RecordedItems& b) {
    const bool one_is_demo = is_demo(a) != is_demo(b);
    bool differs = false;
    for (std::size_t i = 0, j = 0; i < a.size() || j < b.size();) {
        const bool has_a = i < a.size() && (j == b.size() || a[i].first <= b[j].first);
        const bool has_b = j < b.size() && (i == a.size() || b[j].first <= a[i].first);
        const RecordedItem* of_a = has_a ? a[i++].second.get() : nullptr;
        const RecordedItem* of_b = has_b ? b[j++].second.get() : nullptr;
        if (one_is_demo && has_a != has_b && (has_a ? of_a : of_b)->is_demo_only()) {
            ++differences_.demo_only_items;
        } else {
            differs |= compare_item_pair(pair, tick, of_a, of_b);
        }
    }
    ++differences_.pairs[pair].common_ticks;
    differences_.pairs[pair].different_ticks += differs ? 1 : 0;
}

bool GameComparison::compare_item_pair(std::size_t pair, Tick tick, const RecordedItem* a,
                                       const RecordedItem* b) {
    std::optional<std::vector<FieldDifference>> found;
    if (a == nullptr || b == nullptr) {
        found.emplace().push_back({"(item)",
                                   std::string{a != nullptr ? kItemPresent : kItemMissing},
                                   std::string{b != nullptr ? kItemPresent : kItemMissing}});
    } else if (a->type != b->type && is_named(*a) && is_named(*b)) {
        found.emplace().push_back({"(type)", json::serialize(json::string{a->type}),
                                   json::serialize(json::string{b->type})});
    } else {
        found = compare_items(*a, *b);
    }
    if (!found) {
        ++differences_.incomparable_items;
        return false;
    }
    const RecordedItem& any = a != nullptr ? *a : *b;
    for (FieldDifference& each : *found) {
        count_difference(
            {.pair = pair,
             .tick = tick,
             .type = any.type.empty() ? fmt::format("type_{}", any.key.type) : any.type,
             .key = any.key,
             .field = std::move(each)});
    }
    return !found->empty();
}

void GameComparison::count_difference(const GameDifference& difference) {
    auto& first = differences_.first;
    const auto order = [this](const GameDifference& each) {
        return std::tuple{games_.empty() ? 0 : games_[each.pair], each.tick, each.pair};
    };
    if (!first || order(difference) < order(*first)) {
        first = difference;
    }
    const std::pair key{difference.type, difference.field.field};
    if (differences_.counts.size() >= kMaxCountedFields && !differences_.counts.contains(key)) {
        ++differences_.uncounted_differences;
        return;
    }
    DifferenceCount& count = differences_.counts[key];
    count.first_tick =
        count.items == 0 ? difference.tick : std::min(count.first_tick, difference.tick);
    ++count.items;
}

std::string comparison_text(const ComparisonReport& report) {
    const GameDifferences& found = *report.differences;
    std::string text = fmt::format(
        "A is {}\nB is {}\n\n{}\n{}", escape_for_terminal(report.files[0]),
        escape_for_terminal(report.files[1]), pairs_text(report), uncompared_text(report));
    if (const auto& first = found.first) {
        const std::string& map = visit_of_pair(report, 0, first->pair).map;
        text += fmt::format(
            "First difference: {}tick {}, {} {}, {}: {} in A, {} in B (session {} and {})\n\n{}\n",
            map.empty() ? "" : "map " + escape_for_terminal(map) + ", ", first->tick,
            escape_for_terminal(first->type), first->key.id,
            escape_for_terminal(first->field.field), escape_for_terminal(first->field.a),
            escape_for_terminal(first->field.b), visit_of_pair(report, 0, first->pair).session,
            visit_of_pair(report, 1, first->pair).session, difference_counts_text(found));
    }
    return text + (report.pairs->pairs.empty() ? comparison_result(report) + '\n'
                                               : fmt::format("{}: {}\n", comparison_result(report),
                                                             describe(found.sum_pairs())));
}

std::string comparison_json(const ComparisonReport& report) {
    const GameDifferences& found = *report.differences;
    json::array pairs;
    for (std::size_t i = 0; i < report.pairs->pairs.size(); ++i) {
        pairs.push_back(json::object{{"a", visit_json(visit_of_pair(report, 0, i))},
                                     {"b", visit_json(visit_of_pair(report, 1, i))},
                                     {"ticks", ticks_json(found.pairs[i])}});
    }
    json::array differences;
    for (const auto& [key, count] : found.counts) {
        differences.push_back(json::object{{"type", key.first},
                                           {"field", key.second},
                                           {"differences", count.items},
                                           {"first_tick", count.first_tick}});
    }
    const auto [a, b] = report.readers;
    const json::object all{
        {"equal", found.are_games_equal()},
        {"a", report.files[0]},
        {"b", report.files[1]},
        {"ticks", ticks_json(found.sum_pairs())},
        {"first", first_difference_json(report)},
        {"differences", std::move(differences)},
        {"uncounted", found.uncounted_differences},
        {"not_compared", found.incomparable_items + found.demo_only_items},
        {"unusable_snapshots",
         json::object{{"a", a->unusable_snapshot_count()}, {"b", b->unusable_snapshot_count()}}},
        {"snapshots_behind",
         json::object{{"a", a->late_snapshot_count()}, {"b", b->late_snapshot_count()}}},
        {"pairs", std::move(pairs)},
        {"without_partner",
         json::object{{"a", unpaired_json(report, 0)}, {"b", unpaired_json(report, 1)}}}};
    return record::json_text(all) + '\n';
}

} // namespace tw::analyze
