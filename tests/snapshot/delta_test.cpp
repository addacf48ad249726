// Covers: snapshot/apply.cpp, snapshot/snapshot.cpp
#include "snapshot/cursor.h"
#include "snapshot/delta.h"
#include "snapshot/objects.h"

#include <algorithm>
#include <limits>
#include <map>
#include <random>

#include "vectors.h"
#include <doctest/doctest.h>

using namespace tw::snapshot;
using namespace tw::snapshot::test;

namespace {

struct DecodeOutcome {
    Result<void> result;
    Snapshot snapshot;
    DeltaWarnings warnings;
};

DecodeOutcome decode_and_apply(const SnapshotView& base, std::span<const std::byte> body,
                               const AgreedSizes& sizes = kAgreedSizes) {
    DecodeOutcome outcome;
    Delta delta;
    outcome.result = decode_delta(body, delta, sizes);
    if (outcome.result) {
        outcome.result = apply_delta(base, delta, outcome.snapshot, outcome.warnings);
    }
    return outcome;
}

DecodeOutcome decode_and_apply(const SnapshotView& base, const std::vector<std::int32_t>& ints) {
    return decode_and_apply(base, std::span<const std::byte>{encode_ints(ints)});
}

// (10,2) 1 2 0 0 30 and (4,1) 10 20 0 0 and (40,7) 1 2 3
Snapshot small_base() {
    Snapshot base;
    base.append({4, 1}, std::vector<std::int32_t>{10, 20, 0, 0});
    base.append({10, 2}, std::vector<std::int32_t>{1, 2, 0, 0, 30});
    base.append({40, 7}, std::vector<std::int32_t>{1, 2, 3});
    return base;
}

} // namespace

TEST_CASE("deltas of the reference writer give its snapshots and checksums") {
    for (const bool seven : {false, true}) {
        const auto& sizes = seven ? kSevenAgreedSizes : kAgreedSizes;
        int refused = 0;
        for (const auto& row : (seven ? seven_vectors : vectors)("snapshot_delta")) {
            CAPTURE(row.at("note").as_string().c_str());
            const Snapshot base = snapshot_of(row.at("old"));
            const auto body = from_hex(row.at("delta_bytes").as_string());
            const auto got = decode_and_apply(base.view(), body, sizes);
            if (row.at("new").is_null()) {
                CHECK_FALSE(got.result);
                ++refused;
                continue;
            }
            REQUIRE(got.result);
            const Snapshot wanted = snapshot_of(row.at("new"));
            CHECK(got.snapshot == wanted);
            CHECK(got.snapshot.view().checksum() == row.at("crc").to_number<std::int32_t>());
            CHECK(got.warnings.count == 0);

            const auto own = encode_delta(base.view(), wanted.view(), sizes);
            const auto back = decode_and_apply(base.view(), own, sizes);
            REQUIRE(back.result);
            CHECK(back.snapshot == wanted);
            CHECK(own.size() == (body.empty() ? 3 : body.size()));
            for (std::size_t size = 1; size < body.size(); ++size) {
                CHECK_FALSE(decode_and_apply(base.view(), prefix(body, size), sizes).result);
            }
        }
        CHECK(refused == (seven ? 1 : 0));
    }
}

TEST_CASE("odd deltas are applied or refused as clients do") {
    for (const auto& row : vectors("snapshot_delta_odd")) {
        CAPTURE(row.at("note").as_string().c_str());
        const Snapshot base = snapshot_of(row.at("old"));
        const auto got = decode_and_apply(base.view(), ints_of(row.at("delta_ints")));
        CHECK(got.result.has_value() == !row.at("new").is_null());
        if (!row.at("new").is_null() && got.result) {
            CHECK(got.snapshot == snapshot_of(row.at("new")));
            CHECK(got.snapshot.view().checksum() == row.at("crc").to_number<std::int32_t>());
        }
    }
}

namespace {

struct BrokenDelta {
    const char* name;
    std::vector<std::int32_t> ints;
    DecodeErrc code;
    std::size_t offset;
    std::optional<ItemKey> key;
    int ddnet_code;
};

} // namespace

