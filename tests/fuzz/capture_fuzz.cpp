#include "proxy/capture/capture_file.h"
#include "proxy/capture/capture_sessions.h"
#include "proxy/inspect/inspector.h"
#include "tests/fuzz/demand.h"
#include "tests/fuzz/memory_file.h"
#include "tests/support/captured_traffic.h"

#include <atomic>
#include <cstddef>
#include <cstdint>

/// Reads the input as a pcap or pcapng file. Every frame must be counted once, as a datagram or as
/// another kind, and inspection must accept all datagrams.
namespace {

using namespace tw;
using tw::fuzz::demand;

class CountingSink final : public record::RecordSink {
  public:
    void on_record(const record::Record& record) override {
        std::visit([](const auto* concrete) { demand(concrete != nullptr); }, record);
        ++count;
    }

    std::size_t count = 0;
};

void read_all_datagrams(capture::CaptureFile& file) {
    test::NoMaps maps;
    CountingSink sink;
    std::atomic<std::uint32_t> numbers{0};
    inspect::Inspector inspector{{}, maps, sink, numbers};
    capture::ServerDetector guess;
    capture::InspectorSessionReceiver inspected{inspector, {}};
    capture::CaptureSessions sessions{inspected, guess, {.max_sessions = 16}};
    capture::CapturedDatagram datagram;
    std::uint64_t datagrams = 0;
    while (file.read_datagram(datagram)) {
        datagrams += datagram.is_truncated ? 0 : 1;
        demand(datagram.payload.size() <= UINT16_MAX);
        sessions.on_datagram(datagram);
    }
    inspector.close_all_sessions(sessions.current_time(), "end of capture");
    const capture::CaptureCounts counts = file.counts();
    demand(counts.datagrams == datagrams);
    demand(counts.frames == datagrams + counts.other_frames + counts.incomplete_fragments +
                                counts.repeated_fragments + counts.truncated +
                                counts.extra_fragments);
    demand(sessions.truncated_datagrams() <= counts.truncated);
    demand(sessions.ignored_datagrams() + sessions.refused_datagrams() <= datagrams);
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const tw::fuzz::MemoryFile bytes{data, size};
    try {
        capture::CaptureFile file{bytes.path()};
        read_all_datagrams(file);
    } catch (const capture::CaptureError& error) {
        demand(!std::string_view{error.what()}.empty());
    }
    return 0;
}
