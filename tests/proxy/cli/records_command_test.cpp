// The selection of records by session, time and column; lines that are not records; and recordings
// that a crash or a full disk truncated, whose readable part every command reads.
// Covers: proxy/cli/records_files.cpp
#include "map/identity.h"
#include "proxy/store/zstd_frames.h"
#include "tests/map/writer.h"
#include "tests/proxy/cli/program_runs.h"
#include "tests/proxy/store/recording_bytes.h"

#include <algorithm>

#include <doctest/doctest.h>
#include <fmt/format.h>

using namespace tw::test;

namespace {

const std::string kFirst =
    R"({"v":1,"t":"2026-11-21T20:15:00.000000Z","type":"session","session":1,"event":"open"})"
    "\n";
const std::string kSecond =
    R"({"v":1,"t":"2026-11-21T20:16:00.000000Z","type":"session","session":2,"event":"open"})"
    "\n";
const std::string kAgain =
    R"({"v":1,"t":"2026-11-21T20:15:00.000000Z","type":"session","session":1,"event":"open","again":true})"
    "\n";

} // namespace

TEST_CASE("records that --max-line split are whole again for every reader") {
    const TemporaryFolder folder;
    const std::string capture = folder.file("many.pcap");
    const std::string whole = folder.file("whole.jsonl");
    const std::string limited = folder.file("limited.jsonl.zst");
    const std::string joined = folder.file("joined.jsonl");
    Items tees; // more than fit into a line, and as many as fit into a datagram
    constexpr std::uint16_t kTees = 36;
    for (std::uint16_t id = 0; id < kTees; ++id) {
        tees[{9, id}] =
            std::vector<std::int32_t>(22, 63); // 63 is the largest int that takes one byte
    }
    save_game(capture, tees);
    const auto decode = [&](const std::string& file, const Arguments& more) {
        CHECK(twscope({"decode", capture, "--items", "all", "--raw", "-o", file}, more).status ==
              0);
    };
    decode(whole, {});
    decode(limited, {"--max-line", "16384"});
    CAPTURE(run_in_shell("wc -L " + whole).out);
    CHECK(run_in_shell("zstdcat " + limited +
                       " | awk '{ if (length > most) most = length } END { print "
                       "(most < 16384) (most > 8192) }'")
              .out == "11\n");
    CHECK(run_in_shell("zstdcat " + limited + " | grep -c 'line.:2,.lines.:[2-9]'").out != "0\n");
    CHECK(twscope({"records", limited, "-o", joined}).status == 0);
    CHECK(read_text(joined) == read_text(whole));
    CHECK(twscope({"records", limited, "--verify"}).out.ends_with("complete\n"));
    CHECK(twscope({"compare", whole, limited}).status == 0);
    CHECK(twscope({"explain", limited}).out == twscope({"explain", whole}).out);
    for (const char* bad : {"0", "5", "16383", "99999999", "x"}) {
        check_usage_error({"decode", capture, "--max-line", bad}, "--max-line");
    }
}

TEST_CASE("a time that is malformed or does not exist is rejected") {
    const TemporaryFolder folder;
    const std::string file = folder.write("g.jsonl", kFirst + kSecond);

    struct Row {
        Arguments choice;
        std::string wanted;
    };

    const Row good[] = {
        {{"--from", "2026-11-21T20:15:30Z"}, kSecond},
        {{"--from", "2026-11-21T20:16:00.000000Z"}, kSecond},
        {{"--to", "2026-11-21T20:16"}, kFirst},
        {{"--from", "2026", "--to", "2026-11-21T20:16:00Z"}, kFirst},
        {{"--from", "2024-02-29"}, kFirst + kSecond},
        {{"--from", "2026-11-21 20:15:30"}, kSecond},
        {{"--from", "20:15:30"}, kSecond}, // of the first record's day
        {{"--from", "00:00", "--to", "20:16"}, kFirst},
        {{"--from", "-36500d"}, kFirst + kSecond}, // a hundred years ago
        {{"--to", "-36500d"}, {}},
    };
    for (const Row& row : good) {
        CAPTURE(row.choice[1]);
        CHECK(output_of({"records", file}, row.choice) == row.wanted);
    }
    for (const char* bad :
         {"2026-11-3", "24:00", "20:1", "20:15:3x", "20:15Z", "2026-13-45", "2026-00", "2026-02-29",
          "2026-11-21T24", "2026-11-21T20:60", "2026-11-21T20:15:3", "2026-11-21Z", "202", "x", "-",
          "-60", "-5x", "-1GiB", "2026-11-21 "}) {
        CAPTURE(bad);
        check_usage_error({"records", file, std::string{"--from="} + bad},
                          "expected a time in UTC");
    }
    folder.write("empty.jsonl", "");
    check_usage_error({"records", folder.file("empty.jsonl"), "--from", "20:15"},
                      "add the date, for example 2026-11-21T20:15");
    check_usage_error({"records", file, "--from", "2026-11-22", "--to", "2026-11-21"},
                      "must be before");
    check_usage_error({"records", file, "--from", "2026", "--to", "2026"}, "must be before");
}

