// Covers: proxy/cli/output_file.cpp
// Covers: proxy/capture/capture_run.cpp
// Covers: proxy/analyze/outcome.cpp
// Covers: proxy/analyze/stats_report.cpp
// Covers: proxy/pipeline/worker.cpp
// Covers: proxy/process/observer_run.cpp
// The program as a process: flags, output and exit codes.
// Covers: proxy/record/records.cpp, proxy/record/stats.cpp, proxy/cli/inspect_flags.cpp
// Covers: proxy/cli/command_line.cpp, proxy/cli/decode_command.cpp, proxy/cli/objects_file.cpp
// Covers: proxy/cli/live_commands.cpp, proxy/cli/log.cpp
#include "tests/proxy/cli/program_runs.h"
#include "tests/support/json_records.h"

#include <algorithm>
#include <csignal>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/udp.hpp>
#include <doctest/doctest.h>

using namespace tw;
using namespace tw::test;
using snapshot::kNoBase;

namespace {

using Udp = boost::asio::ip::udp;

/// Returns every item of every snapshot in these lines.
std::vector<boost::json::object> parse_snapshot_items(const std::string& lines) {
    std::vector<boost::json::object> found;
    for (const auto& line : parse_lines(lines)) {
        if (const auto* items = line.as_object().if_contains("items")) {
            for (const auto& item : items->as_array()) {
                found.push_back(item.as_object());
            }
        }
    }
    return found;
}

constexpr const char* kObjects = R"({"objects": [
    {"name": "orb", "type": 40, "fields": [{"name": "x"}, {"name": "y"},
        {"name": "mood", "names": {"0": "calm", "1": "angry"}}], "position": {"x": "x", "y": "y"}},
    {"name": "soul", "type": 21, "agreed_size": true, "fields": [{"name": "a"}, {"name": "b"}]}]})";

} // namespace

TEST_CASE("with --objects, records and the traffic table have the names of a mod's objects") {
    const TemporaryFolder folder;
    const std::string capture = folder.file("mod.pcap");
    const std::string objects = folder.write("objects.json", kObjects);
    save_game(capture, {{{40, 7}, {100, 70, 1}}});

    const auto plain = parse_snapshot_items(twscope({"decode", capture, "-o", "-"}).out);
    REQUIRE_FALSE(plain.empty());
    CHECK(plain[0].at("type").as_string().empty());
    CHECK(plain[0].at("data") == boost::json::parse("[100,70,1]"));

    const auto named =
        parse_snapshot_items(output_of({"decode", capture, "-o", "-", "--objects", objects}));
    REQUIRE_FALSE(named.empty());
    CHECK(named[0].at("type").as_string() == "orb");
    CHECK(named[0].at("fields") == boost::json::parse(R"({"x":100,"y":70,"mood":1})"));
    CHECK(named[0].at("names") == boost::json::parse(R"({"mood":"angry"})"));

    const Arguments filtered{"--filter", "any(items: orb and fields.mood == 1)"};
    CHECK(contains(twscope({"decode", capture, "-o", "-", "--objects", objects}, filtered).out,
                   "orb"));
    const ProgramResult stats = twscope({"decode", "--stats", capture, "--objects", objects});
    CHECK(stats.status == 0);
    CHECK(contains(stats.out, "orb"));
    CHECK_FALSE(contains(twscope({"decode", "--stats", capture}).out, "orb"));
}

TEST_CASE("--objects sets the agreed size of a mod's type") {
    const TemporaryFolder folder;
    const std::string capture = folder.file("mod.pcap");
    const std::string objects = folder.write("objects.json", kObjects);
    TestCapture recording;
    SessionScript peers;
    peers.assume_ddnet();
    // Type 21 without a size on the wire, then a pickup that is only found if the right size was used.
    const auto body = body_of({0, 2, 0, 21, 1, 5, 6, 4, 2, 10, 20, 0, 0});
    recording.add_datagram(kAnn, kS2c,
                           peers.pack(kS2c, {non_vital(snap_single(10, kNoBase, 41, body))}));
    recording.save(capture);
    const Arguments decode{"decode", capture, "--server", ":8303", "-o", "-"};
    CHECK(parse_snapshot_items(twscope(decode).out).empty());
    const auto items = parse_snapshot_items(twscope(decode, {"--objects", objects}).out);
    REQUIRE(items.size() == 2);
    CHECK(items[0].at("type").as_string() == "pickup");
    CHECK(items[1].at("type").as_string() == "soul");
}

