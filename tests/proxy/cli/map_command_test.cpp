// `twscope map` as a process.
// Covers: proxy/base/files.cpp

#include "map/identity.h"
#include "tests/map/map_builder.h"
#include "tests/proxy/cli/program_runs.h"

#include <set>

#include <boost/json.hpp>
#include <doctest/doctest.h>

using namespace tw;
using namespace tw::test;

TEST_CASE("twscope map describes and draws a map") {
    const TemporaryFolder folder;
    const auto bytes = small_map();
    const std::string file = save_map(folder.file("tiny.map"), bytes);

    const ProgramResult json =
        twscope({"map", file, "--json", "--at", "80,80", "--at", "3.5,-100"});
    CHECK(json.status == 0);
    const auto told = boost::json::parse(json.out).as_object();
    CHECK(told.at("file") == "tiny.map");
    CHECK(told.at("verdict").at("strict") == "accepts");
    CHECK(told.at("points").as_array().size() == 2);
    CHECK(told.at("boxes").as_array().size() == 2);
    CHECK(told.at("size") == bytes.size());

    CHECK(output_of({"map", file, "--at", "80,80"}) ==
          "80,80: tile 2,2 finish; a tee here is in the air\n");
    CHECK(twscope({"map", file}).out.starts_with("map         tiny.map\n"));

    const std::string png = folder.file("tiny.png");
    const auto drawn = [&](const Arguments& more) {
        const ProgramResult done = twscope({"map", file, "--png", png}, more);
        CAPTURE(done.err);
        CHECK(done.status == 0);
        std::string picture = read_text(png);
        CHECK(picture.starts_with("\x89PNG\r\n"));
        return picture;
    };
    const std::string all = drawn({});
    CHECK(drawn({}) == all);
    CHECK(drawn({"--scale", "3"}) != all);

    const std::string capture = folder.file("way.pcap");
    const std::string records = folder.file("way.jsonl");
    const auto play_on = [&](std::uint32_t crc) {
        save_game(capture, tee_at(50, 80), "dm1", crc);
        CHECK(twscope({"decode", capture, "-o", records}).status == 0);
    };
    play_on(map::continue_crc(0, bytes));
    const std::string way = drawn({"--path", records});
    CHECK(way != all);
    CHECK(drawn({"--path", records, "--color-by", "player"}) == way);
    const std::string by_session = drawn({"--path", records, "--color-by", "session"});
    const std::string by_time = drawn({"--path", records, "--color-by", "time"});
    const std::string heat = drawn({"--heat", records});
    CHECK(std::set{all, way, by_session, by_time, heat}.size() == 5);
    const ProgramResult told_of = twscope({"map", file, "--png", png, "--heat", records});
    CHECK(told_of.out.empty());
    CHECK(told_of.err.starts_with("wrote " + png + " with 1 player from 20"));
    CHECK(told_of.err.ends_with("Z, 0 recorded deaths\n"));
    CHECK(drawn({"--path", records, "--player", "session 1 id 3"}) == way);
    check_usage_error({"map", file, "--png", png, "--heat", records, "--player", "bob"},
                      "--player bob: not on this map; the players are session 1 id 3");

    const std::string filtered = folder.file("filtered.jsonl");
    CHECK(twscope({"records", records, "--filter", "map or snapshot", "-o", filtered}).status == 0);
    CHECK(twscope({"map", file, "--png", png, "--heat", filtered})
              .err.ends_with("Z; deaths are not known: the recording has no message records or no "
                             "session records\n"));
    CHECK(twscope({"map", file, "--png", png, "--path", filtered}).err.ends_with("Z\n"));

    // A folder of consecutive segments.
    const std::string segments = folder.file("segments");
    std::filesystem::create_directory(segments);
    const std::string lines = read_text(records);
    const std::size_t cut = lines.find('\n', lines.size() / 2) + 1;
    const std::string second = segments + "/game-20261121T171530Z-0002.jsonl";
    write_text(segments + "/game-20261121T161530Z-0001.jsonl", lines.substr(0, cut));
    write_text(second, lines.substr(cut));
    CHECK(drawn({"--path", segments}) == way);
    write_text(second, lines.substr(cut) + "torn\n");
    const ProgramResult torn = twscope({"map", file, "--png", png, "--path", segments});
    CHECK(torn.status == 3);
    CHECK(contains(torn.err, second + ": skipped 1 line that is not a record"));
    CHECK(read_text(png) == way);
    play_on(1);
    check_usage_error({"map", file, "--png", png, "--path", records},
                      "all its positions are on other maps: dm1\n");
    const std::string same_name = save_map(folder.file("dm1.map"));
    check_usage_error({"map", same_name, "--png", png, "--path", records},
                      ": dm1; its dm1 has another checksum than this file (");

    // Two servers with a player of the same name: each has its own path, in whatever order the
    // worlds of the servers alternate.
    const auto worlds = [&](int even, int odd) {
        std::string text;
        for (int i = 0; i < 20; ++i) {
            const int server = i % 2 == 0 ? even : odd;
            const int step = i / 2;
            text +=
                R"({"v":1,"t":"2026-11-20T15:24:45.000000Z","type":"world","session":0,"server":")" +
                std::to_string(server) + R"(","run":1,"tick":)" + std::to_string(step + 1) +
                R"(,"items":[{"type":"character","id":0,"player":"ann","fields":{"x":)" +
                std::to_string(40 + server * 40 + step) + R"(,"y":)" +
                std::to_string(50 + step * 2) + "}}]}\n";
        }
        return text;
    };
    const std::string path = folder.write("worlds.jsonl", worlds(1, 2));
    const std::string two = drawn({"--path", path});
    write_text(path, worlds(2, 1));
    CHECK(drawn({"--path", path}) == two);
    CHECK(two != all);

    // A picture of a large map shows where players were.
    const std::string large = save_map(folder.file("large.map"),
                                       map::test::MapBuilder{300, 100}.set_game(0, 0, 1).build());
    const ProgramResult part = twscope({"map", large, "--png", png, "--path", path});
    CHECK(part.status == 0);
    CHECK(part.err.ends_with("Z, on 64 x 36 tiles from 0,0 (--whole draws all 300 x 100)\n"));
    const ProgramResult whole = twscope({"map", large, "--png", png, "--path", path, "--whole"});
    CHECK(whole.status == 0);
    CHECK(whole.err.ends_with("Z\n"));
    CHECK(contains(twscope({"map", large, "--png", png, "--scale", "64"}).err,
                   "the largest scale for this picture is 47"));
    CHECK(twscope({"map", large, "--png", png, "--path", path, "--scale", "64"}).status == 0);
}

