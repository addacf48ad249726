#include "proxy/analyze/explanation.h"

#include "proxy/filter/line_record.h"
#include "proxy/record/findings.h"
#include "proxy/record/json.h"
#include "proxy/record/terminal_text.h"
#include "proxy/sink/finding_lines.h"

#include <iterator>

#include <fmt/format.h>

namespace tw::analyze {

namespace json = boost::json;
using record::flag_of, record::list_of, record::number_of, record::object_of, record::text_of;

namespace {

/// The most events listed before the finding.
constexpr std::size_t kMaxEventsBefore = 6;
constexpr std::size_t kMaxEvents = 18; ///< the most events listed before and after the finding
/// The most findings listed if the requested finding does not exist.
constexpr std::size_t kMaxListedFindings = 12;
constexpr std::size_t kMaxFindingKinds = 24;   ///< the most kinds of findings that are counted
constexpr std::size_t kMaxRejectedTicks = 256; ///< the most rejected snapshots that are stored
/// The most tracked sessions, because an attacker can open any number of sessions.
constexpr std::size_t kMaxSessions = 4096;

/// True if the line may be a record that ExplanationReader uses. Inputs are the only such messages.
bool is_needed_line(std::string_view line) {
    constexpr std::array<std::string_view, 4> kTypes{"session", "map", "snapshot", "finding"};
    const auto head = filter::read_line_head(line);
    if (!head) {
        return false;
    }
    const std::string_view type = head->type;
    return std::ranges::find(kTypes, type) != kTypes.end() ||
           (type == "message" && line.find(R"("input")") != std::string_view::npos);
}

/// Returns the severity as a number from 0 to 2; −1 if the record has none.
int severity_of(const json::object& finding) {
    const auto severity = record::parse_severity(text_of(finding, "severity"));
    return severity ? static_cast<int>(*severity) : -1;
}

/// Returns how much a finding says about the cause of a problem: 0 for information, 1 for warnings,
/// 2 for errors, 3 and 4 for errors that name the cause of other findings.
int explanation_rank(const json::object& finding) {
    constexpr int kCause = 3;
    const std::string_view id = text_of(finding, "id");
    const std::string_view name = text_of(finding, "name");
    if (id == "snapshot.size_differs") {
        return kCause + 1;
    }
    const bool has_duplicates =
        id == "snapshot.crc_mismatch" && (name == "duplicate_update" || name == "odd_delta");
    return id == "snapshot.size_change" || has_duplicates ? kCause : severity_of(finding);
}

std::string resized_type(const json::object& finding) {
    const json::object* const item = object_of(finding, "item");
    if (item == nullptr || text_of(finding, "id") != "snapshot.size_differs") {
        return {};
    }
    const std::string_view type = text_of(*item, "type");
    return type.empty() ? fmt::format("type {}", number_of(*item, "type_id").value_or(0))
                        : std::string{type};
}

/// Returns the tick of the first snapshot with the size that a snapshot.size_differs finding names.
/// Returns nullopt if that tick is unknown, and for other findings.
std::optional<std::int64_t> first_resized_tick(const json::object& finding) {
    return text_of(finding, "id") == "snapshot.size_differs" ? number_of(finding, "since_tick")
                                                             : std::nullopt;
}

/// Returns the time of day of a record: "15:24:45.564" of "2026-11-20T15:24:45.564237Z".
std::string_view time_of_day(const json::object& record) {
    const std::string_view time = text_of(record, "t");
    constexpr std::size_t kDate = 11;
    constexpr std::size_t kTime = 12;
    return time.size() > kDate ? time.substr(kDate, kTime) : std::string_view{};
}

bool is_explainable_finding(const json::object& finding) {
    return sink::is_explainable(text_of(finding, "id"));
}

/// Tells users where to look for the cause of a finding. The first row that matches the finding's
/// id and name applies. An id that ends with a dot matches all ids that begin with it. An empty
/// name matches any name.
struct CauseHint {
    std::string_view id;
    std::string_view name;
    std::string_view text;
};

constexpr auto kCauseHints = std::to_array<CauseHint>({
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
    {"snapshot.crc_mismatch", "damaged_checksum",
     "The engine writes the checksum, not the game: look for damage between the server and here."},
    {"snapshot.crc_mismatch", "",
     "Search the server's code for what writes to items after the snapshot is built. If nothing "
     "does, the snapshot was damaged on its way, or an object has another size than in 0.6: see "
     "what decode reports about sizes in a capture of the join."},
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
    {"snapshot.missing_descriptor", "",
     "Nothing to mend if only the first snapshot with a type lacks it: DDNet 18.3 and later send "
     "it."},
    {"snapshot.client_stalled", "",
     "The name gives the cause, the detail its evidence. lost and late: look at the network "
     "between server and twscope; lost_behind: between twscope and the client. server_silent: look "
     "at what the server did at that time, and at its CPU. unacknowledged and client_silent: look "
     "at the client. rejected and unknown_base: see the findings above it."},
    {"snapshot.", "",
     "An object with a size other than agreed misaligns everything after it: compare the object "
     "definitions with 0.6, and see what decode reports about sizes in a capture of the join."},
});

} // namespace

void ExplanationReader::on_line(std::string_view line) {
    if (!is_needed_line(line)) {
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
    explanation_.num_sessions = sessions_.size();
    const std::string_view type = text_of(record, "type");
    if (type == "session") {
        on_session(record, *number, session);
    } else if (type == "map") {
        session.map = record::escape_for_terminal(text_of(record, "name"));
        session.items.clear();
        session.error.reset();
    } else if (type == "snapshot") {
        on_snapshot(record, *number, session);
    } else if (type == "finding") {
        on_finding(record, *number, session);
    } else if (type == "message" && text_of(record, "name") == "input") {
        on_input(record, *number, session);
    }
}

void ExplanationReader::on_session(const json::object& record, std::int64_t number,
                                   Session& session) {
    const bool opens = text_of(record, "event") == "open";
    if (opens && !record.contains("again")) {
        session = {}; // each start of twscope numbers sessions from 1
        explanation_.session = number == explanation_.session ? 0 : explanation_.session;
    }
    session.peers_text = record::escape_for_terminal(
        fmt::format("{} at {}", text_of(record, "client"), text_of(record, "server")));
    if (const auto protocol = text_of(record, "protocol"); !protocol.empty()) {
        session.peers_text += ", " + record::escape_for_terminal(protocol);
    }
    if (!opens) {
        session.items.clear();
        session.tick.reset();
    }
}

bool ExplanationReader::extend_rejected_event(std::int64_t tick, std::int64_t number,
                                              Session& session) {
    if (!session.rejected_since) {
        return false;
    }
    const auto& [first, time] = *session.rejected_since;
    session.recent_events.back() =
        fmt::format("{:12}  snapshots {} to {}: all rejected", time, first, tick);
    if (session.is_last_listed && is_finding_session(number)) {
        explanation_.events.back() = session.recent_events.back();
    }
    return true;
}

void ExplanationReader::add_event(const json::object& record, std::int64_t number, Session& session,
                                  const std::string& what) {
    const std::string line = fmt::format("{:12}  {}", time_of_day(record), what);
    session.rejected_since.reset();
    session.is_last_listed = is_finding_session(number) && explanation_.events.size() < kMaxEvents;
    if (session.is_last_listed) {
        explanation_.events.push_back(line);
    }
    session.recent_events.push_back(line);
    if (session.recent_events.size() > kMaxEventsBefore) {
        session.recent_events.pop_front();
    }
}

void ExplanationReader::on_snapshot(const json::object& record, std::int64_t number,
                                    Session& session) {
    const auto tick = number_of(record, "tick").value_or(0);
    const auto base = number_of(record, "delta_tick").value_or(-1);
    if (const json::array* const items = list_of(record, "items"); items != nullptr) {
        if (record.contains("full")) {
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
        for (const ItemTypeAndId& removed : removed_items(record)) {
            session.items.erase(removed);
        }
        session.tick = tick;
    }
    const bool ok = flag_of(record, "ok");
    if (ok) {
        session.error.reset();
    }
    if (ok || !extend_rejected_event(tick, number, session)) {
        const auto items = static_cast<std::uint64_t>(number_of(record, "num_items").value_or(0));
        add_event(record, number, session,
                  fmt::format("{}: {}",
                              base < 0 ? fmt::format("full snapshot {}", tick)
                                       : fmt::format("snapshot {} on {}", tick, base),
                              ok ? "verified, " + record::count_with_noun(items, "item[s]")
                                 : "rejected"));
        if (!ok) {
            session.rejected_since.emplace(tick, time_of_day(record));
        }
    }
    if (is_finding_session(number)) {
        store_verification(tick, ok, session.items);
    }
}

/// Stores whether a snapshot of the finding's session was verified (`ok`) or rejected.
void ExplanationReader::store_verification(std::int64_t tick, bool ok,
                                           const Explanation::Items& items) {
    const auto wanted = number_of(explanation_.finding, "tick");
    if (!ok && explanation_.rejected_ticks.size() < kMaxRejectedTicks &&
        (!explanation_.rejected_ticks.empty() || tick == wanted)) {
        explanation_.rejected_ticks.push_back(tick);
    } else if (ok && !explanation_.after_tick && wanted && tick > *wanted) {
        explanation_.items_after = items;
        explanation_.after_tick = tick;
    }
}

void ExplanationReader::add_explainable_finding(const json::object& record, std::int64_t number) {
    if (!is_explainable_finding(record) || severity_of(record) <= 0) {
        return;
    }
    const auto tick = number_of(record, "tick");
    if (last_explainable_ == std::pair{number, tick}) {
        return;
    }
    last_explainable_ = {number, tick};
    ++explanation_.num_explainable_findings;
    if (explanation_.explainable_findings.size() < kMaxListedFindings) {
        explanation_.explainable_findings.push_back(
            {.session = number,
             .tick = tick,
             .id = record::escape_for_terminal(text_of(record, "id"))});
    }
}

void ExplanationReader::count_finding_by_kind(const json::object& record, std::int64_t number) {
    const auto tick = number_of(record, "tick");
    const std::string_view id = text_of(record, "id");
    if (!is_explainable_finding(record)) {
        explanation_.num_other_findings += id.starts_with("snapshot.") ? 0U : 1U;
        return;
    }
    const std::string type = resized_type(record);
    auto kind = std::ranges::find_if(
        explanation_.finding_kinds,
        [&](const Explanation::FindingTally& each) { return each.id == id && each.type == type; });
    if (kind == explanation_.finding_kinds.end()) {
        if (!tick || explanation_.finding_kinds.size() == kMaxFindingKinds) {
            return;
        }
        kind = explanation_.finding_kinds.insert(explanation_.finding_kinds.end(),
                                                 {.id = std::string{id},
                                                  .type = type,
                                                  .is_info = severity_of(record) <= 0,
                                                  .session = number,
                                                  .tick = *tick});
    }
    const auto left_out = std::max<std::int64_t>(number_of(record, "left_out").value_or(0), 0);
    kind->count += static_cast<std::uint64_t>(left_out) + (tick ? 1U : 0U);
}

bool ExplanationReader::is_better_finding(const json::object& record, std::int64_t number) const {
    const auto tick = number_of(record, "tick");
    if ((explanation_.selection.session && *explanation_.selection.session != number) ||
        !is_explainable_finding(record) ||
        (explanation_.selection.tick && tick != explanation_.selection.tick &&
         first_resized_tick(record) != explanation_.selection.tick)) {
        return false;
    }
    const int rank = explanation_rank(record);
    return explanation_.has_finding() ? rank > explanation_rank(explanation_.finding)
                                      : explanation_.selection.tick.has_value() || rank > 0;
}

void ExplanationReader::on_finding(const json::object& record, std::int64_t number,
                                   Session& session) {
    const std::string_view id = text_of(record, "id");
    const auto tick = number_of(record, "tick");
    std::string what = fmt::format("finding {}", record::escape_for_terminal(id));
    if (tick) {
        what += fmt::format(", tick {}", *tick);
    }
    if (const auto name = record::finding_display_name(id, text_of(record, "name"));
        !name.empty()) {
        what += ", " + record::escape_for_terminal(name);
    }
    if (const std::string type = resized_type(record); !type.empty()) {
        what += ", " + record::escape_for_terminal(type);
    }
    add_explainable_finding(record, number);
    count_finding_by_kind(record, number);
    if (is_better_finding(record, number)) {
        // Ticks start again with each map, so the time is compared, too.
        const bool same = is_finding_session(number) &&
                          number_of(explanation_.finding, "tick") == tick &&
                          text_of(explanation_.finding, "t") == text_of(record, "t");
        explanation_.finding = record;
        explanation_.session = number;
        const bool follows = id == "snapshot.unknown_base" && session.error &&
                             number_of(record, "delta_tick") >= session.error->tick;
        explanation_.base_error = follows ? session.error : std::nullopt;
        explanation_.title = fmt::format("session {}, {}{}", number, session.peers_text,
                                         session.map.empty() ? "" : ", map " + session.map);
        if (!same) {
            explanation_.explaining_finding = {};
            explanation_.items_after.clear();
            explanation_.after_tick.reset();
            explanation_.rejected_ticks.clear();
            explanation_.acknowledged_tick.reset();
            explanation_.has_acknowledgements = false;
            explanation_.datagrams.clear();
            num_listed_acks_ = 0;
            last_listed_ack_.reset();
            explanation_.items_before = session.items;
            explanation_.before_tick = session.tick;
            explanation_.events.assign(session.recent_events.begin(), session.recent_events.end());
        }
        what += "   <- this finding";
    } else if (is_finding_session(number) && id == "snapshot.explained" &&
               tick == number_of(explanation_.finding, "tick")) {
        explanation_.explaining_finding = record;
    }
    if (!session.error && tick && is_explainable_finding(record) && severity_of(record) == 2) {
        session.error = {.session = number, .tick = tick, .id = record::escape_for_terminal(id)};
    }
    add_event(record, number, session, what);
}

void ExplanationReader::on_input(const json::object& record, std::int64_t number,
                                 Session& session) {
    const json::object* fields = object_of(record, "fields");
    const auto acked = fields == nullptr ? std::nullopt : number_of(*fields, "ack_tick");
    if (acked && is_finding_session(number)) {
        explanation_.has_acknowledgements = true;
        if (!explanation_.acknowledged_tick &&
            std::ranges::find(explanation_.rejected_ticks, *acked) !=
                explanation_.rejected_ticks.end()) {
            explanation_.acknowledged_tick = acked;
        }
    }
    if (!acked || *acked == session.acknowledged_tick) {
        return;
    }
    // Lists only the first acknowledgements after the finding, because there are many. A client
    // that requests a full snapshot acknowledges −1.
    const bool gave_up = *acked < 0;
    const bool again = session.acknowledged_tick < 0;
    session.acknowledged_tick = *acked;
    constexpr int kAcks = 3;
    const bool behind =
        is_finding_session(number) && !explanation_.after_tick && num_listed_acks_ < kAcks;
    if (gave_up || again || behind) {
        const std::size_t event = explanation_.events.size();
        add_event(record, number, session,
                  gave_up ? "the client acknowledges nothing: it requests a full snapshot"
                          : fmt::format("the client acknowledges {}", *acked));
        if (behind && ++num_listed_acks_ == kAcks && event < explanation_.events.size()) {
            last_listed_ack_ = event;
        }
    } else if (is_finding_session(number) && last_listed_ack_) {
        explanation_.events.at(*std::exchange(last_listed_ack_, {})) +=
            " (later ones are not listed)";
    }
}

bool ExplanationReader::lacks_selected_session() const {
    return explanation_.selection.session && !sessions_.contains(*explanation_.selection.session) &&
           sessions_.size() < kMaxSessions;
}

const json::array* likeliest_candidates(const json::object& finding) {
    const json::object* const candidates = object_of(finding, "candidates");
    return candidates == nullptr ? nullptr : list_of(*candidates, "likeliest");
}

std::int64_t Explanation::finding_tick() const {
    return number_of(finding, "tick").value_or(-1);
}

std::int64_t Explanation::datagram_tick() const {
    return first_resized_tick(finding).value_or(finding_tick());
}

const json::object& Explanation::most_certain_finding() const {
    return explaining_finding.empty() ? finding : explaining_finding;
}

const json::object* Explanation::suspect() const {
    if (!is_suspect_uncertain()) {
        return &most_certain_finding();
    }
    const json::array* const list = likeliest_candidates(most_certain_finding());
    return list == nullptr || list->empty() ? nullptr : list->front().if_object();
}

bool Explanation::is_suspect_uncertain() const {
    return !most_certain_finding().contains("item");
}

std::string_view Explanation::usual_cause() const {
    const auto known = record::find_finding(text_of(finding, "id"));
    return known && !base_error ? record::finding_info(*known).cause : std::string_view{};
}

const json::object* Explanation::suspect_item() const {
    return object_of(suspect(), "item");
}

const json::object* Explanation::find_suspect_item(const Items& items) const {
    const json::object* const named = suspect_item();
    if (named == nullptr) {
        return nullptr;
    }
    const auto found = items.find(
        {number_of(*named, "type_id").value_or(-1), number_of(*named, "id").value_or(-1)});
    return found == items.end() ? nullptr : &found->second;
}

std::vector<SnapshotDatagram> SnapshotDatagrams::find_datagrams(std::int64_t session,
                                                                std::int64_t tick) const {
    std::map<std::int32_t, SnapshotDatagram> latest; // by part
    if (const auto stored = stored_.find(static_cast<std::uint32_t>(session));
        stored != stored_.end()) {
        for (const SnapshotDatagram& each : stored->second) {
            if (each.tick == tick) {
                latest[each.part] = each;
            }
        }
    }
    std::vector<SnapshotDatagram> found;
    std::ranges::transform(latest, std::back_inserter(found),
                           [](const auto& each) { return each.second; });
    return found;
}

void SnapshotDatagrams::on_datagram(const record::RecordHeader& head,
                                    std::span<const std::byte> datagram) {
    session_ = head.session;
    current_ = {.time = head.time, .bytes = datagram.size()};
    set_position_(current_);
    payload_ = {};
}

void SnapshotDatagrams::on_packet(const wire::Packet& packet) {
    current_.header_bytes = wire::header_size(packet);
    current_.is_compressed = packet.compressed;
    payload_ = packet.payload;
}

void SnapshotDatagrams::on_snap_message(const inspect::ObservedSnapMessage& part) {
    const std::span<const std::byte> data = part.body.data;
    if (part.outcome == inspect::SnapMessageOutcome::repeated ||
        (stored_.size() >= kMaxSessions && !stored_.contains(session_))) {
        return;
    }
    SnapshotDatagram datagram = current_;
    datagram.tick = part.body.tick;
    datagram.part = part.body.part;
    datagram.num_parts = part.body.num_parts;
    const bool is_inside =
        !data.empty() && std::less_equal<>{}(payload_.data(), data.data()) &&
        std::less_equal<>{}(data.data() + data.size(), payload_.data() + payload_.size());
    if (is_inside) {
        datagram.part_bytes = data.size();
        datagram.part_offset = static_cast<std::size_t>(data.data() - payload_.data()) +
                               (datagram.is_compressed ? 0 : datagram.header_bytes);
    }
    std::deque<SnapshotDatagram>& stored = stored_[session_];
    stored.push_back(std::move(datagram));
    if (stored.size() > snapshot::kMaxParts) { // the largest snapshot has this many parts
        stored.pop_front();
    }
}

std::string_view find_cause_hint(std::string_view id, std::string_view name) {
    for (const CauseHint& each : kCauseHints) {
        if ((each.id.ends_with('.') ? id.starts_with(each.id) : id == each.id) &&
            (each.name.empty() || each.name == name)) {
            return each.text;
        }
    }
    return {};
}

std::string size_cause_text(const Explanation& story) {
    if (story.causing_sizes.empty()) {
        return {};
    }
    const std::size_t others = story.num_other_resized_sessions;
    const bool is_file_wrong = is_objects_file_wrong(story);
    std::string text = fmt::format(
        "Cause: {} ({} session {}{})\n",
        is_file_wrong ? "the objects file is wrong, not the server"
                      : "an object of another size than agreed",
        others == 0 ? "seen in" : "counted in", story.session,
        others == 0 ? "" : "; also seen in " + record::count_with_noun(others, "other session[s]"));
    for (const SizeDifference& each : story.causing_sizes) {
        text += fmt::format("  {}\n", each.text);
    }
    return text + (is_file_wrong ? "  Clients can read these objects.\n\n"
                                 : "  Clients that do not know this size drop the snapshots.\n\n");
}

bool is_objects_file_wrong(const Explanation& story) {
    return !story.causing_sizes.empty() &&
           std::ranges::all_of(story.causing_sizes, &SizeDifference::is_file_wrong);
}

std::string size_change_text(const Explanation& story) {
    if (is_objects_file_wrong(story)) {
        return "Nothing in the server. Correct the sizes in the objects file, or read the game "
               "without the file.";
    }
    std::vector<std::string> objects;
    bool has_new_fields = false;
    for (const SizeDifference& each : story.causing_sizes) {
        if (each.is_file_wrong) {
            continue;
        }
        objects.push_back(
            fmt::format("{} {}", each.object, record::count_with_noun(each.agreed_ints, "int[s]")));
        has_new_fields = has_new_fields || each.actual_ints > each.agreed_ints;
    }
    return objects.empty()
               ? std::string{}
               : fmt::format(
                     "Either give {} again{}: all clients then play. Or keep the size, if "
                     "only your own clients play, built with the same datasrc/network.py (all "
                     "other clients, those of DDNet included, still freeze), and read the traffic "
                     "with an objects file.",
                     fmt::join(objects, ", "),
                     has_new_fields ? ", and move the new fields into an object of your "
                                      "own with a UUID, which may have any size"
                                    : "");
}

std::string first_snapshot_text(const Explanation& story) {
    if (record::text_of(story.finding, "id") != "snapshot.size_differs") {
        return {};
    }
    const std::int64_t first = story.datagram_tick();
    return fmt::format("twscope became certain of the size at tick {}. {}\n", story.finding_tick(),
                       first == story.finding_tick()
                           ? "The object was sent before."
                           : fmt::format("It first read the size in the snapshot of tick {}{}",
                                         first, story.datagrams.empty() ? "." : ":"));
}

} // namespace tw::analyze
