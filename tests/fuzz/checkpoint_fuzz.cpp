#include "proxy/inspect/connection/session_checkpoint.h"
#include "proxy/inspect/session.h"
#include "tests/fuzz/demand.h"
#include "tests/fuzz/strict_sink.h"
#include "tests/support/captured_traffic.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>

/// The input is a session checkpoint, as in a capture or from another twscope process. An accepted
/// checkpoint must be valid and bounded, be unchanged after writing and rereading, and let a
/// session continue.
namespace {

using namespace tw;
using namespace tw::inspect;
using tw::fuzz::demand;

constexpr std::size_t kMaxMemory = std::size_t{32} << 20U;

std::optional<SessionCheckpoint> reencode_checkpoint(const SessionCheckpoint& checkpoint) {
    const auto bytes = encode_checkpoint(checkpoint);
    demand(bytes.size() <= kMaxEncodedCheckpoint);
    auto again = decode_checkpoint(bytes);
    demand(again.has_value() && encode_checkpoint(*again) == bytes);
    return again;
}

void continue_session(Session& session, SessionCheckpoint checkpoint, DecodeBuffers& workspace) {
    constexpr std::array<std::byte, 3> kNothing{};
    session.set_pending_checkpoint(std::move(checkpoint));
    session.on_datagram(1, wire::Direction::s2c, kNothing, workspace);
    session.on_datagram(2, wire::Direction::c2s, kNothing, workspace);
    demand(session.memory_bytes() <= kMaxMemory);
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    auto checkpoint = decode_checkpoint(std::as_bytes(std::span{data, size}));
    if (!checkpoint) {
        return 0;
    }
    demand(checkpoint->is_consistent());
    demand(checkpoint->snapshots.size() <= 251);
    auto again = reencode_checkpoint(*checkpoint);
    static const auto workspace = std::make_unique<DecodeBuffers>();
    fuzz::StrictSink sink;
    test::NoMaps maps;
    Session session{1, "client", "server", {}, maps, sink};
    session.open_session(0);
    continue_session(session, *std::move(checkpoint), *workspace);
    auto left = reencode_checkpoint(session.make_checkpoint());
    // Restores another checkpoint while the session is running, and the saved one.
    continue_session(session, *std::move(again), *workspace);
    continue_session(session, *std::move(left), *workspace);
    session.close_session(3, "end of capture", *workspace);
    return 0;
}
