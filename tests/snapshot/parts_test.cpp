#include "snapshot/cursor.h"
#include "snapshot/delta.h"
#include "snapshot/parts.h"

#include <algorithm>
#include <limits>

#include "vectors.h"
#include <doctest/doctest.h>

using namespace tw::snapshot;
using namespace tw::snapshot::test;

namespace {

// Returns bytes that differ for each part of each tick.
std::vector<std::byte> make_part_bytes(Tick tick, std::int32_t part,
                                       std::size_t size = kMaxPartSize) {
    std::vector<std::byte> bytes(size, static_cast<std::byte>(std::int64_t{tick} * 7 + part));
    return bytes;
}

struct PartSequence {
    PartAssembler parts;
    std::vector<std::byte> data;

    PartStatus add_part(Tick tick, std::int32_t num_parts, std::int32_t part,
                        std::size_t size = kMaxPartSize, std::int32_t crc = 0) {
        data = make_part_bytes(tick, part, size);
        return parts.add({tick, kNoBase, num_parts, part, crc, data});
    }
};

} // namespace

TEST_CASE("parts in any order, with a duplicate, are reassembled") {
    const auto& file = spec_file("vectors.json").at("snapshot_parts").as_object();
    PartAssembler parts;
    std::size_t completed = 0;
    for (const auto& message : file.at("messages").as_array()) {
        const auto bytes = from_hex(message.as_string());
        Cursor in{bytes};
        CHECK(in.var_int() == 5 * 2 + 1);
        Part part;
        part.tick = in.var_int();
        part.delta_tick = part.tick - in.var_int();
        part.num_parts = in.var_int();
        part.part = in.var_int();
        part.crc = in.var_int();
        part.data = in.raw(in.var_int());
        REQUIRE_FALSE(in.failed());
        if (parts.add(part) != PartStatus::complete) {
            continue;
        }
        ++completed;
        const auto& delta = parts.assembled();
        CHECK(delta.tick == file.at("tick").to_number<std::int32_t>());
        CHECK(delta.delta_tick == kNoBase);
        CHECK(delta.num_parts == file.at("num_parts").to_number<std::int32_t>());
        Delta decoded;
        Snapshot snapshot;
        DeltaWarnings warnings;
        REQUIRE(decode_delta(delta.body, decoded, kAgreedSizes));
        REQUIRE(apply_delta({}, decoded, snapshot, warnings));
        CHECK(snapshot.view().checksum() == file.at("crc").to_number<std::int32_t>());
        CHECK(snapshot.view().checksum() == delta.crc);
    }
    CHECK(completed == 1);
}

TEST_CASE("parts with numbers outside the limits are rejected") {
    struct Row {
        const char* name;
        std::int32_t num_parts;
        std::int32_t part;
        std::size_t size;
        PartStatus status;
    };

    constexpr std::int32_t kMax = std::numeric_limits<std::int32_t>::max();
    using S = PartStatus;
    const Row rows[] = {
        {"no parts", 0, 0, 5, S::out_of_range},
        {"negative parts", -1, -2, 5, S::out_of_range},
        {"too many parts", 65, 0, 900, S::out_of_range},
        {"most parts", 64, 0, 900, S::incomplete},
        {"last of most parts", 64, 63, 0, S::incomplete},
        {"negative part", 2, -1, 900, S::out_of_range},
        {"part behind the last", 2, 2, 900, S::out_of_range},
        {"huge numbers", kMax, kMax - 1, 900, S::out_of_range},
        {"too large", 2, 1, 901, S::out_of_range},
        {"too large alone", 1, 0, 901, S::out_of_range},
        {"short, not last", 2, 0, 899, S::out_of_range},
        {"largest alone", 1, 0, 900, S::complete},
        {"empty alone", 1, 0, 0, S::complete},
    };
    for (const auto& row : rows) {
        CAPTURE(row.name);
        PartSequence script;
        CHECK(script.add_part(100, row.num_parts, row.part, row.size) == row.status);
        CHECK(script.parts.lost().empty());
    }
}

TEST_CASE("a late tick may be completed after newer ticks") {
    PartSequence script;
    CHECK(script.add_part(100, 2, 0) == PartStatus::incomplete);
    CHECK(script.add_part(102, 2, 0) == PartStatus::incomplete);
    CHECK(script.add_part(102, 2, 1, 10) == PartStatus::complete);
    CHECK(script.add_part(104, 1, 0, 10) == PartStatus::complete);
    CHECK(script.add_part(100, 2, 1, 20) == PartStatus::complete);
    const auto& delta = script.parts.assembled();
    CHECK(delta.tick == 100);
    REQUIRE(delta.body.size() == 920);
    CHECK(
        std::equal(delta.body.begin(), delta.body.begin() + 900, make_part_bytes(100, 0).begin()));
    CHECK(delta.body[900] == make_part_bytes(100, 1)[0]);
}

TEST_CASE("a repeated part changes nothing") {
    PartSequence script;
    CHECK(script.add_part(100, 2, 0) == PartStatus::incomplete);
    CHECK(script.add_part(100, 2, 0) == PartStatus::duplicate);
    CHECK(script.add_part(100, 2, 1, 5) == PartStatus::complete);
    CHECK(script.add_part(100, 2, 1, 5) == PartStatus::duplicate);
    CHECK(script.add_part(100, 2, 0) == PartStatus::duplicate);
    CHECK(script.parts.lost().empty());
}

