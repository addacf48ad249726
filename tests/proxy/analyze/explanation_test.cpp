// Covers: proxy/analyze/explanation.cpp
// Covers: proxy/analyze/explanation_text.cpp
#include "proxy/analyze/explanation.h"
#include "proxy/inspect/reporter.h"
#include "tests/support/text.h"

#include <array>
#include <random>

#include <doctest/doctest.h>
#include <fmt/format.h>

using namespace tw;
using analyze::Explanation;
using analyze::ExplanationReader;
using test::contains;

namespace {

using Lines = std::vector<std::string>;

const Lines kLines{
    R"({"v":1,"t":"2026-11-20T15:24:45.000000Z","type":"session","session":1,"event":"established","client":"127.0.0.1:5","server":"127.0.0.1:8303","protocol":"0.6+ddnet"})",
    R"({"v":1,"t":"2026-11-20T15:24:45.100000Z","type":"map","session":1,"dir":"s2c","name":"dm1","source":"none"})",
    R"({"v":1,"t":"2026-11-20T15:24:45.200000Z","type":"snapshot","session":1,"dir":"s2c","tick":10,"delta_tick":-1,"ok":true,"num_items":2,"full":true,"items":[{"type":"character","type_id":9,"id":3,"fields":{"tick":5,"x":1000},"player":"nameless","at":{"x":1000,"y":5,"tile":[31,0],"game":"air"}},{"type":"pickup","type_id":4,"id":1,"fields":{"x":1}}],"removed":[]})",
    R"({"v":1,"t":"2026-11-20T15:24:45.240000Z","type":"finding","session":1,"dir":"s2c","id":"snapshot.crc_mismatch","severity":"error","tick":12,"delta_tick":10,"offset":4,"part":0,"item":{"type":"character","type_id":9,"id":3},"crc_wanted":-5,"crc_got":3995,"value":4000,"name":"damaged_value","what":"The checksum differs.","detail":"one bit","hex":"0001000903a0a1a2a3a4a5a6a7a8a9aaabacadae"})",
    R"({"v":1,"t":"2026-11-20T15:24:45.240000Z","type":"snapshot","session":1,"dir":"s2c","tick":12,"delta_tick":10,"ok":false,"num_items":0})",
    R"({"v":1,"t":"2026-11-20T15:24:45.250000Z","type":"message","session":1,"dir":"c2s","name":"input","system":true,"vital":false,"size":20,"fields":{"ack_tick":10}})",
    R"({"v":1,"t":"2026-11-20T15:24:45.280000Z","type":"finding","session":1,"dir":"s2c","id":"snapshot.explained","severity":"info","tick":12,"item":{"type":"character","type_id":9,"id":3},"field":"x","value":5004,"expected":1004,"offset":9,"part":1,"name":"exact","hex":"0001000903a0a1a2a3a4a5a6a7a8a9aaabacadae"})",
    R"({"v":1,"t":"2026-11-20T15:24:45.280000Z","type":"snapshot","session":1,"dir":"s2c","tick":14,"delta_tick":10,"ok":true,"num_items":1,"items":[{"type":"character","type_id":9,"id":3,"fields":{"tick":5,"x":1008},"player":"nameless","at":{"x":1008,"y":5,"tile":[31,0],"game":"air"}}],"removed":[[4,1]]})",
};

/// Returns a finding's record. `more`: further members, such as `,"tick":3`.
std::string finding_line(std::string_view id, std::string_view severity, std::string_view more,
                         int session = 1) {
    return fmt::format(R"({{"t":"","type":"finding","session":{},"id":"{}","severity":"{}"{}}})",
                       session, id, severity, more);
}

/// Returns the first of the sample records.
Lines first_lines(std::size_t count) {
    return {kLines.begin(), kLines.begin() + static_cast<std::ptrdiff_t>(count)};
}

void replace_text(std::string& text, std::string_view part, std::string_view other) {
    text.replace(text.find(part), part.size(), other);
}

ExplanationReader read(const Lines& records, const analyze::FindingSelection& wanted = {}) {
    ExplanationReader reader{wanted};
    for (const std::string& record : records) {
        reader.on_line(record);
    }
    return reader;
}

Explanation explain(const Lines& records, const analyze::FindingSelection& wanted = {}) {
    return read(records, wanted).explanation();
}

std::string told(const Lines& records, const analyze::FindingSelection& wanted = {}) {
    return explanation_text(explain(records, wanted));
}

} // namespace

