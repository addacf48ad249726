// Covers: proxy/inspect/inspector.cpp
// Covers: proxy/inspect/snapshots/client_view.cpp

#include "tests/support/captured_traffic.h"
#include "tests/support/damage.h"
#include "tests/support/record_log.h"

#include <algorithm>
#include <random>
#include <string>

#include <doctest/doctest.h>

using namespace tw;

namespace {

class NoSink final : public record::RecordSink {
  public:
    void on_record(const record::Record& /*record*/) override {}
};

} // namespace

TEST_CASE("every snapshot of the captures has the server's own checksum") {
    struct Row {
        std::string name;
        std::uint64_t snapshots;
    };

    const Row rows[] = {{"bench-4.pcap.gz", 5955}, {"bench-64.pcap.gz", 11576}};
    for (const Row& row : rows) {
        CAPTURE(row.name);
        NoSink sink;
        test::TrafficInspector run{{.messages = false}, sink};
        for (const test::TrafficDatagram& datagram : test::read_traffic(row.name)) {
            run.on_datagram(datagram);
        }
        run.finish();
        const record::SessionStats totals = run.inspector().totals();
        CHECK(totals.snapshots == row.snapshots);
        CHECK(totals.verified == row.snapshots);
        for (const record::FindingInfo& info : record::finding_table()) {
            if (info.severity != record::Severity::info) {
                CAPTURE(info.name);
                CHECK(totals.findings[static_cast<std::size_t>(info.id)] == 0);
            }
        }
    }
}

TEST_CASE("findings do not depend on who asks for messages") {
    auto traffic = test::read_traffic("bench-4.pcap.gz");
    std::mt19937 random{16};
    for (test::TrafficDatagram& datagram : traffic) {
        if (test::random_below(random, 20) == 0) {
            test::damage(datagram.bytes, random);
        }
    }
    const auto findings = [&traffic](const inspect::Options& options) {
        test::RecordLog log;
        test::TrafficInspector run{options, log};
        for (const test::TrafficDatagram& datagram : traffic) {
            run.on_datagram(datagram);
        }
        run.finish();
        return log.lines({"finding", "snapshot"});
    };
    const auto asked = findings({.messages = true});
    const auto unasked = findings({.messages = false});
    const auto [one, other] =
        std::mismatch(asked.begin(), asked.end(), unasked.begin(), unasked.end());
    CHECK((one == asked.end() ? "" : *one) == (other == unasked.end() ? "" : *other));
    CHECK(std::ranges::count_if(asked, [](const std::string& line) {
              return line.starts_with("finding message.");
          }) > 10);
}
