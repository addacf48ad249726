#include "proxy/analyze/comparison_report.h"

#include "proxy/analyze/json_text.h"
#include "proxy/record/terminal_text.h"
#include "snapshot/item.h"
#include "snapshot/objects.h"

#include <algorithm>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include <boost/json.hpp>
#include <fmt/format.h>

namespace tw::analyze {

namespace json = boost::json;
using snapshot::ItemKey;
using snapshot::Tick;

namespace {

constexpr std::string_view kThere = R"("there")";
constexpr std::string_view kNotThere = R"("not there")";

std::size_t index_of(View view) {
    return static_cast<std::size_t>(view);
}

json::object parse_fields(const std::string& text) {
    json::error_code error;
    json::value value = json::parse(text, error);
    return !error && value.is_object() ? value.get_object() : json::object{};
}

std::string text_in(const json::object& fields, std::string_view name) {
    const json::value* value = fields.if_contains(name);
    return value == nullptr ? std::string{kNotThere} : json::serialize(*value);
}

/// Returns the differing named fields: those of `a` in its order, then those that only `b` has.
std::vector<FieldDifference> compare_fields(const json::object& a, const json::object& b) {
    std::vector<FieldDifference> found;
    const auto note = [&](std::string_view name) {
        found.push_back({std::string{name}, text_in(a, name), text_in(b, name)});
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

/// Finds an object by name, and by number and size if 0.6, 0.7 or a mod share the name.
const snapshot::ObjectSpec* find_object(const snapshot::ObjectSet& objects, std::string_view type,
                                        std::uint16_t number, std::size_t size) {
    const snapshot::ObjectSpec* best = nullptr;
    int best_fit = -1;
    for (const auto specs : {objects.custom(), snapshot::object_table()}) {
        for (const snapshot::ObjectSpec& each : specs) {
            const int fit = (each.type == number ? 2 : 0) + (each.size == size ? 1 : 0);
            if (each.name == type && fit > best_fit) {
                best = &each;
                best_fit = fit;
            }
        }
    }
    return best;
}

/// Returns the field to which an int of the object belongs.
std::string field_at(const snapshot::ObjectSpec* object, std::size_t index) {
    if (object != nullptr) {
        for (const snapshot::FieldSpec& field : object->fields) {
            if (index >= field.offset && index < std::size_t{field.offset} + field.count) {
                return std::string{field.name};
            }
        }
    }
    return fmt::format("int_{}", index);
}

std::vector<FieldDifference> compare_ints(const snapshot::ObjectSet& objects, std::uint16_t number,
                                          const RecordedItem& a, const RecordedItem& b) {
    const auto* const object = find_object(objects, a.type, number, a.data->size());
    std::vector<FieldDifference> found;
    const json::object fields_a = parse_fields(a.fields);
    const json::object fields_b = parse_fields(b.fields);
    const auto int_in = [](const RecordedItem& item, std::size_t index) {
        return index < item.data->size() ? fmt::to_string((*item.data)[index])
                                         : std::string{kNotThere};
    };
    for (std::size_t i = 0; i < std::max(a.data->size(), b.data->size()); ++i) {
        FieldDifference difference{{}, int_in(a, i), int_in(b, i)};
        if (difference.a == difference.b) {
            continue;
        }
        difference.field = field_at(object, i);
        if (!found.empty() && found.back().field == difference.field) {
            continue; // another int of the same packed text
        }
        const json::value* of_a = fields_a.if_contains(difference.field);
        const json::value* of_b = fields_b.if_contains(difference.field);
        if (of_a != nullptr && of_b != nullptr && *of_a != *of_b) {
            difference.a = json::serialize(*of_a);
            difference.b = json::serialize(*of_b);
        }
        found.push_back(std::move(difference));
    }
    return found;
}

} // namespace

std::optional<std::vector<FieldDifference>> compare_items(std::uint16_t type, const RecordedItem& a,
                                                          const RecordedItem& b,
                                                          const snapshot::ObjectSet& objects) {
    if (a.data && b.data) {
        return *a.data == *b.data ? std::vector<FieldDifference>{}
                                  : compare_ints(objects, type, a, b);
    }
    if (a.fields.empty() != b.fields.empty()) {
        return std::nullopt;
    }
    return a.fields == b.fields ? std::vector<FieldDifference>{}
                                : compare_fields(parse_fields(a.fields), parse_fields(b.fields));
}

void GameComparison::pop(Pair& pair) {
    pair.waiting.pop_front();
    --waiting_[index_of(pair.waits)];
}

void GameComparison::on_snapshot(std::size_t index, View view, Tick tick,
                                 std::shared_ptr<const RecordedItems> items) {
    Pair& pair = pairs_[index];
    if (!pair.waiting.empty() && pair.waits != view) {
        while (!pair.waiting.empty() && pair.waiting.front().tick < tick) {
            ++pair.totals.only[index_of(pair.waits)];
            pop(pair);
        }
        if (!pair.waiting.empty()) {
            if (pair.waiting.front().tick > tick) {
                ++pair.totals.only[index_of(view)];
                return;
            }
            const auto other = std::move(pair.waiting.front().items);
            pop(pair);
            compare_snapshots(index, tick, view == View::a ? *items : *other,
                              view == View::a ? *other : *items);
            return;
        }
    }
    pair.waits = view;
    pair.waiting.push_back({tick, std::move(items)});
    ++waiting_[index_of(view)];
    if (waiting_[0] + waiting_[1] > kMaxWaiting) {
        ++pair.totals.left_out[index_of(view)];
        pop(pair);
    }
}

void GameComparison::finish() {
    for (Pair& pair : pairs_) {
        while (!pair.waiting.empty()) {
            ++pair.totals.only[index_of(pair.waits)];
            pop(pair);
        }
    }
}

std::optional<View> GameComparison::behind() const {
    if (waiting_[0] == waiting_[1]) {
        return std::nullopt;
    }
    return waiting_[0] < waiting_[1] ? View::a : View::b;
}

bool GameComparison::equal() const {
    const PairTotals all = totals();
    return all.both != 0 && all.different == 0;
}

PairTotals GameComparison::totals() const {
    PairTotals all;
    for (const Pair& pair : pairs_) {
        all.both += pair.totals.both;
        all.different += pair.totals.different;
        for (std::size_t view = 0; view < all.only.size(); ++view) {
            all.only[view] += pair.totals.only[view];
            all.left_out[view] += pair.totals.left_out[view];
        }
    }
    return all;
}

namespace {

bool is_demo(const RecordedItems& items) {
    return std::any_of(items.begin(), items.end(),
                       [](const auto& item) { return item.second->of_demos(); });
}

/// Numbers of UUID types by name.
using TypeNumbers = std::map<std::string_view, std::uint16_t>;

TypeNumbers uuid_types(const RecordedItems& items) {
    TypeNumbers numbers;
    std::uint16_t last = 0;
    const auto first =
        std::ranges::lower_bound(items, ItemKey{snapshot::kFirstUuidType, 0}.packed(), {},
                                 &RecordedItems::value_type::first);
    for (auto at = first; at != items.end(); ++at) {
        const std::uint16_t type = ItemKey::from_packed(at->first).type;
        if (type != last && !at->second->type.empty()) {
            numbers.emplace(at->second->type, type);
        }
        last = type;
    }
    return numbers;
}

/// Maps type numbers of one view to those of the other, as each server process numbers its UUID
/// types differently. Empty if they are the same.
std::map<std::uint16_t, std::uint16_t> renumbering(const TypeNumbers& own,
                                                   const TypeNumbers& others) {
    std::map<std::uint16_t, std::uint16_t> numbers;
    std::set<std::uint16_t> used;
    for (const auto& [unused, number] : others) {
        used.insert(number);
    }
    std::uint16_t free = snapshot::kMaxItemType;
    for (const auto& [name, number] : own) {
        const auto same = others.find(name);
        if (same != others.end()) {
            if (same->second != number) {
                numbers.emplace(number, same->second);
            }
        } else if (used.contains(number)) {
            while (used.contains(free) && free > snapshot::kFirstUuidType) {
                --free;
            }
            used.insert(free);
            numbers.emplace(number, free);
        }
    }
    return numbers;
}

RecordedItems renumber(const RecordedItems& items,
                       const std::map<std::uint16_t, std::uint16_t>& numbers) {
    RecordedItems renumbered = items;
    for (auto& [packed, unused] : renumbered) {
        ItemKey key = ItemKey::from_packed(packed);
        std::uint16_t& number = key.type == snapshot::kDescriptorType ? key.id : key.type;
        if (const auto found = numbers.find(number); found != numbers.end()) {
            number = found->second;
            packed = key.packed();
        }
    }
    std::ranges::stable_sort(renumbered, {}, &RecordedItems::value_type::first);
    return renumbered;
}

/// True if the type has a name, not only a UUID.
bool is_named(const RecordedItem& item) {
    return !item.type.empty() && item.type.find('-') == std::string::npos;
}

} // namespace

void GameComparison::compare_snapshots(std::size_t index, Tick tick, const RecordedItems& a,
                                       const RecordedItems& b) {
    if (const auto numbers = renumbering(uuid_types(b), uuid_types(a)); !numbers.empty()) {
        compare_alike(index, tick, a, renumber(b, numbers));
    } else {
        compare_alike(index, tick, a, b);
    }
}

void GameComparison::compare_alike(std::size_t index, Tick tick, const RecordedItems& a,
                                   const RecordedItems& b) {
    const bool one_is_demo = is_demo(a) != is_demo(b);
    bool differs = false;
    auto of_a = a.begin();
    auto of_b = b.begin();
    while (of_a != a.end() || of_b != b.end()) {
        const bool has_a = of_a != a.end() && (of_b == b.end() || of_a->first <= of_b->first);
        const bool has_b = of_b != b.end() && (of_a == a.end() || of_b->first <= of_a->first);
        if (one_is_demo && has_a != has_b && (has_a ? *of_a : *of_b).second->of_demos()) {
            ++of_demos_;
        } else {
            differs |= compare(index, tick, has_a ? &*of_a : nullptr, has_b ? &*of_b : nullptr);
        }
        of_a += has_a ? 1 : 0;
        of_b += has_b ? 1 : 0;
    }
    ++pairs_[index].totals.both;
    pairs_[index].totals.different += differs ? 1 : 0;
}

bool GameComparison::compare(std::size_t index, Tick tick, const Entry* a, const Entry* b) {
    const Entry& any = a != nullptr ? *a : *b;
    std::optional<std::vector<FieldDifference>> found;
    if (a != nullptr && b != nullptr && a->second->type != b->second->type &&
        is_named(*a->second) && is_named(*b->second)) {
        found.emplace().push_back({"(type)", json::serialize(json::string{a->second->type}),
                                   json::serialize(json::string{b->second->type})});
    } else if (a != nullptr && b != nullptr) {
        found =
            compare_items(ItemKey::from_packed(any.first).type, *a->second, *b->second, *objects_);
    } else {
        found.emplace().push_back({"(item)", std::string{a != nullptr ? kThere : kNotThere},
                                   std::string{b != nullptr ? kThere : kNotThere}});
    }
    if (!found) {
        ++unlike_;
        return false;
    }
    const auto key = ItemKey::from_packed(any.first);
    const std::string type =
        any.second->type.empty() ? fmt::format("type_{}", key.type) : any.second->type;
    for (FieldDifference& each : *found) {
        count({.pair = index,
               .tick = tick,
               .type = type,
               .type_id = key.type,
               .id = key.id,
               .field = std::move(each)});
    }
    return !found->empty();
}

void GameComparison::count(const GameDifference& difference) {
    if (!first_ || difference.tick < first_->tick) {
        first_ = difference;
    }
    const std::pair key{difference.type, difference.field.field};
    auto row = counts_.find(key);
    if (row == counts_.end()) {
        if (counts_.size() >= kMaxCounted) {
            ++uncounted_;
            return;
        }
        row = counts_.emplace(key, Count{.items = 0, .first = difference.tick}).first;
    }
    ++row->second.items;
    row->second.first = std::min(row->second.first, difference.tick);
}

using record::terminal_text;

namespace {

/// The most pairs, and the most unpaired map visits, listed for users.
constexpr std::size_t kListed = 32;

std::string plural(std::uint64_t count, std::string_view what) {
    return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

std::string describe(const MapVisit& stay) {
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

const MapVisit& stay_of(const ComparisonReport& report, std::size_t view, std::size_t pair) {
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

json::object stay_json(const MapVisit& stay) {
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

} // namespace tw::analyze