TEST_CASE("an explanation has the events, the reason, the item, the bytes and advice") {
    const Explanation story = explain(kLines);
    REQUIRE(story.has_finding());
    CHECK(explanation_text(story) ==
          R"(snapshot.crc_mismatch
session 1, 127.0.0.1:5 at 127.0.0.1:8303, 0.6+ddnet, map dm1, tick 12

What happened
  15:24:45.200  full snapshot 10: verified, 2 items
  15:24:45.240  finding snapshot.crc_mismatch, tick 12, damaged_value   <- this finding
  15:24:45.240  snapshot 12 on 10: rejected
  15:24:45.250  the client acknowledges 10
  15:24:45.280  finding snapshot.explained, tick 12, exact
  15:24:45.280  snapshot 14 on 10: verified, 1 item

Why it is reported
  The checksum differs.
  one bit
  the server's checksum: -5
  the checksum here: 3995
  difference (here − server): 4000
  The client did not acknowledge it.
  Compared with the next verified snapshots: character 3 x gave 5004 where it must have been 1004
  (exact)

The item: character 3, player nameless
                              tick 10        tick 14
  tick                              5              5
  x                              1000           1008  <- rejected: 5004, must have been 1004
  where                tile [31,0] "air" tile [31,0] "air"

The bytes of part 1 of the delta, byte 9 marked
  0000  00 01 00 09 03 a0 a1 a2 a3[a4]a5 a6 a7 a8 a9 aa
  0010  ab ac ad ae

Usual cause
  A value changed: in transit, or because the server wrote to an item after the snapshot was
  built. After snapshot.duplicate_update of the same tick: two items with the same type and id.

Where to look
  Search the server's code for what writes x of character after the snapshot is built. If nothing
  does, the value was damaged on its way.
)");
}

TEST_CASE(
    "if the wrong item is unknown, candidates are listed, and the likeliest is called a guess") {
    const std::string candidates =
        R"("candidates":{"count":7,"likeliest":[{"item":{"type":"character","type_id":9,"id":3},"field":"x","value":5004,"expected":1004},{"item":{"type":"","type_id":40,"id":7}},7]})";
    Lines records = kLines;
    records[3] =
        R"({"v":1,"t":"2026-11-20T15:24:45.240000Z","type":"finding","session":1,"dir":"s2c","id":"snapshot.crc_mismatch","severity":"error","tick":12,"delta_tick":10,"part":0,"name":"ambiguous","what":"The checksum differs.","hex":"000100",)" +
        candidates + "}";
    records[6] =
        R"({"v":1,"t":"2026-11-20T15:24:45.280000Z","type":"finding","session":1,"dir":"s2c","id":"snapshot.explained","severity":"info","tick":12,"name":"ambiguous",)" +
        candidates + "}";
    const std::string listed = "  candidates: 7, the likeliest 2\n"
                               "    character 3 x: 5004 instead of 1004\n"
                               "    type 40 7\n";
    for (const std::size_t count : {std::size_t{5}, records.size()}) {
        CAPTURE(count);
        const std::string text =
            told({records.begin(), records.begin() + static_cast<std::ptrdiff_t>(count)});
        const std::size_t at = text.find(listed);
        CHECK(at != std::string::npos);
        CHECK(text.find(listed, at + 1) == std::string::npos);
        CHECK(contains(text,
                       "The item, if the likeliest candidate is the one (a guess): character 3, "
                       "player nameless\n"));
        CHECK(contains(text, "  <- rejected: 5004, a guess: 1004\n"));
        CHECK_FALSE(contains(text, "must have been"));
        CHECK_FALSE(contains(text, "marked"));
        CHECK(contains(text, "  0000  00 01 00\n"));
    }
    // The finding names an item, and its explanation is less certain.
    records[3] = kLines[3];
    const std::string text = told(records);
    CHECK(contains(text, "\nThe item, if"));
    CHECK_FALSE(contains(text, "marked"));

    // The byte of the likeliest candidate is marked if the records contain it.
    records[6].insert(records[6].size() - 1, R"(,"offset":4,"part":0,"hex":"0001000903a0")");
    CHECK(contains(told(records), "The bytes of part 0 of the delta, byte 4 marked (a guess)\n"
                                  "  0000  00 01 00 09[03]a0\n"));
}

TEST_CASE(
    "a single candidate has its own sentence, and so has an item that is in no other snapshot") {
    Lines records = first_lines(5);
    const auto with = [&](const std::string& candidate) {
        records[3] =
            R"({"v":1,"t":"","type":"finding","session":1,"id":"snapshot.crc_mismatch","severity":"error","tick":12,"name":"ambiguous","candidates":{"count":1,"likeliest":[)" +
            candidate + "]}}";
        return told(records);
    };
    CHECK(contains(
        with(
            R"({"item":{"type":"character","type_id":9,"id":3},"field":"x","value":5,"expected":4})"),
        "  the only value that fits: character 3 x: 5 instead of 4\n"));
    const std::string other = with(R"({"item":{"type":"damage_ind","type_id":20,"id":5}})");
    CHECK(contains(other, "  the only item: damage_ind 5\n"));
    CHECK(contains(other, "  neither in the snapshot before nor in the one after\n"));
}