TEST_CASE("an invalid file of objects is an error of one line") {
    const TemporaryFolder folder;
    const std::string capture = folder.file("mod.pcap");
    const std::string objects = folder.write(
        "objects.json", R"({"objects": [{"name": "a", "type": 40}, {"name": "b", "type": 40}]})");
    save_game(capture, {});
    check_usage_error({"decode", capture, "--objects", objects}, "object 1");
    for (const Arguments& command : {Arguments{"decode"}, Arguments{"decode", "--stats"}}) {
        check_usage_error(
            join_arguments(command, {capture, "--objects", folder.file("missing.json")}),
            "missing.json");
    }
}

TEST_CASE("--pseudonyms distinguishes clients and hides their addresses") {
    const TemporaryFolder folder;
    const std::string capture = folder.file("game.pcap");
    constexpr CaptureClient kSameHouse{kAnn.address, 50001};
    constexpr CaptureClient kElsewhere{0xcb00710f, 50000}; // 203.0.113.15
    TestCapture recording;
    for (const CaptureClient& client : {kAnn, kSameHouse, kElsewhere}) {
        recording.add_session(client, tee_at(100, 100));
    }
    recording.save(capture);
    const auto clients = [&](const std::string& secret) {
        const ProgramResult done =
            twscope({"decode", capture, "-o", "-"},
                    secret.empty() ? Arguments{} : Arguments{"--pseudonyms", secret});
        CHECK(done.status == 0);
        const bool told = contains(done.out, "198.51.100.23") || contains(done.out, "203.0.113.15");
        CHECK(told == secret.empty());
        std::vector<std::string> names;
        for (const auto& line : parse_lines(done.out)) {
            const auto& record = line.as_object();
            if (record.at("type") == "session" && record.at("event") == "open") {
                const std::string name{record.at("client").as_string()};
                names.push_back(name.substr(0, name.rfind(':')));
            }
        }
        return names;
    };
    CHECK(clients("") ==
          std::vector<std::string>{"198.51.100.23", "198.51.100.23", "203.0.113.15"});
    const auto names = clients("one secret");
    REQUIRE(names.size() == 3);
    CHECK(names[0] == names[1]);
    CHECK(names[0] != names[2]);
    CHECK(clients("one secret") == names);
    CHECK(clients("another secret")[0] != names[0]);
}

TEST_CASE("--expect and --fail-on decide the exit code, both ways") {
    struct Row {
        Arguments flags;
        int status;
        std::string_view err;
    };

    const Row rows[] = {
        {{}, 0, ""},
        {{"--expect", "any(items: character and fields.x == 164)"}, 0, ""},
        {{"--expect", "any(items: character and fields.x == 165)"}, 1, "fields.x"},
        {{"--expect", "never finding"}, 1, "map.not_found"},
        {{"--expect", "never severity >= warning"}, 0, ""},
        {{"--expect", "always ok"}, 0, ""},
        {{"--expect", "always tick == 10"}, 1, "tick"},
        {{"--expect", "snapshot", "--expect", "name == sv_chat"}, 1, "sv_chat"},
        {{"--expect", "name == ready"}, 0, ""},
        {{"--expect", "name == ready", "--no-messages"}, 0, ""},
        {{"--fail-on", "error"}, 0, ""},
        {{"--fail-on", "warning"}, 0, ""},
        {{"--fail-on", "info"}, 1, "map.not_found"},
        {{"--fail-on", "map.not_found"}, 1, "map.not_found"},
        {{"--fail-on", "snapshot.crc_mismatch,map.not_found"}, 1, "map.not_found"},
        {{"--fail-on", "snapshot.crc_mismatch"}, 0, ""},
        {{"--fail-on", "snapshot.nonsense"}, 2, "snapshot.nonsense"},
        {{"--expect", "tick >"}, 2, "tick >"},
        {{"--expect", "tock == 5"}, 2, "tock"},
        {{"--filter", "snapshto"}, 2, "snapshot"},
        {{"--filter", "message", "--no-messages"}, 2, "leave one of them out"},
        {{"--filter", "not finding", "--no-messages"}, 0, ""},
    };
    const TemporaryFolder folder;
    const std::string capture = save_game(folder.file("game.pcap"), tee_at(100, 100));
    for (const Row& row : rows) {
        const ProgramResult done = twscope({"decode", capture, "-o", "-"}, row.flags);
        const bool messages = row.flags.empty() || row.flags.back() != "--no-messages";
        CAPTURE(row.flags.size() < 2 ? std::string{"no flags"} : row.flags[1]);
        CAPTURE(done.err);
        CHECK(done.status == row.status);
        CHECK(contains(done.err, row.err));
        CHECK((row.status == 2) == done.out.empty());
        CHECK((contains(done.out, R"("type":"message")")) == (row.status != 2 && messages));
    }
}

