// `explain` with findings of a capture and of its records.

#include "proxy/record/findings.h"
#include "tests/proxy/cli/program_runs.h"

#include <filesystem>

#include <boost/json.hpp>
#include <doctest/doctest.h>
#include <fmt/format.h>

using namespace tw;
using namespace tw::test;
using snapshot::kNoBase;

namespace {

/// A capture of three snapshots, of which the second does not match its checksum.
struct DamagedCapture {
    TemporaryFolder folder{};
    std::string capture;
    std::string records = folder.file("damage.jsonl"); ///< missing until write_records()

    explicit DamagedCapture(const std::string& name = "damage.pcap") : capture{folder.file(name)} {
        TestCapture recording;
        SessionScript peers;
        peers.assume_ddnet();
        const Items first = tee_at(100, 80);
        const Items second = tee_at(110, 80);
        recording.add_datagram(kAnn, kS2c, peers.snap_datagram(10, kNoBase, first));
        const Bytes damaged =
            snap_single(12, 10, checksum_of(second), delta_body(first, tee_at(4206, 80)));
        recording.add_datagram(kAnn, kS2c, peers.pack(kS2c, {non_vital(damaged)}));
        recording.add_datagram(kAnn, kS2c, peers.snap_datagram(14, 10, tee_at(120, 80)));
        recording.save(capture);
    }

    void write_records() const {
        REQUIRE(twscope({"decode", capture, "--server", ":8303", "-o", records}).status == 0);
    }

    [[nodiscard]] ProgramResult explain(const Arguments& more = {}) const {
        return twscope({"explain", capture, "--server", ":8303"}, more);
    }
};

/// Returns an explanation without the lines that only a capture gives.
std::string without_datagrams(std::string story) {
    if (const std::size_t at = story.find("Datagram: "); at != std::string::npos) {
        story.erase(at, story.find('\n', at) + 1 - at);
    }
    if (const std::size_t at = story.find(" marked: byte "); at != std::string::npos) {
        const std::size_t begin = at + std::string_view{" marked"}.size();
        story.erase(begin, story.find('\n', begin) - begin);
    }
    return story;
}

} // namespace

TEST_CASE("a capture, its records and standard input give the same explanation") {
    const DamagedCapture damage;
    const auto& [folder, capture, records] = damage;
    damage.write_records();

    const ProgramResult told = damage.explain();
    CHECK(told.status == 0);
    CHECK(told.out.find("snapshot.crc_mismatch\nsession 1, ") == 0);
    CHECK(contains(told.out, "snapshot 12 on 10: rejected"));
    CHECK(contains(told.out, "x gave 4206 where it must have been"));
    CHECK(contains(told.out, "Where to look"));

    // Only a capture has datagrams.
    const std::string story = without_datagrams(told.out);
    CHECK(contains(told.out, "\nDatagram: "));
    CHECK(twscope({"explain", records}).out == story);
    CHECK(run_in_shell("$twscope explain - < " + records).out == story);
    CHECK(run_in_shell("cat " + records + " | $twscope explain -").out == story);
    CHECK(without_datagrams(
              run_in_shell("cat " + capture + " | $twscope explain - --server :8303").out) ==
          story);
    CHECK(run_in_shell("mkfifo " + folder.file("pipe") + "; cat " + records + " > " +
                       folder.file("pipe") + " & $twscope explain " + folder.file("pipe"))
              .out == story);
    CHECK(twscope({"explain", records, "--session", "1", "--tick", "12"}).out == story);

    std::string spaced = read_text(records);
    for (std::size_t at = spaced.find("\":"); at != std::string::npos;
         at = spaced.find("\":", at + 3)) {
        spaced.insert(at + 2, " ");
    }
    const std::string other = folder.write("spaced.jsonl", spaced);
    CHECK(twscope({"explain", other}).out == story);
    const std::string segments = folder.file("segments");
    std::filesystem::create_directory(segments);
    write_text(segments + "/game-20261121T201500Z-0001.jsonl", read_text(records));
    CHECK(twscope({"explain", segments}).out == story);
    const std::string captures = folder.file("captures");
    std::filesystem::create_directory(captures);
    REQUIRE(twscope({"decode", capture, "--server", ":8303", "--show-secrets", "-w",
                     captures + "/game-20261121T201500Z-0001.pcapng"})
                .status == 0);
    // A capture by twscope begins with the session's state, so it does not begin in the middle of a game.
    std::string continued = story;
    const std::size_t midway = continued.find("  finding session.joined_midway\n");
    REQUIRE(midway != std::string::npos);
    const std::size_t begin = continued.rfind('\n', midway) + 1;
    continued.erase(begin, continued.find('\n', begin) + 1 - begin);
    CHECK(without_datagrams(twscope({"explain", captures, "--server", ":8303"}).out) == continued);
}

