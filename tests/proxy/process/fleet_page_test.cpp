// Covers: proxy/process/fleet_page.cpp
#include "proxy/process/fleet_page.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

using namespace tw;
using process::FleetOverview;
using process::to_log_line;

namespace {

std::string record_line(std::string_view type, int session, std::string_view rest,
                        std::string_view time = "2026-11-21T02:04:47.124403Z") {
    return fmt::format(R"({{"v":1,"t":"{}","type":"{}","session":{}{}}})", time, type, session,
                       rest);
}

std::string session_line(int number, std::string_view event, std::string_view more = "") {
    return record_line(
        "session", number,
        fmt::format(R"(,"event":"{}","client":"10.0.0.{}:5000","protocol":"0.6+ddnet"{})", event,
                    number, more));
}

struct FleetFixture {
    [[nodiscard]] web::RunState page_state(const process::ServerPageUrls& pages = {}) const {
        web::RunState state;
        state.stream = web::RecordStreamState{.name = "twscope"};
        board.fill_run_state(state, pages);
        return state;
    }

    void add_record(const process::RecordSender& from, std::string_view line,
                    std::int64_t now_ms = 1'795'226'700'000) {
        board.add_record_line(from, line, now_ms);
    }

    /// Adds a record of session 1.
    void add_record(std::string_view server, std::string_view type, std::string_view rest) {
        add_record({.server = server}, record_line(type, 1, rest));
    }

    void add_player(std::string_view server, int number, std::string_view run = "") {
        add_record({.server = server, .run = run}, session_line(number, "open"));
        add_record({.server = server, .run = run}, session_line(number, "established"));
    }

    FleetOverview board;
};

} // namespace

TEST_CASE_FIXTURE(FleetFixture, "servers, players and their names are taken from the records") {
    add_player("ctf", 1);
    add_player("race", 1);
    add_record({"race"}, session_line(2, "open"));
    add_record("ctf", "map", R"(,"dir":"s2c","name":"ctf1")");
    add_record("ctf", "message", R"(,"dir":"c2s","name":"cl_start_info","fields":{"name":"anna"})");
    add_record("ctf", "message", R"(,"dir":"s2c","name":"sv_chat","fields":{"name":"x"})");

    const web::RunState state = page_state({.pattern = "https://{server}.example.org/?{server}",
                                            .urls_by_server = {{"race", "http://10.0.0.5:9303/"}}});
    REQUIRE(state.servers.size() == 2);
    CHECK(state.servers[0].name == "ctf");
    REQUIRE(state.servers[0].collected);
    CHECK(state.servers[0].collected->page == "https://ctf.example.org/?ctf");
    CHECK(state.servers[1].collected->page == "http://10.0.0.5:9303/");
    CHECK(state.servers[0].collected->records == 5);
    CHECK(state.servers[0].collected->last_record_ms == 1795226687124);
    CHECK(state.view.servers.at("ctf").players == 1);
    CHECK(state.view.servers.at("race").players == 1);
    CHECK(state.servers[1].relay.sessions_open == 2);
    CHECK(state.stream->records == 8);
    REQUIRE(state.view.sessions.size() == 3);
    const web::SessionView& anna = state.view.sessions[0];
    CHECK(anna.server_name == "ctf");
    CHECK(anna.name == "anna");
    CHECK(anna.map == "ctf1");
    CHECK(anna.client == "10.0.0.1:5000");
    CHECK(anna.protocol == "0.6+ddnet");
    CHECK(state.view.sessions[1].server_name == "race");
    CHECK_FALSE(state.view.sessions[2].has_player); // sessions of players come first
}

TEST_CASE_FIXTURE(
    FleetFixture,
    "a session ends with its close record, or with the next run if its own run was killed") {
    const auto open_session_numbers = [this] {
        std::vector<std::uint32_t> open;
        for (const web::SessionView& session : page_state().view.sessions) {
            open.push_back(session.number);
        }
        return open;
    };
    using Numbers = std::vector<std::uint32_t>;
    const auto add_record_of_run = [this](std::string_view run, const std::string& text) {
        add_record({.server = "ctf", .run = run}, text);
    };
    for (const int number : {1, 2, 3}) {
        add_player("ctf", number, "first");
    }
    add_record_of_run("first", session_line(2, "close", R"(,"reason":"idle")"));
    CHECK(open_session_numbers() == Numbers{1, 3});
    add_record_of_run("first", session_line(3, "close", R"(,"reason":"reconnected")"));
    add_record_of_run("first", session_line(3, "established"));
    CHECK(open_session_numbers() == Numbers{1, 3});
    add_player("ctf", 6, "first"); // threads of a run publish independently
    add_player("ctf", 5, "first");
    add_player("ctf", 2, "first");
    CHECK(open_session_numbers() == Numbers{1, 2, 3, 5, 6});
    // A run without sessions may be a takeover that fails.
    add_record_of_run("second", record_line("summary", 0, ""));
    CHECK(open_session_numbers() == Numbers{1, 2, 3, 5, 6});
    add_player("ctf", 5, "second");
    CHECK(open_session_numbers() == Numbers{5});
    // This record arrives after the records of the second run.
    add_record_of_run("first", session_line(5, "close", R"(,"reason":"handed over")"));
    CHECK(open_session_numbers() == Numbers{5});
    for (std::size_t i = 0; i < 2 * FleetOverview::kMaxRuns; ++i) {
        add_player("ctf", 1, fmt::format("run {}", i));
        CHECK(open_session_numbers() == Numbers{1});
    }
    // A record of another program does not name a run.
    add_record_of_run("", record_line("map", 1, ""));
    CHECK(open_session_numbers() == Numbers{1});
}