TEST_CASE("an invalid delta gives the error, its position and the item") {
    using E = DecodeErrc;
    const std::int32_t max = std::numeric_limits<std::int32_t>::max();
    const BrokenDelta rows[] = {
        {"one int", {0}, E::deleted_out_of_range, 0, {}, -101},
        {"two ints", {0, 1}, E::deleted_out_of_range, 0, {}, -101},
        {"negative deletions", {-1, 0, 0}, E::negative_count, 0, {}, -201},
        {"one deletion too many", {2, 0, 0, 5}, E::deleted_out_of_range, 0, {}, -101},
        {"all deletions", {max, 0, 0, 5}, E::deleted_out_of_range, 0, {}, -101},
        {"no update", {0, 1, 0}, E::update_truncated, 3, {}, -102},
        {"most updates", {0, max, 0}, E::update_truncated, 3, {}, -102},
        {"half an update", {0, 1, 0, 4}, E::update_truncated, 4, {}, -102},
        {"negative type", {0, 1, 0, -1, 0, 0}, E::type_out_of_range, 3, {}, -202},
        {"large type", {0, 1, 0, 0x8000, 0, 0}, E::type_out_of_range, 3, {}, -202},
        {"negative id", {0, 1, 0, 40, -1, 0}, E::id_out_of_range, 4, {}, -203},
        {"large id", {0, 1, 0, 40, 0x10000, 0}, E::id_out_of_range, 4, {}, -203},
        {"no size", {0, 1, 0, 40, 9}, E::update_truncated, 5, ItemKey{40, 9}, -103},
        {"negative size", {0, 1, 0, 40, 9, -1}, E::size_out_of_range, 5, ItemKey{40, 9}, -204},
        {"size one too large",
         {0, 1, 0, 40, 9, 2, 1},
         E::size_out_of_range,
         5,
         ItemKey{40, 9},
         -205},
        {"largest size", {0, 1, 0, 40, 9, max, 1}, E::size_out_of_range, 5, ItemKey{40, 9}, -205},
        {"agreed size cut", {0, 1, 0, 4, 9, 1, 1, 1}, E::size_out_of_range, 4, ItemKey{4, 9}, -205},
        {"size changes", {0, 1, 0, 40, 7, 2, 5, 5}, E::size_change, 5, ItemKey{40, 7}, -206},
        {"size of a deleted item changes",
         {1, 1, 0, 40 * 65536 + 7, 40, 7, 2, 5, 5},
         E::size_change,
         6,
         ItemKey{40, 7},
         -207},
        {"size of a new item changes",
         {0, 2, 0, 40, 8, 1, 5, 40, 8, 2, 5, 5},
         E::size_change,
         9,
         ItemKey{40, 8},
         -206},
    };
    const Snapshot base = small_base();
    for (const auto& row : rows) {
        CAPTURE(row.name);
        const auto got = decode_and_apply(base.view(), row.ints);
        REQUIRE_FALSE(got.result);
        const DecodeError& error = got.result.error();
        CHECK(error.code == row.code);
        CHECK(error.offset == row.offset);
        CHECK(error.key == row.key);
        CHECK((error.ddnet_code != 0 ? error.ddnet_code : error_info(error.code).ddnet_code) ==
              row.ddnet_code);
    }
}

TEST_CASE("a delta that is truncated at any byte is rejected") {
    for (const auto& row : vectors("snapshot_delta")) {
        const auto body = from_hex(row.at("delta_bytes").as_string());
        const Snapshot base = snapshot_of(row.at("old"));
        for (std::size_t size = 1; size < body.size(); ++size) {
            CAPTURE(size);
            // A separate copy, so that a sanitizer detects reads past the end.
            const std::vector<std::byte> cut(body.begin(),
                                             body.begin() + static_cast<std::ptrdiff_t>(size));
            CHECK_FALSE(decode_and_apply(base.view(), cut).result);
        }
    }
}

TEST_CASE("unusual content that clients tolerate is reported") {
    struct Row {
        const char* name;
        std::vector<std::int32_t> ints;
        std::vector<std::pair<DeltaWarning, ItemKey>> warnings;
        std::vector<std::uint32_t> places;
    };

    constexpr std::int32_t kPlayer = 10 * 65536 + 2;
    using O = DeltaWarning;
    const Row rows[] = {
        {"nothing odd", {1, 0, 0, kPlayer}, {}, {}},
        {"unknown delete", {1, 0, 0, kPlayer + 1}, {{O::unknown_delete, {10, 3}}}, {3}},
        {"negative key", {1, 0, 0, -1}, {{O::unknown_delete, {0xffff, 0xffff}}}, {3}},
        {"duplicate delete", {2, 0, 0, kPlayer, kPlayer}, {{O::duplicate_delete, {10, 2}}}, {4}},
        {"deleted and updated",
         {1, 1, 0, kPlayer, 10, 2, 0, 0, 0, 5, 0},
         {{O::deleted_and_updated, {10, 2}}},
         {6}},
        {"two updates",
         {0, 2, 0, 10, 2, 0, 0, 0, 5, 0, 10, 2, 0, 0, 0, 7, 1},
         {{O::duplicate_update, {10, 2}}},
         {12}},
        {"two creations",
         {0, 2, 0, 4, 9, 1, 1, 1, 1, 4, 9, 2, 2, 2, 2},
         {{O::duplicate_update, {4, 9}}},
         {11}},
    };
    const Snapshot base = small_base();
    for (const auto& row : rows) {
        CAPTURE(row.name);
        const auto got = decode_and_apply(base.view(), row.ints);
        REQUIRE(got.result);
        REQUIRE(got.warnings.count == row.warnings.size());
        for (std::size_t i = 0; i < row.warnings.size(); ++i) {
            CHECK(got.warnings.list()[i].kind == row.warnings[i].first);
            CHECK(got.warnings.list()[i].key == row.warnings[i].second);
            CHECK(got.warnings.list()[i].int_index == row.places[i]);
        }
    }
}