TEST_CASE("records selected by time include the start and the map of each session") {
    const TemporaryFolder folder;
    const auto line = [](std::string_view time, std::string_view type, std::string_view rest) {
        return fmt::format(R"({{"v":1,"t":"2026-11-21T20:{}.000000Z","type":"{}","session":1,{}}})"
                           "\n",
                           time, type, rest);
    };
    const std::string old_map = line("15:01", "map", R"("name":"dm1")");
    const std::string map = line("15:02", "map", R"("name":"ctf1")");
    const std::string chat = line("15:03", "message", R"("name":"sv_chat")");
    const std::string late = line("20:00", "message", R"("name":"sv_chat")");
    const std::string end = line("20:01", "session", R"("event":"close")");
    const std::string file =
        folder.write("g.jsonl", kFirst + old_map + map + chat + late + late + end);
    const auto again = [](std::string text) {
        return text.replace(text.size() - 2, 1, R"(,"again":true})");
    };
    const auto chosen = [&](const Arguments& more) {
        return twscope({"records", file, "--from", "2026-11-21T20:20"}, more).out;
    };
    CHECK(chosen({}) == kAgain + again(map) + late + late + end);
    CHECK(chosen({"--filter", "message or map"}) == again(map) + late + late);
    // The filter selects no line from --from on.
    CHECK(chosen({"--filter", "event == open or map"}) == kAgain + again(map));
    CHECK(chosen({"--filter", "event == established"}).empty());
    CHECK(chosen({"--session", "2"}).empty());
    CHECK(chosen({"--columns", "type"}) ==
          "type\r\nsession\r\nmap\r\nmessage\r\nmessage\r\nsession\r\n");
    write_text(file, kFirst + map + line("15:04", "session", R"("event":"close")") + late);
    CHECK(chosen({}) == late); // of an earlier run's session with the same number
    const std::string open = line("20:00", "session", R"("event":"open")");
    write_text(file, kFirst + map + open + late); // the first run was killed
    CHECK(chosen({}) == open + late);
}

TEST_CASE("rows of worlds and of sessions together are pointed out, and session 0 is the worlds") {
    const TemporaryFolder folder;
    const std::string capture = folder.file("tees.pcap");
    const std::string both = folder.file("both.jsonl");
    Items tees;
    tees[{9, 1}] = std::vector<std::int32_t>(22, 1);
    save_game(capture, tees);
    REQUIRE(twscope({"decode", capture, "--view", "both", "-o", both}).status == 0);
    const Arguments table{"records", both, "--columns", "tick,items.id"};
    CHECK(contains(twscope(table).err, "rows are of worlds and of sessions, so most are there "));
    for (const Arguments& one : {Arguments{"--filter", "world"}, Arguments{"--session", "0"}}) {
        const ProgramResult worlds = twscope(table, one);
        CHECK(worlds.err.empty());
        CHECK(std::ranges::count(worlds.out, '\n') > 1);
    }
}

TEST_CASE("session numbers begin at 1") {
    const TemporaryFolder folder;
    const std::string file = folder.write("g.jsonl", kFirst);
    for (const char* bad : {"0", "-5", "1x", "99999999999"}) {
        CAPTURE(bad);
        const std::string session = std::string{"--session="} + bad;
        for (const char* const command : {"explain", "replay"}) {
            check_usage_error({command, file, session}, ": expected a number from 1");
        }
        if (std::string_view{bad} != "0") { // 0 selects the merged worlds
            check_usage_error({"records", file, session}, ": expected a number from 0");
            check_usage_error({"compare", file, file, session}, ": expected a number from 0");
        }
    }
    check_usage_error({"explain", file, "--tick=-3"}, "--tick");
    const Arguments replay{"replay", file, "-s", "127.0.0.1:1"};
    check_usage_errors(replay, {{{"--speed", "nan"}, "--speed"},
                                {{"--view", "both"}, "--view"},
                                {{"--console-filter", "both"}, "--console-filter"},
                                {{"--pseudonyms", "both"}, "--pseudonyms"},
                                {{"--password", std::string(256, 'x')}, "--password"}});
}

