// Covers: proxy/sink/capture_target.cpp, proxy/sink/capture_blocks.cpp
#include "proxy/capture/capture_run.h"
#include "proxy/run/capture_observer.h"
#include "proxy/sink/capture_sink.h"
#include "proxy/sink/capture_target.h"
#include "tests/support/captured_traffic.h"
#include "tests/support/demo_bytes.h"
#include "tests/support/json_records.h"
#include "tests/support/test_data.h"

#include <array>
#include <atomic>
#include <fstream>
#include <iterator>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace tw;
using sink::CaptureSink;
using sink::CaptureTarget;
using sink::FileQueue;

namespace {

/// Hands every record to two.
class Both final : public record::RecordSink {
  public:
    Both(record::RecordSink& one, record::RecordSink* other) : one_{&one}, other_{other} {}

    void on_record(const record::Record& record) override {
        one_->on_record(record);
        if (other_ != nullptr) {
            other_->on_record(record);
        }
    }

  private:
    record::RecordSink* one_;
    record::RecordSink* other_;
};

/// The records of a capture, which is written again on the way.
std::string decode(const std::string& path, CaptureSink* capture) {
    test::NoMaps maps;
    test::TextOutput output;
    sink::JsonLines json{{.show_secrets = true}, output};
    Both sinks{json, capture};
    inspect::Observers observers;
    std::optional<run::CaptureObserver> observer;
    if (capture != nullptr) {
        observers.add(observer.emplace(*capture));
    }
    std::atomic<std::uint32_t> numbers{0};
    inspect::Inspector inspector{{.observers = &observers}, maps, sinks, numbers};
    capture::CaptureRun run{{path}, {}};
    run.read(inspector);
    if (capture != nullptr) {
        capture->finish(run.last());
    }
    json.flush();
    return output.text;
}

std::string content(const std::filesystem::path& path) {
    std::ifstream file{path, std::ios::binary};
    return {std::istreambuf_iterator<char>{file}, {}};
}

std::uint64_t whole_bytes(const std::filesystem::path& path) {
    const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    const std::uint64_t bytes = sink::whole_capture_bytes(descriptor);
    ::close(descriptor);
    return bytes;
}

} // namespace

TEST_CASE("the capture of a run gives the records of the run, byte for byte") {
    for (const std::string name :
         {"token-ddnet-layers-rejoin", "token-high-bandwidth", "token-map-change",
          "token-map-download", "tokenless-map-change"}) {
        CAPTURE(name);
        const test::FilledFolder folder;
        const auto path = folder.path() / "a.pcapng";
        std::string first;
        {
            FileQueue files{FileQueue::Full::wait};
            CaptureTarget target{path, CaptureTarget::Begin::empty};
            const auto file = target.give_to(files);
            target.begin(files, file);
            CaptureSink capture{files, file};
            first = decode(test::test_data("golden/" + name + ".pcap"), &capture);
            CHECK(capture.lost() == 0);
        }
        const bool same = first == decode(path, nullptr);
        CHECK(same);
        CHECK(first.size() > 10'000);
        const std::string bytes = content(path);
        CHECK(bytes.find("twscope: session 1: ") != std::string::npos);
        CHECK(bytes.find(": closed: ") != std::string::npos);
        CHECK(whole_bytes(path) == bytes.size());
    }
}

TEST_CASE("a capture goes on behind its last whole block, in a section of its own") {
    const test::FilledFolder folder;
    const auto path = folder.path() / "a.pcapng";
    const auto write = [&path](CaptureTarget::Begin begin) {
        FileQueue files{FileQueue::Full::wait};
        CaptureTarget target{path, begin};
        const auto file = target.give_to(files);
        target.begin(files, file);
        CaptureSink capture{files, file};
        return decode(test::test_data("golden/token-map-download.pcap"), &capture);
    };
    write(CaptureTarget::Begin::empty);
    const auto once = content(path).size();
    for (const std::size_t cut : {1U, 11U, 40U}) {
        CAPTURE(cut);
        std::filesystem::resize_file(path, once - cut);
        const std::uint64_t whole = whole_bytes(path);
        CHECK(whole < once - cut + 1);
        CHECK(whole > once / 2);
        write(CaptureTarget::Begin::behind);
        CHECK(content(path).size() == whole + once);
        CHECK(whole_bytes(path) == whole + once);
    }
    write(CaptureTarget::Begin::empty);
    CHECK(content(path).size() == once);
}

TEST_CASE("what can be no capture is refused, and its bytes are nobody's blocks") {
    const test::FilledFolder folder;
    CHECK_THROWS_AS((CaptureTarget{"/no such/file", CaptureTarget::Begin::empty}),
                    std::system_error);
    const auto pipe = folder.path() / "pipe";
    REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
    const int reader = ::open(pipe.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    {
        FileQueue files;
        CaptureTarget target{pipe, CaptureTarget::Begin::empty};
        const auto queued = target.give_to(files);
        target.begin(files, queued);
        files.finish();
        std::array<char, 4> magic{};
        CHECK(::read(reader, magic.data(), magic.size()) == 4);
        CHECK(magic[0] == '\x0a');
    }
    ::close(reader);
    CHECK_THROWS_AS((CaptureTarget{"/dev/null", CaptureTarget::Begin::empty}), std::system_error);
    CHECK(sink::whole_capture_bytes(-1) == 0);
    const auto file = folder.path() / "text";
    const std::string_view text = "this is no capture at all";
    std::ofstream{file} << text;
    CHECK(whole_bytes(file) == 0);
    CHECK_THROWS_AS((CaptureTarget{file, CaptureTarget::Begin::behind}), std::runtime_error);
    CHECK(content(file).size() == text.size()); // and it is as it was
}

TEST_CASE("a session without an address is written with one for tests") {
    const test::FilledFolder folder;
    const auto path = folder.path() / "a.pcapng";
    {
        FileQueue files{FileQueue::Full::wait};
        CaptureTarget target{path, CaptureTarget::Begin::empty};
        const auto file = target.give_to(files);
        target.begin(files, file);
        CaptureSink capture{files, file};
        const record::RecordHead head{.time = 5, .session = 258};
        const record::SessionRecord open{.head = head, .client = "client-abc:1", .server = "x"};
        capture.on_record(&open);
        const test::Bytes datagram = test::bytes_of({1, 2, 3});
        capture.on_datagram({.time = 6, .session = 258, .direction = wire::Direction::c2s},
                            datagram);
        capture.on_datagram_end();
        capture.finish(7);
    }
    capture::CaptureFile read{path};
    capture::CapturedDatagram datagram;
    REQUIRE(read.next(datagram));
    CHECK(to_string(datagram.source) == "198.18.1.2:49152");
    CHECK(to_string(datagram.destination) == "198.18.0.0:49152");
    CHECK(datagram.time == 6);
}