TEST_CASE("with every --view, the findings that decode prints name the player") {
    const TemporaryFolder maps;
    std::ignore = save_map(maps.file("dm2.map")); // another dm2 than the server's
    for (const std::string view : {"sessions", "world", "both"}) {
        CAPTURE(view);
        const ProgramResult done = twscope({"decode", test_data("golden/seven-map-change.pcap"),
                                            "--maps", maps.path(), "--view", view});
        CHECK(contains(done.err, " warning map.crc_mismatch: session 1 (anna), dm2. "));
    }
}

TEST_CASE("a repeatable flag takes only one argument as its value") {
    const TemporaryFolder folder;
    const std::string capture = folder.file("game.pcap");
    const std::string records = folder.file("records.jsonl");
    const std::string map = save_map(folder.file("m.map"));
    const std::string image = folder.file("m.png");
    save_game(capture, tee_at(100, 100));
    const Arguments rows[] = {
        {"decode", "--expect", "snapshot", capture, "-o", records},
        {"decode", "--expect", "snapshot", "--expect", "name == ready", capture},
        {"decode", "--maps", folder.path(), capture},
        {"decode", "--fail-on", "error,warning", capture},
        {"decode", "--stats", "--maps", folder.path(), capture},
        {"records", "--session", "1", "--session", "1", records},
        {"records", "--columns", "t,tick", records},
        {"map", "--at", "40,40", "--at", "80,80", map},
    };
    for (const Arguments& row : rows) {
        CAPTURE(row[0]);
        CAPTURE(row[1]);
        const ProgramResult done = twscope(row);
        CHECK(done.status == 0);
        CHECK_FALSE(contains(done.err, "twscope: ")); // totals are no error
    }
    const ProgramResult drawn = twscope({"map", "--layer", "game", map, "--png", image});
    CHECK(drawn.status == 0);
    CHECK(drawn.err == "wrote " + image + "\n");
}

