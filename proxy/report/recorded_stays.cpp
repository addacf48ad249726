#include "proxy/report/recorded_stays.h"

#include "proxy/filter/line_record.h"
#include "proxy/report/json_text.h"
#include "snapshot/item.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <limits>

namespace tw::report {

namespace json = boost::json;

namespace {

/// Servers count on for as long as a map lasts; datagrams that overtake each other are far closer.
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

/// The items that a snapshot lists, sorted by key; of two with one key the first.
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

/// `before` with the new and changed ones, without the removed ones.
RecordedItems change_items(const RecordedItems& before, RecordedItems changed,
                           const std::vector<std::uint32_t>& removed) {
    RecordedItems items;
    items.reserve(before.size() + changed.size());
    // Of two with the same key, this takes the one of the first list.
    std::set_union(changed.begin(), changed.end(), before.begin(), before.end(),
                   std::back_inserter(items), key_less);
    std::erase_if(items, [&](const auto& item) {
        return std::binary_search(removed.begin(), removed.end(), item.first);
    });
    return items;
}

/// `before`: null where the record lists all. A snapshot that shows the same has the same items.
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

/// A session that was shown an item of a world.
std::optional<std::int64_t> first_seen_by(const json::object& world) {
    const json::array* items = array_of(world, "items");
    const json::object* item =
        items == nullptr || items->empty() ? nullptr : items->front().if_object();
    const json::array* sessions = item == nullptr ? nullptr : array_of(*item, "seen_by");
    return sessions == nullptr || sessions->empty() ? std::nullopt
                                                    : integer_of<std::int64_t>(&sessions->front());
}

} // namespace

void RecordedStays::forget_items(std::optional<std::int64_t> session) {
    for (auto& [number, known] : sessions_) {
        if (!session || number.first == *session) {
            known.items.reset();
        }
    }
}

std::optional<StaySnapshot> RecordedStays::on_line(std::string_view line) {
    const auto head = filter::is_record(line) ? filter::read_head(line) : std::nullopt;
    if (!head) {
        ++broken_; // it may have been anybody's
        forget_items();
        return std::nullopt;
    }
    if (head->type == "records_lost") {
        forget_items();
        return std::nullopt;
    }
    const bool world = head->type == "world"; // of session 0
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

void RecordedStays::on_session(const json::object& record, Session& session) {
    if (text_of(record, "event") == "open" && !is_true(record, "again")) {
        session = {}; // of another run, where a file holds several
    }
    if (const auto client = text_of(record, "client"); !client.empty()) {
        session.client = client;
    }
    if (text_of(record, "event") == "close") {
        session.items.reset();
        session.stay.reset();
    }
}

/// The map is that of a session that was shown some of it.
void RecordedStays::on_world(const json::object& record, Session& session) const {
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

void RecordedStays::on_map(const json::object& record, Session& session) {
    session.announced = !is_true(record, "again");
    const auto name = text_of(record, "name");
    const auto crc = text_of(record, "crc");
    if (name != session.map || crc != session.crc) {
        session.map = name;
        session.crc = crc;
        session.stay.reset();
    }
}

std::optional<StaySnapshot> RecordedStays::on_snapshot(const json::object& record,
                                                       std::int64_t number, Session& session) {
    const auto tick = integer_of<snapshot::Tick>(record.if_contains("tick"));
    const json::array* list = array_of(record, "items");
    const bool full = is_true(record, "full");
    if (!tick || list == nullptr || (!full && session.items == nullptr)) {
        if (list != nullptr || is_true(record, "ok")) { // others could not be rebuilt, in no view
            ++unusable_;
        }
        return std::nullopt;
    }
    auto items = items_of(record, *list, full ? nullptr : session.items);
    const auto wanted = integer_of<std::int64_t>(record.if_contains("num_items"));
    if (wanted && *wanted != static_cast<std::int64_t>(items->size())) {
        session.items.reset(); // a line is missing: from the next full one on
        ++unusable_;
        return std::nullopt;
    }
    session.items = items;
    const bool behind = session.stay && *tick <= session.tick;
    if (behind && !session.announced && std::int64_t{session.tick} - *tick <= kNewGame) {
        ++behind_; // overtaken, or a repetition
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
    return StaySnapshot{.stay = *session.stay, .tick = *tick, .items = std::move(items)};
}

} // namespace tw::report