TEST_CASE("only the bytes around the marked byte are shown, with the number of omitted bytes") {
    Lines records = first_lines(5);
    std::string bytes;
    for (int i = 0; i < 120; ++i) {
        bytes += "0a";
    }
    replace_text(records[3], R"("offset":4)", R"("offset":79)");
    replace_text(records[3], "0001000903a0", bytes);
    const std::string text = told(records);
    CHECK(contains(text, "  0040  0a 0a 0a 0a 0a 0a 0a 0a 0a 0a 0a 0a 0a 0a 0a[0a]\n"));
    CHECK(contains(text, "  0020  "));
    CHECK_FALSE(contains(text, "  0010  "));
    CHECK(contains(text, "  … 54 more bytes; the JSON has all in hex\n"));
}

TEST_CASE("the client's acknowledgements are compared with the rejected snapshots") {
    struct Row {
        std::string_view name;
        int acknowledged;
        std::string_view said;
    };

    const Row rows[] = {
        {"the base", 10, "  The client did not acknowledge it.\n"},
        {"the snapshot", 12, "  The client acknowledged this snapshot, so its game went on: "},
        {"none", -1, "  The client did not acknowledge it.\n"},
        {"a later one", 13, "  The client acknowledged a later snapshot"}};
    for (const Row& row : rows) {
        CAPTURE(row.name);
        Lines records = kLines;
        std::string later = records[4];
        replace_text(later, R"("tick":12)", R"("tick":13)");
        records.insert(records.begin() + 5, later);
        replace_text(records[6], R"("ack_tick":10)",
                     fmt::format(R"("ack_tick":{})", row.acknowledged));
        CHECK(contains(told(records), row.said));
    }
    CHECK(contains(told(first_lines(5)), "No later input of the client was seen"));
}

TEST_CASE("rejected snapshots in a row are one event") {
    Lines records = first_lines(5);
    for (const int tick : {14, 16, 18}) {
        records.push_back(kLines[4]);
        replace_text(records.back(), R"("tick":12)", fmt::format(R"("tick":{})", tick));
    }
    records.insert(records.end(), kLines.begin() + 5, kLines.end());
    const std::string text = told(records);
    CAPTURE(text);
    CHECK(contains(text, "\n  15:24:45.240  snapshots 12 to 18: all rejected\n"
                         "  15:24:45.250  the client acknowledges 10\n"));
    // Those before the finding, too.
    const Lines rejected{records.begin() + 4, records.begin() + 8};
    records.insert(records.begin() + 3, rejected.begin(), rejected.end());
    replace_text(records[3], R"("tick":12)", R"("tick":11)");
    CHECK(contains(told(records), "  snapshots 11 to 18: all rejected\n"));
}

TEST_CASE("a finding about a size is also found by the first tick with the size") {
    const Lines records{
        finding_line("snapshot.id_out_of_range", "error", R"(,"tick":20)"),
        finding_line("snapshot.size_differs", "error", R"(,"tick":68,"since_tick":20)")};
    for (const int tick : {20, 68}) {
        CHECK(told(records, {.session = 1, .tick = tick}).starts_with("snapshot.size_differs\n"));
    }
}

TEST_CASE("three acknowledgements after the finding are listed, with a note if there are more") {
    Lines records = first_lines(5);
    const auto acknowledge = [&records](int tick) {
        records.push_back(kLines[5]);
        replace_text(records.back(), R"("ack_tick":10)", fmt::format(R"("ack_tick":{})", tick));
        return told(records);
    };
    acknowledge(10);
    acknowledge(11);
    const std::string all = acknowledge(12);
    CHECK(contains(all, "the client acknowledges 12\n"));
    const std::string some = acknowledge(13);
    CHECK(contains(some, "acknowledges 12 (later ones are not listed)\n"));
    CHECK(contains(some, "acknowledges 11\n"));
    CHECK_FALSE(contains(some, "acknowledges 13"));
    CHECK(acknowledge(14) == some);
}

TEST_CASE(
    "if the client acknowledged a rejected snapshot, the text says what the client had received") {
    struct Row {
        std::string_view id;
        std::string_view reason;
    };

    const std::string_view id = "snapshot.crc_mismatch";
    const Row rows[] = {{id, "it received something else than is recorded here"},
                        {"snapshot.unknown_base", "it had the base, which is missing here"}};
    for (const Row& row : rows) {
        CAPTURE(row.id);
        Lines records = kLines;
        replace_text(records[3], id, row.id);
        replace_text(records[5], R"("ack_tick":10)", R"("ack_tick":12)");
        std::string text = told(records);
        for (std::size_t at = 0; (at = text.find("\n  ", at)) != std::string::npos;) {
            text.replace(at, 3, " ");
        }
        CHECK(contains(text, row.reason));
    }
}

TEST_CASE("a byte is marked only if it is among the printed bytes") {
    Lines records = first_lines(5);
    const std::string mark = R"("offset":4,)";
    for (const std::string_view other : {R"("offset":20,)", R"("offset":9999999999,)"}) {
        CAPTURE(other);
        records[3] = kLines[3];
        replace_text(records[3], mark, other);
        const std::string text = told(records);
        CHECK_FALSE(contains(text, "marked"));
        CHECK(contains(text, "  0010  ab ac ad ae\n"));
    }
}

