// Tests that the records of captures of current programs (tests/data/captures/README.md) contain
// exactly what the peers accepted.
// Covers: proxy/inspect/inspector.cpp, proxy/inspect/snapshots/stall_detector.cpp
#include "tests/support/captured_traffic.h"
#include "tests/support/damage.h"
#include "tests/support/doctest_lines.h"
#include "tests/support/record_log.h"
#include "tests/support/record_sink.h"
#include "tests/support/snapshot_messages.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <vector>

#include <doctest/doctest.h>

using namespace tw;

namespace {

using test::Lines;

/// Collects the connections of each client, and the findings.
struct ConnectionCollector final : test::TypedRecordSink<ConnectionCollector> {
    void on(const record::SessionRecord& record) {
        Lines& lines = client_connections[std::string{record.client}];
        if (record.event == record::SessionEvent::established) {
            lines.push_back(std::string{record.protocol} + " open");
        } else if (record.event == record::SessionEvent::close && !lines.empty() &&
                   record.reason != "end of capture") {
            lines.back() = std::string{record.protocol} +
                           (record.reason == "reconnected" ? " reconnected" : " closed");
        }
    }

    void on(const record::FindingRecord& record) {
        const record::FindingInfo& info = record::finding_info(record.id);
        if (info.severity != record::Severity::info) {
            warnings.push_back(std::to_string(record.head.session) + ' ' + std::string{info.name});
        }
    }

    void on(const record::SnapshotRecord& record) {
        ++snapshots;
        rebuilt += record.rebuilt ? 1U : 0U;
    }

    /// "0.6+ddnet closed": a connection that its peers ended; "open": it did not end.
    std::map<std::string, Lines> client_connections;
    Lines warnings; ///< findings with severity warning or above
    std::uint64_t snapshots = 0;
    std::uint64_t rebuilt = 0;
};

/// Joins the texts into one line, which doctest shows.
std::string join_connections(const std::map<std::string, Lines>& client_connections) {
    std::string text;
    for (const auto& [client, connections] : client_connections) {
        text += client + ':';
        for (const std::string& connection : connections) {
            text += ' ' + connection + ',';
        }
        text += ' ';
    }
    return text;
}

struct ExpectedCapture {
    std::string capture;
    /// The number of snapshots. tests/e2e/message_counts.mjs and seven.mjs check it, too.
    std::uint64_t snapshots;
    std::map<std::string, Lines> client_connections;
};

const std::vector<ExpectedCapture>& expected_captures() {
    static const std::vector<ExpectedCapture> all{
        {"ddnet-20.1.1-race.pcap.gz",
         9677,
         {{"client 43581", {"0.6+ddnet closed"}},
          {"client 41338", {"0.6+ddnet closed", "0.6+ddnet closed"}},
          {"client 35131", {"0.6+ddnet closed"}},
          {"client 51489", {"0.6+ddnet closed"}},
          {"client 47101", {"0.6+ddnet closed"}},
          {"client 50264", {}}}}, // only asks for the server's info
        {"one-client-0.6-0.7-0.6-0.7.pcap.gz",
         399 + 523, // 0.6 and 0.7
         {{"client 58971",
           {"0.6+ddnet closed", "0.7+ddnet closed", "0.6+ddnet closed", "0.7+ddnet closed"}},
          // Exchanges tokens to ask for the server's info, and never connects.
          {"client 39900", {}}}},
        {"teeworlds-0.7.5.pcap.gz",
         1208,
         {{"client 58734", {"0.7 closed"}},
          {"client 48314", {"0.7 closed"}},
          {"client 47646", {}}}},
        // 0.6.5 appends tokens only for its own clients; npm's bytes after the chunks are none.
        // The three empty snapshots of each prelude are not counted.
        {"vanilla-0.6.5-ctf.pcap.gz",
         4402, // without two after a CLOSE, which receivers ignore
         {{"client 55403", {"0.6 closed"}},
          {"client 8878", {"0.6 closed"}},
          {"client 53441", {"0.6 closed"}},
          {"client 57758", {"0.6 closed"}},
          {"client 43774", {"0.6 closed"}},
          {"client 44364", {}},
          {"client 45379", {}}}},
    };
    return all;
}

} // namespace

TEST_CASE("captures of current programs: all snapshots verified, no warnings") {
    for (const ExpectedCapture& row : expected_captures()) {
        CAPTURE(row.capture);
        ConnectionCollector sink;
        test::TrafficInspector run{{.emits_message_records = false}, sink};
        run.play(test::read_traffic(row.capture));
        const record::SessionStats totals = run.inspector().totals();
        CHECK(totals.snapshots == row.snapshots);
        CHECK(totals.verified == row.snapshots);
        CHECK(sink.snapshots == row.snapshots);
        CHECK(sink.rebuilt == row.snapshots);
        CHECK(join_connections(sink.client_connections) ==
              join_connections(row.client_connections));
        CAPTURE(sink.warnings.empty() ? "nothing odd" : sink.warnings.front());
        CHECK(sink.warnings.empty());
    }
}

TEST_CASE("every snapshot of the captures has the server's checksum") {
    struct Row {
        std::string name;
        std::uint64_t snapshots;
    };

    const Row rows[] = {{"bench-4.pcap.gz", 5955}, {"bench-64.pcap.gz", 11576}};
    for (const Row& row : rows) {
        CAPTURE(row.name);
        test::NoSink sink;
        test::TrafficInspector run{{.emits_message_records = false}, sink};
        run.play(test::read_traffic(row.name));
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

TEST_CASE("findings do not depend on whether messages are recorded") {
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
        run.play(traffic);
        return log.lines({"finding", "snapshot"});
    };
    const auto asked = findings({.emits_message_records = true});
    const auto unasked = findings({.emits_message_records = false});
    const auto [one, other] =
        std::mismatch(asked.begin(), asked.end(), unasked.begin(), unasked.end());
    CHECK((one == asked.end() ? "" : *one) == (other == unasked.end() ? "" : *other));
    CHECK(std::ranges::count_if(asked, [](const std::string& line) {
              return line.starts_with("finding message.");
          }) > 10);
}
