// Covers: proxy/sink/record_limits.cpp
#include "proxy/sink/record_limits.h"
#include "tests/support/record_sink.h"

#include <algorithm>
#include <string>
#include <vector>

#include <boost/json.hpp>
#include <doctest/doctest.h>
#include <fmt/format.h>

using namespace tw;
using record::FindingId;

namespace {

/// Lists the records that were passed on: "1:snapshot.crc_mismatch@10" for a finding of session 1
/// after 10 tenths of a second, with "+3" for omitted ones, and "other" for other records.
class FindingLog final : public record::RecordSink {
  public:
    std::vector<std::string> all;

    void on_record(const record::Record& record) override {
        if (const auto* const* const finding = std::get_if<const record::FindingRecord*>(&record)) {
            const record::FindingRecord& it = **finding;
            all.push_back(fmt::format("{}:{}@{}{}", it.head.session,
                                      record::finding_info(it.id).name, it.head.time / 100'000'000,
                                      it.left_out ? fmt::format("+{}", *it.left_out) : ""));
        } else {
            all.emplace_back("other");
        }
    }
};

/// Passes findings through a FindingRateLimiter. Times are tenths of a second.
struct LimitedFindings {
    void find(std::uint32_t session, FindingId id, std::int64_t time,
              const std::optional<record::FindingItem>& item = {}) {
        const record::FindingRecord finding{
            .head = {.time = time * 100'000'000, .session = session}, .id = id, .item = item};
        limit.on_record(&finding);
    }

    void close_session(std::uint32_t session, std::int64_t time) {
        const record::SessionRecord close{.head = {.time = time * 100'000'000, .session = session},
                                          .event = record::SessionEvent::close};
        limit.on_record(&close);
    }

    FindingLog seen;
    sink::FindingRateLimiter limit{seen};
};

} // namespace

TEST_CASE("one finding a second per id and session is written, with the number of omitted ones") {
    LimitedFindings limited;
    const auto crc = FindingId::snapshot_crc_mismatch;
    const auto gap = FindingId::inspect_gap;
    for (std::int64_t tenths = 0; tenths <= 25; tenths += 1) {
        limited.find(1, crc, tenths);
    }
    limited.find(1, gap, 3);
    limited.find(1, gap, 4);
    limited.find(2, crc, 3);
    limited.find(2, crc, 2); // time went back: findings are passed on again
    limited.find(2, crc, 13);
    const record::MapRecord map;
    limited.limit.on_record(&map);
    limited.close_session(1, 26);
    limited.find(1, crc, 26); // a new session with the same number
    limited.close_session(2, 27);
    CHECK(limited.seen.all ==
          std::vector<std::string>{"1:snapshot.crc_mismatch@0", "1:snapshot.crc_mismatch@10+9",
                                   "1:snapshot.crc_mismatch@20+9", "1:inspect.gap@3",
                                   "2:snapshot.crc_mismatch@3", "2:snapshot.crc_mismatch@2",
                                   "2:snapshot.crc_mismatch@13", "other",
                                   "1:snapshot.crc_mismatch@26+5", "1:inspect.gap@26+1", "other",
                                   "1:snapshot.crc_mismatch@26", "other"});
}

TEST_CASE("findings about different types of other sizes are all written") {
    LimitedFindings limited;
    const auto name = [&](std::uint16_t type, std::int64_t tenths) {
        limited.find(1, FindingId::snapshot_size_differs, tenths,
                     record::FindingItem{.type_id = type});
    };
    for (const std::uint16_t type : {std::uint16_t{10}, std::uint16_t{11}, std::uint16_t{0}}) {
        name(type, 10);
        name(type, 11);
    }
    name(64, 12); // this type has no agreed size
    limited.close_session(1, 15);
    limited.limit.report_all_omissions(); // nothing more to report
    const std::string at_ten = "1:snapshot.size_differs@10";
    const std::string rest = "1:snapshot.size_differs@15+";
    CHECK(limited.seen.all ==
          std::vector<std::string>{at_ten, at_ten, at_ten, rest + "4", "other"});
}

