// `decode --sizes`: the sizes of a server's items, and the file of objects made from them.
// Covers: proxy/cli/decode_command.cpp

#include "tests/proxy/cli/program_runs.h"

#include <boost/json.hpp>
#include <doctest/doctest.h>

using namespace tw;
using namespace tw::test;
using snapshot::kNoBase;

namespace {

/// Adds the game of a server whose characters have one int more. `damaged`: the tick of a further
/// snapshot whose delta no size explains; 0 for none. `full`: whether every snapshot is full, not
/// only the first. `client`: the player.
void add_mod_game(TestCapture& recording, snapshot::Tick last = 60, snapshot::Tick damaged = 0,
                  bool full = true, const CaptureClient& client = kAnn) {
    SessionScript peers;
    peers.assume_ddnet();
    snapshot::AgreedSizes sizes = snapshot::kAgreedSizes;
    ++sizes[snapshot::kCharacterType];
    Items base;
    for (snapshot::Tick tick = 10; tick <= last; tick += 10) {
        Items items = tee_at(100 + tick, 80);
        items[{9, 3}].push_back(full ? 7 + tick : 70'000 + tick); // 70000 is too large for a type
        items[{9, 5}] = items[{9, 3}];
        items[{4, 1}] = {10, 20, 0, 0};
        items[{10, 3}] = {1, 3, 0, tick, 30};
        const Bytes body =
            snapshot::encode_delta(to_snapshot(base).view(), to_snapshot(items).view(), sizes);
        const snapshot::Tick on = base.empty() ? kNoBase : tick - 10;
        recording.add_datagram(
            client, kS2c,
            peers.pack(kS2c, {non_vital(snap_single(tick, on, checksum_of(items), body))}));
        base = full ? Items{} : items;
    }
    if (damaged != 0) {
        const Bytes body =
            MessageBuilder{}.number(0).number(1).number(0).number(70'000).number(1).bytes();
        recording.add_datagram(
            client, kS2c, peers.pack(kS2c, {non_vital(snap_single(damaged, kNoBase, 1, body))}));
    }
}

void save_mod_game(const std::string& path, snapshot::Tick last = 60, snapshot::Tick damaged = 0,
                   bool full = true) {
    TestCapture recording;
    add_mod_game(recording, last, damaged, full);
    recording.save(path);
}

std::vector<std::int32_t> client_info(std::string_view name) {
    std::vector<std::int32_t> ints(17);
    snapshot::encode_int_string(name, std::span{ints}.first(4));
    return ints;
}

} // namespace

TEST_CASE("the sizes of a mod are printed, and the written file makes its snapshots verifiable") {
    const TemporaryFolder folder;
    const std::string capture = folder.file("mod.pcap");
    const std::string objects = folder.file("sizes.json");
    const std::string records = folder.file("records.jsonl");
    save_mod_game(capture);
    const Arguments decode{"decode", capture, "--server", ":8303"};

    const ProgramResult plain = twscope(decode, {"-o", records});
    CHECK(plain.status == 0);
    CHECK_FALSE(contains(read_text(records), R"("ok":true)"));

    const ProgramResult sizes = twscope(decode, {"--sizes", "--write-objects", objects});
    CHECK(sizes.status == 0);
    CAPTURE(sizes.out);
    CHECK(contains(sizes.out, "character"));
    CHECK(contains(sizes.out, "23"));
    CHECK(contains(read_text(objects), "int_22"));

    const ProgramResult piped = twscope(decode, {"--sizes", "--write-objects", "-"});
    CHECK(piped.out == read_text(objects));
    const std::string told = sizes.out.substr(0, sizes.out.find("\n" + objects + " was written."));
    CHECK(contains(told, "\n  character: 23 ints instead of 22; read this way, 6 snapshots have "
                         "the right checksum\n"));
    CHECK(contains(piped.err, told));
    CHECK(sizes.out.ends_with("--objects '" + objects + "' -o game.jsonl\n"));
    CHECK(piped.err.ends_with(" --learn-sizes -o game.jsonl\n"));

    const boost::json::value table = boost::json::parse(twscope(decode, {"--sizes", "--json"}).out);
    bool seen = false;
    for (const boost::json::value& type : table.at("types").as_array()) {
        const bool character = type.at("type") == 9;
        seen = seen || character;
        CHECK(type.at("differs") == character);
        if (character) {
            CHECK(type.at("object") == "character");
            CHECK(type.at("protocol") == "0.6");
            CHECK(type.at("agreed") == 22);
            CHECK(type.at("sizes") == boost::json::parse(R"([{"ints":23,"snapshots":6}])"));
        }
    }
    CHECK(seen);
    check_usage_errors(
        {"decode", capture},
        {{{"--sizes", "--json", "--write-objects", "-"}, "both write to standard output"},
         {{"--sizes", "-o", "-", "--write-objects", "-"}, "both write to standard output"},
         {{"--write-objects", objects}, "has no effect without --sizes"},
         {{"--json"}, "has no effect without --stats or --sizes"}});

    const ProgramResult taught = twscope(decode, {"-o", records, "--objects", objects});
    CHECK(taught.status == 0);
    CHECK_FALSE(contains(read_text(records), R"("ok":false)"));
    CHECK(contains(read_text(records), R"("int_22":17)"));

    const std::string described = output_of(decode, {"--sizes", "--objects", objects});
    CHECK(contains(described, "  22     23          6  as in the objects file\n"));
    CHECK(described.ends_with("\nAll sizes are as agreed in 0.6, or as in the objects file.\n"));

    // A file with a size that the server does not send: pickup has 4 ints, as agreed.
    const std::string wrong =
        folder.write("wrong.json",
                     R"({"objects": [{"name": "character", "type": 9, "agreed_size": true,
                         "fields": [{"name": "ints", "count": 23}]},
                        {"name": "pickup", "type": 4, "agreed_size": true,
                         "fields": [{"name": "ints", "count": 5}]}]})");
    const std::string mistaken = output_of(decode, {"--sizes", "--objects", wrong});
    CAPTURE(mistaken);
    CHECK(contains(mistaken, "   4      4          6  not as in the objects file\n"));
    CHECK(contains(mistaken, "\nThe objects file is wrong, not the server"));
    CHECK(contains(mistaken, "\n  pickup: 4 ints, as agreed (in the objects file: 5); read this"));
    CHECK_FALSE(contains(mistaken, "Clients misread"));
    const std::string blamed =
        twscope({"explain", capture, "--server", ":8303", "--objects", wrong}).out;
    CAPTURE(blamed);
    CHECK(blamed.starts_with("Cause: the objects file is wrong, not the server (seen in session "));
    CHECK(contains(blamed, "\nWhat to change\n  Nothing in the server."));
    CHECK(contains(blamed, "\nWhat to run next, without --objects"));

    const ProgramResult learned = twscope(decode, {"-o", records, "--learn-sizes"});
    CHECK(learned.status == 0);
    CHECK(contains(read_text(records), R"("ok":true)"));
}

