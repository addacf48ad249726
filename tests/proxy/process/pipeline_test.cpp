// Covers: proxy/pipeline/pipeline.cpp
#include "proxy/capture/capture_run.h"
#include "proxy/pipeline/pipeline.h"
#include "tests/support/captured_traffic.h"
#include "tests/support/json_records.h"
#include "tests/support/record_log.h"
#include "tests/support/test_data.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>
#include <sys/types.h>
#include <unistd.h>

using namespace tw;

namespace {

/// Reads a capture with a pipeline, and stores the outputs.
struct PipelineOutputs {
    explicit PipelineOutputs(const pipeline::Config& config) {
        tw::test::NoMaps maps;
        std::atomic<std::uint32_t> numbers{0};
        pipeline::WorkerOutputs outputs{.records = &lines, .capture = &datagrams};
        outputs.findings = &findings;
        pipeline::Pipeline pipeline{config, outputs, nullptr, maps, numbers};
        capture::CaptureRun run{{tw::test::test_data("golden/token-map-change.pcap")}, {}};
        run.read_captures(pipeline.inspector());
        pipeline.write_remaining_data(run.last_time());
        result = pipeline.take_result();
    }

    tw::sink::TextOutput lines;
    tw::sink::TextOutput datagrams;
    tw::test::RecordLog findings;
    pipeline::WorkerResult result;
};

/// Returns the number of records of a type in the written lines.
std::size_t count_lines_of_type(const PipelineOutputs& outputs, std::string_view type) {
    const auto all = tw::test::parse_lines(outputs.lines.text);
    return static_cast<std::size_t>(std::ranges::count_if(
        all, [&](const auto& line) { return line.as_object().at("type").as_string() == type; }));
}

} // namespace

TEST_CASE("a capture read once fills every sink, and the filter applies to lines only") {
    pipeline::Config config{.counts_traffic = true};
    const PipelineOutputs all{config};
    CHECK(all.result.totals.snapshots > 100);
    CHECK(count_lines_of_type(all, "snapshot") == all.result.totals.snapshots);
    CHECK(count_lines_of_type(all, "message") > 0);
    CHECK(all.datagrams.text.size() > all.result.totals.snapshots);

    config.filter = filter::Filter::parse("message").value();
    config.expectations = {filter::Expectation::parse("snapshot").value()};
    const PipelineOutputs filtered{config};
    CHECK(count_lines_of_type(filtered, "snapshot") == 0);
    CHECK(count_lines_of_type(filtered, "message") == count_lines_of_type(all, "message"));
    CHECK(filtered.result.totals.snapshots == all.result.totals.snapshots);
    CHECK(filtered.datagrams.text == all.datagrams.text);
    CHECK(filtered.findings.shown() == all.findings.shown());
    CHECK(filtered.result.expectations.front().is_met());
}

