#include "proxy/inspect/server_silence.h"
#include "tests/support/doctest_lines.h"
#include "tests/support/record_sink.h"

#include <cstdint>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

namespace tw::inspect {
namespace {

using Lines = std::vector<std::string>;

/// Stores findings as text: "began 7 3000 127.0.0.1:8303" means 7 datagrams without an answer in
/// 3000 ms; "alone " precedes it if the server answers other sessions.
struct SilenceLog final : test::TypedRecordSink<SilenceLog> {
    void on(const record::FindingRecord& finding) {
        const bool alone = finding.id == record::FindingId::session_unanswered;
        lines.push_back(fmt::format("{}{} {} {} {}", alone ? "alone " : "", finding.detail,
                                    *finding.lost, *finding.value, finding.name));
    }

    Lines lines;
};

/// Converts milliseconds of a test to a time, which is never 0.
constexpr record::Timestamp time_at_ms(std::int64_t ms) {
    return (1000 + ms) * 1'000'000;
}

/// A session whose server may stop sending.
class SilentSession {
  public:
    explicit SilentSession(
        std::shared_ptr<ServerActivity> server = std::make_shared<ServerActivity>())
        : silence_{std::move(server)} {}

    void pass_datagram(std::int64_t ms, wire::Direction direction) {
        reporter_.set_head(time_at_ms(ms), direction);
        silence_.on_datagram(reporter_);
    }

    /// Passes a datagram of the client twice a second.
    void send_twice_a_second(std::int64_t from_ms, std::int64_t to_ms) {
        for (std::int64_t ms = from_ms; ms <= to_ms; ms += 500) {
            pass_datagram(ms, wire::Direction::c2s);
        }
    }

    void miss_datagrams() { silence_.on_missed_datagrams(); }

    [[nodiscard]] Lines findings() const { return log_.lines; }

    [[nodiscard]] std::uint64_t count_findings(record::FindingId id) const {
        return reporter_.stats.findings[static_cast<std::size_t>(id)];
    }