TEST_CASE("a picture that cannot be written leaves the existing one unchanged") {
    const TemporaryFolder folder;
    save_map(folder.file("tiny.map"));
    const std::string png = folder.write("tiny.png", "\x89PNG: the one before");
    const std::string enter = "cd " + folder.path() + "; ";
    // The size limit of files is a few hundred bytes: enough for an error message, not for a picture.
    const ProgramResult full = run_in_shell(enter + "trap '' XFSZ; ulimit -f 1; "
                                                    "exec $twscope map tiny.map --png tiny.png");
    CHECK(full.status == 3);
    CHECK(contains(full.err, "--png tiny.png: "));
    CHECK(read_text(png) == "\x89PNG: the one before");
    CHECK(run_in_shell(enter + "echo *").out == "tiny.map tiny.png\n");

    REQUIRE(twscope({"map", folder.file("tiny.map"), "--png", png}).status == 0);
    const std::string picture = read_text(png);
    CHECK(picture.starts_with("\x89PNG\r\n"));
    CHECK(run_in_shell(enter + "ln -s tiny.png link; $twscope map tiny.map --png link; "
                               "test -h link && cat tiny.png")
              .out == picture);
    // A link to a missing file is kept, and the file is created.
    CHECK(run_in_shell(enter + "ln -s later.png ahead; $twscope map tiny.map --png ahead; "
                               "test -h ahead && cat later.png")
              .out == picture);
    CHECK(run_in_shell(enter + "$twscope map tiny.map --png - >>tiny.png; cat tiny.png").out ==
          picture + picture);
    CHECK(run_in_shell(enter + "$twscope map tiny.map --png /dev/stdout | cat").out == picture);
}

