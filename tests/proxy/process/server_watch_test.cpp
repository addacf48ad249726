// Covers: proxy/process/server_probe.cpp
#include "proxy/process/server_probe.h"
#include "proxy/process/server_report.h"

#include <chrono>
#include <cstdint>
#include <string>

#include <doctest/doctest.h>

namespace tw::process {
namespace {

using Change = ServerWatch::Change;

/// A relay whose totals are read once a second.
class Script {
  public:
    Change second(std::uint64_t to_server, std::uint64_t from_server, std::uint64_t refused = 0) {
        now_ += std::chrono::seconds{1};
        totals_.to_server += to_server;
        totals_.from_server += from_server;
        totals_.refused += refused;
        return watch.on_second(now_, totals_);
    }

    [[nodiscard]] ServerWatch::Time now() const { return now_; }

    ServerWatch watch;

  private:
    ServerWatch::Time now_{std::chrono::hours{1}};
    ServerWatch::Totals totals_;
};

} // namespace

TEST_CASE("a silence and its end are reported once each") {
    Script script;
    CHECK(script.second(0, 0) == Change::none);
    CHECK(script.second(2, 0, 2) == Change::none);
    CHECK(script.second(2, 0, 2) == Change::none);
    CHECK(script.second(2, 0, 2) == Change::none);
    CHECK(script.second(2, 0, 2) == Change::began);
    CHECK(script.watch.silent());
    CHECK(describe_silence("127.0.0.1:8303", script.watch.silence(), script.now()) ==
          "the server 127.0.0.1:8303 does not answer: 8 datagrams in 3 seconds without an answer, "
          "8 refused: nothing listens there");
    for (int i = 0; i < 60; ++i) {
        CHECK(script.second(2, 0) == Change::none);
    }
    CHECK(script.second(0, 0) == Change::none);
    CHECK(script.watch.silent()); // the last request was not answered
    CHECK(script.second(2, 1) == Change::ended);
    CHECK_FALSE(script.watch.silent());
    CHECK(describe_answer("127.0.0.1:8303", script.watch.silence(), script.now()) ==
          "the server 127.0.0.1:8303 answers again, after 65 seconds and 128 datagrams");
    CHECK(script.second(50, 25) == Change::none);
    CHECK(script.watch.silence().unanswered == 0);
}

TEST_CASE("a server that stops during a game is reported within five seconds") {
    Script script;
    CHECK(script.second(50, 25) == Change::none);
    int seconds = 1;
    while (script.second(50, 0) != Change::began && seconds < 10) {
        ++seconds;
    }
    CHECK(seconds <= 5);
    CHECK(script.watch.silence().refused == 0);
    CHECK(script.second(50, 25) == Change::ended);
}

TEST_CASE("a server that is not silent is not reported") {
    Script script;
    SUBCASE("no clients") {
        for (int i = 0; i < 100; ++i) {
            CHECK(script.second(0, 0) == Change::none);
        }
    }
    SUBCASE("another client gets answers") {
        for (int i = 0; i < 100; ++i) {
            CHECK(script.second(50, i % 3 == 0 ? 1 : 0) == Change::none);
        }
    }
    SUBCASE("a client sends rarely") {
        for (int i = 0; i < 100; ++i) {
            CHECK(script.second(i % 7 == 0 ? 1 : 0, 0) == Change::none);
        }
    }
    SUBCASE("a single burst") {
        CHECK(script.second(1000, 0) == Change::none);
        for (int i = 0; i < 10; ++i) {
            CHECK(script.second(0, 0) == Change::none);
        }
    }
}

TEST_CASE("a silence is reported only if a probe is unanswered, too") {
    for (const bool answers : {false, true}) {
        CAPTURE(answers);
        ServerReport report;
        relay::Counters counters;
        int asked = 0;
        int shown = 0;
        int seconds = 0;
        ServerWatch::Time now{std::chrono::hours{1}};
        // A client sends requests that no server answers.
        const auto second = [&] {
            counters.directions[0].datagrams += 2;
            now += std::chrono::seconds{1};
            report.check(
                now, counters, "game", nullptr,
                [&](const auto& silence) { shown += silence.has_value() ? 1 : 0; },
                [&] {
                    ++asked;
                    counters.directions[1].datagrams += answers ? 1 : 0;
                });
            ++seconds;
        };
        while (asked == 0 && seconds < 10) {
            second();
        }
        CHECK(asked == 1);
        CHECK(shown == 0);
        second();
        CHECK((shown > 0) == !answers);
    }
}

} // namespace tw::process
