#pragma once

#include "proxy/web/state.h"

#include <memory>
#include <string>

namespace tw::test {

/// Returns a state with a value in every field, and names with quotes and control characters.
inline web::RunState sample_state() {
    web::RunState state{.version = "1.2.3",
                        .now_ms = 1'700'000'002'500,
                        .started_ms = 1'700'000'000'500,
                        .listen = {"127.0.0.1:8303"},
                        .server = "127.0.0.1:8304",
                        .impairment = "s2c:loss=2%",
                        .inspecting = true};
    state.server_silent = {.since_ms = 1'700'000'001'000, .unanswered = 12, .refused = 4};
    state.relay.sessions_open = 2;
    state.relay.sessions_opened = 5;
    state.relay.directions[1].datagrams = 100;
    state.relay.directions[1].bytes = 12'345;
    state.relay.directions[0].dropped = 3;
    state.recording = {.output = "game.jsonl", .failed = true, .lost = 7};
    state.view.totals.snapshots = 50;
    state.view.totals.verified = 49;
    state.view.totals.mismatched = 1;
    state.view.totals.snapshot_interval_us.add(40'000);
    state.view.totals.snapshot_interval_us.add(60'000);
    state.view.totals.findings[static_cast<std::size_t>(record::FindingId::snapshot_crc_mismatch)] =
        1;
    state.view.items = {{"character", 80}, {"a \"mod\\'s\"\nthing", 1}};
    state.view.sessions_open = 1;
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

} // namespace tw::test