TEST_CASE("each number of a finding has a label") {
    struct Row {
        std::string_view id;
        std::string_view numbers;
        std::string_view said;
    };

    const Row rows[] = {
        {"snapshot.budget", R"("value":1024,"limit":1024,"lost":12)",
         "  in use: 1024\n  limit: 1024\n  items that are gone: 12\n"},
        {"snapshot.client_stalled", R"("value":740,"since_tick":5,"lost":3)",
         "  nothing new to show for: 740 ms\n  since tick: 5\n  unusable snapshots in between: "
         "3\n"},
        {"snapshot.size_differs", R"("value":23,"limit":22)",
         "  the server's size: 23 ints\n  expected size: 22 ints\n"},
        {"snapshot.size_differs", R"("since_tick":5)", "\n  first read at tick: 5\n"},
        {"snapshot.part_missing", R"("lost":2)", "  snapshots lost so far: 2\n"},
    };
    Lines records = first_lines(3);
    records.emplace_back();
    for (const Row& row : rows) {
        CAPTURE(row.id);
        records.back() = finding_line(
            row.id, "warning",
            fmt::format(R"(,"tick":12,{},"item":{{"type":"character","type_id":9,"id":3}})",
                        row.numbers));
        const std::string text = told(records);
        CHECK(contains(text, row.said));
        CHECK(contains(text, "The item: character 3"));
        CHECK_FALSE(contains(text, "       rejected")); // no snapshot was rejected
    }
}

TEST_CASE("the finding of the requested session and tick is explained") {
    CHECK_FALSE(explain(kLines, {.session = 2}).has_finding());
    CHECK_FALSE(explain(kLines, {.tick = 14}).has_finding());
    CHECK(explain(kLines, {.session = 1, .tick = 12}).has_finding());
    CHECK_FALSE(explain({}).has_finding());
}

TEST_CASE("an explanation has no events of another run in the same recording") {
    const Lines first = first_lines(4);
    const std::string alone = told(first);
    const auto again = [&](const std::string& open) {
        Lines records = first;
        records.push_back(open);
        records.insert(records.end(), kLines.begin() + 4, kLines.end());
        return told(records);
    };
    const std::string open =
        R"({"v":1,"t":"2026-11-20T16:00:00.000000Z","type":"session","session":1,"event":"open")";
    CHECK(again(open + "}") == alone);
    // The next segment of the same run begins with a repeated record.
    CHECK(contains(again(open + R"(,"again":true})"), "snapshot 14 on 10"));

    // No event of the previous run precedes a finding.
    Lines records = first_lines(3);
    records.push_back(open + "}");
    records.push_back(kLines[3]);
    CHECK_FALSE(contains(told(records), "snapshot 10"));
}

TEST_CASE("an error is explained rather than an earlier warning") {
    Lines records{finding_line("snapshot.unknown_base", "warning", R"(,"tick":3)", 2)};
    CHECK(explain(records).finding.at("id").as_string() == "snapshot.unknown_base");
    records.insert(records.end(), kLines.begin(), kLines.end());
    const Explanation story = explain(records);
    CHECK(story.finding.at("id").as_string() == "snapshot.crc_mismatch");
    REQUIRE(story.find_suspect_item(story.items_before) != nullptr);
    CHECK(story.find_suspect_item(story.items_before)->at("fields").at("x").as_int64() == 1000);
    CHECK(story.after_tick == 14);
}

TEST_CASE(
    "a finding that names the cause is explained rather than the errors that follow from it") {
    const auto first = finding_line("snapshot.type_out_of_range", "error", R"(,"tick":3)");

    struct Row {
        std::string_view later;
        std::string_view name;
        std::string_view told;
        std::string_view other;
    };

    const std::string_view of_first = "snapshot.type_out_of_range: session 1, tick 3";
    const Row rows[] = {
        {"snapshot.crc_mismatch", "unknown", "snapshot.type_out_of_range",
         "snapshot.crc_mismatch: session 1, tick 4"},
        {"snapshot.crc_mismatch", "duplicate_update", "snapshot.crc_mismatch", of_first},
        {"snapshot.size_change", "", "snapshot.size_change", of_first},
        {"snapshot.size_differs", "", "snapshot.size_differs", of_first},
    };
    for (const Row& row : rows) {
        CAPTURE(row.told);
        const std::string text = told(
            {first, first,
             finding_line(row.later, "error", fmt::format(R"(,"name":"{}","tick":4)", row.name))});
        CHECK(text.starts_with(std::string{row.told} + '\n'));
        CHECK(text.ends_with("\nAlso reported (the first of each kind)\n  " +
                             std::string{row.other} + '\n'));
    }
    CHECK_FALSE(contains(told({first}), "Also reported"));
}

