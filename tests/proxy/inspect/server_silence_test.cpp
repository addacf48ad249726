#include "proxy/inspect/server_silence.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <doctest/doctest.h>

namespace tw::inspect {
namespace {

/// "began 7 3000 127.0.0.1:8303": datagrams without an answer, and for how many milliseconds.
class Log final : public record::RecordSink {
  public:
    void on_record(const record::Record& record) override {
        const auto& finding = *std::get<const record::FindingRecord*>(record);
        lines.push_back(std::string{finding.detail} + ' ' + std::to_string(*finding.lost) + ' ' +
                        std::to_string(*finding.value) + ' ' + std::string{finding.name});
    }

    std::vector<std::string> lines;
};

class Script {
  public:
    void at(std::int64_t ms, wire::Direction direction) {
        reporter_.begin(ms * 1'000'000, direction);
        silence_.on_datagram("127.0.0.1:8303", reporter_);
    }

    /// A client that repeats itself twice a second.
    void asks(std::int64_t from_ms, std::int64_t to_ms) {
        for (std::int64_t ms = from_ms; ms <= to_ms; ms += 500) {
            at(ms, wire::Direction::c2s);
        }
    }

    void gap() { silence_.on_gap(); }

    [[nodiscard]] std::vector<std::string> told() const { return log_.lines; }

  private:
    Log log_;
    Reporter reporter_{1, log_};
    ServerSilence silence_;
};

using Lines = std::vector<std::string>;

} // namespace

TEST_CASE("a server that never answers is reported once, and once that it does at last") {
    Script script;
    script.asks(0, 2999);
    CHECK(script.told().empty());
    script.asks(3000, 20'000);
    CHECK(script.told() == Lines{"began 7 3000 127.0.0.1:8303"});
    script.at(20'010, wire::Direction::s2c);
    script.at(20'020, wire::Direction::s2c);
    CHECK(script.told() == Lines{"began 7 3000 127.0.0.1:8303", "ended 41 20010 127.0.0.1:8303"});
}

TEST_CASE("a server that falls silent twice is reported twice") {
    Script script;
    script.at(0, wire::Direction::s2c);
    script.asks(100, 3100);
    script.at(3200, wire::Direction::s2c);
    script.asks(3300, 6300);
    CHECK(script.told().size() == 3);
}

TEST_CASE("what is not a silence is not reported") {
    Script script;
    SUBCASE("any answer in time") {
        for (std::int64_t ms = 0; ms < 60'000; ms += 2900) {
            script.asks(ms, ms + 2800);
            script.at(ms + 2850, wire::Direction::s2c);
        }
    }
    SUBCASE("too few datagrams") {
        script.at(0, wire::Direction::c2s);
        script.at(4000, wire::Direction::c2s);
    }
    SUBCASE("many datagrams at once") {
        for (int i = 0; i < 1000; ++i) {
            script.at(i, wire::Direction::c2s);
        }
    }
    SUBCASE("somebody who asks now and then") {
        for (std::int64_t ms = 0; ms < 100'000; ms += 5001) {
            script.at(ms, wire::Direction::c2s);
        }
    }
    SUBCASE("copies were lost, an answer may have been among them") {
        script.asks(0, 2900);
        script.gap();
        script.asks(3000, 5900);
    }
    CHECK(script.told().empty());
}

} // namespace tw::inspect
