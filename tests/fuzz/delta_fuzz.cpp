#include "snapshot/delta.h"
#include "tests/fuzz/demand.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

/// The input is two delta bodies; its first two bytes are the length of the first one. The first body is
/// applied to the empty snapshot, and the second to the result. Both results must obey the limits, and the
/// delta that make_delta() returns between them must give the second snapshot.
namespace {

using namespace tw::snapshot;
using tw::fuzz::demand;

bool build_snapshot(const SnapshotView& base, std::span<const std::byte> body, Snapshot& out) {
    Delta delta;
    if (const auto decoded = decode_delta(body, delta, kAgreedSizes); !decoded) {
        demand(decoded.error().code != DecodeErrc::none);
        return false;
    }
    DeltaWarnings warnings;
    if (const auto applied = apply_delta(base, delta, out, warnings); !applied) {
        demand(applied.error().code != DecodeErrc::none);
        demand(applied.error().offset <= delta.ints.size());
        return false;
    }
    const SnapshotView view = out.view();
    const auto keys = view.keys();
    demand(view.size() <= kMaxItems && view.size_bytes() <= kMaxSnapshotBytes);
    demand(std::is_sorted(keys.begin(), keys.end()));
    demand(std::adjacent_find(keys.begin(), keys.end()) == keys.end());
    demand(view.ends().size() == keys.size());
    demand(keys.empty() || view.ends().back() == view.data().size());
    return true;
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size < 2) {
        return 0;
    }
    const auto bytes = std::as_bytes(std::span{data + 2, size - 2});
    const std::size_t first_size =
        std::min<std::size_t>(data[0] | std::size_t{data[1]} << 8U, bytes.size());
    Snapshot base;
    if (!build_snapshot({}, bytes.first(first_size), base)) {
        return 0;
    }
    Snapshot next;
    if (!build_snapshot(base.view(), bytes.subspan(first_size), next)) {
        return 0;
    }
    Snapshot again;
    demand(
        build_snapshot(base.view(), encode_delta(base.view(), next.view(), kAgreedSizes), again));
    demand(again == next && again.view().checksum() == next.view().checksum());
    return 0;
}
