// Covers: proxy/process/tap_run.cpp
#include "proxy/process/tap_run.h"
#include "proxy/wire/packet.h"
#include "tests/proxy/relay/udp_peers.h"
#include "tests/support/local_ring.h"
#include "tests/support/time.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <doctest/doctest.h>

using namespace tw;
using namespace tw::process;
using boost::asio::ip::make_address;

namespace {

using test::kSecond;

using Bytes = std::vector<std::byte>;

const capture::CaptureEndpoint kAnn{make_address("198.51.100.1"), 50000};
const capture::CaptureEndpoint kBob{make_address("2001:db8::1"), 50001};
const capture::CaptureEndpoint kServer{make_address("192.0.2.1"), 8303};
const capture::CaptureEndpoint kServerSix{make_address("2001:db8::2"), 8303};

capture::ServerDetector make_server_detector() {
    capture::ServerDetector guess;
    guess.select_traffic(capture::ServerDetector::TrafficSelection::recognised);
    return guess;
}

/// Feeds captured datagrams to a TapFeed. The events in the observer's ring are read as text, such
/// as "open1 c2s1 gap0:3 close1".
struct TapBench {
    explicit TapBench(capture::CaptureSessions::Limits limits = {}) {
        observation->observer = 1;
        feed.emplace(ring, *observation, make_server_detector(), limits, 0);
    }

    void capture_datagram(std::int64_t time, const capture::CaptureEndpoint& source,
                          const capture::CaptureEndpoint& destination, const Bytes& payload) {
        feed->on_datagram_captured(
            {.time = time, .source = source, .destination = destination, .payload = payload});
    }

    std::string take_event_text() {
        std::string text;
        ring.consume_events([&](const relay::RelayEvent& event) {
            const std::string number = std::to_string(event.session);
            switch (event.kind) {
            case relay::EventKind::open:
                text += "open" + number + ' ';
                break;
            case relay::EventKind::datagram:
                text += (event.direction == relay::Direction::c2s ? "c2s" : "s2c") + number + ' ';
                break;
            case relay::EventKind::gap:
                CHECK(event.gap == relay::GapReason::kernel_dropped);
                text += "gap" + number + ':' + std::to_string(event.lost) + ' ';
                break;
            case relay::EventKind::close:
                text += "close" + number + ' ';
                break;
            default:
                break;
            }
        });
        return text;
    }

    std::unique_ptr<relay::ObserverSharedMemory> observation =
        std::make_unique<relay::ObserverSharedMemory>();
    test::LocalRing ring{relay::Ring::kMinBytes};
    std::optional<TapFeed> feed;
};

const Bytes kConnect =
    wire::encode_control({.kind = wire::ControlKind::connect, .token = wire::kTokenUnknown});
const Bytes kAccepted =
    wire::encode_control({.kind = wire::ControlKind::connectaccept, .token = wire::kTokenUnknown});
const Bytes kNonsense(20, std::byte{0xaa});

} // namespace

TEST_CASE("the sessions of a tap give the same events and counts as those of a relay") {
    TapBench bench;
    bench.capture_datagram(1, kAnn, kServer, kConnect);
    bench.capture_datagram(2, kServer, kAnn, kAccepted);
    bench.capture_datagram(3, kBob, kServerSix, kConnect);
    bench.capture_datagram(4, kAnn, kServer, kNonsense);
    bench.feed->on_frames_read(5, 0, false);
    CHECK(bench.take_event_text() == "open1 c2s1 s2c1 open2 c2s2 c2s1 ");
    CHECK(bench.feed->close_all_sessions(6));
    CHECK(bench.take_event_text() == "close1 close2 ");
    const relay::Counters counters = relay::totals(*bench.observation);
    CHECK(counters.sessions_opened == 2);
    CHECK(counters.sessions_closed == 2);
    CHECK(counters.directions[0].datagrams == 3);
    CHECK(counters.directions[1].datagrams == 1);
    CHECK(counters.directions[1].bytes == kAccepted.size());
    CHECK(counters.loop_iterations == 1);
}

TEST_CASE("an idle session is closed even if no frames arrive") {
    TapBench bench{{.idle_timeout = 10 * kSecond}};
    bench.capture_datagram(kSecond, kAnn, kServer, kConnect);
    bench.feed->on_frames_read(2 * kSecond, 0, false);
    CHECK(bench.take_event_text() == "open1 c2s1 ");
    bench.feed->on_frames_read(5 * kSecond, 0, true);
    CHECK(bench.take_event_text().empty());
    bench.feed->on_frames_read(12 * kSecond, 0, true);
    CHECK(bench.take_event_text() == "close1 ");
}

