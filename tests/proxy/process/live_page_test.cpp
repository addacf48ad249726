// Covers: proxy/process/live_page.cpp
#include "proxy/process/live_page.h"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <doctest/doctest.h>

using namespace tw;
using namespace std::chrono_literals;
using process::RelayHangDetector;

TEST_CASE("a relay is alive while all its threads make progress and the counters are read") {
    const auto observation = std::make_unique<relay::ObserverSharedMemory>();
    RelayHangDetector liveness;
    const RelayHangDetector::Time start{};
    CHECK_FALSE(liveness.is_alive(start));
    liveness.update(start, *observation, 2);
    CHECK(liveness.is_alive(start));
    // Both threads make progress.
    for (auto time = start; time <= start + 20s; time += 1s) {
        observation->counters[0].loop_iterations.add(10);
        observation->counters[1].loop_iterations.add(1);
        liveness.update(time, *observation, 2);
        CHECK(liveness.is_alive(time));
    }
    // One thread hangs from now on.
    for (auto time = start + 21s; time <= start + 40s; time += 1s) {
        observation->counters[0].loop_iterations.add(10);
        liveness.update(time, *observation, 2);
        CHECK(liveness.is_alive(time) == (time - (start + 20s) <= RelayHangDetector::kHangTime));
    }
    observation->counters[1].loop_iterations.add(1);
    liveness.update(start + 41s, *observation, 2);
    CHECK(liveness.is_alive(start + 41s));
    // The counters are not read any more.
    CHECK_FALSE(liveness.is_alive(start + 60s));
}

using namespace tw;
using process::ImpairmentControl;

namespace {

class ImpairmentRecordLog final : public sink::Output {
  public:
    void write(std::string_view block) override { text.append(block); }

    [[nodiscard]] std::size_t count_records() const { return sink::count_lines(text); }

    std::string text;
};

/// Stands in for the relay: applies the impairments that the observer requests.
struct ImpairmentControlBench {
    explicit ImpairmentControlBench(const relay::Impairment& impairment = {},
                                    bool writes_records = true)
        : facts{.impairment = impairment}, control{facts,
                                                   [this](const std::string& settings) {
                                                       sent_settings.push_back(settings);
                                                       return is_relay_reachable;
                                                   },
                                                   writes_records ? &records : nullptr,
                                                   {}} {}

    ImpairmentRecordLog records;
    channel::RelayFacts facts;
    std::vector<std::string> sent_settings;
    bool is_relay_reachable = true;
    ImpairmentControl control;
};

relay::Impairment parse_valid_impairment(std::string_view text, std::uint64_t seed = 1) {
    return relay::parse_impairment(text, seed).value();
}

} // namespace

TEST_CASE("an impairment set at the start is recorded, the lack of one is not") {
    ImpairmentControlBench good;
    CHECK(good.control.settings_text() == "none");
    CHECK(good.records.text.empty());

    ImpairmentControlBench bad{parse_valid_impairment("s2c:delay=40ms,loss=2%", 7)};
    CHECK(bad.control.settings_text() == "s2c:delay=40ms,loss=2%");
    CHECK(bad.records.count_records() == 1);
    CHECK(bad.records.text.find(R"("type":"impairment")") != std::string::npos);
    CHECK(bad.records.text.find(R"("settings":"s2c:delay=40ms,loss=2%")") != std::string::npos);
    CHECK(bad.records.text.find(R"("seed":7)") != std::string::npos);
}

TEST_CASE("each change takes effect, keeps the seed, and is recorded") {
    ImpairmentControlBench bench{parse_valid_impairment("loss=1%", 99)};
    std::size_t records = 1;
    for (const std::string text :
         {"delay=10ms", "c2s:rate=1mbit;s2c:delay=40ms,jitter=10ms", "none", "none"}) {
        CAPTURE(text);
        CHECK(bench.control.set_impairment(text) == text);
        CHECK(bench.control.settings_text() == text);
        CHECK(bench.sent_settings.back() == text);
        CHECK(bench.records.count_records() == ++records);
    }
}