TEST_CASE("SIGUSR1 writes the totals so far, and the session continues") {
    constexpr std::chrono::seconds kTimeout{20};
    const TemporaryFolder folder;
    const std::string records = folder.file("records.jsonl");
    boost::asio::io_context io;
    const Udp::endpoint anywhere{boost::asio::ip::address_v4::loopback(), 0};
    Udp::socket server{io, anywhere};
    Udp::socket client{io, anywhere};
    Program proxy{TW_TWSCOPE,
                  {"proxy", "-s", "127.0.0.1:" + std::to_string(server.local_endpoint().port()),
                   "-l", "127.0.0.1:0", "-o", records, "-q",
                   "--no-admission"}, // no server answers, so the client stays unverified
                  folder.path()};
    const Udp::endpoint listen{anywhere.address(), await_listening_port(proxy)};
    const auto connect =
        wire::encode_control({.kind = wire::ControlKind::connect, .token = wire::kTokenUnknown});
    const auto summaries = [&] { return count_of(read_text(records), R"("type":"summary")"); };
    const auto seen_by_server = [&] {
        std::array<std::byte, 1500> buffer{};
        Udp::endpoint from;
        return server.receive_from(boost::asio::buffer(buffer), from);
    };
    for (std::size_t round = 1; round <= 2; ++round) {
        client.send_to(boost::asio::buffer(connect), listen);
        CHECK(seen_by_server() == connect.size());
        proxy.send_signal(SIGUSR1);
        // The signal may overtake the copy of the datagram, so it is repeated until the totals contain it.
        CHECK(becomes_true_within(kTimeout, [&] {
            const auto lines = parse_lines(read_text(records));
            const bool told = std::any_of(lines.begin(), lines.end(), [&](const auto& line) {
                return line.is_object() && line.at("type") == "summary" &&
                       line.at("session") == 1 && line.at("c2s").at("datagrams") == round;
            });
            if (!told) {
                proxy.send_signal(SIGUSR1);
            }
            return told;
        }));
    }
    const std::size_t asked = summaries();
    CHECK(asked >= 2);
    proxy.send_signal(SIGUSR2);
    proxy.send_signal(SIGTERM);
    const ProgramResult done = proxy.finish();
    CHECK(contains(done.err, "info writing a summary of every open session"));
    CHECK(contains(done.err, "there is no flight recorder; --flight 60s,64MiB DIR makes one"));
    CHECK(done.status == 0);
    CHECK(summaries() >= asked + 2); // one summary of the session and one of the run
}

TEST_CASE("SIGUSR1 at any time, even during the end, does not change the exit code") {
    constexpr std::chrono::seconds kTimeout{20};
    for (int round = 0; round < 5; ++round) {
        const TemporaryFolder folder;
        Program proxy{TW_TWSCOPE,
                      {"proxy", "-s", "127.0.0.1:1", "-l", "127.0.0.1:0", "-q", "-o",
                       folder.file("records.jsonl")},
                      folder.path()};
        static_cast<void>(await_listening_port(proxy));
        proxy.send_signal(SIGTERM);
        REQUIRE(becomes_true_within(kTimeout, [&] {
            constexpr int kMany = 2000; // only a signal in the last microseconds is critical
            for (int i = 0; i < kMany && !proxy.has_ended(); ++i) {
                proxy.send_signal(SIGUSR1);
            }
            return proxy.has_ended();
        }));
        const ProgramResult done = proxy.finish();
        CAPTURE(done.err);
        CHECK(done.status == 0);
    }
}

TEST_CASE("an observer with many unread requests still receives the request to end") {
    constexpr std::chrono::seconds kTimeout{20};
    const TemporaryFolder folder;
    Program proxy{TW_TWSCOPE,
                  {"proxy", "-s", "127.0.0.1:1", "-l", "127.0.0.1:0", "-q", "--log-level", "debug",
                   "-o", folder.file("records.jsonl")},
                  folder.path()};
    static_cast<void>(await_listening_port(proxy));
    const std::string told = proxy.err();
    constexpr std::string_view kBefore = "inspecting in process ";
    REQUIRE(contains(told, kBefore));
    const pid_t observer = std::stoi(told.substr(told.find(kBefore) + kBefore.size()));
    REQUIRE(::kill(observer, SIGSTOP) == 0);
    constexpr int kMany = 300'000; // a few hundred unread requests fill the buffer
    for (int i = 0; i < kMany; ++i) {
        proxy.send_signal(SIGUSR1);
    }
    proxy.send_signal(SIGTERM);
    CHECK(becomes_true_within(kTimeout, [&] { return contains(proxy.err(), "stopping"); }));
    REQUIRE(::kill(observer, SIGCONT) == 0);
    const ProgramResult done = proxy.finish();
    CAPTURE(done.err);
    CHECK(done.status == 0);
}

