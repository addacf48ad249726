#include "proxy/report/story.h"

#include "proxy/filter/line_record.h"
#include "proxy/record/terminal_text.h"
#include "proxy/report/json_text.h"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

namespace tw::report {

namespace json = boost::json;

namespace {

/// Lines of what came before the finding, and with what came behind it.
constexpr std::size_t kBefore = 6;
constexpr std::size_t kAll = 18;
/// Findings that are listed where the one asked for is not there.
constexpr std::size_t kChoices = 12;
/// An attacker's records may name any number of sessions.
constexpr std::size_t kMaxSessions = 4096;

std::optional<std::int64_t> number_of(const json::object& record, std::string_view key) {
    const json::value* value = record.if_contains(key);
    return value != nullptr && value->is_int64() ? std::optional{value->get_int64()} : std::nullopt;
}

const json::object* object_of(const json::object& record, std::string_view key) {
    const json::value* value = record.if_contains(key);
    return value != nullptr && value->is_object() ? &value->get_object() : nullptr;
}

const json::array* list_of(const json::object& record, std::string_view key) {
    const json::value* value = record.if_contains(key);
    return value != nullptr && value->is_array() ? &value->get_array() : nullptr;
}

/// Whether a line is worth parsing: most are messages, of which only inputs count.
bool is_of_use(std::string_view line) {
    constexpr std::array<std::string_view, 4> kTypes{"session", "map", "snapshot", "finding"};
    const auto head = filter::read_head(line);
    if (!head) {
        return false;
    }
    const std::string_view type = head->type;
    return std::find(kTypes.begin(), kTypes.end(), type) != kTypes.end() ||
           (type == "message" && line.find(R"("input")") != std::string_view::npos);
}

/// 0 to 2; −1 for what is none.
int severity_of(const json::object& finding) {
    constexpr std::array<std::string_view, 3> kNames{"info", "warning", "error"};
    const auto name = std::find(kNames.begin(), kNames.end(), text_of(finding, "severity"));
    return name == kNames.end() ? -1 : static_cast<int>(name - kNames.begin());
}

bool can_be_told(const json::object& finding) {
    const std::string_view id = text_of(finding, "id");
    return id.starts_with("snapshot.") && id != "snapshot.explained";
}

} // namespace

void Story::on_line(std::string_view line) {
    if (!is_of_use(line)) {
        return;
    }
    json::error_code error;
    const json::value value = json::parse({line.data(), line.size()}, error);
    if (error || !value.is_object()) {
        return;
    }
    const json::object& record = value.get_object();
    const auto number = number_of(record, "session");
    if (!number || *number <= 0 ||
        (sessions_.size() >= kMaxSessions && !sessions_.contains(*number))) {
        return;
    }
    Session& session = sessions_[*number];
    const std::string_view type = text_of(record, "type");
    if (type == "session") {
        if (text_of(record, "event") == "open" && !record.contains("again")) {
            forget(*number, session);
        }
        on_session(record, session);
    } else if (type == "map") {
        session.map = record::terminal_text(text_of(record, "name"));
        session.items.clear();
    } else if (type == "snapshot") {
        on_snapshot(record, *number, session);
    } else if (type == "finding") {
        on_finding(record, *number, session);
    } else if (type == "message" && text_of(record, "name") == "input") {
        on_input(record, *number, session);
    }
}

void Story::on_lines(std::string_view lines) {
    while (!lines.empty()) {
        const std::size_t end = lines.find('\n');
        on_line(lines.substr(0, end));
        lines.remove_prefix(end == std::string_view::npos ? lines.size() : end + 1);
    }
}

/// A session of another run, whose numbers begin anew, has nothing to do with the one before.
void Story::forget(std::int64_t number, Session& session) {
    session = {};
    if (number == number_) {
        number_ = kNobody;
    }
}

void Story::on_session(const json::object& record, Session& session) {
    session.who = record::terminal_text(
        fmt::format("{} at {}", text_of(record, "client"), text_of(record, "server")));
    if (const auto protocol = text_of(record, "protocol"); !protocol.empty()) {
        session.who += ", " + record::terminal_text(protocol);
    }
    if (text_of(record, "event") != "open") {
        session.items.clear();
        session.tick.reset();
    }
}

void Story::tell(const json::object& record, std::int64_t number, Session& session,
                 const std::string& what) {
    // Of "2026-11-20T15:24:45.564237Z" the time.
    const std::string_view time = text_of(record, "t");
    constexpr std::size_t kDate = 11;
    constexpr std::size_t kTime = 12;
    const std::string line =
        fmt::format("{:12}  {}", time.size() > kDate ? time.substr(kDate, kTime) : "", what);
    if (found() && number == number_ && events_.size() < kAll) {
        events_.push_back(line);
    }
    session.recent.push_back(line);
    if (session.recent.size() > kBefore) {
        session.recent.pop_front();
    }
}

void Story::on_snapshot(const json::object& record, std::int64_t number, Session& session) {
    const auto tick = number_of(record, "tick").value_or(0);
    const auto base = number_of(record, "delta_tick").value_or(-1);
    const json::array* items = list_of(record, "items");
    const bool right = items != nullptr;
    if (right) {
        if (const json::value* full = record.if_contains("full"); full != nullptr) {
            session.items.clear();
        }
        for (const json::value& value : *items) {
            if (const json::object* item = value.if_object(); item != nullptr) {
                const auto type = number_of(*item, "type_id");
                const auto id = number_of(*item, "id");
                if (type && id) {
                    session.items[{*type, *id}] = *item;
                }
            }
        }
        const json::array* const removed = list_of(record, "removed");
        for (std::size_t i = 0; removed != nullptr && i < removed->size(); ++i) {
            const json::array* key = (*removed)[i].if_array();
            if (key != nullptr && key->size() == 2 && (*key)[0].is_int64() &&
                (*key)[1].is_int64()) {
                session.items.erase({(*key)[0].get_int64(), (*key)[1].get_int64()});
            }
        }
        session.tick = tick;
    }
    const json::value* const okay = record.if_contains("ok");
    const bool ok = okay != nullptr && okay->is_bool() && okay->get_bool();
    tell(record, number, session,
         fmt::format(
             "snapshot {} {}: {}", tick, base < 0 ? "without a base" : fmt::format("on {}", base),
             ok ? fmt::format("verified, {} items", number_of(record, "num_items").value_or(0))
                : "rejected"));
    if (ok && found() && number == number_ && !after_tick_ &&
        tick > number_of(finding_, "tick").value_or(tick)) {
        after_ = session.items;
        after_tick_ = tick;
    }
}

void Story::note_choice(const json::object& record, std::int64_t number) {
    if (!can_be_told(record) || severity_of(record) <= 0) {
        return;
    }
    const auto tick = number_of(record, "tick");
    if (last_choice_ == std::pair{number, tick}) {
        return;
    }
    last_choice_ = {number, tick};
    ++num_choices_;
    if (choices_.size() < kChoices) {
        choices_.push_back(
            {.session = number, .tick = tick, .id = record::terminal_text(text_of(record, "id"))});
    }
}

bool Story::is_wanted(const json::object& record, std::int64_t number) const {
    const auto tick = number_of(record, "tick");
    if ((wanted_.session && *wanted_.session != number) || !can_be_told(record) ||
        (wanted_.tick && tick != wanted_.tick)) {
        return false;
    }
    const int severity = severity_of(record);
    return found() ? severity > severity_of(finding_) : wanted_.tick.has_value() || severity > 0;
}

void Story::on_finding(const json::object& record, std::int64_t number, Session& session) {
    const std::string_view id = text_of(record, "id");
    const auto tick = number_of(record, "tick");
    std::string what = fmt::format("finding {}", record::terminal_text(id));
    if (tick) {
        what += fmt::format(", tick {}", *tick);
    }
    if (const auto name = text_of(record, "name"); !name.empty()) {
        what += ", " + record::terminal_text(name);
    }
    note_choice(record, number);
    if (is_wanted(record, number)) {
        const bool same = found() && number == number_ && number_of(finding_, "tick") == tick;
        finding_ = record;
        number_ = number;
        title_ = fmt::format("session {}, {}{}", number, session.who,
                             session.map.empty() ? "" : ", map " + session.map);
        if (!same) {
            explained_ = {};
            after_tick_.reset();
            acks_told_ = 0;
            before_ = session.items;
            before_tick_ = session.tick;
            events_.assign(session.recent.begin(), session.recent.end());
        }
        what += "   <- this finding";
    } else if (found() && number == number_ && id == "snapshot.explained" &&
               tick == number_of(finding_, "tick")) {
        explained_ = record;
    }
    tell(record, number, session, what);
}

void Story::on_input(const json::object& record, std::int64_t number, Session& session) {
    const json::object* fields = object_of(record, "fields");
    const auto acked = fields == nullptr ? std::nullopt : number_of(*fields, "ack_tick");
    if (!acked || *acked == session.acked) {
        return;
    }
    // Acknowledgements follow every snapshot; told are those that a story turns on.
    const bool gave_up = *acked < 0;
    const bool again = session.acked < 0;
    session.acked = *acked;
    constexpr int kAcks = 3;
    const bool behind = found() && number == number_ && !after_tick_ && acks_told_ < kAcks;
    if (gave_up || again || behind) {
        acks_told_ += behind ? 1 : 0;
        tell(record, number, session,
             gave_up ? "the client acknowledges nothing: it requests a full snapshot"
                     : fmt::format("the client acknowledges {}", *acked));
    }
}

// What looks back knows more than the finding, and may be less sure.
const json::object* Story::item() const {
    return object_of(explained_.empty() ? finding_ : explained_, "item");
}

const json::object* Story::item_in(const Items& items) const {
    const json::object* named = item();
    if (named == nullptr) {
        return nullptr;
    }
    const auto found = items.find(
        {number_of(*named, "type_id").value_or(-1), number_of(*named, "id").value_or(-1)});
    return found == items.end() ? nullptr : &found->second;
}

} // namespace tw::report
