#include "proxy/analyze/map_visits.h"

#include "proxy/filter/line_record.h"
#include "proxy/record/json.h"

#include <algorithm>
#include <limits>
#include <set>

namespace tw::analyze {

namespace json = boost::json;
using record::flag_of, record::list_of, record::number_of, record::object_of, record::text_of;

namespace {

/// Returns the packed key of an item; nullopt if a number is missing or too large.
std::optional<std::uint32_t> key_of(std::optional<std::int64_t> type,
                                    std::optional<std::int64_t> id) {
    if (!type || !id || !std::in_range<std::uint16_t>(*type) ||
        !std::in_range<std::uint16_t>(*id)) {
        return std::nullopt;
    }
    return snapshot::ItemKey{static_cast<std::uint16_t>(*type), static_cast<std::uint16_t>(*id)}
        .packed();
}

std::optional<snapshot::Tick> parse_tick(const json::object& record) {
    const auto tick = number_of(record, "tick");
    return tick && std::in_range<snapshot::Tick>(*tick)
               ? std::optional{static_cast<snapshot::Tick>(*tick)}
               : std::nullopt;
}

std::shared_ptr<const RecordedItem> parse_item(std::uint32_t key, const json::object& record) {
    auto item = std::make_shared<RecordedItem>();
    item->key = snapshot::ItemKey::from_packed(key);
    item->type = text_of(record, "type");
    if (item->type.empty()) {
        item->type = text_of(record, "uuid");
    }
    if (const json::object* fields = object_of(record, "fields"); fields != nullptr) {
        item->fields = json::serialize(*fields);
    }
    if (const json::array* data = list_of(record, "data"); data != nullptr) {
        auto& ints = item->data.emplace();
        for (const json::value& value : *data) {
            ints.push_back(value.is_int64() ? value.get_int64() : 0);
        }
    }
    return item;
}

/// Sets `name` to the name of the session's own player, from an item or from a 0.7 message.
void update_own_name(const json::object& record, std::string& name) {
    const json::object* fields = object_of(record, "fields");
    if (fields == nullptr || (!flag_of(*fields, "local") && number_of(*fields, "local") != 1)) {
        return;
    }
    const auto own = text_of(record, "type") == "player_info" ? text_of(record, "player")
                                                              : text_of(*fields, "name");
    if (!own.empty()) {
        name = own;
    }
}

/// A possible pair of visits of A and B. A higher rating means that they have more in common.
struct VisitPairCandidate {
    int rating = 0;
    std::array<std::uint32_t, 2> visits{};
};

std::int64_t count_ticks(snapshot::Tick begin, snapshot::Tick end) {
    return std::int64_t{end} - begin + 1;
}

/// Returns the rating of a pair; 0 if the two visits cannot show the same game. `any_name`: true to
/// accept pairs with different names and addresses.
int rate_pair(const MapVisit& a, const MapVisit& b, bool any_name) {
    const std::int64_t common = count_ticks(std::max(a.begin, b.begin), std::min(a.end, b.end));
    if (common <= 0) {
        return 0;
    }
    // If a recording begins during a game, the map's name or checksum may be unknown.
    const auto fits = [](const std::string& one, const std::string& other) {
        return one.empty() || other.empty() || one == other;
    };
    const bool same_map = fits(a.map, b.map) && fits(a.crc, b.crc);
    const int name = !a.name.empty() && a.name == b.name ? 2 : 0;
    const int client = !a.client.empty() && a.client == b.client ? 1 : 0;
    if (!same_map || (name + client == 0 && !any_name)) {
        return 0;
    }
    const auto shorter = std::min(count_ticks(a.begin, a.end), count_ticks(b.begin, b.end));
    const int mostly = 2 * common > shorter ? 2 : 1;
    return 3 * (name + client) + (a.begin == b.begin && a.end == b.end ? 3 : mostly);
}

std::vector<std::uint32_t> wanted_visits(const std::vector<MapVisit>& visits,
                                         std::optional<std::int64_t> session) {
    std::vector<std::uint32_t> wanted;
    for (std::uint32_t i = 0; i < visits.size(); ++i) {
        if (!session || visits[i].session == *session) {
            wanted.push_back(i);
        }
    }
    return wanted;
}

/// True if the visits with the indices `wanted` are all of the same session. Merged snapshots of
/// different servers count as different sessions, although all have session number 0.
bool is_one_session(const std::vector<MapVisit>& visits, const std::vector<std::uint32_t>& wanted) {
    return std::ranges::all_of(wanted, [&](std::uint32_t index) {
        const MapVisit& first = visits[wanted.front()];
        return visits[index].session == first.session && visits[index].client == first.client;
    });
}

/// Returns all possible pairs, the best first; nullopt if there are more than kMaxCandidates.
std::optional<std::vector<VisitPairCandidate>>
find_candidates(const std::vector<MapVisit>& a, const std::vector<MapVisit>& b,
                const std::array<std::vector<std::uint32_t>, 2>& wanted) {
    const bool any_name = is_one_session(a, wanted[0]) && is_one_session(b, wanted[1]);
    std::vector<VisitPairCandidate> candidates;
    std::vector<std::uint32_t> others = wanted[1];
    std::ranges::stable_sort(others, {}, [&](std::uint32_t of_b) { return b[of_b].begin; });
    for (const std::uint32_t of_a : wanted[0]) {
        for (const std::uint32_t of_b : others) {
            if (b[of_b].begin > a[of_a].end) {
                break; // this visit of B and all later ones begin after the visit of A has ended
            }
            const int rating = rate_pair(a[of_a], b[of_b], any_name);
            if (rating != 0 && candidates.size() == MapVisitPairs::kMaxCandidates) {
                return std::nullopt;
            }
            if (rating != 0) {
                candidates.push_back({rating, {of_a, of_b}});
            }
        }
    }
    std::ranges::stable_sort(candidates, std::ranges::greater{}, &VisitPairCandidate::rating);
    return candidates;
}

} // namespace

std::vector<ItemTypeAndId> removed_items(const json::object& record) {
    std::vector<ItemTypeAndId> found;
    const json::array* const removed = list_of(record, "removed");
    for (std::size_t i = 0; removed != nullptr && i < removed->size(); ++i) {
        const json::array* const pair = (*removed)[i].if_array();
        if (pair != nullptr && pair->size() == 2 && pair->front().is_int64() &&
            pair->back().is_int64()) {
            found.emplace_back(pair->front().get_int64(), pair->back().get_int64());
        }
    }
    return found;
}

std::optional<std::int64_t> find_receiving_session(const json::object& world) {
    const json::array* items = list_of(world, "items");
    const json::object* item =
        items == nullptr || items->empty() ? nullptr : items->front().if_object();
    const json::array* sessions = item == nullptr ? nullptr : list_of(*item, "seen_by");
    return sessions == nullptr || sessions->empty() || !sessions->front().is_int64()
               ? std::nullopt
               : std::optional{sessions->front().get_int64()};
}

std::shared_ptr<const RecordedItems>
identify_items(const std::map<std::uint32_t, std::shared_ptr<const RecordedItem>>& by_key) {
    auto items = std::make_shared<RecordedItems>();
    items->reserve(by_key.size());
    // Descriptor items have the lowest keys, so they come first.
    std::map<std::uint16_t, const RecordedItem*> descriptors;
    for (const auto& [packed, item] : by_key) {
        ItemIdentity identity{{}, item->key.type, item->key.id};
        if (item->key.type == snapshot::kDescriptorType && item->data) {
            descriptors[item->key.id] = item.get();
            identity = {*item->data, 0, 0};
        } else if (const auto found = descriptors.find(item->key.type);
                   found != descriptors.end()) {
            identity = {*found->second->data, 1, item->key.id};
        }
        items->emplace_back(std::move(identity), item);
    }
    std::ranges::stable_sort(*items, {}, &RecordedItems::value_type::first);
    return items;
}

void MapVisitReader::Session::apply_item_changes(const json::object& record,
                                                 const json::array& list, bool makes_items) {
    if (flag_of(record, "full")) {
        items.emplace();
    }
    // If several items have the same key, the first one counts. The list is read from its end, so
    // that the first one overwrites the others.
    for (std::size_t i = list.size(); i-- > 0;) {
        const json::object* item = list[i].if_object();
        const auto key = item == nullptr
                             ? std::nullopt
                             : key_of(number_of(*item, "type_id"), number_of(*item, "id"));
        if (key) {
            (*items)[*key] = makes_items ? parse_item(*key, *item) : nullptr;
            update_own_name(*item, player_name);
        }
    }
    for (const auto& [type, id] : removed_items(record)) {
        if (const auto key = key_of(type, id)) {
            items->erase(*key);
        }
    }
}

void MapVisitReader::forget_items(std::optional<std::int64_t> session) {
    for (auto& [number, known] : sessions_) {
        if (!session || number.first == *session) {
            known.items.reset();
        }
    }
}

std::optional<MapVisitSnapshot> MapVisitReader::on_line(std::string_view line) {
    const auto head = filter::is_record_line(line) ? filter::read_line_head(line) : std::nullopt;
    if (!head) {
        ++invalid_lines_; // the line may have been a record of any session
        forget_items();
        return std::nullopt;
    }
    if (head->type == "records_lost") {
        forget_items();
        return std::nullopt;
    }
    const bool world = head->type == "world"; // a merged snapshot, which has session 0
    const bool names_player = head->type == "message" &&
                              line.find(R"("name":"sv_client_info")") != std::string_view::npos;
    if ((head->session <= 0 && !world) || (head->type != "session" && head->type != "map" &&
                                           head->type != "snapshot" && !world && !names_player)) {
        return std::nullopt;
    }
    std::array<unsigned char, 65536> room{};
    json::monotonic_resource memory{room.data(), room.size()};
    json::error_code error;
    const json::value value = json::parse({line.data(), line.size()}, error, &memory);
    if (error || !value.is_object()) {
        ++invalid_lines_;
        forget_items(head->session);
        return std::nullopt;
    }
    RecordedSessionKey number{
        head->session, world ? std::string{text_of(value.get_object(), "server")} : std::string{}};
    if (sessions_.size() >= kMaxSessions && !sessions_.contains(number)) {
        return std::nullopt;
    }
    Session& session = sessions_[std::move(number)];
    if (world) {
        set_map_of_merged_snapshot(value.get_object(), session);
    }
    if (world || head->type == "snapshot") {
        return on_snapshot(value.get_object(), head->session, session);
    }
    if (names_player) {
        update_own_name(value.get_object(), session.player_name);
    } else if (head->type == "map") {
        on_map(value.get_object(), session);
    } else {
        on_session(value.get_object(), session);
    }
    return std::nullopt;
}

void MapVisitReader::on_session(const json::object& record, Session& session) {
    if (text_of(record, "event") == "open" && !flag_of(record, "again")) {
        session = {}; // twscope was started again, which numbers sessions from 1
    }
    if (const auto client = text_of(record, "client"); !client.empty()) {
        session.client_address = client;
    }
    if (text_of(record, "event") == "close") {
        session.items.reset();
        session.visit.reset();
    }
}

/// Sets the map of a merged snapshot to the map of a session that received a part of the snapshot,
/// unless that session is already on the next map.
void MapVisitReader::set_map_of_merged_snapshot(const json::object& record,
                                                Session& session) const {
    session.client_address = text_of(record, "server");
    const auto run = number_of(record, "run").value_or(0);
    if (run != session.run) {
        session.run = run;
        session.visit.reset();
        session.map_name.clear();
        session.map_crc.clear();
    }
    const std::string_view map = text_of(record, "map");
    const auto found = sessions_.find({find_receiving_session(record).value_or(0), {}});
    if (found != sessions_.end() && (map.empty() || map == found->second.map_name)) {
        session.map_name = found->second.map_name;
        session.map_crc = found->second.map_crc;
    } else if (session.map_name.empty()) {
        session.map_name = map;
    }
}

void MapVisitReader::on_map(const json::object& record, Session& session) {
    session.is_map_announced = !flag_of(record, "again");
    const auto name = text_of(record, "name");
    const auto crc = text_of(record, "crc");
    if (name != session.map_name || crc != session.map_crc) {
        session.map_name = name;
        session.map_crc = crc;
        session.visit.reset();
    }
}

std::optional<MapVisitSnapshot> MapVisitReader::on_snapshot(const json::object& record,
                                                            std::int64_t number, Session& session) {
    const auto tick = parse_tick(record);
    const json::array* list = list_of(record, "items");
    if (!tick || list == nullptr || (!flag_of(record, "full") && !session.items)) {
        // Snapshots that are not ok could not be rebuilt, so no recording contains their items.
        if (list != nullptr || flag_of(record, "ok")) {
            ++unusable_snapshots_;
        }
        return std::nullopt;
    }
    session.apply_item_changes(record, *list, makes_items_);
    const auto wanted = number_of(record, "num_items");
    if (wanted && *wanted != static_cast<std::int64_t>(session.items->size())) {
        session.items
            .reset(); // a line is missing, so snapshots are unusable until one lists all items
        ++unusable_snapshots_;
        return std::nullopt;
    }
    const bool behind = session.visit && *tick <= session.tick;
    if (behind && !session.is_map_announced &&
        std::int64_t{session.tick} - *tick <= kNewGameTicks) {
        ++late_snapshots_; // the snapshot is late or a repetition
        return std::nullopt;
    }
    session.is_map_announced = false;
    if (!session.visit || behind) {
        if (visits_.size() >= kMaxSessions) {
            return std::nullopt;
        }
        session.visit = visits_.size();
        visits_.push_back({.session = number,
                           .name = {},
                           .client = session.client_address,
                           .map = session.map_name,
                           .crc = session.map_crc,
                           .begin = *tick});
    }
    session.tick = *tick;
    MapVisit& visit = visits_[*session.visit];
    if (visit.name.empty()) {
        visit.name = session.player_name;
    }
    visit.end = *tick;
    ++visit.num_snapshots;
    return MapVisitSnapshot{.visit = *session.visit,
                            .tick = *tick,
                            .items = makes_items_ ? identify_items(*session.items) : nullptr};
}

std::optional<MapVisitPairs> pair_map_visits(const std::vector<MapVisit>& a,
                                             const std::vector<MapVisit>& b,
                                             std::optional<std::int64_t> session_a,
                                             std::optional<std::int64_t> session_b) {
    const std::array wanted{wanted_visits(a, session_a), wanted_visits(b, session_b)};
    auto candidates = find_candidates(a, b, wanted);
    if (!candidates) {
        return std::nullopt;
    }
    MapVisitPairs found;
    // The value in `partners` of a visit that is already paired.
    constexpr auto kPaired = std::numeric_limits<std::uint32_t>::max();
    std::array partners{std::vector<std::uint32_t>(a.size()), std::vector<std::uint32_t>(b.size())};
    for (auto at = candidates->begin(); at != candidates->end();) {
        const auto end = std::find_if(at, candidates->end(), [&](const VisitPairCandidate& each) {
            return each.rating != at->rating;
        });
        const auto open = std::partition(at, end, [&](const VisitPairCandidate& each) {
            return partners[0][each.visits[0]] != 0 || partners[1][each.visits[1]] != 0;
        });
        for (auto each = open; each != end; ++each) {
            ++partners[0][each->visits[0]];
            ++partners[1][each->visits[1]];
        }
        for (auto each = open; each != end; ++each) {
            const auto [of_a, of_b] = each->visits;
            if (partners[0][of_a] == 1 && partners[1][of_b] == 1) {
                partners[0][of_a] = partners[1][of_b] = kPaired;
                found.pairs.emplace_back(of_a, of_b);
            }
        }
        at = end;
    }
    std::ranges::sort(found.pairs);
    for (std::size_t view = 0; view < wanted.size(); ++view) {
        for (const std::uint32_t visit : wanted[view]) {
            if (partners[view][visit] != kPaired) {
                found.unpaired[view].push_back({visit, partners[view][visit] != 0});
            }
        }
    }
    return found;
}

std::vector<std::size_t> assign_game_numbers(const std::vector<MapVisit>& visits) {
    std::vector<std::size_t> games;
    std::set<RecordedSessionKey> seen; // the sessions of the current game
    for (std::size_t i = 0; i < visits.size(); ++i) {
        const MapVisit& visit = visits[i];
        const MapVisit& before = visits[i == 0 ? 0 : i - 1];
        const RecordedSessionKey session{visit.session, visit.client};
        const bool is_same = visit.map == before.map && visit.crc == before.crc;
        std::size_t game = i == 0 ? 0 : games.back();
        if (!is_same || seen.contains(session)) {
            ++game;
            seen.clear();
        }
        seen.insert(session);
        games.push_back(game);
    }
    return games;
}

} // namespace tw::analyze
