#include "proxy/analyze/stats_report.h"

#include <string>
#include <vector>

#include <boost/json.hpp>
#include <doctest/doctest.h>

namespace tw::analyze {
namespace {

using record::ByteGroup;
using record::BytePart;

/// The totals of a session with three snapshots, two of them full, and the bytes of one character.
struct Sample {
    record::SessionStats totals;
    record::ByteLedger ledger;
    StatsReport report{.captures = {"a \"b\".pcap"}, .sessions = 1, .duration_ns = 2'000'000'000};

    Sample() {
        totals.directions[1].datagrams = 1'234'567;
        totals.directions[1].recovered = 2;
        totals.snapshots = 3;
        totals.verified = 3;
        totals.full = 2;
        totals.items.add(10);
        totals.items.add(30);
        ledger.add_bytes(wire::Direction::s2c, ByteGroup::item, BytePart::fields, "character",
                         {.count = 4, .bytes = 40, .bits = 200});
        ledger.add_bytes(wire::Direction::s2c, ByteGroup::packet, BytePart::whole, "header",
                         {.count = 3, .bytes = 9, .bits = 72});
        report.totals = &totals;
        report.ledger = &ledger;
    }
};

} // namespace

TEST_CASE("the JSON of statistics has the counters by name and attributes all bits") {
    const Sample sample;
    const auto json = boost::json::parse(stats_json(sample.report)).as_object();
    CHECK(json.at("captures").at(0) == "a \"b\".pcap");
    const auto& s2c = json.at("s2c").as_object();
    CHECK(s2c.at("datagrams") == 1'234'567);
    CHECK(s2c.at("recovered") == 2);
    CHECK(s2c.at("attributed_bits") == 272);
    const auto& rows = s2c.at("attribution").as_array();
    REQUIRE(rows.size() == 2);
    CHECK(rows[0].at("name") == "character");
    CHECK(rows[0].at("part") == "fields");
    CHECK(rows[0].at("bits") == 200);
    CHECK_FALSE(rows[1].as_object().contains("part"));
    CHECK(json.at("c2s").at("datagrams") == 0);
    const auto& snapshots = json.at("snapshots").as_object();
    CHECK(snapshots.at("total") == 3);
    CHECK(snapshots.at("verified") == 3);
    CHECK(snapshots.at("items").at("min") == 10);
    CHECK(snapshots.at("items").at("max") == 30);
    CHECK(snapshots.at("full_share").to_number<double>() == doctest::Approx(0.667));
}

TEST_CASE("the table of statistics groups digits, and leaves out what did not occur") {
    const Sample sample;
    const std::string table = stats_table(sample.report);
    CAPTURE(table);
    CHECK(table.find("1,234,567") != std::string::npos);
    CHECK(table.find("character") != std::string::npos);
    CHECK(table.find("2 (66.7 %)") != std::string::npos);
    CHECK(table.find("20.0 (10.0 to 30.0)") != std::string::npos);
    CHECK(table.find("malformed datagrams") == std::string::npos);
}

} // namespace tw::analyze

using namespace tw;
using Keys = std::vector<std::string>;

namespace {

/// Returns the report of a capture with a few numbers.
class SampleStats {
  public:
    SampleStats() {
        totals_.directions[1].datagrams = 1'234'567;
        totals_.directions[1].compressed_bytes = 1;
        totals_.directions[1].decompressed_bytes = 4;
        totals_.snapshots = 8;
        totals_.verified = 6;
        totals_.missed = 2;
        totals_.items.add(512);
        totals_.gap_lost = 9;
        totals_.findings[static_cast<std::size_t>(record::FindingId::inspect_gap)] = 1;
        ledger_.add_bytes(wire::Direction::s2c, record::ByteGroup::item, record::BytePart::fields,
                          "character", {.count = 3, .bytes = 10, .bits = 71});
    }

    [[nodiscard]] analyze::StatsReport report() const {
        return {.captures = {"a.pcap"},
                .sessions = 1,
                .duration_ns = 2'500'000'000,
                .totals = &totals_,
                .ledger = &ledger_};
    }