TEST_CASE(
    "if an object may have another size, decode recommends --sizes, even after one snapshot") {
    const TemporaryFolder folder;
    const std::string capture = folder.file("one snapshot.pcap");
    save_mod_game(capture, 10);
    const Arguments decode{"decode", capture, "--server", ":8303"};
    const std::string hint = "run:\n  twscope decode '" + capture +
                             "' --server ':8303' --sizes\n  twscope explain '" + capture +
                             "' --server ':8303'\n";
    const ProgramResult plain = twscope(decode);
    CHECK(contains(plain.out, hint)); // before the table of players
    // The records go to a file, so the totals go to standard error.
    const ProgramResult written = twscope(decode, {"-o", folder.file("records.jsonl")});
    CHECK(written.out.empty());
    CHECK(written.err == plain.err + plain.out);
    CHECK(twscope(decode, {"-o", "-"}).err == plain.err);

    const std::string sizes = output_of(decode, {"--sizes"});
    CHECK(contains(sizes, "  22     23          1  not as agreed\n"));
    CHECK(sizes.ends_with("capture a longer game.\n"));
}

TEST_CASE("an explanation whose cause is a size names the command that lists the sizes") {
    const TemporaryFolder folder;
    const std::string capture = folder.file("mod.pcap");
    const std::string records = folder.file("records.jsonl");
    save_mod_game(capture);
    REQUIRE(twscope({"decode", capture, "--server", ":8303", "-o", records}).status == 0);
    const std::string story = twscope({"explain", capture, "--server", ":8303"}).out;
    const std::string cause =
        "Cause: an object of another size than agreed (seen in session 1)\n"
        "  character: 23 ints instead of 22; read this way, 6 snapshots have the right checksum\n";
    CHECK(story.starts_with(cause));
    CHECK(contains(story, "\nsnapshot.size_differs\n"));
    CHECK(contains(twscope({"explain", capture, "--server", ":8303", "--learn-sizes"}).out,
                   "\n  int_22 "));
    // The console dates the finding to the first wrong tick, and the command for it works.
    const Arguments learn{"decode", capture, "--server", ":8303", "--learn-sizes"};
    const std::string dated = twscope(learn).err;
    CHECK(contains(dated, ", since tick 10, character has 23 ints instead of 22 "));
    CHECK(contains(dated, " --learn-sizes --session 1 --tick 10\n"));
    CHECK(contains(twscope({"explain", capture, "--server", ":8303", "--learn-sizes", "--session",
                            "1", "--tick", "10"})
                       .out,
                   "\nsnapshot.size_differs\n"));
    save_mod_game(folder.file("damaged.pcap"), 60, 70);
    CHECK(twscope({"explain", folder.file("damaged.pcap"), "--server", ":8303", "--tick", "70"})
              .out.starts_with("snapshot.type_out_of_range\n"));
    // The cause also heads the explanation of what follows from it.
    save_mod_game(folder.file("deltas.pcap"), 60, 0, false);
    const std::string follows =
        twscope({"explain", folder.file("deltas.pcap"), "--server", ":8303", "--tick", "20"}).out;
    CAPTURE(follows);
    CHECK(follows.starts_with("Cause: an object of another size than agreed (seen in session 1)"));
    CHECK(contains(follows, "\nsnapshot.unknown_base\n"));
    CHECK(contains(follows, "The snapshot's base was rejected: see snapshot."));
    // The commands write the size into a file, and verify that nothing else is wrong.
    std::size_t next = story.find("\nWhat to run next\n  twscope ");
    REQUIRE(next != std::string::npos);
    std::vector<ProgramResult> runs;
    for (int i = 0; i < 2; ++i) {
        next = story.find("twscope ", next);
        const std::size_t end = story.find('\n', next);
        std::string command = story.substr(next, end - next);
        command.replace(command.find("sizes.json"), std::string{"sizes.json"}.size(),
                        folder.file("sizes.json"));
        runs.push_back(run_in_shell("$" + command));
        next = end;
    }
    CHECK(contains(runs[0].out, "  differs\n"));
    CHECK(runs[1].status == 0);
    CHECK(story.ends_with("\n  twscope decode NEW-CAPTURE --expect 'always ok'\n"));
    CHECK(twscope({"explain", records})
              .out.ends_with("\n  twscope decode CAPTURE-OF-THIS-GAME --sizes --write-objects "
                             "sizes.json\n"));
}

