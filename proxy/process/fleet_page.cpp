#include "proxy/process/fleet_page.h"

#include "map/text.h"
#include "proxy/base/clock.h"
#include "proxy/filter/line_record.h"
#include "proxy/record/findings.h"
#include "proxy/record/json.h"
#include "proxy/record/records.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <optional>

#include <fmt/format.h>

namespace tw::process {

namespace json = boost::json;

namespace {

using Object = json::object;

/// The most bytes of a text from a record; longer texts are truncated. Valid names and addresses
/// are shorter. The limit bounds the memory that millions of texts take.
constexpr std::size_t kMaxText = 256;

/// Returns the text of this key, at most kMaxText bytes; empty if the object has no such text.
std::string_view text_in(const Object& object, std::string_view key) {
    return map::truncate_utf8(record::text_of(object, key), kMaxText);
}

template <typename Number>
std::optional<Number> number_in(const Object& object, std::string_view key) {
    const auto number = record::number_of(object, key);
    return number && std::in_range<Number>(*number) ? std::optional{static_cast<Number>(*number)}
                                                    : std::nullopt;
}

/// Returns whether the overview uses a record line. It uses only those messages that contain a
/// player's name. The message's name is in the first kFront bytes of the line.
bool affects_overview(const filter::RecordLineHead& head, std::string_view line) {
    constexpr std::size_t kFront = 220;
    const std::string_view front = line.substr(0, kFront);
    return head.type == "session" || head.type == "map" || head.type == "finding" ||
           (head.type == "message" &&
            (front.find(R"("name":"cl_start_info")") != std::string_view::npos ||
             front.find(R"("name":"cl_change_info")") != std::string_view::npos));
}

/// Reads a finding record from its JSON object. `number`: the session's number.
record::FindingRecord read_finding(record::FindingId id, std::uint32_t number, const Object& from) {
    record::FindingRecord finding;
    finding.id = id;
    finding.head.session = number;
    finding.tick = number_in<snapshot::Tick>(from, "tick");
    finding.crc_wanted = number_in<std::int32_t>(from, "crc_wanted");
    finding.crc_got = number_in<std::int32_t>(from, "crc_got");
    finding.field = text_in(from, "field");
    finding.value = number_in<std::int64_t>(from, "value");
    finding.expected = number_in<std::int64_t>(from, "expected");
    if (const Object* const candidates = record::object_of(from, "candidates")) {
        finding.candidates.emplace().count =
            number_in<std::uint64_t>(*candidates, "count").value_or(0);
    }
    finding.name = text_in(from, "name");
    finding.detail = text_in(from, "detail");
    if (const Object* const item = record::object_of(from, "item")) {
        finding.item =
            record::FindingItem{.type_id = number_in<std::uint16_t>(*item, "type_id").value_or(0),
                                .id = number_in<std::uint16_t>(*item, "id").value_or(0),
                                .type = text_in(*item, "type")};
    }
    return finding;
}

std::uint32_t session_number_of(const filter::RecordLineHead& head) {
    constexpr std::int64_t kMost = std::numeric_limits<std::uint32_t>::max();
    return static_cast<std::uint32_t>(std::clamp<std::int64_t>(head.session, 0, kMost));
}

} // namespace

std::string ServerPageUrls::url_of(std::string_view server) const {
    if (const auto found = urls_by_server.find(server); found != urls_by_server.end()) {
        return found->second;
    }
    constexpr std::string_view kServer = "{server}";
    std::string page = pattern;
    for (auto at = page.find(kServer); at != std::string::npos; at = page.find(kServer, at)) {
        page.replace(at, kServer.size(), server);
        at += server.size();
    }
    return page;
}

FleetOverview::Server* FleetOverview::find_or_add_server(std::string_view name,
                                                         const filter::RecordLineHead& head) {
    const auto known = servers_.find(name);
    if (known != servers_.end()) {
        return &known->second;
    }
    // A record without a session, such as a summary over several servers, does not add a server.
    if (session_number_of(head) == 0 && head.type != "world") {
        return nullptr;
    }
    if (servers_.size() == kMaxServers) {
        ++num_ignored_records_;
        return nullptr;
    }
    return &servers_[std::string{name}];
}

web::SessionView* FleetOverview::find_session(const RecordOrigin& origin) {
    auto& sessions = origin.server.sessions;
    const auto found =
        sessions.find({std::string{origin.from.run}, session_number_of(origin.head)});
    return found == sessions.end() ? nullptr : &found->second;
}

void FleetOverview::add_record_line(const RecordSender& from, std::string_view line,
                                    std::int64_t now_ms) {
    const auto head = filter::read_line_head(line);
    if (!head) {
        return;
    }
    ++records_;
    Server* const server = find_or_add_server(from.server, *head);
    if (server == nullptr) {
        return;
    }
    ++server->records;
    if (const std::int64_t time = filter::parse_unix_ms(head->time); time != 0) {
        server->last_record_ms = std::min(time, now_ms);
    }
    // The first record of a run ends the sessions of earlier runs, because the records of their
    // ends may be missing. A record without a session ends none, because its run may have failed to
    // take over. A record of a known run ends none, because several runs may write at the same
    // time.
    if (session_number_of(*head) != 0 && !from.run.empty() &&
        std::ranges::find(server->runs, from.run) == server->runs.end()) {
        server->sessions.clear();
        if (server->runs.size() == kMaxRuns) {
            server->runs.pop_front();
        }
        server->runs.emplace_back(from.run);
    }
    if (affects_overview(*head, line)) {
        add_record({.from = from, .server = *server, .head = *head}, line);
    }
}

void FleetOverview::add_record(const RecordOrigin& origin, std::string_view line) {
    boost::system::error_code error;
    const json::value value = json::parse(line, error);
    if (error || !value.is_object()) {
        return;
    }
    const Object& record = value.get_object();
    const std::string_view type = origin.head.type;
    if (type == "session") {
        return apply_session_record(origin, record);
    }
    if (type == "finding") {
        return add_finding(origin, record);
    }
    web::SessionView* const session = find_session(origin);
    if (session == nullptr) {
        return;
    }
    if (type == "map") {
        session->map = text_in(record, "name");
    } else if (const Object* const fields = record::object_of(record, "fields")) {
        session->name = text_in(*fields, "name");
    }
}

void FleetOverview::apply_session_record(const RecordOrigin& origin, const Object& record) {
    const auto& [from, server, head] = origin;
    const SessionKey key{from.run, session_number_of(head)};
    const std::string_view event = text_in(record, "event");
    if (event == "close") {
        server.sessions.erase(key);
        // A server without sessions need not answer anyone, so it does not count as silent.
        server.is_silent = server.is_silent && !server.sessions.empty();
        return;
    }
    if (server.sessions.size() == kMaxSessions && !server.sessions.contains(key)) {
        return;
    }
    web::SessionView& view = server.sessions[key];
    view.number = key.second;
    view.server_name = from.server;
    view.client = text_in(record, "client");
    view.protocol = text_in(record, "protocol");
    view.has_player = view.has_player || event == "established";
    view.opened_ms = view.opened_ms == 0 ? filter::parse_unix_ms(head.time) : view.opened_ms;
}

void FleetOverview::add_finding(const RecordOrigin& origin, const Object& record) {
    const auto id = record::find_finding(text_in(record, "id"));
    if (!id) {
        return;
    }
    const std::uint64_t count = 1 + number_in<std::uint64_t>(record, "left_out").value_or(0);
    web::SessionView* const session = find_session(origin);
    if (*id == record::FindingId::session_server_silent) {
        Server& server = origin.server;
        server.is_silent = text_in(record, "detail") == "began";
        if (server.is_silent) {
            server.silence = {.since_ms = filter::parse_unix_ms(origin.head.time) -
                                          number_in<std::int64_t>(record, "value").value_or(0),
                              .unanswered = number_in<std::uint64_t>(record, "lost").value_or(0)};
        }
    }
    const auto with_server = [&](std::string text) {
        const auto behind = text.find(": ");
        text.insert(behind == std::string::npos ? 0 : behind + 2,
                    std::string{origin.from.server} + ", ");
        return text;
    };
    const record::FindingRecord finding = read_finding(*id, session_number_of(origin.head), record);
    const record::Severity severity = record::severity_of(finding);
    if (severity == record::finding_info(*id).severity) { // not the end of a silence
        findings_[static_cast<std::size_t>(*id)] += count;
    }
    if (*id == record::FindingId::snapshot_explained) {
        web::replace_finding_line(recent_findings_,
                                  with_server(record::describe_explained_mismatch(finding)));
        return;
    }
    if (severity == record::Severity::info) {
        return;
    }
    origin.server.findings += count;
    if (session != nullptr) {
        session->findings += count;
    }
    if (recent_findings_.size() == web::StatusView::kMaxFindings) {
        recent_findings_.pop_front();
    }
    recent_findings_.push_back({.time_ms = filter::parse_unix_ms(origin.head.time),
                                .session = finding.head.session,
                                .tick = finding.tick,
                                .severity = std::string{record::severity_name(severity)},
                                .text = with_server(record::describe_finding(finding))});
}

void FleetOverview::fill_run_state(web::RunState& state, const ServerPageUrls& pages,
                                   std::string_view chosen) const {
    std::vector<const web::SessionView*> open;
    for (const auto& [name, server] : servers_) {
        web::NamedServerState& shown = state.servers.emplace_back();
        shown.name = name;
        shown.is_silent = !server.sessions.empty() && server.is_silent;
        shown.relay.sessions_open = server.sessions.size();
        shown.collected = web::CollectedServerState{.page = pages.url_of(name),
                                                    .records = server.records,
                                                    .last_record_ms = server.last_record_ms};
        state.relay.sessions_open += server.sessions.size();
        if (shown.is_silent && !state.server_silence) {
            state.server_silence = server.silence;
        }
        web::ServerView& totals = state.view.servers[name];
        totals.findings = server.findings;
        for (const auto& [unused, session] : server.sessions) {
            totals.players += session.has_player ? 1 : 0;
            if (chosen.empty() || chosen == name) {
                open.push_back(&session);
            }
        }
    }
    state.view.sessions_open = open.size();
    std::stable_partition(open.begin(), open.end(), // sessions of players in the game come first
                          [](const auto* each) { return each->has_player; });
    open.resize(
        std::min(open.size(), chosen.empty() ? web::StatusView::kMaxSessions : kMaxSessions));
    std::ranges::transform(open, std::back_inserter(state.view.sessions),
                           [](const auto* each) { return *each; });
    state.view.findings = recent_findings_;
    state.view.totals.findings = findings_;
    if (state.stream) {
        state.stream->records = records_;
        state.stream->ignored_records = num_ignored_records_;
    }
}

std::string to_log_line(std::string_view server, std::string_view line) {
    constexpr std::string_view kItems = R"(,"items":[)";
    constexpr std::string_view kName = R"(,"server_name":")";
    constexpr std::string_view kSession = R"("session":)";
    std::string text{line};
    const auto head = filter::read_line_head(line);
    if (head && (head->type == "snapshot" || head->type == "world")) {
        if (const auto items = text.find(kItems); items != std::string::npos) {
            text.erase(items);
            text += '}';
        }
    }
    const auto session = text.find(kSession);
    if (session != std::string::npos && text.find(kName) == std::string::npos) {
        const auto behind = std::min(text.find_first_of(",}", session), text.size());
        text.insert(behind, std::string{kName}.append(server).append("\""));
    }
    // Some lines of other programs are not valid JSON after these changes. They stay unchanged.
    return record::is_json_object(text) ? text : std::string{line};
}