TEST_CASE("a snapshot of the next map with the same tick is not confused with the finding's") {
    ExplanationReader reader{{}};
    reader.on_line(finding_line("snapshot.type_out_of_range", "error", R"(,"tick":3)"));
    reader.explanation().datagrams = {{.frame = 7}};
    reader.on_line(finding_line("snapshot.size_change", "error", R"(,"tick":3)"));
    CHECK(reader.explanation().datagrams.size() == 1);
    std::string later = finding_line("snapshot.size_differs", "error", R"(,"tick":3)");
    replace_text(later, R"("t":"")", R"("t":"2026-11-20T15:24:46.000000Z")");
    reader.on_line(later);
    CHECK(reader.explanation().datagrams.empty());
}

TEST_CASE("the other types with another size are listed, with session and tick") {
    const auto differing = [](const std::string& item) {
        return finding_line("snapshot.size_differs", "error",
                            R"(,"tick":3,"value":5,"limit":4,"item":)" + item);
    };
    const std::string text = told({differing(R"({"type":"pickup","type_id":4,"id":33})"),
                                   differing(R"({"type":"","type_id":40,"id":1})")});
    CHECK(contains(text, "  finding snapshot.size_differs, tick 3, type 40\n"));
    CHECK(contains(text, "  pickup (seen in pickup 33)\n  the server's size: 5 ints\n"));
    CHECK(contains(text, "  snapshot.size_differs of type 40: session 1, tick 3\n"));
    CHECK_FALSE(contains(text, "of pickup"));
}

TEST_CASE("the table of fields includes the ints beyond the agreed size") {
    const auto snapshot = [](int tick, const std::string& data) {
        return fmt::format(
            R"({{"t":"","type":"snapshot","session":1,"tick":{},"ok":true,"items":[{{"type":"pickup","type_id":4,"id":7,"fields":{{"x":1,"y":2}},"data":{}}}]}})",
            tick, data);
    };

    struct Row {
        std::string_view id;
        int limit;
        std::string_view shown;
    };

    const Row rows[] = {
        {"snapshot.size_differs", 2,
         "  y                                 2              2\n"
         "  int_2                             5              6\n"
         "  int_3                                            8\n"},
        {"snapshot.size_differs", 4, "2              2\n"},
        {"snapshot.size_differs", -1, "2              2\n"},
        {"snapshot.size_change", 2, "2              2\n"},
    };
    for (const Row& row : rows) {
        CAPTURE(row.shown);
        const std::string text = told({
            snapshot(10, "[1,2,5]"),
            finding_line(
                row.id, "error",
                fmt::format(
                    R"(,"tick":12,"limit":{},"item":{{"type":"pickup","type_id":4,"id":7}})",
                    row.limit)),
            snapshot(14, "[1,2,6,8]"),
        });
        CHECK(contains(text, std::string{row.shown} + "\nUsual cause"));
    }
}

TEST_CASE("for a size finding, the datagrams of the first snapshot with that size are shown") {
    struct Row {
        std::string_view id;
        std::string_view since;
        std::int64_t tick;
        std::string_view said;
    };

    const std::string certain = "\ntwscope became certain of the size at tick 14. ";
    const Row rows[] = {
        {"snapshot.size_differs", R"(,"since_tick":10)", 10,
         "It first read the size in the snapshot of tick 10:\nDatagram: "},
        {"snapshot.size_differs", "", 14, "The object was sent before.\nDatagram: "},
        {"snapshot.update_truncated", R"(,"since_tick":10)", 14, ", tick 14\nDatagram: "},
    };
    for (const Row& row : rows) {
        CAPTURE(row.said);
        Explanation story =
            explain({finding_line(row.id, "error", fmt::format(R"(,"tick":14{})", row.since))});
        CHECK(story.datagram_tick() == row.tick);
        story.datagrams = {{.tick = static_cast<snapshot::Tick>(row.tick)}};
        CHECK(contains(explanation_text(story), row.said));
        CHECK(contains(explanation_text(story), certain) == (row.id == "snapshot.size_differs"));
        CHECK(explanation_json(story).at("datagrams").at(0).at("tick") == row.tick);
    }
}