TEST_CASE("decode prints findings with time and field, and the command that explains them") {
    const DamagedCapture damage{"it's damaged.pcap"};
    const std::string& capture = damage.capture;
    const ProgramResult done = twscope({"decode", capture, "--server", ":8303"});
    CAPTURE(done.err);
    CHECK(done.status == 0);
    // The explanation belongs to the finding, because it is within a second of it.
    const std::size_t line = done.err.find(" error snapshot.crc_mismatch: session 1, tick 12, ");
    REQUIRE(line == std::string_view{"YYYY-MM-DDTHH:MM:SS+00:00"}.size());
    CHECK(done.err.find("character 3 x 4206 instead of 110") < done.err.find('\n'));
    const std::size_t table = done.err.find("\nfinding  ");
    REQUIRE(table != std::string::npos);
    const std::size_t command = done.err.find("\n    twscope explain ", table);
    REQUIRE(command != std::string::npos);
    const std::size_t begin = done.err.find("explain", command);
    const ProgramResult told =
        run_in_shell("$twscope " + done.err.substr(begin, done.err.find('\n', begin) - begin));
    CHECK(told.status == 0);
    CHECK(told.out.starts_with("snapshot.crc_mismatch\nsession 1, "));
    // Standard input cannot be read again.
    const std::string piped = "cat \"" + capture + "\" | $twscope decode - --server :8303";
    CHECK_FALSE(contains(run_in_shell(piped).err, "twscope explain"));
}

TEST_CASE("findings and explanations are JSON objects for programs") {
    namespace json = boost::json;
    const DamagedCapture damage;
    const ProgramResult told = damage.explain({"--json"});
    CHECK(told.status == 0);
    const json::object story = json::parse(told.out).as_object();
    CHECK(story.at("finding").at("id") == "snapshot.crc_mismatch");
    CHECK(story.at("finding").at("session") == 1);
    CHECK(story.at("explained").at("field") == "x");
    CHECK(story.at("before").at("tick") == 10);
    CHECK(story.at("before").at("item").at("fields").at("x") == 100);
    CHECK(story.at("after").at("tick") == 14);
    CHECK(story.at("events").as_array().size() > 3);
    CHECK(story.at("cause").is_string());

    const json::object none =
        json::parse(damage.explain({"--json", "--tick", "13"}).out).as_object();
    CHECK(none.at("finding").is_null());
    CHECK(none.at("num_others") == 1);
    CHECK(none.at("others").as_array().front() ==
          json::parse(R"({"session":1,"tick":12,"id":"snapshot.crc_mismatch"})"));

    const json::value list = json::parse(twscope({"explain", "--json"}).out);
    const json::array& findings = list.at("findings").as_array();
    CHECK(findings.size() == record::finding_table().size());
    for (const json::value& each : findings) {
        for (const std::string_view key : {"id", "severity", "what", "cause"}) {
            CHECK_FALSE(each.at(key).as_string().empty());
        }
    }
}

