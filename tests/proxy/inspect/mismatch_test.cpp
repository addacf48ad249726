// Covers: proxy/inspect/diagnosis/diagnosis.cpp
#include "proxy/inspect/diagnosis/diagnosis.h"
#include "snapshot/cursor.h"

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
        mismatch = {.tick = 12,
                    .body = body,
                    .delta = &delta,
                    .base = {},
                    .result = result.view(),
                    .warnings = &warnings,
                    .right = &history,
                    .types = &types,
                    .wanted = crc,
                    .got = result.view().checksum()};
    }

    [[nodiscard]] inspect::MismatchCause explain() const {
        inspect::SearchBudget budget;
        budget.begin(0);
        return inspect::explain_mismatch(mismatch, inspect::Suspects{mismatch, budget}.rank(types));
    }

    Received(const Received&) = delete;
    Received& operator=(const Received&) = delete;
    ~Received() = default;

    Bytes body;
    snapshot::Delta delta;
    snapshot::Snapshot result;
    snapshot::DeltaWarnings warnings;
    snapshot::History history;
    record::TypeNames types;
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
    const auto cause = received.explain();
    CHECK(cause.name == "duplicate_update");
    CHECK(cause.key == kFlag);
    REQUIRE(cause.int_index);
    CHECK(*cause.int_index == 5);
}

TEST_CASE("a delta that is odd about an item lists it where no sum fits, and names none") {
    const Received received{body_of({0, 2, 0, 5, 3, 100, 200, 1, 5, 3, 7, 8, 9}), 12345};
    const auto cause = received.explain();
    CHECK(cause.name == "odd_delta");
    CHECK_FALSE(cause.key);
    CHECK(cause.odd_items == std::vector{kFlag});
}

TEST_CASE("where the sums of several lost items fit, none is named") {
    const Received received{
        body_of({0, 4, 0, 5, 3, 1, 0, 0, 5, 3, 7, 8, 9, 5, 4, 1, 0, 0, 5, 4, 7, 8, 9}), 48 + 1};
    const auto cause = received.explain();
    CHECK(cause.name == "duplicate_update");
    CHECK_FALSE(cause.key);
    CHECK(cause.odd_items.size() == 2);
}

TEST_CASE("the one value that a flipped bit explains is named") {
    // The sign's bit: no other value becomes what it must have been by one flipped bit.
    const Received received{body_of({0, 1, 0, 5, 3, ~1000, 40, 1}), 1041};
    const auto cause = received.explain();
    CHECK(cause.name == "damaged_value");
    CHECK(cause.key == kFlag);
    CHECK(cause.int_index == 5);
    CHECK(cause.field == "x");
}

TEST_CASE("where one flipped bit in any of several values explains the difference, none is named") {
    const Received received{body_of({0, 1, 0, 5, 3, 1024 + 256, 40, 1 + 256}), 1065 + 256};
    const auto cause = received.explain();
    CHECK(cause.name == "ambiguous");
    CHECK_FALSE(cause.key);
    CHECK_FALSE(cause.int_index);
    REQUIRE(cause.damaged.size() == 2);
    CHECK(cause.damaged[0].int_index + cause.damaged[1].int_index == 5 + 7);
}

TEST_CASE("a value that takes more bytes than servers write is the damaged one") {
    // 64 in two bytes; without its highest bit 0 in two.
    Bytes body = body_of({0, 1, 0, 5, 3, 64, 64, 1});
    const std::size_t at = snapshot::byte_offset_of_int(body, 5) + 1;
    REQUIRE(body[at] == std::byte{1});
    body[at] = std::byte{0};
    const auto cause = Received{body, 129}.explain();
    CHECK(cause.name == "damaged_value");
    CHECK(cause.int_index == 5);
}

TEST_CASE("what no single value explains is called unknown") {
    const Received received{body_of({0, 1, 0, 5, 3, 1000, 40, 1}), 1041 + 3 * 5 * 7 * 11};
    const auto cause = received.explain();
    CHECK(cause.name == "unknown");
    CHECK_FALSE(cause.key);
    CHECK(cause.damaged.empty());
}

TEST_CASE("without a value to suspect, the checksum or the number of values is named") {
    struct Row {
        std::string_view name;
        Bytes body;
        std::int32_t crc;
        std::string_view cause;
        std::string_view part;
    };

    std::vector<std::int32_t> many{0, 1, 0, 40, 7, 5000};
    many.resize(many.size() + 5000);
    const Row rows[] = {
        {"one bit", body_of({0, 0, 0}), 64, "damaged_checksum", "one flipped bit"},
        {"two bits", body_of({0, 0, 0}), 96, "unknown", "the base or the announced checksum"},
        {"too many", body_of(many), 64, "unknown", "5000 values, too many"},
    };
    for (const Row& row : rows) {
        CAPTURE(row.name);
        const auto cause = Received{row.body, row.crc}.explain();
        CHECK(cause.name == row.cause);
        CHECK(cause.sentence.find(row.part) != std::string::npos);
    }
}

TEST_CASE("other causes than a flipped bit in a value are told, as far as they fit") {
    const auto ambiguous =
        Received{body_of({0, 1, 0, 5, 3, 1024 + 256, 40, 1 + 256}), 1065 + 256}.explain();
    CHECK(ambiguous.sentence.ends_with("any value of the updated item fits"));
    const auto unknown = Received{body_of({0, 1, 0, 5, 3, 1000, 40, 1}), 1041 + 3}.explain();
    CHECK(unknown.sentence.find("any value of the updated item fits") != std::string::npos);
}

TEST_CASE("one flipped bit, of the int or of its encoding, lies between two values") {
    struct Row {
        std::int32_t one;
        std::int32_t other;
        bool apart;
    };

    for (const Row& row : {Row{0, 1, true}, Row{1000, 1000 + 4096, true}, Row{-5, ~-5, true},
                           Row{5, 6, false}, Row{7, 7, false}, Row{0, INT32_MIN, true}}) {
        CAPTURE(row.one);
        CAPTURE(row.other);
        CHECK(inspect::are_one_bit_apart(row.one, row.other) == row.apart);
        CHECK(inspect::are_one_bit_apart(row.other, row.one) == row.apart);
    }
}
