#include "proxy/inspect/legacy_code.h"
#include "tests/fuzz/demand.h"

#include <cstddef>
#include <cstdint>
#include <span>

/// What a capture, or another twscope, says of a session: what is taken is sound and bounded, and is
/// written and read again as it was.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using tw::fuzz::demand;
    const auto legacy = tw::inspect::decode_legacy(std::as_bytes(std::span{data, size}));
    if (!legacy) {
        return 0;
    }
    demand(legacy->is_sound());
    demand(legacy->snapshots.size() <= 251);
    const auto bytes = tw::inspect::encode_legacy(*legacy);
    const auto again = tw::inspect::decode_legacy(bytes);
    demand(again.has_value());
    demand(tw::inspect::encode_legacy(*again) == bytes);
    return 0;
}
