// What deltas of one tick have in common is decoded once; what comes of it is what decode_delta says.
#include "snapshot/shared_deltas.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "vectors.h"
#include <doctest/doctest.h>

using namespace tw::snapshot;
using namespace tw::snapshot::test;

namespace {

/// Decodes alone, too, and compares.
class Both {
  public:
    Result<void> decode(const std::vector<std::byte>& body, Tick tick = 100, Tick base = 98,
                        const AgreedSizes& sizes = kAgreedSizes) {
        Delta alone;
        const auto wanted = decode_delta(body, alone, sizes);
        AssembledDelta assembled;
        assembled.tick = tick;
        assembled.delta_tick = base;
        assembled.body = body;
        const auto got = shared.decode(assembled, delta, sizes);
        REQUIRE(got.has_value() == wanted.has_value());
        if (!wanted) {
            CHECK(got.error().code == wanted.error().code);
            CHECK(got.error().offset == wanted.error().offset);
            CHECK(got.error().key == wanted.error().key);
            CHECK(got.error().ddnet_code == wanted.error().ddnet_code);
        }
        CHECK(delta.surplus_ints == alone.surplus_ints);
        CHECK(std::ranges::equal(delta.ints, alone.ints));
        CHECK(std::ranges::equal(delta.deleted, alone.deleted));
        CHECK((delta.deleted.empty() || delta.deleted.data() == &delta.ints[kDeltaHeaderInts]));
        CHECK(std::ranges::equal(delta.updates, alone.updates));
        return got;
    }

    Result<void> decode(const std::vector<std::int32_t>& ints) { return decode(encode_ints(ints)); }

    SharedDeltas shared;
    Delta delta;
};

std::int32_t random_int(std::mt19937& random) {
    return static_cast<std::int32_t>(random() >> (random() % 32));
}

/// What a server has to tell: updates as they stand in a body, one by one.
std::vector<std::vector<std::byte>> random_updates(std::mt19937& random, std::size_t count) {
    constexpr std::uint16_t kTypes[] = {2, 4, 5, 9, 9, 9, 10, 20, 64, 0x4000, 0x7fff};
    std::vector<std::vector<std::byte>> updates;
    for (std::size_t i = 0; i < count; ++i) {
        const std::uint16_t type = kTypes[random() % std::size(kTypes)];
        std::vector<std::int32_t> ints{type, static_cast<std::int32_t>(i)};
        std::size_t size = agreed_size(type, kAgreedSizes);
        if (size == 0) {
            size = 1 + random() % 6;
            ints.push_back(static_cast<std::int32_t>(size));
        }
        for (; size != 0; --size) {
            ints.push_back(random() % 2 == 0 ? 0 : random_int(random));
        }
        updates.push_back(encode_ints(ints));
    }
    return updates;
}

/// What one client of it is told: not all of it, some of it otherwise, and something of its own.
std::vector<std::byte> random_view(std::mt19937& random,
                                   const std::vector<std::vector<std::byte>>& updates,
                                   unsigned one_in) {
    std::vector<std::byte> body;
    std::int32_t count = 0;
    const auto append = [&](const std::vector<std::byte>& update) {
        body.insert(body.end(), update.begin(), update.end());
        ++count;
    };
    bool sees = true;
    for (const auto& update : updates) {
        sees = random() % 8 == 0 ? random() % one_in != 0 : sees;
        if (random() % 40 == 0) {
            append(encode_ints({9,  5000 + static_cast<std::int32_t>(random() % 9),
                                1,  2,
                                3,  4,
                                5,  6,
                                7,  8,
                                9,  10,
                                11, 12,
                                13, 14,
                                15, 16,
                                17, 18,
                                19, 20,
                                21, 22}));
        }
        if (sees) {
            append(update);
            if (random() % 30 == 0) { // told otherwise: its last int ends another way
                body.back() ^= std::byte{1};
            }
        }
    }
    std::vector<std::int32_t> head{static_cast<std::int32_t>(random() % 4), count, 0};
    for (std::int32_t i = 0; i < head[0]; ++i) {
        head.push_back(random_int(random));
    }
    std::vector<std::byte> whole = encode_ints(head);
    whole.insert(whole.end(), body.begin(), body.end());
    return whole;
}

} // namespace