TEST_CASE("datagrams that the kernel dropped are reported once, as a gap at their position") {
    TapBench bench;
    bench.capture_datagram(1, kAnn, kServer, kConnect);
    bench.feed->on_frames_read(10, 0, false);
    bench.feed->on_frames_read(20, 42, false);
    bench.capture_datagram(9, kAnn, kServer, kNonsense); // captured before the drop
    bench.capture_datagram(15, kAnn, kServer, kNonsense);
    bench.capture_datagram(16, kServer, kAnn, kNonsense);
    bench.capture_datagram(21, kServer, kAnn, kNonsense);
    bench.feed->on_frames_read(30, 42, false);
    CHECK(bench.take_event_text() == "open1 c2s1 c2s1 gap0:42 c2s1 s2c1 gap0:0 s2c1 ");
    CHECK(relay::totals(*bench.observation).kernel_dropped == 42);
}

TEST_CASE(
    "datagrams that the kernel dropped are also reported without further frames, and at the end") {
    TapBench bench;
    bench.capture_datagram(1, kAnn, kServer, kConnect);
    bench.feed->on_frames_read(10, 5, false);
    CHECK(bench.take_event_text() == "open1 c2s1 ");
    bench.feed->on_frames_read(20, 5, true);
    CHECK(bench.take_event_text().empty());
    bench.feed->on_frames_read(20 + 2 * kSecond, 5, true);
    CHECK(bench.take_event_text() == "gap0:5 ");
    bench.feed->on_frames_read(30 + 2 * kSecond, 6, true);
    CHECK(bench.feed->close_all_sessions(40 + 2 * kSecond));
    CHECK(bench.take_event_text() == "gap0:1 close1 ");
}

TEST_CASE("sessions beyond the limit are rejected and counted, and open ones continue") {
    TapBench bench{{.max_sessions = 1}};
    bench.capture_datagram(1, kAnn, kServer, kConnect);
    bench.capture_datagram(2, kBob, kServerSix, kConnect);
    bench.capture_datagram(3, kAnn, kServer, kNonsense);
    bench.feed->on_frames_read(4, 0, false);
    CHECK(bench.take_event_text() == "open1 c2s1 c2s1 ");
    CHECK(relay::totals(*bench.observation).datagrams_without_session == 1);
}

using tw::process::KernelDropLocator;

TEST_CASE("drops between two readings are reported before the first and after the last frame "
          "between them") {
    KernelDropLocator drops{100};
    drops.on_drop_count(200, 0);
    drops.on_drop_count(300, 7);
    CHECK(drops.has_interval());
    CHECK_FALSE(drops.take_missing_count(150));
    CHECK_FALSE(drops.take_missing_count(200)); // the frame was captured before the last reading
    CHECK(drops.take_missing_count(201) == 7);
    CHECK_FALSE(drops.take_missing_count(250));
    CHECK_FALSE(drops.take_missing_count(300));
    CHECK(drops.take_missing_count(301) == 0);
    CHECK_FALSE(drops.has_interval());
    CHECK_FALSE(drops.take_missing_count(302));
}

TEST_CASE("continuing drops make one interval, and each drop is counted once") {
    KernelDropLocator drops{0};
    drops.on_drop_count(10, 5);
    CHECK(drops.take_missing_count(5) == 5);
    drops.on_drop_count(20, 9);
    drops.on_drop_count(30, 9);
    CHECK_FALSE(drops.take_missing_count(15));
    CHECK(drops.take_missing_count(21) == 4);
    CHECK_FALSE(drops.has_interval());
}

TEST_CASE("if no frame of the interval arrives, the drops are reported before the next frame") {
    KernelDropLocator drops{0};
    drops.on_drop_count(10, 3);
    CHECK(drops.take_missing_count(11) == 3);
    CHECK_FALSE(drops.has_interval());
    drops.on_drop_count(20, 3);
    CHECK_FALSE(drops.has_interval());
    drops.on_drop_count(30, 4);
    CHECK_FALSE(drops.take_missing_count(20));
    CHECK(drops.take_missing_count(1000) == 1);
}