TEST_CASE("twscope map reports files that are not maps, and unusual maps") {
    const TemporaryFolder folder;
    const std::string noise = folder.write(
        "noise.map", "this is no map, but it is long enough to be read as if it were one");
    const ProgramResult none = twscope({"map", noise, "--json"});
    CHECK(none.status == 2);
    CHECK(contains(none.err, "noise.map"));
    const auto told = boost::json::parse(none.out).as_object();
    CHECK(told.at("verdict").at("strict") == "rejects:bad_magic");
    CHECK(told.at("verdict").at("lenient") == "rejects:bad_magic");

    auto bytes = small_map();
    bytes.push_back(std::byte{0});
    const std::string odd = save_map(folder.file("odd.map"), bytes);
    const std::string page = output_of({"map", odd});
    CHECK(contains(page, "strict rejects:trailing_bytes, lenient accepts"));
    CHECK(contains(page, "the file continues after its last block"));
}

TEST_CASE("twscope map rejects invalid flags in one line") {
    const TemporaryFolder folder;
    const std::string file = folder.file("tiny.map");
    const std::string noise = folder.write(
        "noise.map", "this is no map, but it is long enough to be read as if it were one");
    const std::string nobody = folder.file("nobody.jsonl");
    const std::string capture = TW_GOLDEN "/token-map-change.pcap";
    save_map(file);
    folder.write("short.txt", "short");
    save_map(folder.file("none.map"), map::test::map_with_layers({}, {}));
    write_text(nobody, R"({"v":1,"t":"2026-11-20T15:24:45.000000Z","type":"session","session":1})"
                       "\n");

    check_usage_errors({"map"},
                       {{{}, "file"},
                        {{noise, "--png", folder.file("a.png")},
                         "noise.map: is not a map: the file starts with neither DATA nor ATAD"},
                        {{folder.file("short.txt")}, "short.txt: is not a map: "},
                        {{folder.file("none.map"), "--png", folder.file("a.png")},
                         "none.map: the datafile has no game layer in any group"},
                        {{folder.path()}, folder.path()},
                        {{folder.file("missing.map")}, "missing.map"},
                        {{file, "--png", folder.file("a.jpg")},
                         "pictures are PNG files; name it " + folder.file("a.png")},
                        {{file, "--png", folder.file("no/such/folder.png")}, "folder.png"}});
    check_usage_errors({"map", file}, {{{"--at", "5"}, "--at 5"},
                                       {{"--at", "5,"}, "--at 5,"},
                                       {{"--at", "nan,0"}, "--at nan,0"},
                                       {{"--at", "1,2,3"}, "--at 1,2,3"},
                                       {{"--path", nobody}, "--png"},
                                       {{"--heat", nobody}, "--heat needs a picture"},
                                       {{"--png", folder.file("a.png"), "--whole"}, "--whole"},
                                       {{"--player", "ann"}, "add --heat FILE or --path FILE"},
                                       {{"--nonsense"}, "nonsense"}});
    check_usage_errors(
        {"map", file, "--png", folder.file("a.png")},
        {{{"--heat", nobody}, "contains no snapshot or world with characters"},
         {{"--heat", nobody, "--path", nobody}, "give one of them"},
         {{"--color-by", "time"}, "--path"},
         {{"--path", nobody, "--color-by", "sky"}, "sky"},
         {{"--path", nobody}, "nobody.jsonl"},
         {{"--path", folder.file("missing.jsonl")}, "missing.jsonl"},
         {{"--path", folder.path()}, "contains no"},
         {{"--heat", capture},
          "token-map-change.pcap: contains no records; this is a capture; use 'twscope decode'"},
         {{"--path", capture}, "use 'twscope decode'"},
         {{"--heat", file}, "contains no records; this is a map; use 'twscope map'"},
         {{"--layer", "sky"}, "sky"},
         {{"--scale", "0"}, "scale"}});
}