TEST_CASE("deltas of one tick, read together, say what each says alone") {
    std::mt19937 random{5};
    Both both;
    for (Tick tick = 2; tick < 400; tick += 2) {
        const auto updates = random_updates(random, random() % 200);
        for (unsigned client = 0; client < 12; ++client) {
            REQUIRE(both.decode(random_view(random, updates, 1 + client % 4), tick, tick - 2));
        }
    }
    const auto& counts = both.shared.counts();
    CHECK(counts.updates > 50'000);
    CHECK(counts.shared > counts.updates / 2);
}

TEST_CASE("damaged deltas of one tick say what each says alone") {
    std::mt19937 random{6};
    Both both;
    std::size_t refused = 0;
    for (Tick tick = 2; tick < 600; tick += 2) {
        const auto updates = random_updates(random, 1 + random() % 30);
        for (int client = 0; client < 8; ++client) {
            auto body = random_view(random, updates, 4);
            for (auto damage = random() % 3; damage != 0 && !body.empty(); --damage) {
                const std::size_t at = random() % body.size();
                const auto bits = static_cast<std::byte>(random());
                switch (random() % 4) {
                case 0:
                    body.resize(at);
                    break;
                case 1:
                    body.insert(body.begin() + static_cast<std::ptrdiff_t>(at), 1 + random() % 5,
                                bits);
                    break;
                default:
                    body[at] ^= bits;
                }
            }
            refused += both.decode(body, tick, tick - 2) ? 0U : 1U;
        }
    }
    CHECK(refused > 300);
    CHECK(both.shared.counts().shared > 4'000);
}

TEST_CASE("only deltas of the same tick, base and sizes are held against each other") {
    std::mt19937 random{7};
    const auto body = random_view(random, random_updates(random, 40), 4);
    const auto shared_with = [&](Tick tick, Tick base, const AgreedSizes& sizes) {
        Both both;
        REQUIRE(both.decode(body, 100, 98));
        static_cast<void>(both.decode(body, tick, base, sizes));
        return both.shared.counts().shared;
    };
    CHECK(shared_with(100, 98, kAgreedSizes) > 0);
    CHECK(shared_with(102, 98, kAgreedSizes) == 0);
    CHECK(shared_with(100, 96, kAgreedSizes) == 0);
    CHECK(shared_with(100, kNoBase, kAgreedSizes) == 0);
    CHECK(shared_with(100, 98, kSevenAgreedSizes) == 0);
}

TEST_CASE("what a client alone is told, or is not told, changes nothing for others") {
    const std::vector<std::int32_t> first{1, 3,  0, 77, 10, 1, 1,  0, 0, 0,
                                          5, 40, 2, 2,  8,  9, 40, 3, 1, 4};

    struct Row {
        const char* note;
        std::vector<std::int32_t> ints;
    };

    const std::vector<Row> rows{
        {"the same", first},
        {"nothing", {0, 0, 0}},
        {"no bytes at all", {}},
        {"one is not there", {0, 2, 0, 10, 1, 1, 0, 0, 0, 5, 40, 3, 1, 4}},
        {"the first is not there", {0, 2, 0, 40, 2, 2, 8, 9, 40, 3, 1, 4}},
        {"only the last", {0, 1, 0, 40, 3, 1, 4}},
        {"another int", {0, 2, 0, 10, 1, 1, 0, 0, 0, 6, 40, 3, 1, 4}},
        {"another size", {0, 2, 0, 40, 2, 1, 8, 40, 3, 1, 4}},
        {"one more behind", {0, 2, 0, 40, 3, 1, 4, 41, 9, 1, 1}},
        {"three more in front", {0, 4, 0, 41, 1, 1, 1, 41, 2, 1, 1, 41, 3, 1, 1, 40, 2, 2, 8, 9}},
        {"the other way round", {0, 2, 0, 40, 3, 1, 4, 40, 2, 2, 8, 9}},
        {"twice", {0, 2, 0, 40, 3, 1, 4, 40, 3, 1, 4}},
        {"fewer counted than there are", {0, 1, 0, 40, 2, 2, 8, 9, 40, 3, 1, 4}},
        {"more counted than there are", {0, 3, 0, 40, 2, 2, 8, 9, 40, 3, 1, 4}},
        {"cut in a key", {0, 2, 0, 40, 2, 2, 8, 9, 40}},
        {"cut in its ints", {0, 2, 0, 40, 2, 2, 8, 9, 10, 1, 1, 0}},
        {"a size below 0", {0, 1, 0, 40, 2, -2, 8, 9}},
        {"a size that is not there", {0, 1, 0, 40, 2, 200, 8, 9}},
        {"a type below 0", {0, 1, 0, -1, 2, 2, 8, 9}},
        {"an id too high", {0, 1, 0, 40, 0x10000, 2, 8, 9}},
        {"a count below 0", {0, -1, 0, 40, 2, 2, 8, 9}},
        {"a count of deleted ones below 0", {-1, 1, 0, 40, 2, 2, 8, 9}},
        {"more deleted ones than there are", {9, 1, 0, 40, 2, 2, 8, 9}},
    };
    for (const Row& row : rows) {
        CAPTURE(row.note);
        Both both;
        static_cast<void>(both.decode(first));
        static_cast<void>(both.decode(row.ints));
        static_cast<void>(both.decode(first));
        static_cast<void>(both.decode(row.ints));
    }
    // And each after each other one.
    Both both;
    for (const Row& row : rows) {
        for (const Row& next : rows) {
            CAPTURE(std::string{row.note} + ", then " + next.note);
            static_cast<void>(both.decode(row.ints));
            static_cast<void>(both.decode(next.ints));
        }
    }
}

TEST_CASE("ints that no writer makes are the same to both") {
    struct Row {
        const char* note;
        std::vector<std::byte> bytes; ///< of the int
        std::uint64_t shared;         ///< updates, of two times two
    };

    const std::vector<Row> rows{
        {"one that goes on behind its fifth byte", std::vector<std::byte>(5, std::byte{0xFF}), 4},
        {"unused bits in the fifth byte", from_hex("80808080f8"), 4},
        {"a 1 in two bytes: where updates begin is not known", from_hex("8100"), 0},
        {"a 0 in five", from_hex("8080808000"), 0},
    };
    for (const Row& row : rows) {
        CAPTURE(row.note);
        std::vector<std::byte> body = encode_ints({0, 2, 0, 40, 1, 1});
        body.insert(body.end(), row.bytes.begin(), row.bytes.end());
        const auto behind = encode_ints({40, 2, 1, 7});
        body.insert(body.end(), behind.begin(), behind.end());
        Both both;
        for (int time = 0; time < 3; ++time) {
            REQUIRE(both.decode(body));
        }
        CHECK(both.shared.counts().shared == row.shared);
    }
}

TEST_CASE("deltas of as many ints as there may be, and of more") {
    // Updates of nothing but type, id and size, behind a head of three ints.
    const auto delta_of = [](std::int32_t num_deleted, std::int32_t count) {
        std::vector<std::int32_t> ints{num_deleted, count, 0};
        ints.resize(ints.size() + static_cast<std::size_t>(num_deleted), 7);
        for (std::int32_t i = 0; i < count; ++i) {
            ints.insert(ints.end(), {40, i % 64, 0});
        }
        return ints;
    };
    constexpr std::int32_t kMost = 5460; // 16383 ints
    for (const std::int32_t num_deleted : {0, 1, 2, 5}) {
        CAPTURE(num_deleted);
        Both both;
        REQUIRE(both.decode(delta_of(0, kMost)));
        const auto got = both.decode(delta_of(num_deleted, kMost));
        CHECK(got.has_value() == (num_deleted <= 1));
        CHECK((got || got.error().code == DecodeErrc::too_many_ints));
        // What was too much did no harm to the others.
        REQUIRE(both.decode(delta_of(1, kMost)));
        CHECK(both.shared.counts().shared >= static_cast<std::uint64_t>(kMost));
    }
}

TEST_CASE("nothing of a delta is left in the next one") {
    const std::vector<std::int32_t> surplus{0, 1, 0, 40, 1, 1, 5, 6, 7};
    std::vector<std::int32_t> many{0, 300, 0};
    for (std::int32_t i = 0; i < 300; ++i) {
        many.insert(many.end(), {40, i, 1, i});
    }
    std::vector<std::int32_t> few = many;
    few[1] = 2; // fewer than there are
    std::vector<std::int32_t> countless = many;
    countless[1] = std::numeric_limits<std::int32_t>::max();
    Both both;
    REQUIRE(both.decode(encode_ints(many), 100, 98));
    REQUIRE(both.decode(encode_ints(many), 100, 98));
    REQUIRE(both.decode(encode_ints(surplus), 102, 98));
    CHECK(both.delta.surplus_ints == 2);
    REQUIRE(both.decode(encode_ints(many), 100, 98));
    CHECK(both.delta.surplus_ints == 0);
    both.delta = {};
    REQUIRE(both.decode(encode_ints(few), 100, 98));
    CHECK(both.delta.surplus_ints == 298 * 4);
    both.delta = {};
    CHECK_FALSE(both.decode(encode_ints(countless), 100, 98));
    both.delta = {};
    REQUIRE(both.decode(encode_ints(many), 100, 98));
}

TEST_CASE("what many clients are told alone is not kept without end") {
    std::mt19937 random{8};
    Both both;
    for (Tick tick = 0; tick < 80; ++tick) {
        for (int client = 0; client < 12; ++client) {
            std::vector<std::int32_t> ints{0, 2000, 0};
            for (int i = 0; i < 2000; ++i) {
                ints.insert(ints.end(), {64 + client, i, 1, random_int(random)});
            }
            REQUIRE(both.decode(encode_ints(ints), tick, kNoBase));
        }
    }
    CHECK(both.shared.counts().shared == 0);
    CHECK(both.shared.memory_bytes() < std::size_t{12} << 20U);
}