TEST_CASE("if merged snapshots are written, the snapshots of sessions are not written") {
    const PipelineOutputs outputs{pipeline::Config{.views = pipeline::ViewChoice::world}};
    CHECK(outputs.result.totals.snapshots > 100);
    CHECK(count_lines_of_type(outputs, "snapshot") == 0);
    CHECK(count_lines_of_type(outputs, "message") > 0);
    CHECK(outputs.lines.text.find(R"("name":"snap)") == std::string::npos);
}

using pipeline::WorkerResult;

namespace {

const std::vector<filter::Expectation>& test_expectations() {
    static const std::vector<filter::Expectation> expectations{
        filter::Expectation::parse("message").value(),
        filter::Expectation::parse("snapshot").value()};
    return expectations;
}

/// Returns the result of a worker that inspected one session, with this session number.
WorkerResult make_worker_result(std::uint32_t number) {
    WorkerResult result{.expectations = test_expectations()};
    result.totals.snapshots = number;
    result.sessions = 1;
    result.ledger.add_bytes(wire::Direction::s2c, record::ByteGroup::packet,
                            record::BytePart::whole, "packet",
                            {.count = 1, .bytes = number, .bits = 8 * std::uint64_t{number}});
    result.demo_losses.late_snapshots = number;
    result.capture_losses = number;
    result.checkpoints[number] = {};
    return result;
}

} // namespace

TEST_CASE("the results of workers add up in any order") {
    WorkerResult all{.expectations = test_expectations()};
    all.merge(make_worker_result(2));
    WorkerResult other = make_worker_result(5);
    const record::MessageRecord message{};
    other.expectations.front().evaluate_record(&message);
    all.merge(std::move(other));

    CHECK(all.totals.snapshots == 7);
    CHECK(all.sessions == 2);
    CHECK(all.ledger.total(wire::Direction::s2c) ==
          record::ByteCount{.count = 2, .bytes = 7, .bits = 56});
    CHECK(all.demo_losses.late_snapshots == 7);
    CHECK(all.capture_losses == 7);
    CHECK(all.checkpoints.size() == 2);
    REQUIRE(all.expectations.size() == 2);
    CHECK(all.expectations[0].is_met());
    CHECK_FALSE(all.expectations[1].is_met());
}

using pipeline::SessionCheckpoints;

namespace {

SessionCheckpoints sample_checkpoints() {
    inspect::SessionCheckpoint known{
        .map = inspect::MapAnnouncement{.name = "dm1", .crc = 7, .size = 9},
        .snapshots = {{.tick = 5, .num_items = 2, .block = {1, 2, 1, 3, 10, 20, 30}},
                      {.tick = 7, .num_items = 0, .block = {}}}};
    known.map->sha256.emplace().fill(3);
    known.roster.add_player({.client_id = 1, .is_own = true, .team = -1, .name = "anna"});
    known.roster.add_player({.client_id = 63, .team = 1, .name = "bob"});
    return {{3, known}, {8, {}}, {9, {.map = {}, .is_closed = true}}};
}

bool are_equal(const SessionCheckpoints& left, const SessionCheckpoints& right) {
    return left.size() == right.size() && std::ranges::all_of(left, [&](const auto& entry) {
               const auto other = right.find(entry.first);
               return other != right.end() && other->second.is_closed == entry.second.is_closed &&
                      inspect::encode_checkpoint(other->second) ==
                          inspect::encode_checkpoint(entry.second);
           });
}

} // namespace

TEST_CASE("checkpoints are read as they were written") {
    const auto file = pipeline::create_checkpoint_file();
    REQUIRE(file.valid());
    pipeline::save_checkpoints(file, sample_checkpoints());
    CHECK(are_equal(pipeline::read_checkpoints(file.get()), sample_checkpoints()));
}

TEST_CASE("a truncated file gives only whole checkpoints") {
    const auto file = pipeline::create_checkpoint_file();
    pipeline::save_checkpoints(file, sample_checkpoints());
    for (off_t size = ::lseek(file.get(), 0, SEEK_END); size-- > 0;) {
        CAPTURE(size);
        REQUIRE(::ftruncate(file.get(), size) == 0);
        CHECK(pipeline::read_checkpoints(file.get()).size() < 3);
    }
}

TEST_CASE("a file with a changed byte gives only valid checkpoints") {
    const auto file = pipeline::create_checkpoint_file();
    pipeline::save_checkpoints(file, sample_checkpoints());
    const off_t size = ::lseek(file.get(), 0, SEEK_END);
    for (off_t at = 0; at < size; ++at) {
        CAPTURE(at);
        unsigned char byte = 0;
        REQUIRE(::pread(file.get(), &byte, 1, at) == 1);
        for (const unsigned changed : {0xFFU, 0x80U, 0x01U}) {
            const auto wrong = static_cast<unsigned char>(byte ^ changed);
            REQUIRE(::pwrite(file.get(), &wrong, 1, at) == 1);
            for (const auto& [number, checkpoint] : pipeline::read_checkpoints(file.get())) {
                CHECK(checkpoint.is_consistent());
            }
        }
        REQUIRE(::pwrite(file.get(), &byte, 1, at) == 1);
    }
    CHECK(pipeline::read_checkpoints(-1).empty());
}