TEST_CASE("explain describes the named findings, and suggests a name for a misspelt one") {
    const std::string named = output_of({"explain", "snapshot.size_change", "inspect.gap"});
    CHECK(named.starts_with("snapshot.size_change ("));
    CHECK(contains(named, "\ninspect.gap ("));
    CHECK_FALSE(contains(named, "snapshot.crc_mismatch ("));
    CHECK(contains(named, "\n    A mod that sends one item id with two sizes.\n"));
    const std::string all = twscope({"explain"}).out; // without the causes
    CHECK(contains(all, "\nsnapshot.size_change (error)\n    An update's size differs "));
    CHECK_FALSE(contains(all, "A mod that sends one item id with two sizes."));
    CHECK(contains(all, "\n'twscope explain ID' says what causes a finding, "));
    const DamagedCapture damage;
    check_usage_error({"explain", "snapshot.crc_mismach"},
                      "did you mean \"snapshot.crc_mismatch\"?");
    check_usage_error({"explain", "snapshot.foo"},
                      "neither a file nor a finding ('twscope explain'");
    check_usage_error({"explain", damage.capture, "inspect.gap"}, "not both");
    check_usage_error({"explain", "inspect.gap", "--tick", "5"}, "name one");
    check_usage_error({"explain", "--session", "5"}, "name one");
    check_usage_error({"explain", damage.folder.file("none")}, "No such file");
}

TEST_CASE("if the requested finding does not exist, the existing findings are listed") {
    const DamagedCapture damage;

    struct Row {
        Arguments asked;
        std::string_view said;
    };

    const Row rows[] = {
        {{"--tick", "13"},
         "Nothing to explain: no finding about snapshots at tick 13.\nOthers are:\n"
         "  session 1, tick 12: snapshot.crc_mismatch\n"},
        {{"--session", "1", "--tick", "14"},
         "Nothing to explain: no finding about snapshots of session 1 at tick 14.\n"
         "Others are:\n  session 1, tick 12: snapshot.crc_mismatch\n"},
    };
    for (const Row& row : rows) {
        CAPTURE(row.said);
        const ProgramResult done = damage.explain(row.asked);
        CHECK(done.status == 0);
        CHECK(done.out == row.said);
    }
    check_usage_error({"explain", damage.capture, "--server", ":8303", "--session", "7"},
                      "there is no session 7; there is 1 session");
    const std::string honest = damage.folder.file("honest.pcap");
    save_game(honest, tee_at(100, 80));
    CHECK(twscope({"explain", honest})
              .out.starts_with("Nothing to explain: no finding about snapshots in 1 session.\n"));
}

TEST_CASE("a recording is recognised by any first record, in a file and in a pipe") {
    const DamagedCapture damage;
    const auto& [folder, capture, records] = damage;
    damage.write_records();
    const std::string story = twscope({"explain", records}).out;
    const std::string lines = read_text(records);

    struct Row {
        std::string_view name;
        std::string text;
        std::string told;
        int status;
    };

    const Row rows[] = {
        {"a torn line", "orn\"}\n" + lines, story, 3},
        {"a blank line", '\n' + lines, story, 3},
        {"a byte order mark", "\xef\xbb\xbf{}\n" + lines, story, 3},
        {"no record", "hello\n", "", 2},
    };
    for (const Row& row : rows) {
        CAPTURE(row.name);
        const std::string odd = folder.write("odd.jsonl", row.text);
        const std::string lines_of[] = {"$twscope explain " + odd, "$twscope explain - < " + odd,
                                        "cat " + odd + " | $twscope explain -",
                                        "zstd -qc " + odd + " | $twscope explain -"};
        for (const std::string& line : lines_of) {
            CAPTURE(line);
            const ProgramResult done = run_in_shell(line);
            CHECK(done.out == row.told);
            CHECK(done.status == row.status);
        }
    }
    CHECK(twscope({"explain", folder.file("nothing")}).status != 0);
    folder.write("empty", "");
    CHECK(twscope({"explain", folder.file("empty")}).status == 2);
    CHECK(run_in_shell("cat " + folder.file("empty") + " | $twscope explain -").out ==
          "Nothing to explain: no finding about snapshots in 0 sessions.\n");
}

