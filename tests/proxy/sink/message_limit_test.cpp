// Covers: proxy/sink/record_limits.cpp
#include "proxy/sink/record_limits.h"
#include "tests/support/json_records.h"

#include <algorithm>
#include <string>
#include <vector>

#include <boost/json.hpp>
#include <doctest/doctest.h>

using namespace tw;

namespace {

constexpr record::Timestamp kNanoseconds = 1'000'000'000;

/// Records through a limit.
struct Limited {
    explicit Limited(std::uint64_t bytes) : limit{json, bytes} {}

    test::TextOutput output;
    sink::JsonLines json{{}, output};
    sink::MessageLimit limit;

    void say(std::uint32_t session, record::Timestamp time) {
        const record::MessageRecord message{
            .head = {.time = time, .session = session, .direction = wire::Direction::c2s},
            .name = "cl_say",
            .size = 9};
        limit.on_record(&message);
    }

    void close(std::uint32_t session, record::Timestamp time) {
        const record::SessionRecord close{.head = {.time = time, .session = session},
                                          .event = record::SessionEvent::close};
        limit.on_record(&close);
    }

    struct Written {
        std::size_t bytes = 0;
        std::size_t messages = 0;
        std::vector<std::int64_t> left_out; ///< as findings say
    };

    Written written(std::uint32_t session) {
        json.flush();
        Written found;
        for (std::size_t at = 0; at < output.text.size();) {
            const std::size_t end = output.text.find('\n', at);
            const auto line = boost::json::parse(output.text.substr(at, end - at));
            if (line.at("session").as_int64() == session && line.at("type") == "message") {
                ++found.messages;
                found.bytes += end + 1 - at;
            } else if (line.at("session").as_int64() == session && line.at("type") == "finding") {
                CHECK(line.at("id") == "session.messages_left_out");
                CHECK(line.at("limit").as_int64() > 0);
                found.left_out.push_back(line.at("lost").as_int64());
            }
            at = end + 1;
        }
        return found;
    }
};

} // namespace

TEST_CASE("a session's messages are written up to a limit a second, and the rest is counted") {
    constexpr std::uint64_t kBytes = 10'000;
    Limited limited{kBytes};
    constexpr int kSeconds = 100;
    constexpr int kEach = 1000;
    for (int i = 0; i < kSeconds * kEach; ++i) {
        limited.say(1, i * (kNanoseconds / kEach));
        if (i % kEach == 0) {
            limited.say(2, i * (kNanoseconds / kEach)); // another player's
        }
    }
    limited.close(1, kSeconds * kNanoseconds);
    const auto flood = limited.written(1);
    const std::uint64_t most = kBytes * (kSeconds + sink::MessageLimit::kBurstSeconds);
    CHECK(flood.bytes <= most + 1000);
    CHECK(flood.bytes >= most - most / 10);
    CHECK(flood.left_out.size() == 3); // at once, after a minute, at the end
    CHECK(flood.left_out.front() == 1);
    CHECK(flood.messages + static_cast<std::size_t>(flood.left_out.back()) == kSeconds * kEach);
    CHECK(limited.limit.left_out() == static_cast<std::uint64_t>(flood.left_out.back()));
    const auto other = limited.written(2);
    CHECK(other.messages == kSeconds);
    CHECK(other.left_out.empty());
}

TEST_CASE("what is no message is always written, and without a limit every message is") {
    Limited limited{1};
    limited.say(1, 0);
    limited.say(1, 0);
    for (int i = 0; i < 100; ++i) {
        const record::FindingRecord finding{.head = {.session = 7},
                                            .id = record::FindingId::message_unknown};
        limited.limit.on_record(&finding);
        const record::SnapshotRecord snapshot{.head = {.session = 7}};
        limited.limit.on_record(&snapshot);
    }
    limited.json.flush();
    CHECK(std::ranges::count(limited.output.text, '\n') >= 200);
    Limited free{0};
    for (int i = 0; i < 1000; ++i) {
        free.say(1, 0);
    }
    CHECK(free.written(1).messages == 1000);
    CHECK(free.limit.left_out() == 0);
}

TEST_CASE("a clock that is set gives no room beyond the limit, and takes none away for good") {
    constexpr std::uint64_t kBytes = 1000;
    Limited limited{kBytes};
    const auto flood = [&](record::Timestamp time) {
        const std::size_t before = limited.written(1).bytes;
        for (int i = 0; i < 1000; ++i) {
            limited.say(1, time);
        }
        return limited.written(1).bytes - before;
    };
    constexpr std::uint64_t kFull = kBytes * sink::MessageLimit::kBurstSeconds + 1000;
    CHECK(flood(1000 * kNanoseconds) <= kFull);
    CHECK(flood(INT64_MAX) <= kFull);
    CHECK(flood(INT64_MIN) <= 200);
    CHECK(flood(INT64_MIN + 8 * kNanoseconds) >= kFull / 2);
}

TEST_CASE("sessions whose end nobody tells are forgotten, and what they lack is told") {
    Limited limited{100};
    for (std::uint32_t session = 1; session <= 20'000; ++session) {
        for (int i = 0; i < 12; ++i) {
            limited.say(session, session * (kNanoseconds / 100));
        }
    }
    limited.limit.finish();
    CHECK(limited.written(1).left_out.size() == 2);
    CHECK(limited.written(20'000).left_out.size() == 2);
}
