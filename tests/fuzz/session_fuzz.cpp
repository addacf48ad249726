#include "proxy/analyze/datagram_listing.h"
#include "proxy/inspect/session.h"
#include "tests/fuzz/demand.h"
#include "tests/fuzz/strict_sink.h"
#include "tests/support/captured_traffic.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

/// A script of datagrams for one session: two bytes of length (the top bit of the first is the
/// direction), two bytes of milliseconds since the previous datagram, then the datagram's bytes. A
/// length with all bits set means that copies were lost.
namespace {

using namespace tw;
using namespace tw::inspect;
using tw::fuzz::demand;
using tw::fuzz::StrictSink;

constexpr std::size_t kHeadSize = 4;
/// One of so many datagrams at the start is listed byte by byte; the input's size decides which.
constexpr std::size_t kMaxListed = 16;
constexpr record::Timestamp kStart = 1'700'000'000'000'000'000;

std::size_t read_u16(std::span<const std::uint8_t> bytes, std::size_t at) {
    return std::size_t{bytes[at]} << 8U | bytes[at + 1];
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    static const auto workspace = std::make_unique<DecodeBuffers>();
    StrictSink sink;
    test::NoMaps maps;
    std::size_t num_read = 0;
    analyze::DatagramListing listing{
        [&](record::Timestamp) { return num_read++ == size % kMaxListed; }, [] {}};
    Observers observers;
    observers.add_observer(listing);
    Session session{1, "client", "server", {.observers = &observers}, maps, sink};
    record::Timestamp time = kStart;
    session.open_session(time);
    std::span<const std::uint8_t> rest{data, size};
    while (rest.size() >= kHeadSize) {
        const std::size_t head = read_u16(rest, 0);
        constexpr std::size_t kLost = 0xFFFF;
        constexpr std::size_t kDirection = 0x8000;
        constexpr record::Timestamp kMillisecond = 1'000'000;
        time += static_cast<record::Timestamp>(read_u16(rest, 2)) * kMillisecond;
        rest = rest.subspan(kHeadSize);
        if (head == kLost) {
            session.on_missed_datagrams(time, 1, "ring_full");
            continue;
        }
        const std::size_t length = std::min(head & ~kDirection, rest.size());
        const auto datagram = std::as_bytes(rest.first(length));
        rest = rest.subspan(length);
        // `next` starts with the script's next head, so it is not the next datagram. A wrong `next`
        // must change nothing.
        const auto next = rest.first(std::min(rest.size(), wire::kMaxDatagramSize));
        workspace->packet_scratch.begin_datagram(datagram, std::as_bytes(next));
        session.on_datagram(
            time, (head & kDirection) != 0 ? tw::wire::Direction::s2c : tw::wire::Direction::c2s,
            datagram, *workspace);
    }
    session.close_session(time, "end of capture", *workspace);
    const record::SessionStats totals = session.totals();
    demand(totals.verified <= totals.snapshots);
    if (listing.is_complete()) {
        demand(!listing.text("datagram").empty());
        demand(!listing.json().empty());
    }
    return 0;
}
