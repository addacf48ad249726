#pragma once

#include "proxy/web/admin.h"
#include "tests/proxy/web/http_client.h"

#include <functional>
#include <memory>
#include <string>

namespace tw::test {

/// The token that the page of a test requires.
inline const std::string kPageToken = "correct-horse-battery-staple";

/// Returns a state with a value in every field, and names with quotes and control characters.
inline web::RunState sample_run_state() {
    web::RunState state{.version = "1.2.3",
                        .now_ms = 1'700'000'002'500,
                        .started_ms = 1'700'000'000'500,
                        .listen = {"127.0.0.1:8303"},
                        .server = "127.0.0.1:8304",
                        .impairment = "s2c:loss=2%",
                        .is_inspecting = true};
    state.server_silence = {.since_ms = 1'700'000'001'000, .unanswered = 12, .refused = 4};
    state.relay.sessions_open = 2;
    state.relay.sessions_opened = 5;
    state.relay.directions[1].datagrams = 100;
    state.relay.directions[1].bytes = 12'345;
    state.relay.directions[0].dropped = 3;
    state.recording = {.output = "game.jsonl",
                       .error = "No space left on device",
                       .lost = 7,
                       .written_bytes = 4096};
    state.view.totals.snapshots = 50;
    state.view.totals.verified = 49;
    state.view.totals.mismatched = 1;
    state.view.totals.snapshot_interval_us.add(40'000);
    state.view.totals.snapshot_interval_us.add(60'000);
    state.view.totals.findings[static_cast<std::size_t>(record::FindingId::snapshot_crc_mismatch)] =
        1;
    state.view.items = {{"character", 80}, {"a \"mod\\'s\"\nthing", 1}};
    state.view.sessions_open = 1;
    state.view.players = 1;
    state.view.sessions = {{.number = 1,
                            .client = "127.0.0.1:5000",
                            .name = "</script><b>\"\\\x01\xff",
                            .snapshots = 50,
                            .verified = 49,
                            .frozen_ms = 1250}};
    state.view.totals.freeze_us.add(1'250'000);
    state.view.findings = {
        {.time_ms = 1, .session = 1, .severity = "error", .text = "<i>off"},
        {.time_ms = 2, .session = 1, .tick = 12, .severity = "error", .text = "told of"},
        {.time_ms = 3, .session = 1, .tick = 14, .severity = "error", .text = "forgotten"}};
    state.view.finding_contexts = {
        {.session = 1, .tick = 12, .lines = std::make_shared<const std::string>("{}\n")}};
    return state;
}

/// The data of a page without traffic. Tests override the functions that they need.
struct SamplePageData : web::PageData {
    web::PageFeed* page_feed() override { return nullptr; }

    const snapshot::ObjectSet& objects() const override { return snapshot::ObjectSet::standard(); }

    tl::expected<web::LineFilter, web::InputError>
    make_filter(const std::string& /*text*/) const override {
        return tl::unexpected{web::InputError{.message = "no", .offset = 3}};
    }

    web::RunState state() const override { return sample_run_state(); }

    void check_readiness(std::function<void(web::Health)> done) override { done(check_liveness()); }

    tl::expected<void, std::string> set_impairment(const std::string& /*text*/) override {
        return {};
    }

    std::string snapshot_line(const web::InspectedSnapshot& /*seen*/,
                              const snapshot::SnapshotView& /*items*/) const override {
        return "{}\n";
    }

    std::string filter_keys_json() const override { return "{}"; }
};

/// Sends a request with the token, such as "GET /metrics", to a page. Returns the response as
/// "STATUS BODY".
inline std::string request_response(web::PageData& page, const std::string& request) {
    web::AdminServer admin{{.token = kPageToken}, listen_on_any_port(), page};
    admin.start();
    const std::string answer = send_http_request(
        admin.server().port(), request + " HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer " +
                                   kPageToken + "\r\n\r\n");
    return answer.substr(answer.find(' ') + 1, 4) + response_body(answer);
}

} // namespace tw::test
