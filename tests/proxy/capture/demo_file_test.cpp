// Covers: proxy/capture/capture_run.cpp, proxy/capture/demo_reader.cpp
#include "proxy/capture/capture_run.h"
#include "proxy/capture/demo_reader.h"
#include "tests/support/capture_writer.h"
#include "tests/support/captured_traffic.h"
#include "tests/support/demo_bytes.h"
#include "tests/support/record_log.h"

#include <atomic>
#include <filesystem>

#include <doctest/doctest.h>

using namespace tw;
using capture::CaptureError;
using capture::DemoFile;
using test::Bytes;

TEST_CASE("a demo is recognised by its first bytes") {
    const test::TemporaryFile demo{test::demo_of(6, {})};
    const test::TemporaryFile cut{test::bytes_of({'T', 'W', 'D'})};
    const test::TemporaryFile other{Bytes(100)};
    CHECK(DemoFile::is_demo(demo.path()));
    CHECK_FALSE(DemoFile::is_demo(cut.path()));
    CHECK_FALSE(DemoFile::is_demo(other.path()));
    CHECK_FALSE(DemoFile::is_demo("-"));
    CHECK_FALSE(DemoFile::is_demo("/dev/zero"));
    CHECK_FALSE(DemoFile::is_demo("/no such file"));
    CHECK(DemoFile{demo.path()}.bytes().size() == std::filesystem::file_size(demo.path()));
    CHECK_THROWS_AS(DemoFile{"/no such file"}, CaptureError);
    const test::TemporaryFile empty{Bytes{}};
    CHECK_THROWS_AS(DemoFile{empty.path()}, CaptureError);
}

TEST_CASE("demos are read in their order among captures, each as one session") {
    const test::TemporaryFile first{test::demo_of(6, {{1, {}}, {3, {}}})};
    Bytes damaged = test::demo_of(4, {{1, {}}, {3, {}}});
    test::append(damaged, test::bytes_of({0x82, 0x21, 1}));
    const test::TemporaryFile second{damaged};
    const test::TemporaryFile capture{test::pcap_file({}, {})};
    test::NoMaps maps;
    test::RecordLog log;
    std::atomic<std::uint32_t> numbers{0};
    inspect::Inspector inspector{{}, maps, log, numbers};
    capture::CaptureRun run{{first.path(), capture.path(), second.path()}, {}};
    CHECK_FALSE(run.damaged());
    run.read(inspector);
    CHECK(run.damaged());
    CHECK(inspector.num_sessions_opened() == 2);
    CHECK(log.lines({"snapshot"}).size() == 4);
    CHECK(run.last() - run.first() == 4 * 20'000'000LL); // the damaged demo has one more tick
}

TEST_CASE("a demo with an invalid header is rejected before any file is read") {
    const Bytes whole = test::demo_of(6, {});
    Bytes young = whole;
    young[7] = std::byte{7};
    for (const Bytes& bytes : {young, Bytes{whole.begin(), whole.begin() + 100}}) {
        const test::TemporaryFile file{bytes};
        CHECK_THROWS_AS((capture::CaptureRun{{file.path()}, {}}), CaptureError);
    }
}
