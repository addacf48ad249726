// Covers: proxy/pipeline/pipeline.cpp
#include "proxy/capture/capture_run.h"
#include "proxy/pipeline/pipeline.h"
#include "tests/support/captured_traffic.h"
#include "tests/support/json_records.h"
#include "tests/support/record_log.h"
#include "tests/support/test_data.h"

#include <algorithm>
#include <atomic>
#include <string>

#include <doctest/doctest.h>

using namespace tw;

namespace {

/// The outputs of a pipeline for a capture.
struct Written {
    explicit Written(const pipeline::Config& config) {
        tw::test::NoMaps maps;
        std::atomic<std::uint32_t> numbers{0};
        pipeline::Outputs outputs{.records = &lines, .capture = &datagrams};
        outputs.findings = &findings;
        pipeline::Pipeline pipeline{config, outputs, nullptr, maps, numbers};
        capture::CaptureRun run{{tw::test::test_data("golden/token-map-change.pcap")}, {}};
        run.read(pipeline.inspector());
        pipeline.finish(run.last());
        result = pipeline.take_result();
    }

    tw::test::TextOutput lines;
    tw::test::TextOutput datagrams;
    tw::test::RecordLog findings;
    pipeline::WorkerResult result;
};

/// The number of lines of a type.
std::size_t count_of(const Written& written, std::string_view type) {
    const auto all = tw::test::parse_lines(written.lines.text);
    return static_cast<std::size_t>(std::ranges::count_if(
        all, [&](const auto& line) { return line.as_object().at("type").as_string() == type; }));
}

} // namespace

TEST_CASE("a capture read once fills every sink, and the filter applies to lines only") {
    pipeline::Config config{.stats = true};
    const Written all{config};
    CHECK(all.result.totals.snapshots > 100);
    CHECK(count_of(all, "snapshot") == all.result.totals.snapshots);
    CHECK(count_of(all, "message") > 0);
    CHECK(all.datagrams.text.size() > all.result.totals.snapshots);

    config.filter = filter::Filter::parse("message").value();
    config.expectations = {filter::Expectation::parse("snapshot").value()};
    const Written filtered{config};
    CHECK(count_of(filtered, "snapshot") == 0);
    CHECK(count_of(filtered, "message") == count_of(all, "message"));
    CHECK(filtered.result.totals.snapshots == all.result.totals.snapshots);
    CHECK(filtered.datagrams.text == all.datagrams.text);
    CHECK(filtered.findings.shown() == all.findings.shown());
    CHECK(filter::Expectations{filtered.result.expectations}.report().front().met);
}

TEST_CASE("if worlds are written, snapshots of sessions are not") {
    const Written written{pipeline::Config{.views = pipeline::ViewChoice::world}};
    CHECK(written.result.totals.snapshots > 100);
    CHECK(count_of(written, "snapshot") == 0);
    CHECK(count_of(written, "message") > 0);
    CHECK(written.lines.text.find(R"("name":"snap)") == std::string::npos);
}