TEST_CASE_FIXTURE(
    FleetFixture,
    "findings, also those left out by the limit, are counted in total and for each server") {
    add_player("ctf", 1);
    add_player("race", 1);
    add_record("ctf", "finding",
               R"(,"dir":"s2c","id":"snapshot.crc_mismatch","severity":"error","tick":70,)"
               R"("item":{"type":"character","type_id":9,"id":3},"crc_wanted":1,"crc_got":2,)"
               R"("left_out":4)");
    add_record("ctf", "finding", R"(,"id":"message.unexpected","severity":"info")");
    add_record("ctf", "finding", R"(,"id":"of.another.version","severity":"error")");

    const web::RunState state = page_state();
    CHECK(state.view.servers.at("ctf").findings == 5);
    CHECK(state.view.servers.at("race").findings == 0);
    CHECK(state.view.sessions[0].findings == 5);
    const auto count_findings = [&](record::FindingId id) {
        return state.view.totals.findings[static_cast<std::size_t>(id)];
    };
    CHECK(count_findings(record::FindingId::snapshot_crc_mismatch) == 5);
    REQUIRE(state.view.findings.size() == 1);
    const web::FindingLine& finding = state.view.findings[0];
    CHECK(finding.text.starts_with("error snapshot.crc_mismatch: ctf, session 1, tick 70, "
                                   "character 3, checksum 2 instead of 1. "));
    CHECK(finding.tick == 70);
    CHECK(finding.time_ms == 1795226687124);
    add_record("ctf", "finding",
               R"(,"dir":"s2c","id":"snapshot.explained","severity":"info","tick":70,"field":"x",)"
               R"("item":{"type":"character","type_id":9,"id":2},"value":5,"expected":4)");
    REQUIRE(page_state().view.findings.size() == 1);
    CHECK(page_state().view.findings[0].text.starts_with(
        "error snapshot.crc_mismatch: ctf, session 1, tick 70, character 2 x 5 instead of 4. "));
    CHECK(page_state().view.servers.at("ctf").findings == 5);
    for (std::size_t i = 0; i < 2 * web::StatusView::kMaxFindings; ++i) {
        add_record("race", "finding", R"(,"id":"snapshot.crc_mismatch","severity":"error")");
    }
    CHECK(page_state().view.findings.size() == web::StatusView::kMaxFindings);
}

TEST_CASE_FIXTURE(
    FleetFixture,
    "a server is silent from the finding that begins the silence to the one that ends it") {
    const auto silence_fields = [](std::string_view detail) {
        return fmt::format(R"(,"id":"session.server_silent","severity":"warning","detail":"{}",)"
                           R"("value":3000,"lost":12)",
                           detail);
    };
    add_player("ctf", 1);
    add_player("ctf", 2);
    CHECK_FALSE(page_state().servers[0].is_silent);
    add_record("ctf", "finding", silence_fields("began"));
    const web::RunState state = page_state();
    CHECK(state.servers[0].is_silent);
    REQUIRE(state.server_silence);
    CHECK(state.server_silence->since_ms == 1795226684124);
    CHECK(state.server_silence->unanswered == 12);
    add_record({"ctf"}, record_line("finding", 2, silence_fields("ended")));
    CHECK_FALSE(page_state().servers[0].is_silent);
    CHECK_FALSE(page_state().server_silence);
    CHECK(page_state().view.findings.size() == 1);
    CHECK(page_state().view.totals.findings[static_cast<std::size_t>(
              record::FindingId::session_server_silent)] == 1);
}

TEST_CASE_FIXTURE(FleetFixture,
                  "lines that are not records, or belong to no server, add no server") {
    for (const std::string& odd :
         {std::string{}, std::string{"{}"}, std::string{"[1]"}, std::string{"hello"},
          record_line("summary", 0, ""), record_line("impairment", 0, ""),
          session_line(-5, "close"), record_line("session", 0, R"(,"event":7)")}) {
        add_record({"odd"}, odd);
    }
    CHECK(page_state().servers.empty());
    // Such records do not harm a known server either.
    add_player("odd", 1);
    for (
        const std::string_view odd :
        {R"("event":7)", R"("event":"open","client":[])",
         R"("id":"snapshot.crc_mismatch","tick":"x")",
         R"("id":"snapshot.crc_mismatch","tick":1e99,"item":{"type_id":-1,"id":70000},"left_out":-3)",
         R"("name":5,"fields":[])"}) {
        for (const std::string_view type : {"session", "finding", "map", "message"}) {
            add_record({"odd"}, record_line(type, 1, fmt::format(",{}", odd)));
        }
    }
    add_record({"odd"}, record_line("session", 1, ",") + "\xff");
    add_record({"odd"}, record_line("session", 1, "", "9999-99-99T99:99:99.999999Z"));
    CHECK(page_state().servers.size() == 1);
}