TEST_CASE("flags that select no record are reported") {
    const TemporaryFolder folder;
    const std::string file = folder.write("g.jsonl", kFirst + kSecond);

    struct Row {
        Arguments choice;
        std::string said;
    };

    const Row rows[] = {
        {{"--session", "2"}, ""},
        {{"--session", "2", "--session", "99"},
         "--session 99: there is no session 99 in these records; there are 2 sessions"},
        {{"--filter", "name == sv_kilmsg"},
         "no record matches --filter 'name == sv_kilmsg'; did you mean \"sv_kill_msg\"?"},
        {{"--filter", "message"}, "no record matches --filter 'message'"},
        {{"--filter", "any(items: player == Ann)"},
         "no record matches --filter 'any(items: player == Ann)' (names are compared exactly: Ann "
         "is not ann; --columns items.player shows them)"},
        {{"--filter", "session == 2", "--session", "1"},
         "no record matches --filter 'session == 2'"},
        {{"--filter", "message", "--from", "2100"}, "no record is between --from and --to"},
    };
    for (const Row& row : rows) {
        for (const Arguments& columns : {Arguments{}, Arguments{"--columns", "t,event"}}) {
            CAPTURE(row.said);
            const ProgramResult done =
                twscope({"records", file}, join_arguments(row.choice, columns));
            CHECK(done.status == 0);
            CHECK(done.err == (row.said.empty() ? "" : "twscope: " + row.said + "\n"));
        }
    }
}

TEST_CASE("a capture without packets is reported, unless others have some or it is a pipe") {
    const TemporaryFolder folder;
    const std::string game = save_game(folder.file("game.pcap"), tee_at(1, 1));
    const std::string forms[] = {folder.file("a.pcap"), folder.file("a.pcapng")};
    REQUIRE(tw::map::test::write_file(forms[0], pcap_file({}, {})));
    REQUIRE(tw::map::test::write_file(forms[1], pcapng_file(false, 1, 6, {})));
    for (const std::string& file : forms) {
        CAPTURE(file);
        for (const char* const command : {"decode", "explain"}) {
            const ProgramResult done = twscope({command, file});
            CHECK(done.status == 2);
            CHECK(done.err == "twscope: " + file + ": contains no packets\n");
        }
        CHECK(twscope({"decode", file, game}).status == 0);
        CHECK(run_in_shell("$twscope decode - < " + file).status == 0);
    }
}

TEST_CASE("an empty file is reported in one sentence") {
    const TemporaryFolder folder;
    const std::string empty = folder.write("empty", "");
    const std::string map = save_map(folder.file("m.map"));
    for (const std::string& file : {empty, std::string{"/dev/null"}}) {
        for (const Arguments& reader :
             {Arguments{"decode", file},
              {"explain", file},
              {"records", file},
              {"records", "--verify", file},
              {"compare", file, file},
              {"map", map, "--png", folder.file("m.png"), "--heat", file}}) {
            check_usage_error(reader, file + ": is empty\n");
        }
        const ProgramResult done =
            twscope({"records", file, "--columns", "t", "--filter", "message"});
        CHECK(done.status == 2);
        CHECK(done.err == "twscope: " + file + ": is empty\n");
        // An empty pipe is valid input.
        for (const char* const command : {"records", "explain"}) {
            const ProgramResult piped =
                run_in_shell("cat " + file + " | $twscope " + command + " -");
            CHECK(piped.status == 0);
            CHECK(piped.err.empty());
        }
    }
    check_usage_error({"map", empty}, empty + ": is empty\n");
    check_usage_error({"map", "/dev/null"}, "/dev/null: is not a regular file\n");
}

TEST_CASE("clients can be replayed from a folder of segments") {
    const TemporaryFolder folder;
    const Arguments replay{"replay", folder.path(), "-s", "127.0.0.1:1", "--session", "99"};
    check_usage_error(replay, "contains no capture segments; name the captures in it");
    save_game(folder.file("capture-20261121T161530Z-0001.pcapng"), tee_at(50, 80));
    check_usage_error(replay, "no client plays in its session 99");
}