  private:
    record::SessionStats totals_;
    record::ByteLedger ledger_;
};

Keys keys_of(const boost::json::value& value) {
    Keys keys;
    for (const auto& member : value.as_object()) {
        keys.emplace_back(member.key());
    }
    return keys;
}

bool holds(std::string_view text, std::string_view part) {
    return text.find(part) != std::string_view::npos;
}

} // namespace

TEST_CASE("the JSON of stats keeps its keys and their order") {
    const SampleStats sample;
    const std::string text = analyze::stats_json(sample.report());
    CHECK(text.ends_with("}\n"));
    const boost::json::value stats = boost::json::parse(text);
    CHECK(keys_of(stats) == Keys{"v", "captures", "sessions", "duration_us", "c2s", "s2c",
                                 "snapshots", "ack_lag_ticks", "input_margin_ms", "map_changes",
                                 "findings"});
    CHECK(keys_of(stats.at("s2c")) == Keys{"datagrams",
                                           "bytes",
                                           "malformed",
                                           "wrong_token",
                                           "not_accepted",
                                           "control",
                                           "connless",
                                           "chunks",
                                           "messages",
                                           "vital",
                                           "resent",
                                           "recovered",
                                           "duplicates",
                                           "gaps",
                                           "reordered",
                                           "resend_requests",
                                           "compressed",
                                           "compressed_bytes",
                                           "decompressed_bytes",
                                           "compression_ratio",
                                           "jitter_us",
                                           "attributed_bits",
                                           "attribution"});
    CHECK(keys_of(stats.at("snapshots")) ==
          Keys{"total",       "verified",    "mismatched",    "undecodable",      "unknown_base",
               "incomplete",  "missed",      "ticks_skipped", "frozen_ms",        "repeated",
               "full",        "empty",       "parts",         "delta_bytes",      "full_share",
               "items",       "items_limit", "size_bytes",    "size_bytes_limit", "delta_distance",
               "interval_us", "freeze_us"});
    CHECK(keys_of(stats.at("s2c").at("attribution").at(0)) ==
          Keys{"group", "name", "part", "count", "bytes", "bits"});
    CHECK(stats.at("duration_us").to_number<int>() == 2'500'000);
    CHECK(stats.at("s2c").at("datagrams").to_number<int>() == 1'234'567);
    CHECK(holds(text, R"("compression_ratio":0.250)"));
    CHECK(holds(text, R"("findings":{"inspect.gap":1})"));
}

TEST_CASE("the table of stats shows shares of snapshots and leaves out zeros") {
    const SampleStats sample;
    const std::string text = analyze::stats_table(sample.report());
    CHECK(holds(text, "1,234,567"));
    CHECK(holds(text, "  total                              8\n"));
    CHECK(holds(text, "  verified                           6 (75.0 %)\n"));
    CHECK(holds(text, "  missed                             2 (25.0 %)\n"));
    CHECK(!holds(text, "mismatched"));
    CHECK(holds(text, "512.0 (512.0 to 512.0), at most 50.0 % of 1,024"));
}

TEST_CASE("totals recommend the search for sizes if sizes may explain undecoded snapshots") {
    struct Row {
        std::string_view name;
        std::uint64_t verified;
        std::uint64_t mismatched;
        std::uint64_t undecodable;
        std::uint64_t size_differs;
        bool said;
    };

    const Row rows[] = {{"all verified", 8, 0, 0, 0, false},
                        {"damage", 7, 1, 0, 0, false},
                        {"none verified", 0, 8, 0, 0, true},
                        {"undecodable", 7, 0, 1, 0, true},
                        {"the type is named", 0, 0, 8, 1, false}};
    for (const Row& row : rows) {
        CAPTURE(row.name);
        record::SessionStats totals;
        totals.snapshots = 8;
        totals.verified = row.verified;
        totals.mismatched = row.mismatched;
        totals.undecodable = row.undecodable;
        totals.findings[static_cast<std::size_t>(record::FindingId::snapshot_size_differs)] =
            row.size_differs;
        const std::string text = analyze::totals_text({"a.pcap"}, totals, 1, "the command");
        CHECK(text.ends_with("run:\n  the command\n") == row.said);
        if (row.size_differs != 0) {
            totals.findings[static_cast<std::size_t>(record::FindingId::snapshot_unknown_base)] = 7;
            const std::string lines = analyze::totals_text({"a.pcap"}, totals, 1, "the command");
            CHECK(lines.find("snapshot.size_differs") < lines.find("snapshot.unknown_base"));
        }
    }
}