TEST_CASE(
    "the explanation of a size shows the first datagram with the size, and the affected sessions") {
    const TemporaryFolder folder;
    const std::string capture = folder.file("two.pcap");
    TestCapture recording;
    add_mod_game(recording);
    add_mod_game(recording, 60, 0, true, CaptureClient{kAnn.address, 50001});
    recording.save(capture);
    const Arguments explain{"explain", capture, "--server", ":8303", "--learn-sizes"};
    const std::string story = twscope(explain, {"--session", "1"}).out;
    CAPTURE(story);
    CHECK(story.starts_with("Cause: an object of another size than agreed (counted in session 1; "
                            "also seen in 1 other session)\n"
                            "  character: 23 ints instead of 22; read this way, 6 snapshots have "
                            "the right checksum\n"));
    CHECK(contains(story, ", tick 30\ntwscope became certain of the size at tick 30. It first read "
                          "the size in the snapshot of tick 10:\nDatagram: frame 1 of "));
    const boost::json::value json =
        boost::json::parse(twscope(explain, {"--session", "1", "--json"}).out);
    CHECK(json.at("sizes") ==
          boost::json::parse(
              R"([{"object":"character","type_id":9,"agreed":22,"ints":23,"snapshots":6}])"));
    CHECK(json.at("datagrams").at(0).at("tick") == 10);
}