TEST_CASE("columns must be keys of records") {
    const TemporaryFolder folder;
    const std::string file = folder.write(
        "g.jsonl",
        R"({"v":1,"t":"T","type":"summary","session":0,"findings":{"snapshot.crc_mismatch":3}})"
        "\n");
    const std::string hint =
        "\" (fields that an objects file defines need --objects; items.data has";
    check_usage_errors(
        {"records", file},
        {{{"--colums", "t"}, "records has no --colums; did you mean --columns?"},
         {{"--columns", "items.fields.int_4"}, hint},
         {{"--columns", "t", "--where", "fields.int_4 > 3"}, hint},
         {{"--filter", "items.fields.int_4 > 3"}, hint},
         {{"--columns", "tikc"}, "did you mean \"tick\"?"},
         {{"--columns", "player"}, "did you mean \"items.player\"?"},
         {{"--columns", "items.playr"}, "did you mean \"items.player\"?"},
         {{"--columns", "items.plaier"}, "items.player"},
         {{"--columns", "playr"}, "did you mean \"items.player\"?"},
         {{"--columns", "health"}, "did you mean \"items.fields.health\"?"},
         {{"--columns", "items.tick"}, "did you mean \"tick\"?"},
         {{"--filter", "player == ann"}, "did you mean \"items.player\"?"},
         {{"--where", "character"}, "add --columns"},
         {{"--columns", "items.id", "--where", "charakter"}, "did you mean \"character\"?"},
         {{"--columns", "items.id", "--where", "size_bytes > 5"},
          "recorded lines have no size_bytes"},
         {{"--verify", "--where", "character"}, "drop --where"}});
    CHECK_FALSE(contains(twscope({"records", file, "--columns", "tikc"}).err, "--objects"));
    const ProgramResult empty =
        twscope({"records", file, "--columns", "t,at.x"}); // findings may have it
    CHECK(empty.status == 0);
    CHECK(empty.err == "twscope: --columns at.x: no value in these records; items have it as "
                       "items.at.x\n");
    const std::string clans = folder.write(
        "clans.jsonl", R"({"v":1,"t":"T","type":"message","session":1,"fields":{"clan":""}})"
                       "\n");
    const ProgramResult no_clan = twscope({"records", clans, "--columns", "t,fields.clan"});
    CHECK(no_clan.out == "t,fields.clan\r\nT,\r\n");
    CHECK(no_clan.err.empty()); // an empty text is a value
    const std::string nulls =
        folder.write("nulls.jsonl", R"({"v":1,"t":"T","type":"finding","session":1,"tick":null})"
                                    "\n");
    CHECK(contains(twscope({"records", nulls, "--columns", "tick"}).err,
                   "no row: these columns have no value in any of these records\n"));
    const ProgramResult done =
        twscope({"records", file, "--columns", "t, findings.snapshot.crc_mismatch"});
    CHECK(done.status == 0);
    CHECK(done.out == "t,findings.snapshot.crc_mismatch\r\nT,3\r\n");
}

TEST_CASE("a condition selects the rows of a table of items, including by a mod's fields") {
    const TemporaryFolder folder;
    const std::string file =
        folder.write("g.jsonl", R"({"v":1,"t":"T","type":"snapshot","session":1,"tick":5,"items":[)"
                                R"({"type":"character","type_id":9,"id":0,"player":"ann"},)"
                                R"({"type":"lantern","type_id":77,"id":3,"fields":{"glow":6}},)"
                                R"({"type":"lantern","type_id":77,"id":4,"fields":{"glow":1}}],)"
                                R"("removed":[[77,2]]})"
                                "\n");
    const std::string objects = folder.write(
        "mod.json",
        R"({"objects": [{"type": 77, "name": "lantern", "fields": [{"name": "glow"}]}]})");

    struct Row {
        Arguments more;
        std::string rows;
    };

    const Row rows[] = {
        {{"--where", "character and player == ann"}, "5,0\r\n"},
        {{"--objects", objects, "--where", "lantern and fields.glow > 2"}, "5,3\r\n"},
        {{"--where", "removed"}, "5,2\r\n"},
        {{"--where", "id >= 0", "--filter", "tick > 5"}, ""},
    };
    for (const Row& row : rows) {
        CAPTURE(row.more.back());
        const ProgramResult done =
            twscope({"records", file, "--columns", "tick,items.id"}, row.more);
        CHECK(done.err.starts_with("twscope: no record matches --filter 'tick > 5'\n") ==
              row.rows.empty());
        CHECK(done.out == "tick,items.id\r\n" + row.rows);
    }
    CHECK(twscope({"records", file, "--columns", "items.id,items.at.x"}).err ==
          "twscope: --columns items.at.x: empty in every row (recorded without --maps?)\n");
}

