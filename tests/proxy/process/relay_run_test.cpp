// Covers: proxy/process/relay_run.cpp
#include "proxy/process/relay_run.h"
#include "proxy/wire/packet.h"

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>

using namespace tw;

TEST_CASE("the relay promotes sessions by the verdict of wire::judge_datagram") {
    const wire::Token token{1, 2, 3, 4};
    relay::RememberedHandshakes memory;
    const auto says = [&](relay::Direction direction, const wire::ControlSpec& control) {
        return process::judge_relayed_datagram(memory, direction, wire::encode_control(control))
            .standing;
    };
    using relay::ClientStanding;
    using relay::Direction;
    CHECK(process::judge_relayed_datagram(memory, Direction::c2s, {}).standing ==
          ClientStanding::unrecognised);
    CHECK(says(Direction::c2s, {.kind = wire::ControlKind::connect,
                                .token = wire::kTokenUnknown}) == ClientStanding::unverified);
    CHECK(says(Direction::s2c, {.kind = wire::ControlKind::connectaccept, .token = token}) ==
          ClientStanding::unverified);
    CHECK(says(Direction::c2s, {.kind = wire::ControlKind::accept, .token = token}) ==
          ClientStanding::verified);
}

TEST_CASE("the relay distinguishes the kinds of information requests") {
    struct Row {
        std::string_view magic;
        relay::RequestKind request;
    };

    const Row rows[]{{"gie3", relay::RequestKind::server_info},
                     {"fstd", relay::RequestKind::server_info},
                     {"chal", relay::RequestKind::rare},
                     {"fw??", relay::RequestKind::rare},
                     {"nope", relay::RequestKind::other}};
    for (const Row& row : rows) {
        CAPTURE(row.magic);
        std::vector<std::byte> payload(4, std::byte{0xff});
        for (const char each : row.magic) {
            payload.push_back(static_cast<std::byte>(each));
        }
        payload.push_back({});
        relay::RememberedHandshakes memory;
        CHECK(process::judge_relayed_datagram(memory, relay::Direction::c2s,
                                              wire::encode_connless(payload))
                  .request == row.request);
    }
}

TEST_CASE("the relay repeats a server's answer to another client") {
    const relay::AnswerFunctions repeating = process::info_answer_functions();
    const auto datagram = [](std::string_view text) {
        std::vector<std::byte> bytes(10, std::byte{0xff});
        for (const char each : text) {
            bytes.push_back(static_cast<std::byte>(each));
        }
        return bytes;
    };
    using namespace std::string_view_literals;
    const auto asked = repeating.read_question(datagram("gie3\x07"sv));
    const auto other = repeating.read_question(datagram("gie3\xc8"sv));
    REQUIRE(asked.kind != 0);
    CHECK(asked.kind == other.kind);
    const auto answer = datagram("inf37\0name\0"sv);
    CHECK(repeating.classify_answer(answer, asked) == relay::AnswerPartKind::first);
    CHECK(repeating.classify_answer(answer, other) == relay::AnswerPartKind::none);
    std::array<std::byte, 100> out{};
    const std::size_t size = repeating.write_answer(answer, other, out);
    CHECK((std::vector(out.begin(), out.begin() + static_cast<std::ptrdiff_t>(size)) ==
           datagram("inf3200\0name\0"sv)));
}

TEST_CASE("rejected datagrams are reported once, with the reason") {
    using tw::process::NewClientReport;
    NewClientReport report{"--limit"};
    tw::relay::Counters counters;
    /// Returns the next line after a quiet time.
    auto first_line = [&report, last = counters](const tw::relay::Counters& now) mutable {
        for (int second = 0; second < NewClientReport::kMinSecondsBetweenLines; ++second) {
            CHECK_FALSE(report.next_log_line(last));
        }
        last = now;
        return report.next_log_line(now);
    };
    CHECK_FALSE(report.next_log_line(counters));
    counters.new_clients.rejected_by_network_limit = 17;
    counters.new_clients.verified_sessions = 3;
    CHECK(first_line(counters) == "datagrams rejected at the door: 17 (too many from one address)");
    counters.new_clients.rejected_by_network_limit = 18;
    counters.new_clients.rejected_among_too_many = 5;
    counters.datagrams_without_session = 2;
    counters.new_clients.rejected_by_address_limit = 3;
    CHECK(first_line(counters) ==
          "datagrams rejected at the door: 1 (too many from one address), 5 (too many unknown "
          "clients at once), 3 (their address has all sessions that it may have: --limit), 2 "
          "(no session is free)");
    counters.repeated_answers = 7;
    CHECK(first_line(counters) == "requests answered with the server's last answer: 7");
    counters.repeated_answers = 8;
    counters.new_clients.rejected_own_address = 1;
    CHECK(first_line(counters) ==
          "datagrams rejected at the door: 1 (sent in the proxy's or the server's own name); "
          "requests answered with the server's last answer: 1");
}

TEST_CASE(
    "datagrams that are rejected all the time are reported every ten seconds, and at the end") {
    tw::process::NewClientReport report{"--limit"};
    tw::relay::Counters counters;
    std::vector<std::string> lines;
    for (int second = 0; second < 25; ++second) {
        counters.new_clients.rejected_by_network_limit += 2;
        if (const auto line = report.next_log_line(counters)) {
            lines.push_back(*line);
        }
    }
    if (const auto line = report.next_log_line(counters, true)) {
        lines.push_back(*line);
    }
    CHECK(lines == std::vector<std::string>{
                       "datagrams rejected at the door: 2 (too many from one address)",
                       "datagrams rejected at the door: 20 (too many from one address), in 10 s",
                       "datagrams rejected at the door: 20 (too many from one address), in 10 s",
                       "datagrams rejected at the door: 8 (too many from one address), in 5 s"});
    CHECK_FALSE(report.next_log_line(counters, true));
}
