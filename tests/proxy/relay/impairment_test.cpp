#include "proxy/relay/impairment.h"

#include <random>
#include <string>
#include <vector>

#include <doctest/doctest.h>

namespace {

using namespace tw::relay;
using namespace std::chrono_literals;

constexpr std::uint32_t kPercent = DirectionImpairment::kCertain / 100;

DirectionImpairment line(std::chrono::microseconds delay, std::chrono::microseconds jitter = {},
                         std::uint64_t loss = 0, std::uint64_t duplicate = 0,
                         std::uint64_t reorder = 0) {
    return {.delay_us = static_cast<std::uint64_t>(delay.count()),
            .jitter_us = static_cast<std::uint64_t>(jitter.count()),
            .loss = loss,
            .duplicate = duplicate,
            .reorder = reorder};
}

TEST_CASE("what impairs a line is read from text, and written as text that reads the same") {
    struct Row {
        std::string_view text;
        DirectionImpairment c2s;
        DirectionImpairment s2c;
        std::string_view written;
    };

    DirectionImpairment bursts = line({}, {}, 5 * kPercent);
    bursts.burst = 2500;
    DirectionImpairment slow;
    slow.rate = 1'500'000;
    DirectionImpairment slower;
    slower.rate = 64'500;
    const std::vector<Row> rows{
        {"none", {}, {}, "none"},
        {" none ", {}, {}, "none"},
        {"s2c:delay=0ms", {}, {}, "none"},
        {"delay=40ms", line(40ms), line(40ms), "delay=40ms"},
        {"delay=10s", line(10s), line(10s), "delay=10s"},
        {"delay=0.25s", line(250ms), line(250ms), "delay=250ms"},
        {"delay=1.5ms", line(1500us), line(1500us), "delay=1500us"},
        {"s2c:delay=40ms,jitter=10ms,loss=2%,dup=1%,reorder=0.5%",
         {},
         line(40ms, 10ms, 2 * kPercent, kPercent, kPercent / 2),
         "s2c:delay=40ms,jitter=10ms,loss=2%,dup=1%,reorder=0.5%"},
        {"c2s:loss=100%", line({}, {}, DirectionImpairment::kCertain), {}, "c2s:loss=100%"},
        {"loss=0.0001%", line({}, {}, 1), line({}, {}, 1), "loss=0.0001%"},
        {"c2s:delay=1ms;s2c:delay=2ms", line(1ms), line(2ms), "c2s:delay=1ms;s2c:delay=2ms"},
        {" c2s : delay = 1 ms , loss = 1 % ; ",
         line(1ms, {}, kPercent),
         {},
         "c2s:delay=1ms,loss=1%"},
        {"delay=5ms;s2c:loss=1%", line(5ms), line(5ms, {}, kPercent),
         "c2s:delay=5ms;s2c:delay=5ms,loss=1%"},
        {"s2c:loss=5%,burst=2.5", {}, bursts, "s2c:loss=5%,burst=2.5"},
        {"c2s:rate=1.5mbit", slow, {}, "c2s:rate=1500kbit"},
        {"c2s:rate=64.5kbit", slower, {}, "c2s:rate=64.5kbit"},
    };
    for (const auto& row : rows) {
        CAPTURE(row.text);
        const auto parsed = parse_impairment(row.text, 7);
        REQUIRE(parsed);
        CHECK(parsed->seed == 7);
        CHECK((parsed->directions[0] == row.c2s));
        CHECK((parsed->directions[1] == row.s2c));
        CHECK(to_string(*parsed) == row.written);
        CHECK((parse_impairment(to_string(*parsed), 7) == *parsed));
        CHECK(parsed->active() == (row.written != "none"));
    }
}

namespace {

struct Refusal {
    std::string text;
    std::string_view says;
};

std::vector<Refusal> refusals() {
    return {
        {"", "expected name=value"},
        {";", "expected name=value"},
        {"delay", "expected name=value"},
        {"none;none", "expected name=value"},
        {"c2s:", "expected name=value"},
        {"delay=", "delay is a time up to 10s"},
        {"delay=40", "delay is a time up to 10s, for example 40ms, not '40'"},
        {"delay=ms", "delay is a time"},
        {"delay=-1ms", "delay is a time"},
        {"delay=+1ms", "delay is a time"},
        {"delay=10001ms", "delay is a time"},
        {"delay=1.ms", "delay is a time"},
        {"delay=.5ms", "delay is a time"},
        {"delay=1.2.3ms", "delay is a time"},
        {"delay=0.5us", "delay is a time"},
        {"delay=1.0000001s", "delay is a time"},
        {"delay=1e3ms", "delay is a time"},
        {"delay=99999999999999999999ms", "delay is a time"},
        {"delay=999999999s", "delay is a time"},
        {"delay=40msx", "delay is a time"},
        {"delay=40MS", "delay is a time"},
        {"loss=2", "loss is a share"},
        {"loss=100.0001%", "loss is a share"},
        {"loss=101%", "loss is a share"},
        {"loss=0.00001%", "loss is a share"},
        {"loss=nan%", "loss is a share"},
        {"loss=2%%", "loss is a share"},
        {"rate=63kbit", "rate is bits a second"},
        {"rate=1mb", "rate is bits a second"},
        {"rate=101gbit", "rate is bits a second"},
        {"loss=1%,burst=0.9", "burst is the mean number"},
        {"loss=1%,burst=1001", "burst is the mean number"},
        {"loss=1%,burst=2x", "burst is the mean number"},
        {"burst=3", "burst is the number of losses in a row"},
        {"s2c:loss=1%;c2s:burst=3", "burst is the number of losses in a row"},
        {"loss=60%,burst=1", "longer burst or less"},
        {"loss=100%,burst=1000", "longer burst or less"},
        {"jitter=1ms", "jitter must not exceed delay"},
        {"delay=1ms,jitter=2ms", "jitter must not exceed delay"},
        {"lag=3ms",
         "'lag' is not a setting; the settings are delay, jitter, loss, dup, reorder, burst, rate"},
        {"Delay=3ms", "'Delay' is not a setting"},
        {"up:delay=3ms", "'up' is not a direction"},
        {"c2s:s2c:delay=3ms", "'s2c:delay' is not a setting"},
        {"delay=1ms,delay=2ms", "delay is given twice for c2s"},
        {"delay=1ms;s2c:delay=2ms", "delay is given twice for s2c"},
        {std::string("delay=\0 1ms", 11), "not '? 1ms'"},
        {"\x1b[31m=1", "'?[31m' is not a setting"},
        {std::string(100'000, 'x') + "=1", "...' is not a setting"},
        {"delay=" + std::string(100'000, '9') + "ms", "delay is a time"},
        {std::string(100'000, ';'), "expected name=value"},
    };
}

} // namespace

TEST_CASE("what cannot be meant is refused with one line that helps") {
    for (const auto& row : refusals()) {
        CAPTURE(row.text.substr(0, 60));
        const auto parsed = parse_impairment(row.text);
        REQUIRE(!parsed);
        CAPTURE(parsed.error());
        CHECK(parsed.error().find(row.says) != std::string::npos);
        CHECK(parsed.error().size() < 200);
        CHECK(parsed.error().find('\n') == std::string::npos);
    }
}

TEST_CASE("a text cut anywhere is read as less or refused, and what is read can be written") {
    const std::string text = "c2s:delay=40ms,jitter=10ms,loss=20%,dup=1%;s2c:loss=2%,burst=2.5,"
                             "rate=1mbit,reorder=0.25%";
    REQUIRE(parse_impairment(text));
    std::size_t refused = 0;
    for (std::size_t size = 0; size < text.size(); ++size) {
        CAPTURE(size);
        const auto parsed = parse_impairment(std::string_view{text}.substr(0, size));
        refused += parsed ? 0U : 1U;
        if (parsed) {
            CHECK((parse_impairment(to_string(*parsed)) == *parsed));
        } else {
            CHECK(!parsed.error().empty());
        }
    }
    CHECK(refused > text.size() / 2);
}

TEST_CASE("any impairment reads as it was written") {
    std::mt19937_64 random{1};
    const auto up_to = [&](std::uint64_t max) { return random() % (max + 1); };
    for (int i = 0; i < 2000; ++i) {
        Impairment wanted;
        for (DirectionImpairment& each : wanted.directions) {
            each.delay_us = up_to(kMaxImpairDelayUs);
            each.jitter_us = up_to(each.delay_us);
            each.loss = up_to(500'000);
            each.duplicate = up_to(DirectionImpairment::kCertain);
            each.reorder = up_to(DirectionImpairment::kCertain);
            if (each.loss != 0 && up_to(1) == 1) {
                each.burst = 1000 + up_to(999'000);
            }
            if (up_to(1) == 1) {
                each.rate = kMinImpairRate + up_to(kMaxImpairRate - kMinImpairRate);
            }
        }
        const std::string text = to_string(wanted);
        CAPTURE(text);
        CHECK((parse_impairment(text) == wanted));
    }
}

} // namespace
