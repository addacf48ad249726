#include "proxy/inspect/mismatch.h"
#include "snapshot/varint.h"

#include <map>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

using namespace tw;
using snapshot::ItemKey;

namespace {

using Bytes = std::vector<std::byte>;
constexpr ItemKey kFlag{5, 3}; // three ints, agreed

/// What a client makes of a delta body, and what the server says the sum is.
struct Received {
    Received(Bytes received, std::int32_t crc) : body{std::move(received)} {
        REQUIRE(snapshot::decode_delta(body, delta, snapshot::kAgreedSizes));
        REQUIRE(snapshot::apply_delta({}, delta, result, warnings));
        mismatch = {.body = body,
                    .delta = &delta,
                    .base = {},
                    .previous = {},
                    .result = result.view(),
                    .warnings = &warnings,
                    .wanted = crc,
                    .got = result.view().checksum()};
    }

    Received(const Received&) = delete;
    Received& operator=(const Received&) = delete;
    Received(Received&&) = delete;
    Received& operator=(Received&&) = delete;
    ~Received() = default;

    Bytes body;
    snapshot::Delta delta;
    snapshot::Snapshot result;
    snapshot::DeltaWarnings warnings;
    inspect::Mismatch mismatch;
};

Bytes body_of(const std::vector<std::int32_t>& ints) {
    Bytes body;
    for (const std::int32_t value : ints) {
        snapshot::encode_varint(value, body);
    }
    return body;
}

} // namespace

TEST_CASE("a second item under one key is named when its sum is the difference") {
    // The server held the flag twice: its sum counts both, the client keeps the later one.
    const Received received{body_of({0, 2, 0, 5, 3, 100, 200, 1, 5, 3, 7, 8, 9}), 301 + 24};
    const auto cause = inspect::explain_mismatch(received.mismatch);
    CHECK(cause.name == "duplicate_update");
    CHECK(cause.key == kFlag);
    REQUIRE(cause.int_index);
    CHECK(*cause.int_index == 5);
}

TEST_CASE("a delta that is odd about an item names it where no sum fits") {
    const Received received{body_of({0, 2, 0, 5, 3, 100, 200, 1, 5, 3, 7, 8, 9}), 12345};
    const auto cause = inspect::explain_mismatch(received.mismatch);
    CHECK(cause.name == "odd_delta");
    CHECK(cause.key == kFlag);
}

TEST_CASE("a value with one flipped bit is named") {
    Bytes body = body_of({0, 1, 0, 5, 3, 1000, 40, 1});
    const std::size_t at = snapshot::byte_offset_of_int(body, 5) + 1;
    body[at] ^= std::byte{0x04}; // 2^(6 + 2)
    const Received received{body, 1041};
    const auto cause = inspect::explain_mismatch(received.mismatch);
    CHECK(cause.name == "damaged_value");
    CHECK(cause.key == kFlag);
    CHECK(cause.int_index == 5);
}

TEST_CASE("what no single value explains is called unknown") {
    const Received received{body_of({0, 1, 0, 5, 3, 1000, 40, 1}), 1041 + 3 * 5 * 7 * 11};
    const auto cause = inspect::explain_mismatch(received.mismatch);
    CHECK(cause.name == "unknown");
    CHECK_FALSE(cause.key);
}