TEST_CASE("omissions are reported at the end, and when a session ends") {
    LimitedFindings limited;
    const auto find = [&](std::uint32_t session, std::int64_t tenths) {
        limited.find(session, FindingId::world_views_differ, tenths);
    };
    for (const std::uint32_t session : {3U, 2U, 1U}) {
        find(session, 10);
        find(session, 11);
        find(session, 12);
    }
    limited.limit.end_session({.time = 1'500'000'000, .session = 2});
    limited.limit.report_all_omissions();
    limited.limit.report_all_omissions(); // nothing more to report
    find(1, 13);
    CHECK(limited.seen.all ==
          std::vector<std::string>{"3:world.views_differ@10", "2:world.views_differ@10",
                                   "1:world.views_differ@10", "2:world.views_differ@15+2",
                                   "1:world.views_differ@12+2", "3:world.views_differ@12+2",
                                   "1:world.views_differ@13"});
}

TEST_CASE("omissions are reported for more sessions than the limiter stores") {
    constexpr std::uint32_t kMany = 70'000; // more than kMaxKinds

    struct Counted final : tw::test::TypedRecordSink<Counted> {
        void on(const record::FindingRecord& finding) {
            ++came;
            left_out += finding.left_out.value_or(0);
        }

        std::size_t came = 0;
        std::uint64_t left_out = 0;
    } counted;

    sink::FindingRateLimiter limit{counted};
    for (std::uint32_t session = 1; session <= kMany; ++session) {
        for (int i = 0; i < 3; ++i) { // three findings within a second
            const record::FindingRecord finding{
                .head = {.time = session * 1'000'000LL, .session = session},
                .id = FindingId::inspect_gap};
            limit.on_record(&finding);
        }
    }
    limit.report_all_omissions();
    CHECK(counted.came == 2 * kMany); // the first finding, and one with the number of omitted ones
    CHECK(counted.left_out == 2 * std::uint64_t{kMany});
}

using namespace tw;

namespace {

constexpr record::Timestamp kNanoseconds = 1'000'000'000;

/// Passes messages through a MessageRateLimiter, and stores what it passes on.
struct LimitedMessages {
    explicit LimitedMessages(std::uint64_t bytes) : limit{json, bytes} {}

    sink::TextOutput output;
    sink::JsonLines json{{}, output};
    sink::MessageRateLimiter limit;

    void pass_chat_message(std::uint32_t session, record::Timestamp time) {
        const record::MessageRecord message{
            .head = {.time = time, .session = session, .direction = wire::Direction::c2s},
            .name = "cl_say",
            .size = 9};
        limit.on_record(&message);
    }

    void close_session(std::uint32_t session, record::Timestamp time) {
        const record::SessionRecord close{.head = {.time = time, .session = session},
                                          .event = record::SessionEvent::close};
        limit.on_record(&close);
    }

    struct WrittenRecords {
        std::size_t bytes = 0;
        std::size_t messages = 0;
        std::vector<std::int64_t> left_out; ///< numbers of omitted messages in the findings
    };

    WrittenRecords count_written(std::uint32_t session) {
        json.flush();
        WrittenRecords found;
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
    LimitedMessages limited{kBytes};
    constexpr int kSeconds = 100;
    constexpr int kEach = 1000;
    for (int i = 0; i < kSeconds * kEach; ++i) {
        limited.pass_chat_message(1, i * (kNanoseconds / kEach));
        if (i % kEach == 0) {
            limited.pass_chat_message(2, i * (kNanoseconds / kEach)); // a message of another player
        }
    }
    limited.close_session(1, kSeconds * kNanoseconds);
    const auto flood = limited.count_written(1);
    const std::uint64_t most = kBytes * (kSeconds + sink::MessageRateLimiter::kBurstSeconds);
    CHECK(flood.bytes <= most + 1000);
    CHECK(flood.bytes >= most - most / 10);
    CHECK(flood.left_out.size() == 3); // reported at once, after a minute and at the end
    CHECK(flood.left_out.front() == 1);
    CHECK(flood.messages + static_cast<std::size_t>(flood.left_out.back()) == kSeconds * kEach);
    CHECK(limited.limit.num_omitted_messages() ==
          static_cast<std::uint64_t>(flood.left_out.back()));
    const auto other = limited.count_written(2);
    CHECK(other.messages == kSeconds);
    CHECK(other.left_out.empty());
}

TEST_CASE("other records are never omitted, and without a limit no message is") {
    LimitedMessages limited{1};
    limited.pass_chat_message(1, 0);
    limited.pass_chat_message(1, 0);
    for (int i = 0; i < 100; ++i) {
        const record::FindingRecord finding{.head = {.session = 7},
                                            .id = record::FindingId::message_unknown};
        limited.limit.on_record(&finding);
        const record::SnapshotRecord snapshot{.head = {.session = 7}};
        limited.limit.on_record(&snapshot);
    }
    limited.json.flush();
    CHECK(std::ranges::count(limited.output.text, '\n') >= 200);
    LimitedMessages free{0};
    for (int i = 0; i < 1000; ++i) {
        free.pass_chat_message(1, 0);
    }
    CHECK(free.count_written(1).messages == 1000);
    CHECK(free.limit.num_omitted_messages() == 0);
}

TEST_CASE("setting the clock neither exceeds the limit nor blocks messages forever") {
    constexpr std::uint64_t kBytes = 1000;
    LimitedMessages limited{kBytes};
    const auto flood = [&](record::Timestamp time) {
        const std::size_t before = limited.count_written(1).bytes;
        for (int i = 0; i < 1000; ++i) {
            limited.pass_chat_message(1, time);
        }
        return limited.count_written(1).bytes - before;
    };
    constexpr std::uint64_t kFull = kBytes * sink::MessageRateLimiter::kBurstSeconds + 1000;
    CHECK(flood(1000 * kNanoseconds) <= kFull);
    CHECK(flood(INT64_MAX) <= kFull);
    CHECK(flood(INT64_MIN) <= 200);
    CHECK(flood(INT64_MIN + 8 * kNanoseconds) >= kFull / 2);
}

TEST_CASE("sessions without a reported end are forgotten, and their omissions are reported") {
    LimitedMessages limited{100};
    for (std::uint32_t session = 1; session <= 20'000; ++session) {
        for (int i = 0; i < 12; ++i) {
            limited.pass_chat_message(session, session * (kNanoseconds / 100));
        }
    }
    limited.limit.report_all_omissions();
    CHECK(limited.count_written(1).left_out.size() == 2);
    CHECK(limited.count_written(20'000).left_out.size() == 2);
}
