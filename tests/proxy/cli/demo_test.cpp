// Covers: proxy/cli/inspect_flags.cpp
#include "map/identity.h"
#include "proxy/capture/capture_file.h"
#include "tests/proxy/cli/program_runs.h"
#include "tests/support/demo_bytes.h"

#include <algorithm>
#include <fstream>

#include <doctest/doctest.h>

using namespace tw;
using test::Arguments;
using test::check_usage_error;
using test::ProgramResult;
using test::TemporaryFile;
using test::TemporaryFolder;
using test::twscope;

TEST_CASE("a capture becomes a demo that contains its map, and the demo becomes records") {
    const TemporaryFolder folder;
    const auto path = [&folder](const char* name) { return folder.file(name); };
    const auto map = test::small_map();
    std::ofstream{path("small.map"), std::ios::binary}.write(
        reinterpret_cast<const char*>(map.data()), static_cast<std::streamsize>(map.size()));
    test::TestCapture recording;
    recording.add_session(test::kAnn, test::tee_at(80, 80), "small", map::identify(map).crc,
                          map.size());
    recording.save(path("a.pcap"));
    for (const std::string version : {"4", "6"}) {
        CAPTURE(version);
        const TemporaryFolder demos;
        const ProgramResult written = twscope({"decode", path("a.pcap"), "--maps", folder.path(),
                                               "--demo", demos.path(), "--demo-version", version});
        CAPTURE(written.err);
        CHECK(written.status == 0);
        const auto files = demos.files();
        REQUIRE(files.size() == 1);
        CHECK(contains(written.err, "wrote " + files[0].string() + "\n"));
        CHECK(contains(output_of({"decode", files[0].string()}), " applied\n"));
        const std::string bytes = test::read_text(files[0].string());
        const std::string whole_map{reinterpret_cast<const char*>(map.data()), map.size()};
        CHECK(bytes.find(whole_map) == (version == "4" ? 436 : 484));
        const std::string read = output_of({"decode", files[0].string(), "-o", "-"});
        CHECK(contains(read, R"("type":"map","session":1,"name":"small")"));
        CHECK(contains(read, R"("source":"demo")"));
        CHECK(contains(read, R"("tick":12,"delta_tick":10)"));
        CHECK(contains(read, R"("reason":"end of demo")"));
    }
}

TEST_CASE("a damaged demo is read up to the damage, which is reported in one line") {
    test::Bytes damaged = test::demo_of(6, {{1, {}}, {3, {}}});
    test::Bytes cut = damaged;
    test::append(damaged, test::bytes_of({0xa2, 0x21, 1}));
    test::append(cut, test::bytes_of({0xa2, 0x22, 1}));
    const TemporaryFile file{damaged};
    const TemporaryFolder folder;
    const std::string records = folder.file("a.jsonl");
    for (const Arguments& to : {Arguments{}, {"-o", "-"}, {"-o", records}}) {
        const ProgramResult broken = twscope({"decode", file.path()}, to);
        CAPTURE(broken.err);
        CHECK(broken.status == 3);
        const std::string error =
            broken.err.substr(0, broken.err.find('\n') + 1); // before the totals
        CHECK((broken.err == error) == (to.empty() || to[1] == "-"));
        CHECK(contains(broken.err,
                       file.path() + ": has a chunk that cannot be decompressed (offset "));
    }
    CHECK(contains(test::read_text(records), R"("tick":3)"));
    CHECK(contains(test::read_text(records), R"("id":"demo.damaged")"));
    const TemporaryFile short_file{cut};
    const ProgramResult ended = twscope({"decode", short_file.path()});
    CHECK(ended.status == 0);
    CHECK(std::count(ended.err.begin(), ended.err.end(), '\n') == 1);
    CHECK(contains(ended.err, "ends inside a chunk"));
    CHECK(twscope({"decode", short_file.path(), "--fail-on", "demo.cut_short"}).status == 1);
}

TEST_CASE("a capture is only written if secrets may be shown") {
    const TemporaryFolder folder;
    const auto path = [&folder](const char* name) { return folder.file(name); };
    test::save_game(path("a.pcap"), test::tee_at(80, 80));
    check_usage_error({"decode", path("a.pcap"), "-w", path("b.pcapng")}, "--show-secrets");
    check_usage_error({"proxy", "-s", "127.0.0.1:1", "-w", path("b.pcapng")}, "--show-secrets");
    check_usage_error({"decode", path("a.pcap"), "--show-secrets", "-w", "/dev/null"}, "--write");
    check_usage_error(
        {"proxy", "-s", "127.0.0.1:1", "--no-inspect", "--show-secrets", "-w", path("b.pcapng")},
        "--no-inspect");
    CHECK_FALSE(std::filesystem::exists(path("b.pcapng")));
    const ProgramResult first =
        twscope({"decode", path("a.pcap"), "--show-secrets", "-o", "-", "-w", path("b.pcapng")});
    CHECK(first.status == 0);
    const ProgramResult second = twscope({"decode", path("b.pcapng"), "--show-secrets", "-o", "-"});
    CHECK(first.out == second.out);
}

TEST_CASE("a capture's filter gets messages, also if no other output does") {
    const TemporaryFolder folder;
    const std::string from = folder.file("a.pcap");
    const std::string to = folder.file("b.pcapng");
    test::save_game(from, test::tee_at(80, 80));
    const auto packets = [&](const Arguments& more) {
        CHECK(twscope({"decode", from, "--show-secrets", "-w", to}, more).status == 0);
        capture::CaptureFile file{to};
        capture::CapturedDatagram datagram;
        int count = 0;
        while (file.read_datagram(datagram)) {
            ++count;
        }
        return count;
    };
    CHECK(packets({"--write-filter", R"(name == "ready")"}) == 1);
    CHECK(packets({"--write-filter", R"(name == "ready")", "-o", "/dev/null"}) == 1);
    CHECK(packets({"--write-filter", "session == 2"}) == 0);
    CHECK(packets({}) > 1);
    CHECK(packets({"--write-filter", R"(name == "ready")", "--no-messages"}) == 1);
}

TEST_CASE("a path that is not a folder or not a demo is an error of one line") {
    const TemporaryFile demo{test::demo_of(6, {})};
    check_usage_error({"decode", demo.path(), "--demo", "/no such folder"}, "--demo");
    check_usage_error({"decode", demo.path(), "--demo", demo.path()}, "--demo");
    check_usage_error({"decode", demo.path(), "--demo", "/tmp", "--demo-version", "5"},
                      "--demo-version");
    check_usage_error({"proxy", "-s", "127.0.0.1:1", "--demo", "/no such folder"}, "--demo");
    const TemporaryFile cut{test::bytes_of({'T', 'W', 'D', 'E', 'M', 'O', 0, 6})};
    check_usage_error({"decode", cut.path()}, "ends inside the header of a demo");
}