TEST_CASE("warnings beyond the limit are counted") {
    std::vector<std::int32_t> ints{100, 0, 0};
    ints.resize(103, 77);
    const auto got = decode_and_apply({}, ints);
    REQUIRE(got.result);
    CHECK(got.warnings.count == 100);
    CHECK(got.warnings.list().size() == DeltaWarnings::kMaxKept);
}

TEST_CASE("a snapshot holds up to 1024 items and 65536 bytes") {
    struct Row {
        const char* name;
        std::int32_t items;
        std::int32_t size;
        std::optional<DecodeErrc> code;
        std::uint16_t id;
    };

    // The base has one item of 8000 ints. A snapshot takes 8 bytes, plus 8 per item and 4 per int.
    const Row rows[] = {
        {"most items", 1023, 0, {}, 0},
        {"one item too many", 1024, 0, DecodeErrc::too_many_items, 1023},
        {"most bytes", 2, 4188, {}, 0},
        {"one item of one int too many", 2, 4189, DecodeErrc::too_many_bytes, 1},
    };
    Snapshot base;
    base.append({99, 0}, std::vector<std::int32_t>(8000));
    for (const auto& row : rows) {
        CAPTURE(row.name);
        std::vector<std::int32_t> ints{0, row.items, 0};
        for (std::int32_t id = 0; id < row.items; ++id) {
            ints.insert(ints.end(), {100, id, row.size});
            ints.resize(ints.size() + static_cast<std::size_t>(row.size), 1);
        }
        const auto got = decode_and_apply(base.view(), ints);
        CHECK(got.result.has_value() == !row.code);
        if (row.code && !got.result) {
            CHECK(got.result.error().code == *row.code);
            CHECK(got.result.error().key == ItemKey{100, row.id});
        } else if (!row.code) {
            CHECK(got.snapshot.view().size() == static_cast<std::size_t>(row.items) + 1);
            CHECK(got.snapshot.view().size_bytes() <= kMaxSnapshotBytes);
        }
    }
}

TEST_CASE("a body of more than 16384 ints is refused") {
    std::vector<std::byte> body(kMaxDeltaInts);
    Delta delta;
    CHECK(decode_delta(body, delta, kAgreedSizes));
    body.push_back(std::byte{0});
    const auto got = decode_delta(body, delta, kAgreedSizes);
    REQUIRE_FALSE(got);
    CHECK(got.error().code == DecodeErrc::too_many_ints);
    CHECK(got.error().offset == kMaxDeltaInts);
}

TEST_CASE("ints after the last update are counted and ignored") {
    Delta delta;
    const auto body = encode_ints({0, 1, 9, 40, 1, 1, 5, 6, 7, 8});
    REQUIRE(decode_delta(body, delta, kAgreedSizes));
    CHECK(delta.updates.size() == 1);
    CHECK(delta.surplus_ints == 3);
    REQUIRE(decode_delta({}, delta, kAgreedSizes));
    CHECK(delta.updates.empty());
    CHECK(delta.surplus_ints == 0);
}