TEST_CASE("--frame lists each byte of one datagram of a capture") {
    const DamagedCapture damage;
    const ProgramResult listed = damage.explain({"--frame", "2"});
    CAPTURE(listed.out);
    CHECK(listed.status == 0);
    for (const char* text :
         {"Datagram: frame 2 of ", ", server to client, session 1, ",
          "packet header: acknowledges 0, 1 chunk\n",
          "message snap_single fields: tick 12, base tick 10, part 1 of 1, ",
          "unused snapshot with another checksum", "\nRecords\n", R"("type":"finding")"}) {
        CAPTURE(text);
        CHECK(contains(listed.out, text));
    }
    CHECK_FALSE(contains(listed.out, R"("tick":10,"delta_tick":-1)")); // a record of frame 1

    const ProgramResult json = damage.explain({"--frame", "3", "--json"});
    const auto object = boost::json::parse(json.out).as_object();
    CHECK(object.at("frame") == 3);
    CHECK(object.at("dir") == "s2c");
    const auto& rows = object.at("rows").as_array();
    CHECK(rows.at(0).at("use") == "packet header");
    CHECK(rows.back().at("in") == "payload");

    damage.write_records();

    struct Row {
        Arguments arguments;
        const char* error;
    };

    const Row rejected[] = {
        {{"explain", damage.capture, "--frame", "4"}, "no datagram of a game"},
        {{"explain", damage.capture, damage.capture, "--frame", "1"}, "one capture"},
        {{"explain", damage.records, "--frame", "1"}, "recording"},
        {{"explain", damage.capture, "--frame", "0"}, "--frame"},
        {{"explain", damage.capture, "--frame", "1", "--tick", "12"}, "leave out"},
        {{"explain", "--frame", "1"}, "--frame"},
    };
    for (const Row& row : rejected) {
        const ProgramResult result = twscope(row.arguments);
        CAPTURE(result.err);
        CHECK(result.status == 2);
        CHECK(contains(result.err, row.error));
    }
}

TEST_CASE("--frame does not show the bytes of secrets") {
    const TemporaryFolder folder;
    const std::string capture = folder.file("secret.pcap");
    TestCapture recording;
    SessionScript peers;
    peers.assume_ddnet();
    const auto auth = message("rcon_auth").string("").string("hunter2").number(1);
    const std::vector<std::vector<Piece>> packets{
        {vital(auth)},
        {resend_piece(vital(auth), 1)},
        {non_vital(message("rcon_auth").string("").text("hunter2"))}, // cut short
        {non_vital(message("rcon_auth").string("").string("").number(1).text("hunter2"))},
        {Piece{.message = vital(auth).message, .vital = true, .sequence = 9}}, // after a gap
        {non_vital(message("cl_say").number(0).string("/login hunter2"))},
    };
    for (const std::vector<Piece>& pieces : packets) {
        recording.add_datagram(kAnn, kC2s, peers.pack(kC2s, pieces));
    }
    recording.save(capture);
    std::string secret; // in hex
    for (const char letter : std::string_view{"hunter2"}) {
        secret += fmt::format("{:02x}", letter);
    }
    for (std::size_t frame = 1; frame <= packets.size(); ++frame) {
        const ProgramResult listed = twscope(
            {"explain", capture, "--server", ":8303", "--json", "--frame", std::to_string(frame)});
        CAPTURE(listed.out);
        CHECK(listed.status == 0);
        CHECK(contains(listed.out, R"("hex":"[redacted]")"));
        CHECK_FALSE(contains(listed.out, secret));
        CHECK_FALSE(contains(listed.out, "hunter2"));
    }
}
