// Captures of today's peers (tests/data/captures/README.md): what the peers accepted is what the
// records hold, one connection after the other on the same pair of addresses included.

#include "tests/support/captured_traffic.h"

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include <doctest/doctest.h>

using namespace tw;

namespace {

using Lines = std::vector<std::string>;

/// Connections by client, and what was wrong.
class Connections final : public record::RecordSink {
  public:
    void on_record(const record::Record& record) override {
        if (const auto* const* session = std::get_if<const record::SessionRecord*>(&record)) {
            on_session(**session);
        } else if (const auto* const* found = std::get_if<const record::FindingRecord*>(&record)) {
            on_finding(**found);
        } else if (const auto* const* each = std::get_if<const record::SnapshotRecord*>(&record)) {
            ++snapshots;
            rebuilt += (*each)->rebuilt ? 1U : 0U;
        }
    }

    /// "0.6+ddnet closed": a connection that its peers ended; "open": it did not end.
    std::map<std::string, Lines> of_client;
    Lines odd; ///< findings of warning and above
    std::uint64_t snapshots = 0;
    std::uint64_t rebuilt = 0;

  private:
    void on_session(const record::SessionRecord& record) {
        Lines& lines = of_client[std::string{record.client}];
        if (record.event == record::SessionEvent::established) {
            lines.push_back(std::string{record.protocol} + " open");
        } else if (record.event == record::SessionEvent::close && !lines.empty() &&
                   record.reason != "end of capture") {
            lines.back() = std::string{record.protocol} +
                           (record.reason == "reconnected" ? " reconnected" : " closed");
        }
    }

    void on_finding(const record::FindingRecord& record) {
        const record::FindingInfo& info = record::finding_info(record.id);
        if (info.severity != record::Severity::info) {
            odd.push_back(std::to_string(record.head.session) + ' ' + std::string{info.name});
        }
    }
};

/// One line, for doctest to show.
std::string text_of(const std::map<std::string, Lines>& of_client) {
    std::string text;
    for (const auto& [client, connections] : of_client) {
        text += client + ':';
        for (const std::string& connection : connections) {
            text += ' ' + connection + ',';
        }
        text += ' ';
    }
    return text;
}

struct Row {
    std::string capture;
    /// Counted by another decoder too: tests/e2e/message_counts.mjs, and seven.mjs for 0.7.
    std::uint64_t snapshots;
    std::map<std::string, Lines> of_client;
};

const std::vector<Row>& rows() {
    static const std::vector<Row> all{
        {"ddnet-20.1.1-race.pcap.gz",
         9677,
         {{"client 43581", {"0.6+ddnet closed"}},
          {"client 41338", {"0.6+ddnet closed", "0.6+ddnet closed"}},
          {"client 35131", {"0.6+ddnet closed"}},
          {"client 51489", {"0.6+ddnet closed"}},
          {"client 47101", {"0.6+ddnet closed"}},
          {"client 50264", {}}}}, // only asks for the server's info
        {"one-client-0.6-0.7-0.6-0.7.pcap.gz",
         399 + 523, // of 0.6 and of 0.7
         {{"client 58971",
           {"0.6+ddnet closed", "0.7+ddnet closed", "0.6+ddnet closed", "0.7+ddnet closed"}},
          // Exchanges tokens to ask for the server's info, and never connects.
          {"client 39900", {}}}},
        {"teeworlds-0.7.5.pcap.gz",
         1208,
         {{"client 58734", {"0.7 closed"}},
          {"client 48314", {"0.7 closed"}},
          {"client 47646", {}}}},
        // 0.6.5 appends a token for nobody but its own clients; npm's bytes behind the chunks are
        // none. The three empty snapshots of each prelude are no snapshots of the game.
        {"vanilla-0.6.5-ctf.pcap.gz",
         4402, // and two behind a CLOSE, which nobody takes
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

TEST_CASE("today's peers: every snapshot is verified, every connection is what it was, nothing is "
          "odd") {
    for (const Row& row : rows()) {
        CAPTURE(row.capture);
        Connections sink;
        test::TrafficInspector run{{.messages = false}, sink};
        for (const test::TrafficDatagram& datagram : test::read_traffic(row.capture)) {
            run.on_datagram(datagram);
        }
        run.finish();
        const record::SessionStats totals = run.inspector().totals();
        CHECK(totals.snapshots == row.snapshots);
        CHECK(totals.verified == row.snapshots);
        CHECK(sink.snapshots == row.snapshots);
        CHECK(sink.rebuilt == row.snapshots);
        CHECK(text_of(sink.of_client) == text_of(row.of_client));
        CAPTURE(sink.odd.empty() ? "nothing odd" : sink.odd.front());
        CHECK(sink.odd.empty());
    }
}

TEST_CASE("today's peers: what is in flight behind a CLOSE belongs to the connection it closes") {
    // Two npm clients leave while a snapshot is on its way to each of them.
    Connections sink;
    test::TrafficInspector run{{.messages = false}, sink};
    for (const test::TrafficDatagram& datagram : test::read_traffic("vanilla-0.6.5-ctf.pcap.gz")) {
        run.on_datagram(datagram);
    }
    run.finish();
    const record::SessionStats totals = run.inspector().totals();
    CHECK(totals.unknown_base == 0);
    for (const record::FindingId id :
         {record::FindingId::session_reconnected, record::FindingId::session_joined_midway,
          record::FindingId::snapshot_unknown_base}) {
        CAPTURE(record::finding_info(id).name);
        CHECK(totals.findings[static_cast<std::size_t>(id)] == 0);
    }
}