  private:
    SilenceLog log_;
    Reporter reporter_{1, log_, "", "127.0.0.1:8303"};
    ServerSilenceDetector silence_;
};

} // namespace

TEST_CASE("the begin and the end of a server's silence are each reported once") {
    SilentSession script;
    script.send_twice_a_second(0, 2999);
    CHECK(script.findings().empty());
    script.send_twice_a_second(3000, 20'000);
    CHECK(script.findings() == Lines{"began 7 3000 127.0.0.1:8303"});
    script.pass_datagram(20'010, wire::Direction::s2c);
    script.pass_datagram(20'020, wire::Direction::s2c);
    CHECK(script.findings() ==
          Lines{"began 7 3000 127.0.0.1:8303", "ended 41 20010 127.0.0.1:8303"});
    CHECK(script.count_findings(record::FindingId::session_server_silent) == 1);
}

TEST_CASE("two silences of a server are reported separately") {
    SilentSession script;
    script.pass_datagram(0, wire::Direction::s2c);
    script.send_twice_a_second(100, 3100);
    script.pass_datagram(3200, wire::Direction::s2c);
    script.send_twice_a_second(3300, 6300);
    CHECK(script.findings().size() == 3);
}

TEST_CASE("a short, sparse or uncertain wait is no silence") {
    SilentSession script;
    SUBCASE("any answer in time") {
        for (std::int64_t ms = 0; ms < 60'000; ms += 2900) {
            script.send_twice_a_second(ms, ms + 2800);
            script.pass_datagram(ms + 2850, wire::Direction::s2c);
        }
    }
    SUBCASE("too few datagrams") {
        script.pass_datagram(0, wire::Direction::c2s);
        script.pass_datagram(4000, wire::Direction::c2s);
    }
    SUBCASE("many datagrams at once") {
        for (int i = 0; i < 1000; ++i) {
            script.pass_datagram(i, wire::Direction::c2s);
        }
    }
    SUBCASE("somebody who asks now and then") {
        for (std::int64_t ms = 0; ms < 100'000; ms += 5001) {
            script.pass_datagram(ms, wire::Direction::c2s);
        }
    }
    SUBCASE("copies were lost, an answer may have been among them") {
        script.send_twice_a_second(0, 2900);
        script.miss_datagrams();
        script.send_twice_a_second(3000, 5900);
    }
    CHECK(script.findings().empty());
}

TEST_CASE("a silence is reported once for all waiting sessions") {
    const auto server = std::make_shared<ServerActivity>();
    SilentSession first{server};
    SilentSession second{server};
    first.pass_datagram(0, wire::Direction::s2c);
    second.pass_datagram(0, wire::Direction::s2c);
    for (std::int64_t ms = 500; ms <= 5000; ms += 500) {
        first.send_twice_a_second(ms, ms);
        second.send_twice_a_second(ms + 1, ms + 1);
    }
    CHECK(first.findings() == Lines{"began 7 3000 127.0.0.1:8303"});
    CHECK(second.findings().empty());
    second.pass_datagram(5010, wire::Direction::s2c);
    first.pass_datagram(5011, wire::Direction::s2c);
    CHECK(first.findings().size() == 1);
    CHECK(second.findings() == Lines{"ended 14 4510 127.0.0.1:8303"});
}

TEST_CASE("if others get answers, only the session's own silence is reported") {
    const auto server = std::make_shared<ServerActivity>();
    SilentSession stranger{server};
    SilentSession waits{server};
    SilentSession plays{server};
    waits.pass_datagram(-10, wire::Direction::s2c);
    plays.pass_datagram(-10, wire::Direction::s2c);
    for (std::int64_t ms = 0; ms <= 20'000; ms += 500) {
        stranger.send_twice_a_second(ms, ms);
        waits.send_twice_a_second(ms, ms);
        plays.pass_datagram(ms + 1, wire::Direction::s2c);
    }
    CHECK(stranger.findings().empty());
    CHECK(plays.findings().empty());
    CHECK(waits.findings() == Lines{"alone began 7 3000 127.0.0.1:8303"});
    waits.pass_datagram(20'010, wire::Direction::s2c);
    waits.pass_datagram(20'020, wire::Direction::s2c);
    CHECK(waits.findings() ==
          Lines{"alone began 7 3000 127.0.0.1:8303", "alone ended 41 20010 127.0.0.1:8303"});
    CHECK(waits.count_findings(record::FindingId::session_unanswered) == 1);
}

TEST_CASE("a session that does not wait alone is not reported") {
    const auto server = std::make_shared<ServerActivity>();
    SilentSession waits{server};
    SilentSession plays{server};
    waits.pass_datagram(-10, wire::Direction::s2c);
    SUBCASE("the server was silent to all, and answers another first") {
        for (std::int64_t ms = 0; ms <= 2900; ms += 100) {
            waits.send_twice_a_second(ms, ms);
        }
        plays.pass_datagram(2950, wire::Direction::s2c);
        waits.send_twice_a_second(3000, 3000);
    }
    SUBCASE("any answer in time") {
        for (std::int64_t ms = 0; ms <= 20'000; ms += 100) {
            waits.pass_datagram(ms, ms % 2900 == 0 ? wire::Direction::s2c : wire::Direction::c2s);
            plays.pass_datagram(ms + 1, wire::Direction::s2c);
        }
    }
    SUBCASE("somebody who asks now and then") {
        for (std::int64_t ms = 0; ms <= 50'000; ms += 501) {
            plays.pass_datagram(ms, wire::Direction::s2c);
            if (ms % (11 * 501) == 0) {
                waits.pass_datagram(ms, wire::Direction::c2s);
            }
        }
    }
    SUBCASE("copies were lost, an answer may have been among them") {
        for (std::int64_t ms = 0; ms <= 5000; ms += 100) {
            waits.send_twice_a_second(ms, ms);
            plays.pass_datagram(ms + 1, wire::Direction::s2c);
            if (ms == 2500) {
                waits.miss_datagrams();
            }
        }
    }
    CHECK(waits.findings().empty());
    CHECK(plays.findings().empty());
}

TEST_CASE("a silence ends for all sessions when the server answers one") {
    const auto server = std::make_shared<ServerActivity>();
    SilentSession forgotten{server};
    SilentSession back{server};
    forgotten.send_twice_a_second(0, 4000);
    back.pass_datagram(4100, wire::Direction::s2c);
    for (std::int64_t ms = 4200; ms <= 9000; ms += 400) {
        forgotten.send_twice_a_second(ms, ms);
        back.pass_datagram(ms + 1, wire::Direction::s2c);
    }
    CHECK(forgotten.findings() == Lines{"began 7 3000 127.0.0.1:8303"});
    CHECK(back.findings() == Lines{"ended 9 4100 127.0.0.1:8303"});
    forgotten.send_twice_a_second(9500, 13'000);
    CHECK(forgotten.findings().size() == 2);
}

TEST_CASE("a pause exists only if the server sent nothing to any session") {
    const auto server = std::make_shared<ServerActivity>();
    SilentSession first{server};
    SilentSession second{server};
    SilentSession gone{server};
    gone.pass_datagram(1, wire::Direction::s2c);
    for (std::int64_t ms = 2000; ms <= 3000; ms += 40) {
        first.pass_datagram(ms, wire::Direction::s2c);
        second.pass_datagram(ms + 1, wire::Direction::s2c);
    }
    first.pass_datagram(3500, wire::Direction::s2c);
    second.pass_datagram(3501, wire::Direction::s2c);
    const auto* const pause = server->find_pause_covering(time_at_ms(3000), time_at_ms(3500));
    REQUIRE(pause != nullptr);
    CHECK(pause->num_active_sessions == 2);
    CHECK(server->find_pause_covering(time_at_ms(2900), time_at_ms(3500)) == nullptr);
    for (std::int64_t ms = 3540; ms <= 4500; ms += 40) {
        second.pass_datagram(ms, wire::Direction::s2c);
    }
    first.pass_datagram(4501, wire::Direction::s2c);
    CHECK(server->find_pause_covering(time_at_ms(3500), time_at_ms(4501)) == nullptr);
}

TEST_CASE("servers are distinguished by address and kept as long as they are used") {
    ServerActivityTable servers;
    const auto known = servers.find_or_add_server("127.0.0.1:8303");
    CHECK(servers.find_or_add_server("127.0.0.1:8303") == known);
    CHECK(servers.find_or_add_server("127.0.0.1:8304") != known);
    for (int i = 0; i < 1000; ++i) {
        std::ignore = servers.find_or_add_server(std::to_string(i));
    }
    CHECK(servers.find_or_add_server("127.0.0.1:8303") == known);
}

} // namespace tw::inspect