TEST_CASE_FIXTURE(FleetFixture, "the time of the latest record is never in the future") {
    struct Row {
        std::string_view name;
        std::string_view time;
        std::int64_t last_ms;
    };

    const Row rows[] = {
        {"a second ago", "2026-11-21T02:04:47.124403Z", 1'795'226'687'124},
        {"a wrong clock", "2099-01-01T00:00:00.000000Z", 1'795'226'688'000},
        {"the clock is right again", "2026-11-21T02:04:47.125403Z", 1'795'226'687'125},
        {"no time", "yesterday", 1'795'226'687'125}};
    for (const Row& row : rows) {
        CAPTURE(row.name);
        add_record({"ctf"}, record_line("session", 1, "", row.time), 1'795'226'688'000);
        REQUIRE(page_state().servers.size() == 1);
        CHECK(page_state().servers[0].collected->last_record_ms == row.last_ms);
    }
}

TEST_CASE_FIXTURE(FleetFixture, "long texts are cut at the end of a character") {
    std::string text = "a";
    while (text.size() < 900'000) {
        text += "\u00e4"; // two bytes each
    }
    const std::string cut = text.substr(0, 255);
    add_record("ctf", "session", fmt::format(R"(,"client":"{0}","protocol":"{0}")", text));
    add_record("ctf", "map", fmt::format(R"(,"name":"{}")", text));
    add_record("ctf", "message",
               fmt::format(R"(,"name":"cl_start_info","fields":{{"name":"{}"}})", text));
    add_record("ctf", "finding",
               fmt::format(R"(,"id":"snapshot.crc_mismatch","severity":"error",)"
                           R"("name":"{0}","detail":"{0}","item":{{"type":"{0}"}})",
                           text));
    const web::RunState state = page_state();
    REQUIRE(state.view.sessions.size() == 1);
    const web::SessionView& session = state.view.sessions[0];
    for (const std::string& each : {session.client, session.protocol, session.map, session.name}) {
        CHECK(each == cut);
    }
    REQUIRE(state.view.findings.size() == 1);
    CHECK(state.view.findings[0].text.size() < 2000);
}

TEST_CASE_FIXTURE(FleetFixture, "servers and sessions are bounded, and the rest is counted") {
    for (std::size_t i = 0; i <= FleetOverview::kMaxServers; ++i) {
        add_record({fmt::format("s{}", i)}, session_line(1, "open"));
    }
    CHECK(page_state().servers.size() == FleetOverview::kMaxServers);
    CHECK(page_state().stream->ignored_records == 1);
    CHECK(page_state().view.sessions.size() == web::StatusView::kMaxSessions);
    CHECK(page_state().view.sessions_open == FleetOverview::kMaxServers);
    for (int i = 2; i < static_cast<int>(FleetOverview::kMaxSessions) + 10; ++i) {
        add_record({"s0"}, session_line(i, "open"));
    }
    CHECK(page_state().servers[0].relay.sessions_open == FleetOverview::kMaxSessions);
    web::RunState one;
    board.fill_run_state(one, {}, "s0");
    CHECK(one.view.sessions.size() == FleetOverview::kMaxSessions);
    CHECK(one.view.sessions.back().server_name == "s0");
}

TEST_CASE("lines of the log contain the server's name, but no items") {
    CHECK(
        to_log_line("ctf", record_line("map", 3, R"(,"name":"x")")) ==
        R"({"v":1,"t":"2026-11-21T02:04:47.124403Z","type":"map","session":3,"server_name":"ctf","name":"x"})");
    CHECK(to_log_line("ctf", record_line("map", 3, R"(,"server_name":"own")")) ==
          record_line("map", 3, R"(,"server_name":"own")"));
    CHECK(to_log_line("ctf", record_line("world", 0,
                                         R"(,"tick":5,"items":[{"id":1}],"removed":[[4,1]])")) ==
          record_line("world", 0, R"(,"server_name":"ctf","tick":5)"));
    const std::string_view odd =
        R"({"x":{"session":"a,b"},"session":1,"t":"2026","type":"world","y":{"z":1,"items":[2]}})";
    CHECK(to_log_line("ctf", odd) == odd);
    CHECK(to_log_line("ctf", record_line("message", 1, R"(,"items":[1])")) ==
          record_line("message", 1, R"(,"server_name":"ctf","items":[1])"));
}