FleetPage::FleetPage(PageOptions options, Stream stream, const wire::ModDescription& mod)
    : RecordPageData{mod}, stream_{std::move(stream)}, options_{std::move(options)},
      started_ms_{base::to_unix_ms(base::now_utc())}, admin_{options_.access, options_.listening,
                                                             *this} {
    admin_.set_token(options_.token.value);
}

void FleetPage::add_record_line(const RecordSender& from, std::string_view line) {
    if (!filter::is_valid_record(line)) {
        return; // another program also publishes to the stream
    }
    {
        const std::scoped_lock lock{mutex_};
        overview_.add_record_line(from, line, base::to_unix_ms(base::now_utc()));
    }
    if (!feed_.interest.wants_topic(web::ViewerTopic::log)) {
        return;
    }
    const std::string text = to_log_line(from.server, line);
    if (batch_.lines.size() + text.size() < web::ViewerBatch::kMaxLineBytes) {
        batch_.lines.append(text).push_back('\n');
    } else {
        ++batch_.lost_lines;
    }
}

void FleetPage::flush_to_page() {
    if (!batch_.empty() && feed_.try_put_batch(0, batch_)) {
        batch_.clear();
    }
}

void FleetPage::set_delay_reason(std::string reason) {
    const std::scoped_lock lock{mutex_};
    delay_reason_ = std::move(reason);
}

web::RunState FleetPage::state_of_server(const std::string& server) const {
    web::RunState state;
    state.version = TWSCOPE_VERSION;
    state.now_ms = base::to_unix_ms(base::now_utc());
    state.started_ms = started_ms_;
    state.server = stream_.name;
    const std::scoped_lock lock{mutex_};
    state.stream = web::RecordStreamState{.name = stream_.name, .error = delay_reason_};
    overview_.fill_run_state(state, stream_.pages, server);
    state.rejected_http_connections = admin_.server().num_rejected_connections();
    return state;
}

void FleetPage::check_readiness(std::function<void(web::Health)> done) {
    std::unique_lock lock{mutex_};
    const std::string reason = delay_reason_;
    lock.unlock();
    done({.ok = reason.empty(),
          .text = reason.empty() ? "ok" : fmt::format("no records from the bus: {}", reason)});
}

tl::expected<void, std::string> FleetPage::set_impairment(const std::string& /*text*/) {
    return tl::unexpected{
        std::string{"nothing is forwarded here; ask the twscope in front of that server"}};
}

} // namespace tw::process
