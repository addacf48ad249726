#include "proxy/analyze/map_visits.h"

#include "proxy/analyze/json_text.h"
#include "proxy/filter/line_record.h"
#include "snapshot/item.h"

#include <algorithm>
#include <array>
#include <functional>
#include <iterator>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <tuple>

namespace tw::analyze {

namespace {

/// MurmurHash3's final mix: each bit of the result depends on all bits.
std::uint64_t mixed(std::uint64_t bits) {
    bits ^= bits >> 33U;
    bits *= 0xff51afd7ed558ccd;
    bits ^= bits >> 33U;
    bits *= 0xc4ceb9fe1a85ec53;
    return bits ^ bits >> 33U;
}

/// Chooses ticks pseudo-randomly, as snapshots may come at even ticks only. The choice is the same
/// for all map visits.
bool is_chosen(snapshot::Tick tick, std::uint64_t every) {
    return mixed(static_cast<std::uint32_t>(tick)) % every == 0;
}

/// Hashes key and named fields, which every view has of a known item.
std::uint64_t hash_of(const RecordedItems::value_type& item) {
    return mixed(item.first + mixed(std::hash<std::string>{}(item.second->fields)));
}

} // namespace

void MapVisitSamples::add(snapshot::Tick tick, const RecordedItems& items) {
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

Likeness MapVisitSamples::compare(const MapVisitSamples& other) const {
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

namespace json = boost::json;

namespace {

/// A tick this much lower starts a new map visit. Ticks ascend while a map lasts, and reordered
/// datagrams are far closer.
constexpr snapshot::Tick kNewGame = 250;

template <typename Integer>
std::optional<Integer> integer_of(const json::value* value) {
    const std::int64_t* number = value == nullptr ? nullptr : value->if_int64();
    return number != nullptr && *number >= std::numeric_limits<Integer>::min() &&
                   *number <= std::numeric_limits<Integer>::max()
               ? std::optional{static_cast<Integer>(*number)}
               : std::nullopt;
}

const json::array* array_of(const json::object& record, std::string_view key) {
    const json::value* value = record.if_contains(key);
    return value != nullptr ? value->if_array() : nullptr;
}

std::optional<std::uint32_t> key_of(const json::value* type, const json::value* id) {
    const auto type_number = integer_of<std::uint16_t>(type);
    const auto id_number = integer_of<std::uint16_t>(id);
    if (!type_number || !id_number) {
        return std::nullopt;
    }
    return snapshot::ItemKey{*type_number, *id_number}.packed();
}

std::shared_ptr<const RecordedItem> item_of(const json::object& record) {
    auto item = std::make_shared<RecordedItem>();
    item->type = text_of(record, "type");
    if (item->type.empty()) {
        item->type = text_of(record, "uuid");
    }
    if (const json::value* fields = record.if_contains("fields");
        fields != nullptr && fields->is_object()) {
        item->fields = json::serialize(*fields);
    }
    if (const json::array* data = array_of(record, "data"); data != nullptr) {
        auto& ints = item->data.emplace();
        for (const json::value& value : *data) {
            ints.push_back(integer_of<std::int64_t>(&value).value_or(0));
        }
    }
    return item;
}

bool key_less(const RecordedItems::value_type& a, const RecordedItems::value_type& b) {
    return a.first < b.first;
}

/// Returns the items listed in a snapshot, sorted by key; of two with the same key the first.
RecordedItems listed_items(const json::array& list) {
    RecordedItems items;
    items.reserve(list.size());
    for (const json::value& value : list) {
        const json::object* item = value.if_object();
        const auto key = item == nullptr
                             ? std::nullopt
                             : key_of(item->if_contains("type_id"), item->if_contains("id"));
        if (key) {
            items.emplace_back(*key, item_of(*item));
        }
    }
    std::stable_sort(items.begin(), items.end(), key_less);
    const auto same = [](const auto& a, const auto& b) { return a.first == b.first; };
    items.erase(std::unique(items.begin(), items.end(), same), items.end());
    return items;
}

std::vector<std::uint32_t> removed_keys(const json::array* list) {
    std::vector<std::uint32_t> keys;
    for (std::size_t i = 0; list != nullptr && i < list->size(); ++i) {
        const json::array* pair = (*list)[i].if_array();
        if (pair == nullptr || pair->size() != 2) {
            continue;
        }
        if (const auto key = key_of(&pair->front(), &pair->back())) {
            keys.push_back(*key);
        }
    }
    std::sort(keys.begin(), keys.end());
    return keys;
}

/// Returns `before` with new and changed items, without removed ones.
RecordedItems change_items(const RecordedItems& before, RecordedItems changed,
                           const std::vector<std::uint32_t>& removed) {
    RecordedItems items;
    items.reserve(before.size() + changed.size());
    // Of two items with the same key this takes the one of the first list.
    std::set_union(changed.begin(), changed.end(), before.begin(), before.end(),
                   std::back_inserter(items), key_less);
    std::erase_if(items, [&](const auto& item) {
        return std::binary_search(removed.begin(), removed.end(), item.first);
    });
    return items;
}

/// Returns the items of a snapshot. `before`: null if the record lists all items. An unchanged
/// snapshot shares the items of the previous one.
std::shared_ptr<const RecordedItems> items_of(const json::object& record, const json::array& list,
                                              const std::shared_ptr<const RecordedItems>& before) {
    RecordedItems listed = listed_items(list);
    if (before == nullptr) {
        return std::make_shared<const RecordedItems>(std::move(listed));
    }
    const auto removed = removed_keys(array_of(record, "removed"));
    if (listed.empty() && removed.empty()) {
        return before;
    }
    return std::make_shared<const RecordedItems>(change_items(*before, std::move(listed), removed));
}

bool is_true(const json::object& record, std::string_view key) {
    const json::value* value = record.if_contains(key);
    return value != nullptr && value->is_bool() && value->get_bool();
}

/// Returns the first session that received an item of a merged snapshot.
std::optional<std::int64_t> first_seen_by(const json::object& world) {
    const json::array* items = array_of(world, "items");
    const json::object* item =
        items == nullptr || items->empty() ? nullptr : items->front().if_object();
    const json::array* sessions = item == nullptr ? nullptr : array_of(*item, "seen_by");
    return sessions == nullptr || sessions->empty() ? std::nullopt
                                                    : integer_of<std::int64_t>(&sessions->front());
}

} // namespace

void MapVisitReader::forget_items(std::optional<std::int64_t> session) {
    for (auto& [number, known] : sessions_) {
        if (!session || number.first == *session) {
            known.items.reset();
        }
    }
}

std::optional<MapVisitSnapshot> MapVisitReader::on_line(std::string_view line) {
    const auto head = filter::is_record(line) ? filter::read_head(line) : std::nullopt;
    if (!head) {
        ++broken_; // it may have belonged to any session
        forget_items();
        return std::nullopt;
    }
    if (head->type == "records_lost") {
        forget_items();
        return std::nullopt;
    }
    const bool world = head->type == "world"; // session 0
    if ((head->session <= 0 && !world) ||
        (head->type != "session" && head->type != "map" && head->type != "snapshot" && !world)) {
        return std::nullopt;
    }
    std::array<unsigned char, 65536> room{};
    json::monotonic_resource memory{room.data(), room.size()};
    json::error_code error;
    const json::value value = json::parse({line.data(), line.size()}, error, &memory);
    if (error || !value.is_object()) {
        ++broken_;
        forget_items(head->session);
        return std::nullopt;
    }
    Number number{head->session,
                  world ? std::string{text_of(value.get_object(), "server")} : std::string{}};
    if (sessions_.size() >= kMaxSessions && !sessions_.contains(number)) {
        return std::nullopt;
    }
    Session& session = sessions_[std::move(number)];
    if (world) {
        on_world(value.get_object(), session);
    }
    if (world || head->type == "snapshot") {
        return on_snapshot(value.get_object(), head->session, session);
    }
    if (head->type == "map") {
        on_map(value.get_object(), session);
    } else {
        on_session(value.get_object(), session);
    }
    return std::nullopt;
}

void MapVisitReader::on_session(const json::object& record, Session& session) {
    if (text_of(record, "event") == "open" && !is_true(record, "again")) {
        session = {}; // a session of another run, as a file may contain several
    }
    if (const auto client = text_of(record, "client"); !client.empty()) {
        session.client = client;
    }
    if (text_of(record, "event") == "close") {
        session.items.reset();
        session.stay.reset();
    }
}

/// Takes the map from a session that received some of the merged snapshot.
void MapVisitReader::on_world(const json::object& record, Session& session) const {
    session.client = text_of(record, "server");
    if (const auto shown = first_seen_by(record)) {
        if (const auto found = sessions_.find({*shown, {}}); found != sessions_.end()) {
            session.map = found->second.map;
            session.crc = found->second.crc;
        }
    }
    const auto run = integer_of<std::int64_t>(record.if_contains("run")).value_or(0);
    if (run != session.run) {
        session.run = run;
        session.stay.reset();
    }
}

void MapVisitReader::on_map(const json::object& record, Session& session) {
    session.announced = !is_true(record, "again");
    const auto name = text_of(record, "name");
    const auto crc = text_of(record, "crc");
    if (name != session.map || crc != session.crc) {
        session.map = name;
        session.crc = crc;
        session.stay.reset();
    }
}

std::optional<MapVisitSnapshot> MapVisitReader::on_snapshot(const json::object& record,
                                                            std::int64_t number, Session& session) {
    const auto tick = integer_of<snapshot::Tick>(record.if_contains("tick"));
    const json::array* list = array_of(record, "items");
    const bool full = is_true(record, "full");
    if (!tick || list == nullptr || (!full && session.items == nullptr)) {
        // Other snapshots could not be rebuilt in any view.
        if (list != nullptr || is_true(record, "ok")) {
            ++unusable_;
        }
        return std::nullopt;
    }
    auto items = items_of(record, *list, full ? nullptr : session.items);
    const auto wanted = integer_of<std::int64_t>(record.if_contains("num_items"));
    if (wanted && *wanted != static_cast<std::int64_t>(items->size())) {
        session.items.reset(); // a line is missing: continue with the next full snapshot
        ++unusable_;
        return std::nullopt;
    }
    session.items = items;
    const bool behind = session.stay && *tick <= session.tick;
    if (behind && !session.announced && std::int64_t{session.tick} - *tick <= kNewGame) {
        ++behind_; // late or repeated
        return std::nullopt;
    }
    session.announced = false;
    if (!session.stay || behind) {
        if (stays_.size() >= kMaxSessions) {
            return std::nullopt;
        }
        session.stay = stays_.size();
        stays_.push_back({.session = number,
                          .client = session.client,
                          .map = session.map,
                          .crc = session.crc,
                          .begin = *tick});
    }
    session.tick = *tick;
    stays_[*session.stay].end = *tick;
    ++stays_[*session.stay].snapshots;
    stays_[*session.stay].samples.add(*tick, *items);
    return MapVisitSnapshot{.stay = *session.stay, .tick = *tick, .items = std::move(items)};
}

namespace {

using Key = std::tuple<std::string_view, std::string_view, std::string_view>;
using KeyOf = Key (*)(const MapVisit&);
using Pairs = std::vector<std::pair<std::size_t, std::size_t>>;

/// How similar two map visits are. The first number counts most; higher is better.
using Fit = std::array<double, 3>;
/// Returns how similar two map visits are; nullopt if they cannot be paired.
using FitOf = std::optional<Fit> (*)(const MapVisit&, const MapVisit&);

/// The map visits of each view that may be paired.
using Group = std::pair<std::vector<std::size_t>, std::vector<std::size_t>>;

/// A round of pairing and its criterion.
struct Round {
    KeyOf key;
    FitOf fit;
    /// True: groups that are too large to compare are paired in order of appearance. False: they
    /// are left to the next round.
    bool in_order;
};

/// The most candidates that are compared; there are more when recordings of months are compared.
constexpr std::size_t kMaxCandidates = 1'000'000;

/// Returns 1 for the same ticks and number of snapshots, and 0 if no tick can be in both visits.
double closeness(const MapVisit& a, const MapVisit& b) {
    const auto length = [](snapshot::Tick begin, snapshot::Tick end) {
        return std::max(0.0, static_cast<double>(end) - static_cast<double>(begin) + 1);
    };
    const double common = length(std::max(a.begin, b.begin), std::min(a.end, b.end));
    const double all = length(std::min(a.begin, b.begin), std::max(a.end, b.end));
    const auto [fewer, more] = std::minmax(a.snapshots, b.snapshots);
    const double snapshots = more == 0 ? 1 : static_cast<double>(fewer) / static_cast<double>(more);
    return common / std::max(1.0, all) * snapshots;
}

bool apart(const MapVisit& a, const MapVisit& b) {
    return a.end < b.begin || b.end < a.begin;
}

/// Compares the content of two visits, because all map visits on a server have the same ticks but
/// different content: each session knows its own player and what is near it.
std::optional<Fit> same_view(const MapVisit& a, const MapVisit& b) {
    const Likeness like = apart(a, b) ? Likeness{} : a.samples.compare(b.samples);
    if (like.equal == 0 || 2 * like.equal < like.ticks) {
        return std::nullopt;
    }
    return Fit{static_cast<double>(like.equal), -static_cast<double>(like.ticks - like.equal),
               closeness(a, b) + (a.client == b.client ? 1 : 0)};
}

std::optional<Fit> similar_view(const MapVisit& a, const MapVisit& b) {
    return Fit{apart(a, b) ? 0 : a.samples.compare(b.samples).items + closeness(a, b)};
}

Pairs in_order(const Group& group) {
    Pairs pairs;
    for (std::size_t i = 0; i < std::min(group.first.size(), group.second.size()); ++i) {
        pairs.emplace_back(group.first[i], group.second[i]);
    }
    return pairs;
}

/// Returns all possible pairs, the most similar first, equal ones in order.
Pairs best_first(const Round& round, const Group& group, const std::vector<MapVisit>& a,
                 const std::vector<MapVisit>& b) {
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

/// Accepts each candidate pair in which neither visit has a partner yet.
void take_pairs(const Pairs& candidates, MapVisitPairs& found) {
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

void pair_by(const Round& round, const std::vector<MapVisit>& a, const std::vector<MapVisit>& b,
             MapVisitPairs& found) {
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

Key client_and_map(const MapVisit& stay) {
    return {stay.client, stay.map, stay.crc};
}

Key map_only(const MapVisit& stay) {
    return {{}, stay.map, stay.crc};
}

/// Returns the same key for all visits, so that they form one group: a view that begins in mid-game
/// may not know its map.
Key nothing(const MapVisit& /*stay*/) {
    return {};
}

} // namespace

MapVisitPairs pair_map_visits(const std::vector<MapVisit>& a, const std::vector<MapVisit>& b,
                              std::optional<std::int64_t> session_a,
                              std::optional<std::int64_t> session_b) {
    MapVisitPairs found;
    const auto wanted = [](const std::vector<MapVisit>& stays,
                           std::optional<std::int64_t> session) {
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

} // namespace tw::analyze