TEST_CASE("a part that contradicts the earlier ones replaces them") {
    struct Row {
        const char* name;
        std::int32_t num_parts;
        std::int32_t part;
        std::size_t size;
        std::int32_t crc;
    };

    const Row rows[] = {{"parts", 4, 0, 900, 0}, {"crc", 3, 0, 900, 1}, {"size", 3, 2, 11, 0}};
    for (const auto& row : rows) {
        CAPTURE(row.name);
        PartSequence script;
        CHECK(script.add_part(100, 3, 1) == PartStatus::incomplete);
        CHECK(script.add_part(100, 3, 2, 10) == PartStatus::incomplete);
        CHECK(script.add_part(100, row.num_parts, row.part, row.size, row.crc) ==
              PartStatus::inconsistent);
        REQUIRE(script.parts.lost().size() == 1);
        CHECK(script.parts.lost()[0].num_parts == 3);
        CHECK(script.parts.lost()[0].num_received == 2);
        CHECK(script.add_part(100, row.num_parts, row.part, row.size, row.crc) ==
              PartStatus::duplicate);
    }
}

TEST_CASE("a delta in one part contradicts parts of its tick, and is taken") {
    PartSequence script;
    CHECK(script.add_part(98, 1, 0, 10) == PartStatus::complete);
    CHECK_FALSE(script.parts.assembled().contradicts_earlier_parts);
    CHECK(script.add_part(100, 3, 1) == PartStatus::incomplete);
    CHECK(script.add_part(102, 1, 0, 10) == PartStatus::complete);
    CHECK_FALSE(script.parts.assembled().contradicts_earlier_parts);
    CHECK(script.add_part(100, 1, 0, 10) == PartStatus::complete);
    CHECK(script.parts.assembled().contradicts_earlier_parts);
    CHECK(script.parts.assembled().body.size() == 10);
    REQUIRE(script.parts.lost().size() == 1);
    CHECK(script.parts.lost()[0].num_parts == 3);
    CHECK(script.add_part(104, 2, 0) == PartStatus::incomplete);
    CHECK(script.add_part(104, 2, 1, 10) == PartStatus::complete);
    CHECK_FALSE(script.parts.assembled().contradicts_earlier_parts);
}

TEST_CASE("ticks are abandoned when they are too old or too many") {
    PartSequence script;
    CHECK(script.add_part(100, 3, 0) == PartStatus::incomplete);
    CHECK(script.add_part(100 + kMaxPartAge, 1, 0, 5) == PartStatus::complete);
    CHECK(script.parts.lost().empty());
    CHECK(script.add_part(101 + kMaxPartAge, 1, 0, 5) == PartStatus::complete);
    REQUIRE(script.parts.lost().size() == 1);
    CHECK(script.parts.lost()[0].tick == 100);
    CHECK(script.parts.lost()[0].num_received == 1);
    CHECK(script.add_part(100, 3, 1) == PartStatus::too_old);
    CHECK(script.parts.lost().empty());

    for (Tick tick = 0; tick < static_cast<Tick>(kMaxOpenTicks); ++tick) {
        CHECK(script.add_part(127 + tick, 2, 0) == PartStatus::incomplete);
    }
    CHECK(script.add_part(126, 2, 0) == PartStatus::too_old);
    CHECK(script.add_part(140, 2, 0) == PartStatus::incomplete);
    REQUIRE(script.parts.lost().size() == 1);
    CHECK(script.parts.lost()[0].tick == 127);
    CHECK(script.parts.reset().size() == kMaxOpenTicks);
    CHECK(script.parts.reset().empty());
    CHECK(script.add_part(1, 1, 0, 5) == PartStatus::complete);
}

TEST_CASE("extreme ticks cause no overflow") {
    constexpr Tick kLow = std::numeric_limits<Tick>::min();
    constexpr Tick kHigh = std::numeric_limits<Tick>::max();
    PartSequence script;
    CHECK(script.add_part(kLow, 2, 0) == PartStatus::incomplete);
    CHECK(script.add_part(-5, 2, 0) == PartStatus::incomplete);
    CHECK(script.add_part(kHigh, 2, 0) == PartStatus::incomplete);
    CHECK(script.parts.lost().size() == 1);
    CHECK(script.add_part(kLow, 2, 1) == PartStatus::too_old);
    CHECK(script.add_part(kHigh, 2, 1) == PartStatus::complete);
}

TEST_CASE("the parts of incomplete ticks give another assembler the same state") {
    PartSequence script;
    CHECK(script.add_part(8, 2, 0) == PartStatus::incomplete);
    CHECK(script.add_part(8, 2, 1, 3) == PartStatus::complete);
    CHECK(script.add_part(10, 3, 2, 5, 77) == PartStatus::incomplete);
    CHECK(script.add_part(10, 3, 0, kMaxPartSize, 77) == PartStatus::incomplete);
    CHECK(script.add_part(12, 2, 1, 0) == PartStatus::incomplete);
    PartSequence other;
    std::size_t count = 0;
    script.parts.for_each_part_of_incomplete_tick([&](const Part& part) {
        CHECK(part.tick != 8);
        CHECK(other.parts.add(part) == PartStatus::incomplete);
        ++count;
    });
    CHECK(count == 3);
    CHECK(other.add_part(10, 3, 1, kMaxPartSize, 77) == PartStatus::complete);
    CHECK(other.parts.assembled().body.size() == 2 * kMaxPartSize + 5);
    CHECK(other.add_part(12, 2, 0) == PartStatus::complete);
    CHECK(other.parts.assembled().body.size() == kMaxPartSize);
}
