#include "proxy/analyze/stats_report.h"
#include "tests/support/json_records.h"
#include "tests/support/text.h"

#include <doctest/doctest.h>

using namespace tw;
using test::contains;
using test::keys_of;

namespace {

/// The report of a capture with a few numbers.
struct SampleReport {
    record::SessionStats totals;
    record::ByteLedger ledger;
    analyze::StatsReport report{
        .captures = {"a \"b\".pcap"}, .sessions = 1, .duration_ns = 2'500'000'000};

    SampleReport() {
        using record::ByteGroup, record::BytePart;
        totals.directions[1].datagrams = 1'234'567;
        totals.directions[1].recovered = 2;
        totals.directions[1].compressed_bytes = 1;
        totals.directions[1].decompressed_bytes = 4;
        totals.snapshots = 8;
        totals.verified = 6;
        totals.missed = 2;
        totals.full = 2;
        totals.items.add(512);
        totals.items.add(256);
        totals.gap_lost = 9;
        totals.findings[static_cast<std::size_t>(record::FindingId::inspect_gap)] = 1;
        ledger.add_bytes(wire::Direction::s2c, ByteGroup::item, BytePart::fields, "character",
                         {.count = 4, .bytes = 40, .bits = 200});
        ledger.add_bytes(wire::Direction::s2c, ByteGroup::packet, BytePart::whole, "header",
                         {.count = 3, .bytes = 9, .bits = 72});
        report.totals = &totals;
        report.ledger = &ledger;
    }
};

} // namespace

TEST_CASE("the JSON of statistics has all counters by name, and its attributed bits add up") {
    const SampleReport sample;
    const std::string text = analyze::stats_json(sample.report);
    CHECK(text.ends_with("}\n"));
    const boost::json::value stats = boost::json::parse(text);
    CHECK(keys_of(stats) == "v captures sessions duration_us c2s s2c snapshots ack_lag_ticks "
                            "input_margin_ms map_changes findings ");
    const auto& s2c = stats.at("s2c");
    CHECK(keys_of(s2c) ==
          "datagrams bytes malformed wrong_token not_accepted control connless chunks messages "
          "vital resent recovered duplicates gaps reordered resend_requests compressed "
          "compressed_bytes decompressed_bytes compression_ratio jitter_us attributed_bits "
          "attribution ");
    CHECK(keys_of(stats.at("snapshots")) ==
          "total verified mismatched undecodable unknown_base incomplete missed ticks_skipped "
          "frozen_ms repeated full empty parts delta_bytes full_share items items_limit "
          "size_bytes size_bytes_limit delta_distance interval_us freeze_us ");
    const auto& rows = s2c.at("attribution").as_array();
    REQUIRE(rows.size() == 2);
    CHECK(keys_of(rows[0]) == "group name part count bytes bits ");
    CHECK(rows[0].at("name") == "character");
    CHECK(rows[0].at("part") == "fields");
    CHECK(rows[0].at("bits") == 200);
    CHECK_FALSE(rows[1].as_object().contains("part"));
    CHECK(s2c.at("attributed_bits") == 272);
    CHECK(s2c.at("datagrams") == 1'234'567);
    CHECK(s2c.at("recovered") == 2);
    CHECK(stats.at("c2s").at("datagrams") == 0);
    CHECK(stats.at("captures").at(0) == "a \"b\".pcap");
    CHECK(stats.at("duration_us").to_number<int>() == 2'500'000);
    const auto& snapshots = stats.at("snapshots");
    CHECK(snapshots.at("total") == 8);
    CHECK(snapshots.at("verified") == 6);
    CHECK(snapshots.at("items").at("min") == 256);
    CHECK(snapshots.at("items").at("max") == 512);
    CHECK(snapshots.at("full_share").to_number<double>() == 0.25);
    CHECK(contains(text, R"("compression_ratio":0.250)"));
    CHECK(contains(text, R"("findings":{"inspect.gap":1})"));
}

TEST_CASE("the table of statistics groups digits, shows shares, and leaves out zeros") {
    const SampleReport sample;
    const std::string table = analyze::stats_table(sample.report);
    CAPTURE(table);
    for (const char* const part :
         {"1,234,567", "character", "  total                           8\n",
          "  verified                        6 (75.0 %)\n",
          "  missed                          2 (25.0 %)\n", "2 (25.0 %)",
          "384.0 (256.0 to 512.0), at most 50.0 % of 1,024"}) {
        CAPTURE(part);
        CHECK(contains(table, part));
    }
    CHECK_FALSE(contains(table, "malformed datagrams"));
    CHECK_FALSE(contains(table, "mismatched"));
}

TEST_CASE("the table of players has each session that received snapshots, up to its limit") {
    snapshot::Snapshot game;
    game.append({10, 2}, std::array{1, 2, 0, 7, 30});
    analyze::PlayerTable players;
    CHECK(players.text().empty());
    const record::SessionRecord opened{.head = {.session = 99}};
    players.on_record(record::Record{&opened}); // plays no game
    CHECK(players.text().empty());
    const auto add = [&](std::uint32_t session, record::Timestamp seconds, bool rebuilt) {
        const record::SnapshotRecord received{
            .head = {.time = seconds * record::kNanosecondsPerSecond, .session = session},
            .rebuilt = rebuilt,
            .items = rebuilt ? game.view() : snapshot::SnapshotView{}};
        players.on_record(record::Record{&received});
    };
    add(1, 100, false);
    const std::string_view name = "ann";
    const wire::FieldValue values[] = {{.kind = wire::FieldValue::Kind::string,
                                        .name = "name",
                                        .bytes = std::as_bytes(std::span{name})}};
    for (const std::uint32_t session : {1U, 99U}) {
        const record::MessageRecord asked{
            .head = {.session = session}, .name = "cl_start_info", .values = values};
        players.on_record(record::Record{&asked});
    }
    CHECK(contains(players.text(), "\n      1 ann "));
    CHECK_FALSE(contains(players.text(), "\n     99 "));
    add(1, 150, true);
    add(1, 3861, true);
    add(1, 3862, true);
    const std::string text = players.text();
    CAPTURE(text);
    CHECK(text.starts_with("session player "));
    CHECK(contains(text, "\n      1 client 2 "));
    CHECK(text.ends_with("  1:02:42          4    75.0 %\n"));
    for (std::uint32_t session = 2; session <= analyze::PlayerTable::kMaxSessions + 3; ++session) {
        add(session, 4000, true);
        add(session, 4001, true);
    }
    const std::string full = players.text();
    CHECK(contains(full, "\n   1024 client 2 "));
    CHECK_FALSE(contains(full, "\n   1025 "));
    CHECK(full.ends_with(" 100.0 %\nfurther sessions than these 1024 are left out\n"));
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
        CHECK(contains(text, "in all\n") == (row.size_differs != 0));
        if (row.size_differs != 0) {
            totals.findings[static_cast<std::size_t>(record::FindingId::snapshot_unknown_base)] = 7;
            const std::string lines = analyze::totals_text({"a.pcap"}, totals, 1, "the command");
            CHECK(lines.find("snapshot.size_differs") < lines.find("snapshot.unknown_base"));
            CHECK(contains(lines, "\n        finding                        in all\nerror "));
        }
    }
}
