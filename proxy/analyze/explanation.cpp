#include "proxy/analyze/explanation.h"

#include "proxy/analyze/json_text.h"
#include "proxy/filter/line_record.h"
#include "proxy/record/findings.h"
#include "proxy/record/terminal_text.h"
#include "proxy/sink/finding_lines.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

namespace tw::analyze {

namespace json = boost::json;

namespace {

/// The most lines listed before the finding. The next constant limits all lines.
constexpr std::size_t kBefore = 6;
constexpr std::size_t kAll = 18;
/// The most findings listed if the requested one does not exist.
constexpr std::size_t kChoices = 12;
/// The limit of tracked sessions, because an attacker can cause any number of them.
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

/// True if the line must be parsed. Most lines are messages, of which only inputs matter.
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

/// Returns the severity as a number from 0 to 2; −1 if the record has none.
int severity_of(const json::object& finding) {
    constexpr std::array<std::string_view, 3> kNames{"info", "warning", "error"};
    const auto name = std::find(kNames.begin(), kNames.end(), text_of(finding, "severity"));
    return name == kNames.end() ? -1 : static_cast<int>(name - kNames.begin());
}

bool can_be_told(const json::object& finding) {
    const std::string_view id = text_of(finding, "id");
    return sink::is_explainable(id);
}

} // namespace

void Explanation::on_line(std::string_view line) {
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

void Explanation::on_lines(std::string_view lines) {
    while (!lines.empty()) {
        const std::size_t end = lines.find('\n');
        on_line(lines.substr(0, end));
        lines.remove_prefix(end == std::string_view::npos ? lines.size() : end + 1);
    }
}

/// Forgets the previous session with this number. Another run numbers its sessions from 1 again.
void Explanation::forget(std::int64_t number, Session& session) {
    session = {};
    if (number == number_) {
        number_ = kNobody;
    }
}

void Explanation::on_session(const json::object& record, Session& session) {
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

void Explanation::tell(const json::object& record, std::int64_t number, Session& session,
                       const std::string& what) {
    // The part of "2026-11-20T15:24:45.564237Z" after the date.
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

void Explanation::on_snapshot(const json::object& record, std::int64_t number, Session& session) {
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
             ok ? "verified, " + record::counted(static_cast<std::uint64_t>(
                                                     number_of(record, "num_items").value_or(0)),
                                                 "item[s]")
                : "rejected"));
    if (ok && found() && number == number_ && !after_tick_ &&
        tick > number_of(finding_, "tick").value_or(tick)) {
        after_ = session.items;
        after_tick_ = tick;
    }
}

void Explanation::note_choice(const json::object& record, std::int64_t number) {
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

bool Explanation::is_wanted(const json::object& record, std::int64_t number) const {
    const auto tick = number_of(record, "tick");
    if ((wanted_.session && *wanted_.session != number) || !can_be_told(record) ||
        (wanted_.tick && tick != wanted_.tick)) {
        return false;
    }
    const int severity = severity_of(record);
    return found() ? severity > severity_of(finding_) : wanted_.tick.has_value() || severity > 0;
}

void Explanation::on_finding(const json::object& record, std::int64_t number, Session& session) {
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

void Explanation::on_input(const json::object& record, std::int64_t number, Session& session) {
    const json::object* fields = object_of(record, "fields");
    const auto acked = fields == nullptr ? std::nullopt : number_of(*fields, "ack_tick");
    if (!acked || *acked == session.acked) {
        return;
    }
    // Every snapshot is acknowledged, but only the acknowledgements after the finding are listed.
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

// The explaining finding says more than the original one, but may be less certain.
const json::object* Explanation::item() const {
    return object_of(explained_.empty() ? finding_ : explained_, "item");
}

const json::object* Explanation::item_in(const Items& items) const {
    const json::object* named = item();
    if (named == nullptr) {
        return nullptr;
    }
    const auto found = items.find(
        {number_of(*named, "type_id").value_or(-1), number_of(*named, "id").value_or(-1)});
    return found == items.end() ? nullptr : &found->second;
}

namespace {

/// Where the cause of a finding usually is in a server's code. The first matching row applies. A row with
/// an empty name matches any name.
struct Lead {
    std::string_view id;
    std::string_view name;
    std::string_view where;
};

constexpr auto kLeads = std::to_array<Lead>({
    {"snapshot.crc_mismatch", "duplicate_update",
     "Two items had the same type and id in one tick. Check where items of this type are created "
     "(SnapNewItem): does each entity use its own id (SnapNewId), and is the client's id used for "
     "nothing else?"},
    {"snapshot.duplicate_update", "",
     "Two items had the same type and id in one tick. Check where items of this type are created "
     "(SnapNewItem): does each entity use its own id (SnapNewId)?"},
    {"snapshot.crc_mismatch", "odd_delta",
     "The server's own base differs from what it sent: an id that was freed (SnapFreeId) and "
     "reused while an entity still had it, or items with the same key."},
    {"snapshot.crc_mismatch", "damaged_value",
     "One value changed between the server's checksum and here: damage in transit, or code that "
     "writes to an item after the snapshot was built."},
    {"snapshot.crc_mismatch", "ambiguous",
     "If one value changed between the server's checksum and here: damage in transit, or code that "
     "writes to an item after the snapshot was built. If it is something else, look for items with "
     "the same type and id, and for objects of another size than in 0.6: decode reports sizes."},
    {"snapshot.size_differs", "",
     "The object's definition (datasrc/network.py) has other fields than in 0.6. Clients of 0.6 "
     "hard-code the sizes of types 1 to 20: put new fields into your own object with a UUID."},
    {"snapshot.size_change", "",
     "One type and id was sent with two sizes. Look for an id reused by another kind of entity, "
     "and for SnapNewItem with a varying size."},
    {"snapshot.too_many_items", "",
     "More than 1024 items. Check what is sent to clients that cannot see it (NetworkClipped)."},
    {"snapshot.budget", "",
     "Look for entities of this type that are created and never destroyed, and for those sent to "
     "clients that cannot see them (NetworkClipped)."},
    {"snapshot.item_cap", "", "Check what is sent to clients that cannot see it (NetworkClipped)."},
    {"snapshot.unknown_base", "",
     "Nothing in the server: what is missing came earlier, or was rejected. See the lines above."},
    {"snapshot.client_stalled", "",
     "The name gives the cause, the detail its evidence. lost and late: look at the line between "
     "server and twscope; lost_behind: between twscope and the client. server_silent: look at what "
     "the server did at that time, and at its CPU. unacknowledged and client_silent: look at the "
     "client. rejected and unknown_base: see the findings above it."},
    {"snapshot.", "",
     "An object with a size other than agreed misaligns everything after it: compare the object "
     "definitions with 0.6, and see what decode reports about sizes in a capture of the join."},
});

std::string_view lead_of(std::string_view id, std::string_view name) {
    const auto* const lead = std::find_if(kLeads.begin(), kLeads.end(), [&](const Lead& each) {
        const bool family = each.id.ends_with('.');
        return (family ? id.starts_with(each.id) : id == each.id) &&
               (each.name.empty() || each.name == name);
    });
    return lead == kLeads.end() ? std::string_view{} : lead->where;
}

/// Returns the value of a key as text; empty if there is none.
std::string shown(const json::object* record, std::string_view key) {
    const json::value* value = record == nullptr ? nullptr : record->if_contains(key);
    return value == nullptr ? std::string{} : record::terminal_text(json::serialize(*value));
}

const json::object* object_of(const json::object* record, std::string_view key) {
    const json::value* value = record == nullptr ? nullptr : record->if_contains(key);
    return value == nullptr ? nullptr : value->if_object();
}

/// Returns the type of a finding's item, as a name or a number.
std::string type_of(const json::object* item) {
    const std::string_view type = item == nullptr ? std::string_view{} : text_of(*item, "type");
    return type.empty() ? "type " + shown(item, "type_id") : record::terminal_text(type);
}

/// Returns the text indented and wrapped to the width of the page.
std::string folded(std::string_view text) {
    constexpr std::size_t kWidth = 96;
    std::string out;
    while (!text.empty()) {
        std::size_t size = text.size();
        if (size > kWidth) {
            const std::size_t space = text.rfind(' ', kWidth);
            size = space == std::string_view::npos || space == 0 ? kWidth : space;
        }
        out += fmt::format("  {}\n", text.substr(0, size));
        text.remove_prefix(std::min(text.size(), size + (size < text.size() ? 1 : 0)));
    }
    return out;
}

/// The meaning of a number in a finding. The first matching row of a key applies. A row with an empty id
/// matches any id.
struct Label {
    std::string_view key;
    std::string_view id;
    std::string_view text;
    std::string_view unit{};
};

constexpr auto kLabels = std::to_array<Label>({
    {"crc_wanted", "", "the server's checksum"},
    {"crc_got", "", "the checksum here"},
    {"value", "snapshot.budget", "in use"},
    {"value", "snapshot.client_stalled", "nothing new to show for", " ms"},
    {"value", "snapshot.size_differs", "the server's size", " ints"},
    {"value", "", "value"},
    {"limit", "snapshot.size_differs", "agreed size", " ints"},
    {"limit", "", "limit"},
    {"since_tick", "", "since tick"},
    {"lost", "snapshot.budget", "items that are gone"},
    {"lost", "snapshot.client_stalled", "unusable snapshots in between"},
    {"lost", "", "snapshots lost so far"},
    {"ddnet_code", "", "DDNet's clients print error"},
});

std::string numbers_of(const json::object& finding) {
    std::string text;
    std::string_view told;
    for (const Label& label : kLabels) {
        if (label.key == told || (!label.id.empty() && label.id != text_of(finding, "id"))) {
            continue;
        }
        told = label.key;
        if (const std::string value = shown(&finding, label.key); !value.empty()) {
            text += fmt::format("  {}: {}{}\n", label.text, value, label.unit);
        }
    }
    return text;
}

/// Returns what a finding may be about if that is not certain.
std::string candidates_of(const json::object& finding) {
    const json::object* candidates = object_of(&finding, "candidates");
    const json::value* list =
        candidates == nullptr ? nullptr : candidates->if_contains("likeliest");
    if (list == nullptr || !list->is_array()) {
        return {};
    }
    std::string text =
        fmt::format("  candidates: {}, the likeliest first\n", shown(candidates, "count"));
    for (const json::value& value : list->get_array()) {
        const json::object* each = value.if_object();
        const json::object* item = object_of(each, "item");
        if (item == nullptr) {
            continue;
        }
        text += fmt::format("    {} {} {}", type_of(item), shown(item, "id"),
                            record::terminal_text(text_of(*each, "field")));
        if (each->contains("expected")) {
            text +=
                fmt::format(": {} instead of {}", shown(each, "value"), shown(each, "expected"));
        }
        text += '\n';
    }
    return text;
}

/// Returns the words between a value and the expected value.
std::string_view verb_of(const json::object& explained) {
    return text_of(explained, "name") == "exact" ? "must have been" : "was likely";
}

std::string why(const Explanation& story) {
    const json::object& finding = story.finding();
    std::string text = folded(record::terminal_text(text_of(finding, "what")));
    if (const auto detail = text_of(finding, "detail"); !detail.empty()) {
        text += folded(record::terminal_text(detail));
    }
    text += numbers_of(finding);
    if (story.explained().empty()) {
        return text + candidates_of(finding);
    }
    const json::object& explained = story.explained();
    if (const json::object* item = object_of(&explained, "item"); item != nullptr) {
        text += fmt::format("  looking back from the next verified ones: {} {} gave {} where it "
                            "{} {} ({})\n",
                            type_of(item), record::terminal_text(text_of(explained, "field")),
                            shown(&explained, "value"), verb_of(explained),
                            shown(&explained, "expected"),
                            record::terminal_text(text_of(explained, "name")));
    } else {
        text += "  looking back from the next verified ones:\n";
    }
    if (const auto detail = text_of(explained, "detail"); !detail.empty()) {
        text += folded(record::terminal_text(detail));
    }
    return text + candidates_of(explained);
}

std::string place_of(const json::object* item) {
    const json::object* at = object_of(item, "at");
    return at == nullptr ? std::string{}
                         : fmt::format("tile {} {}", shown(at, "tile"), shown(at, "game"));
}

std::string item_of(const Explanation& story) {
    const json::object* const before = story.item_before();
    const json::object* const after = story.item_after();
    const json::object* const any = before != nullptr ? before : after;
    if (any == nullptr) {
        return {};
    }
    const json::object& explained = story.explained();
    const auto tick = [](const std::optional<std::int64_t>& number) {
        return number ? fmt::format("tick {}", *number) : std::string{};
    };
    std::string text = fmt::format("\nThe item: {} {}",
                                   record::terminal_text(text_of(*any, "type")), shown(any, "id"));
    if (const auto player = text_of(*any, "player"); !player.empty()) {
        text += fmt::format(", player {}", record::terminal_text(player));
    }
    text += fmt::format("\n  {:<20} {:>14} {:>14} {:>14}\n", "", tick(story.before_tick()),
                        explained.empty() ? "" : "rejected", tick(story.after_tick()));
    const json::object* const old_fields = object_of(before, "fields");
    const json::object* const new_fields = object_of(after, "fields");
    const json::object* const fields = old_fields != nullptr ? old_fields : new_fields;
    if (fields != nullptr) {
        for (const auto& member : *fields) {
            const std::string_view name{member.key().data(), member.key().size()};
            const bool culprit = !explained.empty() && text_of(explained, "field") == name;
            text += fmt::format("  {:<20} {:>14} {:>14} {:>14}{}\n", record::terminal_text(name),
                                shown(old_fields, name),
                                culprit ? shown(&explained, "value") : std::string{},
                                shown(new_fields, name),
                                culprit ? fmt::format("  <- {} {}", verb_of(explained),
                                                      shown(&explained, "expected"))
                                        : std::string{});
        }
    }
    const std::string from = place_of(before);
    const std::string to = place_of(after);
    if (!from.empty() || !to.empty()) {
        text += fmt::format("  {:<20} {:>14} {:>14} {:>14}\n", "where", from, "", to);
    }
    return text;
}

/// Returns the bytes of the finding as text. `explained`: there is an explaining finding; only it may then
/// mark a byte, if it knows which.
std::string bytes_of(const json::object& finding, bool explained) {
    constexpr std::size_t kRow = 16;
    constexpr std::size_t kRowsAround = 2;
    const std::string_view hex = text_of(finding, "hex");
    const json::value* const offset = finding.if_contains("offset");
    if (hex.empty() || hex.front() == '[') {
        return {};
    }
    const std::size_t bytes = hex.size() / 2;
    const bool is_guess = explained && text_of(finding, "id") != "snapshot.explained";
    const bool marked = !is_guess && offset != nullptr && offset->is_int64() &&
                        offset->get_int64() >= 0 &&
                        static_cast<std::uint64_t>(offset->get_int64()) < bytes;
    const std::size_t mark = marked ? static_cast<std::size_t>(offset->get_int64()) : hex.size();
    const std::size_t row_of_mark = marked && mark < bytes ? mark / kRow : 0;
    const std::size_t first = row_of_mark < kRowsAround ? 0 : row_of_mark - kRowsAround;
    std::string text = "\nThe bytes";
    if (const std::string part = shown(&finding, "part"); !part.empty()) {
        text += fmt::format(" of part {} of the delta", part);
    }
    text += marked ? fmt::format(", byte {} marked\n", mark) : "\n";
    for (std::size_t row = first; row * kRow < bytes && row <= row_of_mark + kRowsAround; ++row) {
        text += fmt::format("  {:04x} ", row * kRow);
        for (std::size_t at = row * kRow; at < std::min(bytes, (row + 1) * kRow); ++at) {
            text += at == mark ? '[' : at == mark + 1 && at % kRow != 0 ? ']' : ' ';
            text += record::terminal_text(hex.substr(2 * at, 2));
        }
        text += row == row_of_mark && marked && mark % kRow == kRow - 1 ? "]\n" : "\n";
    }
    return text;
}

} // namespace

std::string explainable_findings_text(const Explanation& story) {
    const FindingSelection& wanted = story.wanted();
    std::string asked;
    if (wanted.session) {
        asked += fmt::format(" of session {}", *wanted.session);
    }
    if (wanted.tick) {
        asked += fmt::format(" at tick {}", *wanted.tick);
    }
    std::string text = fmt::format("Nothing to explain: no finding about snapshots{}.\n", asked);
    if (story.choices().empty()) {
        return text + fmt::format("There are no others, in {}.\n",
                                  record::counted(story.num_sessions(), "session[s]"));
    }
    text += "Others are:\n";
    for (const Explanation::Choice& choice : story.choices()) {
        text += fmt::format("  session {}", choice.session);
        text += choice.tick ? fmt::format(", tick {}", *choice.tick) : std::string{};
        text += fmt::format(": {}\n", choice.id);
    }
    if (const std::uint64_t more = story.num_choices() - story.choices().size(); more != 0) {
        text += fmt::format("  and {} more\n", more);
    }
    return text;
}

std::string explanation_text(const Explanation& story) {
    const json::object& finding = story.finding();
    const std::string id = record::terminal_text(text_of(finding, "id"));
    std::string text = fmt::format("{}\n{}", id, story.title());
    if (const std::string tick = shown(&finding, "tick"); !tick.empty()) {
        text += fmt::format(", tick {}", tick);
    }
    text += "\n"
            "\n"
            "What happened\n";
    for (const std::string& event : story.events()) {
        text += fmt::format("  {}\n", event);
    }
    text += "\nWhy it is reported\n" + why(story) + item_of(story) +
            bytes_of(story.explained().contains("offset") ? story.explained() : finding,
                     !story.explained().empty());
    if (const auto known = record::find_finding(id)) {
        text += "\n"
                "Usual cause\n" +
                folded(record::finding_info(*known).cause);
    }
    if (const auto where = lead_of(id, text_of(finding, "name")); !where.empty()) {
        text += "\nWhere to look\n" + folded(where);
    }
    return text;
}

namespace {

json::value text_or_null(std::string_view text) {
    // NOLINTNEXTLINE(modernize-return-braced-init-list): braces would make an array
    return text.empty() ? json::value{} : json::value(json::string_view{text.data(), text.size()});
}

template <typename Value>
json::value value_or_null(const Value& value) {
    // NOLINTNEXTLINE(modernize-return-braced-init-list): braces would make an array
    return value ? json::value(*value) : json::value{};
}

json::object choices_json(const Explanation& story) {
    json::array choices;
    for (const Explanation::Choice& each : story.choices()) {
        choices.push_back(json::object{
            {"session", each.session}, {"tick", value_or_null(each.tick)}, {"id", each.id}});
    }
    return {{"finding", nullptr},
            {"others", std::move(choices)},
            {"num_others", story.num_choices()},
            {"sessions", story.num_sessions()}};
}

} // namespace

json::object explanation_json(const Explanation& story) {
    if (!story.found()) {
        return choices_json(story);
    }
    const json::object& finding = story.finding();
    const std::string_view id = text_of(finding, "id");
    const auto known = record::find_finding(id);
    const auto side = [](std::optional<std::int64_t> tick, const json::object* item) {
        return json::object{{"tick", value_or_null(tick)}, {"item", value_or_null(item)}};
    };
    const json::object* const explained = story.explained().empty() ? nullptr : &story.explained();
    return {{"finding", finding},
            {"explained", value_or_null(explained)},
            {"about", story.title()},
            {"before", side(story.before_tick(), story.item_before())},
            {"after", side(story.after_tick(), story.item_after())},
            {"events", json::array(story.events().begin(), story.events().end())},
            {"cause", text_or_null(known ? record::finding_info(*known).cause : "")},
            {"look", text_or_null(lead_of(id, text_of(finding, "name")))}};
}

std::string explanation_of_lines(std::string_view lines, std::int64_t session, std::int64_t tick) {
    Explanation story{{.session = session, .tick = tick}};
    story.on_lines(lines);
    return story.found() ? explanation_text(story) : explainable_findings_text(story);
}

} // namespace tw::analyze