TEST_CASE(
    "lines that are not records are left out, and their number is reported once for each file") {
    const TemporaryFolder folder;
    const std::string torn = kFirst.substr(0, 40);
    const std::string file =
        folder.write("torn.jsonl", kFirst + torn + "\n" + torn + kSecond + kSecond);
    const std::string said = "twscope: " + file + ": skipped 2 lines that are not records\n";
    const Arguments readers[] = {{"records", file},
                                 {"records", file, "--session", "2"},
                                 {"records", file, "--filter", "session == 2"},
                                 {"explain", file}};
    for (const Arguments& reader : readers) {
        CAPTURE(reader.front());
        const ProgramResult done = twscope(reader);
        CHECK(done.status == 3);
        CHECK(done.err == said);
    }
    CHECK(twscope({"records", file}).out == kFirst + kSecond);

    const std::string other = save_game(folder.file("bad.pcap"), tee_at(50, 80));
    check_usage_error({"records", other},
                      "contains no records; this is a capture; use 'twscope decode'");
    check_usage_error({"map", file}, "this is a recording; use 'twscope records'");
    const std::string packed = folder.file("game.jsonl.zst");
    const std::string map = save_map(folder.file("m.map"));
    REQUIRE(run_in_shell("$twscope decode " + other + " -o " + packed).status == 0);
    for (const std::string& records : {file, packed}) {
        check_usage_error({"decode", records},
                          "contains no traffic; this is a recording; use 'twscope records'");
    }
    check_usage_error({"decode", map}, "contains no traffic; this is a map; use 'twscope map'");
    check_usage_error({"map", packed}, "this is a recording; use 'twscope records'");
}

TEST_CASE("records may replace a recording, but no other file") {
    const TemporaryFolder folder;
    const std::string capture = save_game(folder.file("game.pcap"), tee_at(50, 80));
    const std::string records = folder.file("game.jsonl");
    const std::string packed = folder.file("game.jsonl.zst");
    for (const std::string& output :
         {records, packed, records,
          packed}) { // each twice, so that the second run replaces the file
        CAPTURE(output);
        REQUIRE(twscope({"decode", capture, "-o", output}).status == 0);
    }
    CHECK(twscope({"records", packed, "-o", records}).status == 0);

    constexpr std::string_view kRefusal = "contains something other than records";
    for (const std::string name : {"thesis.txt", "thesis.jsonl.zst"}) {
        CAPTURE(name);
        const std::string thesis = folder.write(name, "years of work");
        check_usage_error({"decode", capture, "-o", thesis}, kRefusal);
        check_usage_error({"records", records, "-o", thesis}, kRefusal);
        CHECK(read_text(thesis) == "years of work");
    }
    // Compressed data that is no recording, or that cannot be read.
    std::string other;
    tw::store::ZstdFrameWriter{}.append_frame("years of work", other);
    for (const std::string& bytes : {other, other.substr(0, 4) + std::string(20, '\xff')}) {
        folder.write("other.zst", bytes);
        check_usage_error(
            {"records", records, "-o", folder.file("other.zst")},
            "contains something other than records; name another file, or move this one "
            "away");
        CHECK(read_text(folder.file("other.zst")) == bytes);
    }
    folder.write("empty.jsonl", "");
    CHECK(twscope({"decode", capture, "-o", folder.file("empty.jsonl")}).status == 0);
    const Arguments table{"records", records, "--columns", "session", "-o", folder.file("t.tsv")};
    folder.write("t.tsv", "session\n"); // not by twscope, which ends lines with CRLF
    check_usage_error(table, "contains something other than a table of records");
    folder.write("t.tsv", "session\r\n");
    CHECK(twscope(table).status == 0);
}

TEST_CASE("records repeated in one recording are not left out of another one") {
    const TemporaryFolder folder;
    const std::string a = folder.file("a-20261121T201500Z-0001.jsonl");
    const std::string next = folder.write("a-20261121T211500Z-0002.jsonl", kAgain);
    const std::string b = folder.write("b-20261121T201500Z-0007.jsonl", kAgain);
    write_text(a, kFirst);
    CHECK(twscope({"records", a, next}).out == kFirst);
    CHECK(twscope({"records", a, b}).out == kFirst + kAgain);
}