TEST_CASE("if an object's size is the cause, the text has the consequences and no other advice") {
    const analyze::SizeDifference pickup{.object = "pickup",
                                         .type_id = 4,
                                         .agreed_ints = 4,
                                         .actual_ints = 5,
                                         .snapshots = 382,
                                         .text = "pickup: 5 ints instead of 4"};
    const analyze::SizeDifference shorter{
        .object = "laser", .agreed_ints = 5, .actual_ints = 1, .text = "l"};

    struct Row {
        std::vector<analyze::SizeDifference> sizes;
        std::size_t others;
        std::string_view begin;
        std::string_view acknowledged;
        std::string_view change;
        std::string_view names;
    };

    const Row rows[] = {
        {{pickup},
         1,
         "Cause: an object of another size than agreed (counted in session 1; also seen in 1 other "
         "session)\n  pickup: 5 ints instead of 4\n",
         ", so its game went on: it knows pickup with 5 ints, or it is a bot that does not verify "
         "snapshots. The game of all other clients freezes.",
         "Either give pickup 4 ints again, and move the new fields into an object of your own with "
         "a UUID",
         "Pickup"},
        {{shorter},
         0,
         "Cause: an object of another size than agreed (seen in session 1)\n  l\n",
         "it knows laser with 1 int, or",
         "Either give laser 5 ints again: all clients",
         "Laser"},
        {{pickup, shorter},
         0,
         "Cause: an object of another size than agreed (seen in session 1)\n  pickup: 5",
         "it knows these objects with the server's sizes, or",
         "Either give pickup 4 ints, laser 5 ints again, and move",
         "Pickup|Laser"},
    };
    for (const Row& row : rows) {
        CAPTURE(row.change);
        Lines records = kLines;
        replace_text(records[3], "snapshot.crc_mismatch", "snapshot.size_out_of_range");
        replace_text(records[5], R"("ack_tick":10)", R"("ack_tick":12)");
        Explanation story = explain(records);
        CHECK(explanation_json(story).at("sizes").as_array().empty());
        CHECK_FALSE(contains(explanation_text(story), "What to change"));
        story.causing_sizes = row.sizes;
        story.num_other_resized_sessions = row.others;
        std::string text = explanation_text(story);
        CHECK(text.starts_with(row.begin));
        CHECK_FALSE(contains(text, "Usual cause"));
        CHECK(contains(text, fmt::format("\nWhere to look\n  grep -rnE 'CNet(Obj|Event)_({})' src/",
                                         row.names)));
        for (std::size_t at = 0; (at = text.find("\n  ", at)) != std::string::npos;) {
            text.replace(at, 3, " ");
        }
        CHECK(contains(text, row.acknowledged));
        CHECK(contains(text, row.change));
        const auto sizes = explanation_json(story).at("sizes").as_array();
        CHECK(sizes.size() == row.sizes.size());
        if (row.others != 0) {
            CHECK(sizes.front() ==
                  boost::json::parse(
                      R"({"object":"pickup","type_id":4,"agreed":4,"ints":5,"snapshots":382})"));
        }
    }
}

TEST_CASE("an item without known fields has no table of fields") {
    struct Row {
        std::string_view item;
        bool shown;
    };

    const Row rows[] = {{R"({"type":"","type_id":40,"id":1,"data":[1]})", false},
                        {R"({"type":"","type_id":40,"id":1,"player":"ann"})", true},
                        {R"({"type":"","type_id":40,"id":1,"fields":{"x":1}})", true}};
    for (const Row& row : rows) {
        CAPTURE(row.item);
        const std::string text = told(
            {finding_line("snapshot.missing_descriptor", "warning",
                          R"(,"tick":10,"item":{"type":"","type_id":40,"id":1})"),
             fmt::format(
                 R"({{"t":"","type":"snapshot","session":1,"tick":12,"ok":true,"items":[{}]}})",
                 row.item)});
        CHECK(contains(text, "  the item: type 40 1\n"));
        CHECK(contains(text, "\nThe item: ") == row.shown);
        CHECK(contains(text, " tick 12\n") == contains(row.item, "fields"));
    }
}

TEST_CASE("an unknown base is explained by the error that rejected it") {
    const std::string error = finding_line("snapshot.size_out_of_range", "error", R"(,"tick":10)");
    const auto snapshot = [](bool ok) {
        return fmt::format(R"({{"t":"","type":"snapshot","session":1,"tick":10,"ok":{}}})", ok);
    };
    const auto unknown_base = [](int base) {
        return finding_line("snapshot.unknown_base", "warning",
                            fmt::format(R"(,"tick":12,"delta_tick":{})", base));
    };

    struct Row {
        std::string_view name;
        Lines records;
        bool follows;
    };

    const Row rows[] = {
        {"the base was rejected", {error, snapshot(false), unknown_base(10)}, true},
        {"a later base was rejected, too", {error, snapshot(false), unknown_base(11)}, true},
        {"the base is older", {error, snapshot(false), unknown_base(8)}, false},
        {"the error was mended", {error, snapshot(true), unknown_base(11)}, false},
        {"another map",
         {error, R"({"t":"","type":"map","session":1,"name":"dm1"})", unknown_base(11)},
         false},
        {"no error", {snapshot(false), unknown_base(10)}, false},
    };
    for (const Row& row : rows) {
        CAPTURE(row.name);
        const Explanation story = explain(row.records, {.tick = 12});
        const std::string text = explanation_text(story);
        CHECK(story.base_error.has_value() == row.follows);
        CHECK(contains(text, "was rejected: see snapshot.size_out_of_range at tick 10.\n") ==
              row.follows);
        CHECK(contains(text, "Usual cause") != row.follows);
        CHECK(contains(text, "Nothing in the server") != row.follows);
    }
}