TEST_CASE("a missing value is an error, and the next flag is not taken as the value") {
    const TemporaryFolder folder;

    struct Row {
        std::string arguments; ///< of proxy; a value may be empty
        const char* error;
    };

    const Row rows[]{
        {"--pseudonyms= --check-config", "--pseudonyms: is empty; leave it out"},
        {"--pseudonyms '' --check-config", "--pseudonyms: is empty"},
        {"--pseudonyms --check-config", "--pseudonyms: needs a value before --check-config"},
        {"--output= --check-config", "--output: is empty"},
        {"-o --check-config", "--output: needs a value before --check-config"},
        {"-o '' --check-config", "--output: is empty"},
        {"-q -o --http=9303 --check-config", "--output: needs a value before --http"},
        {"--maps= --check-config", "--maps: is empty"},
        {"--fail-on= --check-config", "--fail-on: is empty"},
        {"--threads= --check-config", "--threads: is empty"},
        {"--idle-timeout= --check-config", "--idle-timeout: is empty"},
        {"--client-address= --check-config", "--client-address: is empty"},
        {"--config= --check-config", "--config: is empty"},
        {"-s --check-config", "--server: needs a value before --check-config"},
        {"--check-config -o", "--output: needs a value"},
    };
    for (const Row& row : rows) {
        CAPTURE(row.arguments);
        const ProgramResult done = run_in_shell(
            "cd " + folder.path() + " && $twscope proxy -s 127.0.0.1:9 " + row.arguments);
        CHECK(done.status == 2);
        CHECK_MESSAGE(contains(done.err, row.error), done.err);
        CHECK(std::filesystem::is_empty(folder.path()));
    }
    // Values that only begin like flags stay values, and so does whatever follows an equals sign.
    CHECK(run_in_shell("$twscope proxy -s 127.0.0.1:9 --check-config --pseudonyms --secret-")
              .status == 0);
    CHECK(
        run_in_shell("$twscope proxy -s 127.0.0.1:9 --check-config --pseudonyms=--quiet").status ==
        0);
    check_usage_error({"records", "--where", "--follow", "game.jsonl"},
                      "--where: needs a value before");
}