TEST_CASE("a report that cannot be written is a failure") {
    if (!std::filesystem::exists("/dev/full")) {
        return;
    }
    const TemporaryFolder folder;
    const std::string capture = save_game(folder.file("p.pcap"), tee_at(50, 80));
    for (const std::string command : {"stats ", "decode ", "sizes "}) {
        CAPTURE(command);
        const ProgramResult done = run_program(
            "/bin/sh", {"-c", fmt::format("{} {}{} > /dev/full", TW_TWSCOPE, command, capture)});
        CHECK(done.status == 3);
        CHECK(contains(done.err, "standard output: No space left on device"));
    }
}

namespace {

/// Returns the records of one player on the small map.
std::string decode_short_session(const TemporaryFolder& folder) {
    const std::string capture = folder.file("stay.pcap");
    const std::string records = folder.file("stay.jsonl");
    save_game(capture, tee_at(50, 80), "tiny", tw::map::continue_crc(0, small_map()));
    REQUIRE(twscope({"decode", capture, "-o", records}).status == 0);
    return read_text(records);
}

struct TruncatedRecording {
    std::string_view name;
    std::string bytes;
    std::string_view said;
    int status = 0;
};

} // namespace

TEST_CASE("a truncated recording is read as far as possible, and reported once") {
    const TemporaryFolder folder;
    const std::string all = decode_short_session(folder);
    const std::string whole = folder.file("stay.jsonl");
    const std::string map = save_map(folder.file("tiny.map"));

    // All lines except the last one can be read.
    const std::size_t last = all.rfind('\n', all.size() - 2) + 1;
    const std::string lines = all.substr(0, last);
    const std::string rest = all.substr(last);
    const std::string number = std::to_string(std::count(lines.begin(), lines.end(), '\n'));
    const std::string frame = frame_without_checksum(rest);
    const std::string gzip = gzipped(rest);
    const TruncatedRecording cuts[] = {
        {"plain.jsonl", lines + rest.substr(0, rest.size() / 2),
         "ends in the middle of a line: truncated, or still being written; {} lines were "
         "read"},
        {"zstd.jsonl.zst", frame_without_checksum(lines) + frame.substr(0, frame.size() / 2),
         "ends in the middle of compressed data: truncated, or still being written; {} lines "
         "were read"},
        {"gzip.jsonl.gz", gzipped(lines) + gzip.substr(0, 12),
         "ends in the middle of compressed data: truncated, or still being written; {} lines "
         "were read"},
        {"damaged.jsonl.zst", frame_without_checksum(lines) + "this is no frame",
         "damaged: skipped 16 bytes of compressed data; {} lines were read", 3},
    };
    for (const TruncatedRecording& cut : cuts) {
        const std::string file = folder.write(std::string{cut.name}, cut.bytes);
        std::string said = "twscope: " + file + ": " + std::string{cut.said} + "\n";
        said.replace(said.find("{}"), 2, number);

        const Arguments readers[] = {
            {"records", file},
            {"records", file, "--filter", "snapshot"},
            {"records", file, "--columns", "t,type"},
            {"explain", file},
            {"compare", file, whole},
            {"compare", whole, file},
            {"map", map, "--png", folder.file("way.png"), "--path", file},
        };
        for (const Arguments& reader : readers) {
            CAPTURE(cut.name);
            CAPTURE(reader.front());
            const ProgramResult done = twscope(reader);
            CHECK(done.err.starts_with(said));
            const std::string unsaid = done.err.substr(std::min(said.size(), done.err.size()));
            CHECK((unsaid.empty() || (reader.front() == "map" && unsaid.starts_with("wrote "))));
            CHECK(done.status == cut.status);
        }
        CHECK(twscope({"records", file}).out == lines);
        CHECK(twscope({"records", file, "--verify"}).status == 3);
    }
    const ProgramResult piped = run_program(
        "/bin/sh", {"-c", std::string{TW_TWSCOPE} + " explain - < " + folder.file("plain.jsonl")});
    CHECK(piped.err ==
          "twscope: standard input: ends in the middle of a line: truncated, or still being "
          "written; " +
              number + " lines were read\n");
    CHECK(piped.status == 0);
}