TEST_CASE("if all findings have the severity info, the text says how to explain them") {
    const Lines records{finding_line("snapshot.leftover", "info", R"(,"tick":7)", 2),
                        finding_line("snapshot.leftover", "info", R"(,"tick":9)", 2),
                        finding_line("map.not_found", "info", "", 2)};
    CHECK(explainable_findings_text(explain(records)) ==
          "Nothing to explain: no warning or error about snapshots in 1 session.\n"
          "Findings of severity info exist; session 2, tick 7 explains the first "
          "(snapshot.leftover).\n"
          "Findings that are not about snapshots exist.\n");
    CHECK(explainable_findings_text(explain(records), {}, "list it")
              .ends_with("Findings that are not about snapshots exist; to list them: list it\n"));
    CHECK(read(records, {.session = 3}).lacks_selected_session());
    CHECK_FALSE(read(records, {.session = 2}).lacks_selected_session());
}

TEST_CASE(
    "the explanation of a capture names the datagrams and the marked byte's position in them") {
    struct Row {
        std::string_view name;
        bool compressed;
        std::string_view said;
        std::string_view marked;
    };

    const Row rows[] = {
        {"plain", false,
         "Datagram: frame 7 of a.pcap, 15:24:45.240001, 60 bytes of payload; the delta begins at "
         "byte 27\n",
         "byte 9 marked: byte 36 of the payload\n"},
        {"compressed", true,
         "Datagram: frame 7 of a.pcap, 15:24:45.240001, 60 bytes of payload, compressed; "
         "decompressed, after the header of 3 bytes, the delta begins at byte 27\n",
         "byte 9 marked: byte 36 of the decompressed payload after the header\n"},
    };
    Lines records = kLines;
    replace_text(records[6], R"("part":1)", R"("part":0)");
    for (const Row& row : rows) {
        CAPTURE(row.name);
        Explanation story = explain(records);
        story.datagrams = {{.file = "a.pcap",
                            .frame = 7,
                            .time = 1'763'652'285'240'001'999,
                            .bytes = 60,
                            .header_bytes = 3,
                            .is_compressed = row.compressed,
                            .part_offset = 27,
                            .part_bytes = 30}};
        const std::string text = explanation_text(story);
        CHECK(contains(text, row.said));
        CHECK(contains(text, row.marked));
        const auto json = explanation_json(story);
        CHECK(json.at("datagrams").at(0).at("frame") == 7);
        CHECK(json.at("datagrams").at(0).at("marked") == 36);
    }
}

TEST_CASE("if the requested finding does not exist, the first other findings are listed") {
    Lines records;
    for (int tick = 1; tick <= 20; ++tick) {
        for (const std::string id :
             {"snapshot.size_change", "snapshot.crc_mismatch", "packet.seven"}) {
            records.push_back(finding_line(id, "error", fmt::format(R"(,"tick":{})", tick), 3));
        }
    }
    const Explanation story = explain(records, {.session = 4});
    CHECK_FALSE(story.has_finding());
    CHECK(story.num_explainable_findings == 20);
    REQUIRE(story.explainable_findings.size() == 12);
    CHECK(story.explainable_findings.front() ==
          Explanation::ExplainableFinding{.session = 3, .tick = 1, .id = "snapshot.size_change"});
    const std::string text = explainable_findings_text(story);
    CHECK(text.starts_with(
        "Nothing to explain: no finding about snapshots of session 4.\nOthers are:\n"
        "  session 3, tick 1: snapshot.size_change\n"));
    CHECK(text.ends_with("  and 8 more\n"));
}