TEST_CASE("a type in a file written by --sizes keeps the names of its fields") {
    const TemporaryFolder folder;
    const std::string capture = folder.file("mod.pcap");
    const std::string objects = folder.file("sizes.json");
    // A server that leaves the latency out of player_info.
    TestCapture recording;
    SessionScript peers;
    peers.assume_ddnet();
    snapshot::AgreedSizes sizes = snapshot::kAgreedSizes;
    --sizes[snapshot::kPlayerInfoType];
    for (snapshot::Tick tick = 10; tick <= 60; tick += 10) {
        Items items = tee_at(100 + tick, 80);
        items[{10, 3}] = {1, 3, 0, tick};
        items[{10, 4}] = {0, 4, 0, 2 * tick};
        items[{11, 3}] = client_info("ann");
        items[{11, 4}] = client_info("bea");
        const Bytes body = snapshot::encode_delta({}, to_snapshot(items).view(), sizes);
        recording.add_datagram(
            kAnn, kS2c,
            peers.pack(kS2c, {non_vital(snap_single(tick, kNoBase, checksum_of(items), body))}));
    }
    recording.save(capture);
    const Arguments decode{"decode", capture, "--server", ":8303", "--items", "all", "-o", "-"};
    REQUIRE(twscope({"decode", capture, "--server", ":8303", "--sizes", "--write-objects", objects})
                .status == 0);
    const std::string taught = twscope(decode, {"--objects", objects}).out;
    const std::string learned = twscope(decode, {"--learn-sizes"}).out;
    constexpr std::string_view kInfo = R"("type":"player_info")";
    CHECK(count_of(taught, R"("ok":true)") == 6);
    CHECK(count_of(taught, kInfo) == 12);
    CHECK(count_of(taught, R"("player":"ann")") >= count_of(learned, R"("player":"ann")"));
    CHECK(count_of(taught, R"("player":"ann")") == 12); // character, player_info
    CHECK(count_of(taught, R"("team":"red")") == 12);
    CHECK(count_of(taught, R"("severity":"warning")") == 0);
    CHECK(count_of(taught, R"("severity":"error")") == 0);
}

TEST_CASE("the sizes of an unmodified 0.6 server are as agreed") {
    const TemporaryFolder folder;
    const std::string capture = save_game(folder.file("honest.pcap"), tee_at(100, 80));
    CHECK(contains(output_of({"decode", "--sizes", capture}), "All sizes are as agreed in 0.6.\n"));
}

TEST_CASE("an error of --sizes is one line") {
    const TemporaryFolder folder;
    check_usage_error({"decode", "--sizes"}, "");
    const std::string silent = folder.file("silent.pcap");
    TestCapture{}.save(silent);
    check_usage_error({"decode", "--sizes", silent, "--write-objects", folder.file("no/where")},
                      "no/where");
    const std::string kept = folder.write("kept.json", "{}");
    CHECK(twscope({"decode", "--sizes", silent, "--write-objects", kept}).status == 2);
    CHECK(read_text(kept) == "{}");
    const ProgramResult done = twscope({"decode", "--sizes", silent});
    CHECK(done.status == 2);
    CHECK(done.out.empty());
    CHECK(contains(done.err, "no snapshot; capture while somebody plays\n"));

    const std::string midway = folder.file("midway.pcap");
    TestCapture recording;
    SessionScript peers;
    peers.assume_ddnet();
    const Bytes body =
        snapshot::encode_delta({}, to_snapshot(tee_at(100, 80)).view(), snapshot::kAgreedSizes);
    recording.add_datagram(kAnn, kS2c, peers.pack(kS2c, {non_vital(snap_single(60, 50, 1, body))}));
    recording.save(midway);
    const ProgramResult unknown = twscope({"decode", "--sizes", midway, "--server", ":8303"});
    CHECK(unknown.status == 2);
    CHECK(contains(unknown.err,
                   "the capture begins during the game; begin it before a player joins\n"));
}