TEST_CASE("contradictory flags are reported before the start") {
    const TemporaryFolder folder;
    const std::string config =
        folder.write("twice.conf", "server = \"127.0.0.1:1\"\nkeep = \"1GiB\"\nkeep = \"2GiB\"\n");
    const std::string no_folder = folder.file("no/such/folder.xml");
    const std::string picture = folder.write("a.png", "\x89PNG");
    const std::string recording = folder.write("a.jsonl", "{\"v\":1,\"t\":\"");
    check_usage_errors(
        {}, {{{"frobnicate"}, "unknown command 'frobnicate' (see"},
             {{"recods"}, "unknown command 'recods'; did you mean records? (see"},
             {{"proxy", "--keep", "1GiB", "--keep", "2GiB"},
              "--keep: may be given once (see 'twscope proxy --help')"},
             {{"decode", "--objects", "a", "--objects", "b", "c"},
              "--objects: may be given once (see 'twscope decode --help')"},
             {{"proxy", "--config", config}, "twice.conf, line 2: --keep: may be given once"},
             {{"tap", "-i", "lo", "--resync"}, "tap has no --resync; proxy has it (see"},
             {{picture}, "'; this is a picture (see"},
             {{"rec"}, "unknown command 'rec'; did you mean records? (see"},
             {{"-v"}, "unknown command '-v'; did you mean -V? (see"},
             {{"--png", "a", "map"}, "unknown command '--png'; flags come after the command (see"},
             {{"map", "--heatmap", "a"}, "map has no --heatmap; did you mean --heat? (see"},
             {{"records", "a", "--demo", "b"}, "a recording cannot become a demo; 'twscope decode"},
             {{"replay", recording}, "replay needs a capture; a recording has no packets"},
             {{"version"}, "unknown command 'version'; did you mean --version? (see"},
             {{"map"}, "map needs a map file (see 'twscope map --help')"},
             {{"map", "a", "b"}, "map does not take 'b'; names with spaces need quotes, and "},
             {{"compare", "a.pcap"}, "compare needs another capture, demo or recording of the"},
             {{"decode", "a.pcap", "--fail-on", "warn"},
              "--fail-on warn: neither a finding nor a severity; did you mean warning?"},
             {{"decode", "a.pcap", "--fail-on", "crc_mismatch"}, "; did you mean snapshot.crc_m"},
             {{"compare", picture, picture}, "is no capture, demo or recording; this is a picture"},
             {{"decode", "--server", "8303", "a"}, "expected HOST:PORT; did you mean :8303?"},
             {{"explain", "--tick"}, "--tick: needs a value (see 'twscope explain --help')"},
             {{"map", folder.file("no.map")}, "no.map: No such file or directory"},
             {{"map", folder.path()}, ": is a folder; name one of its .map files"},
             {{"map", "/dev/null"}, "/dev/null: is not a regular file"},
             {{"decode", folder.file("missing.pcap"), "--summary", no_folder}, "folder.xml"},
             {{"decode", folder.file("missing.pcap")}, "name a capture (pcap or pcapng) or"},
             {{"proxy", "-s", "8303"}, "expected HOST:PORT; did you mean 127.0.0.1:8303?"}});
    check_usage_errors(
        {"proxy", "-s", "127.0.0.1:1"},
        {{{"-k", "1GiB"}, "twscope: proxy has no -k; did you mean --keep? (see"},
         {{"-V"}, "twscope: proxy has no -V; did you mean --view? (see"},
         {{"-max-per-address", "4"},
          "twscope: proxy has no -max-per-address; did you mean --max-per-address? (see"},
         {{"-l", "192.0.2.2:99999"}, "--listen 192.0.2.2:99999: expected a port up to 65535"},
         {{"--duration", "soon"}, "--duration"},
         {{"-l", "127.0.0.1:0", "--summary", no_folder}, "folder.xml"},
         {{"-l", "127.0.0.1:0", "-o", config + '/'}, "is a file; leave out the slash, or name a"},
         {{"-l", "127.0.0.1:0", "-o", config + '/', "--check-config"}, "is a file; leave out the"},
         {{"--sync", "1s"}, "--sync has no effect without --output or --write"}});
    check_usage_errors({"proxy", "-s", "127.0.0.1:1", "-o", folder.file("r/"), "--keep"},
                       {{{"10G"}, "--keep 10G: did you mean 10GiB?"},
                        {{"10gb"}, "--keep 10gb: did you mean 10GiB?"},
                        {{"1h,5mib"}, "--keep 1h,5mib: did you mean 5MiB?"},
                        {{"10m"}, "--keep 10m: expected a time"},
                        {{"0G"}, "--keep 0G: expected a time"},
                        {{"10"}, "--keep 10: expected a time"}});
    check_usage_error({"tap", "-i", "lo", "--sync", "1s"},
                      "--sync has no effect without --output or --write");
    for (const Arguments& command : {Arguments{"proxy", "-s", "127.0.0.1:1", "-l", "127.0.0.1:0"},
                                     {"decode", "missing.pcap"},
                                     {"tap", "-i", "lo"}}) {
        check_usage_errors(command,
                           {{{"--demo-version", "4"}, "--demo-version has no effect without"},
                            {{"--bus-file", "x"}, "--bus-file has no effect without"},
                            {{"--bus-limits", "1h"}, "--bus-limits has no effect without"},
                            {{"--spool", "spool"}, "--spool has no effect without"}});
    }
    for (const Arguments& useless : {Arguments{"--items", "all"}, {"--filter", "ok"}}) {
        const ProgramResult only_said = twscope({"decode", "missing.pcap", useless[0], useless[1]});
        CHECK(contains(only_said.err, useless[0] + " has no effect without --output or --bus"));
        CHECK(contains(only_said.err, "missing.pcap: No such file"));
    }
    const ProgramResult bare = twscope({});
    CHECK(bare.status == 2);
    CHECK(contains(bare.err, "\n  twscope decode traffic.pcap "));
    CHECK(std::ranges::count(bare.err, '\n') == 5);
    const ProgramResult unreached = twscope({"collect", "--bus", "nats://127.0.0.1:1", "--expect",
                                             "never finding", "--duration", "1s"});
    CHECK(unreached.status == 4);
    CHECK(contains(unreached.err, "nothing was checked"));
    CHECK(twscope({"--version"}).out.starts_with("twscope "));
}