TEST_CASE("invalid, truncated and hostile lines do no harm") {
    std::mt19937 random{41};
    for (int round = 0; round < 300; ++round) {
        ExplanationReader reader{{}};
        for (std::string line : kLines) {
            if (random() % 2 == 0) {
                line.resize(random() % line.size());
            }
            if (!line.empty() && random() % 2 == 0) {
                line[random() % line.size()] = static_cast<char>(random() % 256);
            }
            reader.on_line(line);
        }
        if (reader.explanation().has_finding()) {
            CHECK_FALSE(explanation_text(reader.explanation()).empty());
        }
    }
    const Explanation story = explain({
        R"({"type":"finding","session":1,"id":"snapshot.crc_mismatch","severity":"error","tick":1,"detail":"\u001b[2J","item":{"type":"\u001b","type_id":9,"id":3},"hex":"00","offset":-1})",
        R"({"type":"finding","session":1,"id":"snapshot.explained","severity":"info","tick":1,"field":7})",
        R"({"type":"snapshot","session":1,"tick":2,"ok":true,"items":[7,{"type_id":9,"id":3,"fields":7,"at":[]}],"removed":[[1],7,["a","b"]]})",
    });
    CHECK(explanation_text(story).find('\x1b') == std::string::npos);
}

using analyze::SnapshotDatagrams;

namespace {

constexpr std::size_t kHeader = 3;
constexpr record::Timestamp kOneSecond = 1'000'000'000;

/// Adds datagrams with one part each to SnapshotDatagrams.
class DatagramSequence {
  public:
    /// Adds a datagram of 40 bytes whose part starts at byte 10.
    void add_datagram(std::uint32_t session, std::int32_t tick, std::int32_t part,
                      inspect::SnapMessageOutcome outcome = inspect::SnapMessageOutcome::stored,
                      bool compressed = false) {
        ++frame_;
        add_datagram_at(session, kOneSecond + static_cast<std::int64_t>(frame_), tick, part,
                        outcome, compressed);
    }

    void add_datagram_at(std::uint32_t session, std::int64_t time, std::int32_t tick,
                         std::int32_t part, inspect::SnapMessageOutcome outcome, bool compressed) {
        const std::span<const std::byte> datagram{bytes_};
        record::RecordHeader head;
        head.time = time;
        head.session = session;
        datagrams.on_datagram(head, datagram);
        wire::Packet packet;
        packet.compressed = compressed;
        packet.payload = datagram.subspan(kHeader);
        datagrams.on_packet(packet);
        wire::SnapshotBody body;
        body.tick = tick;
        body.num_parts = 3;
        body.part = part;
        body.data = datagram.subspan(10);
        datagrams.on_snap_message({.body = body, .outcome = outcome});
        datagrams.on_datagram_end();
    }

    SnapshotDatagrams datagrams{[](analyze::SnapshotDatagram& datagram) {
                                    if (datagram.time >= kOneSecond) {
                                        datagram.file = "a.pcap";
                                        datagram.frame =
                                            static_cast<std::uint64_t>(datagram.time - kOneSecond);
                                    }
                                },
                                [this] { ++ends; }};
    int ends = 0;

  private:
    std::array<std::byte, 40> bytes_{};
    std::uint64_t frame_ = 0;
};

} // namespace

TEST_CASE("the datagrams of a snapshot are found by session and tick, one for each part") {
    DatagramSequence capture;
    capture.add_datagram(1, 12, 1);
    capture.add_datagram(2, 12, 0);
    capture.add_datagram(1, 12, 0);
    capture.add_datagram(1, 14, 0);
    capture.add_datagram(1, 12, 0, inspect::SnapMessageOutcome::repeated);
    const auto found = capture.datagrams.find_datagrams(1, 12);
    REQUIRE(found.size() == 2);
    CHECK(found[0].part == 0);
    CHECK(found[0].frame == 3);
    CHECK(found[0].file == "a.pcap");
    CHECK(found[0].num_parts == 3);
    CHECK(found[0].bytes == 40);
    CHECK(found[0].part_bytes == 30);
    CHECK(found[1].frame == 1);
    CHECK(capture.datagrams.find_datagrams(3, 12).empty());
    CHECK(capture.datagrams.find_datagrams(1, 13).empty());
    CHECK(capture.ends == 5);
}

TEST_CASE("offsets count from the start of the datagram, or of its decompressed payload") {
    DatagramSequence capture;
    capture.add_datagram(1, 12, 0);
    capture.add_datagram(1, 13, 0, inspect::SnapMessageOutcome::complete, true);
    CHECK(capture.datagrams.find_datagrams(1, 12).front().part_offset == 10);
    const auto compressed = capture.datagrams.find_datagrams(1, 13);
    CHECK(compressed.front().is_compressed);
    CHECK(compressed.front().header_bytes == kHeader);
    CHECK(compressed.front().part_offset == 10 - kHeader);
}

TEST_CASE(
    "a datagram's place in the file is found by its own time, because it may be inspected later") {
    DatagramSequence capture;
    capture.add_datagram(1, 10, 0);
    capture.add_datagram(1, 11, 0);
    for (const std::int64_t time : {kOneSecond + 1, std::int64_t{5}}) {
        CAPTURE(time);
        capture.add_datagram_at(1, time, 12, 0, inspect::SnapMessageOutcome::stored, false);
        const auto found = capture.datagrams.find_datagrams(1, 12);
        REQUIRE(found.size() == 1);
        CHECK(found.front().frame == (time == 5 ? 0 : 1)); // unknown
        CHECK(found.front().time == time);
    }
}

TEST_CASE("the numbers of stored datagrams and sessions are limited") {
    DatagramSequence capture;
    for (std::int32_t i = 0; i < 200; ++i) {
        capture.add_datagram(1, i, 0);
    }
    CHECK(capture.datagrams.find_datagrams(1, 199 - 64).empty());
    CHECK_FALSE(capture.datagrams.find_datagrams(1, 199 - 63).empty());
    for (std::uint32_t session = 2; session < 5000; ++session) {
        capture.add_datagram(session, 7, 0);
    }
    CHECK_FALSE(capture.datagrams.find_datagrams(SnapshotDatagrams::kMaxSessions, 7).empty());
    CHECK(capture.datagrams.find_datagrams(SnapshotDatagrams::kMaxSessions + 1, 7).empty());
}