namespace {

std::int32_t random_int(std::mt19937& random) {
    return static_cast<std::int32_t>(random() >> (random() % 32));
}

// Returns items of a few types, some with agreed sizes. An item's size depends only on its key.
Snapshot random_snapshot(std::mt19937& random) {
    constexpr std::uint16_t kTypes[] = {0, 2, 4, 5, 9, 10, 11, 14, 20, 21, 64, 0x4000, 0x7fff};
    Snapshot snapshot;
    const std::size_t one_in = 1 + random() % 4;
    for (const std::uint16_t type : kTypes) {
        for (unsigned i = 0; i < 24; ++i) {
            if (random() % one_in != 0) {
                continue;
            }
            const auto id = static_cast<std::uint16_t>(i < 20 ? i : i * 2700);
            const std::size_t agreed = agreed_size(type, kAgreedSizes);
            std::vector<std::int32_t> data(agreed != 0 ? agreed : (type + id) % 7U);
            for (auto& value : data) {
                value = random() % 2 == 0 ? 0 : random_int(random);
            }
            snapshot.append({type, id}, data);
        }
    }
    return snapshot;
}

// Applies a delta as section 6.5 of the protocol describes it, with updates in any order.
Snapshot apply_plainly(const SnapshotView& base, const Delta& delta) {
    std::map<ItemKey, std::vector<std::int32_t>> items;
    for (std::size_t i = 0; i < base.size(); ++i) {
        const auto key = base[i].key;
        const auto packed = static_cast<std::int32_t>(key.packed());
        if (std::ranges::find(delta.deleted, packed) == delta.deleted.end()) {
            items[key].assign(base[i].data.begin(), base[i].data.end());
        }
    }
    for (const auto& update : delta.updates) {
        std::vector<std::int32_t> data(delta.ints.begin() + update.begin,
                                       delta.ints.begin() + update.begin + update.size);
        if (const auto old = base.find(update.key)) {
            for (std::size_t i = 0; i < data.size(); ++i) {
                data[i] = static_cast<std::int32_t>(static_cast<std::uint32_t>(data[i]) +
                                                    static_cast<std::uint32_t>(base[*old].data[i]));
            }
        }
        items[update.key] = data;
    }
    Snapshot snapshot;
    for (const auto& [key, data] : items) {
        snapshot.append(key, data);
    }
    return snapshot;
}

} // namespace

TEST_CASE("encoding a delta and applying it gives the snapshot back") {
    std::mt19937 random{2};
    for (int round = 0; round < 300; ++round) {
        const Snapshot from = random_snapshot(random);
        const Snapshot to = random_snapshot(random);
        const auto body = encode_delta(from.view(), to.view(), kAgreedSizes);
        const auto got = decode_and_apply(from.view(), body);
        REQUIRE(got.result);
        CHECK(got.snapshot == to);
        CHECK(got.warnings.count == 0);
    }
}

TEST_CASE("updates in any order, with duplicates, have the same result as single updates") {
    std::mt19937 random{3};
    for (int round = 0; round < 300; ++round) {
        const Snapshot from = random_snapshot(random);
        Delta delta;
        REQUIRE(
            decode_delta(encode_delta(from.view(), random_snapshot(random).view(), kAgreedSizes),
                         delta, kAgreedSizes));
        std::shuffle(delta.updates.begin(), delta.updates.end(), random);
        for (std::size_t i = 0; i < 5 && !delta.updates.empty(); ++i) {
            delta.updates.push_back(delta.updates[random() % delta.updates.size()]);
            delta.updates.back().begin =
                delta.ints.size() > 100 ? delta.updates.back().begin / 2 + 1 : 1;
        }
        Snapshot got;
        DeltaWarnings warnings;
        REQUIRE(apply_delta(from.view(), delta, got, warnings));
        CHECK(got == apply_plainly(from.view(), delta));
    }
}

TEST_CASE("random bodies do not crash the decoder") {
    std::mt19937 random{4};
    std::size_t applied = 0;
    for (int round = 0; round < 20000; ++round) {
        const Snapshot base = round % 2 == 0 ? small_base() : Snapshot{};
        std::vector<std::int32_t> ints{static_cast<std::int32_t>(random() % 3),
                                       static_cast<std::int32_t>(random() % 4), 0};
        const std::size_t count = random() % 20;
        for (std::size_t i = 0; i < count; ++i) {
            constexpr std::int32_t kInts[] = {0, 1, 2, 4, 7, 10, 40, 262145, 655362, 2621447, -1};
            ints.push_back(kInts[random() % std::size(kInts)]);
        }
        const auto got = decode_and_apply(base.view(), ints);
        if (got.result) {
            ++applied;
            const auto view = got.snapshot.view();
            CHECK(std::is_sorted(view.keys().begin(), view.keys().end(), std::less_equal<>{}));
            CHECK((view.empty() || view.ends().back() == view.data().size()));
        }
    }
    CHECK(applied > 1000);
}

TEST_CASE("the byte offset of each int in a body is found") {
    const auto body = encode_ints({0, 1000, 5, -100000});
    CHECK(IntOffsets{body}.byte_offset(0) == 0);
    CHECK(IntOffsets{body}.byte_offset(1) == 1);
    CHECK(IntOffsets{body}.byte_offset(2) == 3);
    CHECK(IntOffsets{body}.byte_offset(3) == 4);
    CHECK(IntOffsets{body}.byte_offset(4) == body.size());
    CHECK(IntOffsets{body}.byte_offset(99) == body.size());
    CHECK(IntOffsets{from_hex("0080")}.byte_offset(2) == 2);
}
