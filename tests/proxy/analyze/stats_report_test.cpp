
#include "proxy/analyze/stats_report.h"

#include <string>

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
        ledger.charge(wire::Direction::s2c, ByteGroup::item, BytePart::fields, "character",
                      {.count = 4, .bytes = 40, .bits = 200});
        ledger.charge(wire::Direction::s2c, ByteGroup::packet, BytePart::whole, "header",
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