TEST_CASE("each further segment begins with the current impairment") {
    ImpairmentControlBench bench{parse_valid_impairment("loss=1%")};

    struct Row {
        std::uint32_t segment;
        std::size_t records; ///< total number of records so far
    };

    for (const Row& row : {Row{1, 1}, Row{2, 2}, Row{2, 2}, Row{4, 3}}) {
        bench.control.on_segment(row.segment);
        CHECK(bench.records.count_records() == row.records);
        CHECK(bench.records.text.ends_with("\"again\":true}\n") == (row.records > 1));
    }
    REQUIRE(bench.control.set_impairment("none"));
    bench.control.on_segment(5);
    CHECK(bench.records.count_records() == 4); // the fourth record is the end of the impairment
}

TEST_CASE("an invalid text changes nothing and writes nothing") {
    ImpairmentControlBench bench{parse_valid_impairment("loss=1%")};
    const std::string long_text(100'000, ',');
    for (const std::string& text : {std::string{}, std::string{"loss"}, std::string{"loss=200%"},
                                    std::string{"loss=2%;loss=2%"}, std::string{"loss=2%\n\"}"},
                                    std::string{"loss=2%\0", 8}, long_text}) {
        CAPTURE(text.substr(0, 20));
        const auto done = bench.control.set_impairment(text);
        REQUIRE_FALSE(done);
        CHECK_FALSE(done.error().empty());
        CHECK(done.error().find('\n') == std::string::npos);
        CHECK(bench.control.settings_text() == "loss=1%");
        CHECK(bench.records.count_records() == 1);
    }
}

TEST_CASE("if the relay cannot be reached, nothing changes and an error is returned") {
    ImpairmentControlBench bench{parse_valid_impairment("loss=1%")};
    bench.is_relay_reachable = false;
    const auto done = bench.control.set_impairment("loss=2%");
    REQUIRE_FALSE(done);
    CHECK(done.error() == "the relay cannot be reached; try again");
    CHECK(bench.control.settings_text() == "loss=1%");
    CHECK(bench.sent_settings == std::vector<std::string>{"loss=2%"});
    CHECK(bench.records.count_records() == 1);
}

TEST_CASE("after the end of the run, changes are rejected and not recorded") {
    ImpairmentControlBench bench;
    bench.control.reject_further_changes();
    const auto done = bench.control.set_impairment("loss=1%");
    REQUIRE_FALSE(done);
    CHECK(done.error() == "the run is over");
    CHECK(bench.control.settings_text() == "none");
    CHECK(bench.records.text.empty());
}

TEST_CASE("an impairment can be changed without a record output") {
    ImpairmentControlBench bench{parse_valid_impairment("loss=1%"), false};
    CHECK(bench.control.set_impairment("dup=1%") == "dup=1%");
    CHECK(bench.control.settings_text() == "dup=1%");
}

TEST_CASE("changes from several threads are recorded one after the other") {
    constexpr std::size_t kThreads = 4;
    constexpr std::size_t kChanges = 10;
    ImpairmentControlBench bench;
    std::atomic<std::size_t> done{0};
    std::vector<std::thread> threads;
    for (std::size_t i = 1; i <= kThreads; ++i) {
        threads.emplace_back([&, text = "loss=" + std::to_string(i) + '%'] {
            for (std::size_t k = 0; k < kChanges; ++k) {
                done += bench.control.set_impairment(text) == text ? 1 : 0;
            }
        });
    }
    for (std::thread& thread : threads) {
        thread.join();
    }
    CHECK(done == kThreads * kChanges);
    CHECK(bench.records.count_records() == kThreads * kChanges);
}

TEST_CASE("totals of impaired datagrams exist only if a datagram was impaired") {
    relay::Counters counters;
    counters.directions[0].datagrams = 5;
    CHECK_FALSE(process::make_impairment_stats(counters));
    counters.impairment[1] = {.datagrams = 9,
                              .dropped_by_chance = 1,
                              .dropped_by_rate = 2,
                              .dropped_by_full_queue = 3,
                              .duplicated = 4,
                              .reordered = 5};
    const auto totals = process::make_impairment_stats(counters);
    REQUIRE(totals);
    CHECK((*totals)[0].datagrams == 0);
    CHECK((*totals)[1].datagrams == 9);
    CHECK((*totals)[1].lost == 1);
    CHECK((*totals)[1].rate_dropped == 2);
    CHECK((*totals)[1].queue_full == 3);
    CHECK((*totals)[1].duplicated == 4);
    CHECK((*totals)[1].reordered == 5);
}
