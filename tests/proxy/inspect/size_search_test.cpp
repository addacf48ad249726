// Covers: proxy/inspect/diagnosis/size_search.cpp
#include "proxy/inspect/diagnosis/size_search.h"
#include "snapshot/delta.h"
#include "tests/support/snapshot_messages.h"
#include "tests/support/time.h"

#include <algorithm>
#include <vector>

#include <doctest/doctest.h>

using namespace tw;
using namespace tw::inspect;
using snapshot::AgreedSizes;
using snapshot::kAgreedSizes;
using test::Items;

namespace {

/// The ints of a delta that a server with these sizes writes.
struct WrittenDelta {
    std::vector<std::int32_t> ints;
    snapshot::Snapshot base;
    std::int32_t crc = 0;

    [[nodiscard]] DeltaWithUnknownSizes delta() const { return {ints, base.view(), crc}; }
};

WrittenDelta write_delta(const Items& from, const Items& to,
                         const AgreedSizes& sizes = kAgreedSizes) {
    WrittenDelta result{.ints = {}, .base = test::to_snapshot(from), .crc = test::checksum_of(to)};
    const auto body =
        snapshot::encode_delta(result.base.view(), test::to_snapshot(to).view(), sizes);
    snapshot::Delta decoded;
    static_cast<void>(snapshot::decode_delta(body, decoded, sizes));
    result.ints.assign(decoded.ints.begin(), decoded.ints.end());
    return result;
}

AgreedSizes sizes_with(std::uint16_t type, std::uint8_t size, AgreedSizes sizes = kAgreedSizes) {
    sizes[type] = size;
    return sizes;
}

/// Returns a tee with one int more than agreed, between other items.
Items items_with_longer_tee() {
    std::vector<std::int32_t> tee(23, 7);
    return {{{4, 1}, {10, 20, 0, 0}}, {{9, 0}, tee}, {{10, 0}, {1, 2, 0, 0, 30}}};
}

std::vector<AgreedSizes> search_sizes(const WrittenDelta& snapshot, const KnownSizes& known = {}) {
    SearchBudget budget;
    budget.begin_search(kSecond);
    return find_item_sizes(snapshot.delta(), known, budget);
}

} // namespace

TEST_CASE("a delta is valid only with the sizes that its server used") {
    const AgreedSizes sizes = sizes_with(9, 23);
    const WrittenDelta good = write_delta({}, items_with_longer_tee(), sizes);
    const auto seen = count_types_if_sizes_fit(good.delta(), sizes).value();
    CHECK(std::ranges::count(seen.counts, 1) == 3);
    CHECK(seen.counts[9] == 1);
    CHECK_FALSE(count_types_if_sizes_fit(good.delta(), kAgreedSizes));
    for (std::size_t i = 0; i < good.ints.size(); ++i) {
        CAPTURE(i);
        WrittenDelta cut = good;
        cut.ints.resize(i);
        CHECK_FALSE(count_types_if_sizes_fit(cut.delta(), sizes));
        WrittenDelta odd = good;
        odd.ints[i] += 1;
        const bool ignored = i == 2;                   // the header's third int
        const bool key = i == 4 || i == 10 || i == 35; // an id, whose successor no other item has
        CHECK(count_types_if_sizes_fit(odd.delta(), sizes).has_value() == (ignored || key));
    }
}

TEST_CASE("a delta that no correct server writes is invalid") {
    struct Row {
        std::string_view name;
        std::vector<std::int32_t> ints;
        std::int32_t crc;
    };

    const Items base{{{4, 1}, {10, 20, 0, 0}}};
    const Row rows[] = {
        {"one key twice", {0, 2, 0, 4, 9, 1, 1, 1, 1, 4, 9, 2, 2, 2, 2}, 42},
        {"a key deleted twice", {2, 0, 0, 262145, 262145}, 0},
        {"a key deleted that is not there", {1, 0, 0, 262221}, 30},
        {"a key deleted and updated", {1, 1, 0, 262145, 4, 1, 1, 1, 1, 1}, 34},
        {"surplus ints", {0, 0, 0, 1}, 30},
        {"a negative count", {0, -1, 0}, 30},
        {"more deletions than ints", {9, 0, 0}, 30},
        {"more updates than ints", {0, 1024, 0}, 30},
        {"a type out of range", {0, 1, 0, 32768, 0, 0}, 30},
        {"an id out of range", {0, 1, 0, 4, 65536, 0, 0, 0, 0}, 30},
        {"a descriptor of no type", {0, 1, 0, 0, 5, 4, 0, 0, 0, 0}, 30},
        {"a descriptor of another size", {0, 1, 0, 0, 32767, 1, 0}, 30},
        {"a negative size", {0, 1, 0, 40, 0, -1}, 30},
        {"nothing", {}, 30},
    };
    for (const Row& row : rows) {
        CAPTURE(row.name);
        const WrittenDelta snapshot{row.ints, test::to_snapshot(base), row.crc};
        CHECK_FALSE(count_types_if_sizes_fit(snapshot.delta(), kAgreedSizes));
    }
}

TEST_CASE("the search finds the sizes of a full snapshot") {
    struct Row {
        std::string_view name;
        AgreedSizes sizes;
        Items items;
    };

    Items shorter = items_with_longer_tee();
    shorter[{4, 1}] = {10, 20};
    Items fresh = items_with_longer_tee();
    fresh[{9, 0}].pop_back();
    fresh[{33, 5}] = {1, 2, 3};
    fresh[{33, 6}] = {1, 2, 3};
    Items explicit_size = fresh;
    explicit_size.erase({33, 5});
    explicit_size.erase({33, 6});
    const Row rows[] = {
        {"longer", sizes_with(9, 23), items_with_longer_tee()},
        {"longer and shorter", sizes_with(4, 2, sizes_with(9, 23)), shorter},
        {"a type of a mod with an agreed size", sizes_with(33, 3), fresh},
        {"a size that is written", sizes_with(9, 0), explicit_size},
    };
    for (const Row& row : rows) {
        CAPTURE(row.name);
        const auto found = search_sizes(write_delta({}, row.items, row.sizes));
        REQUIRE(found.size() == 1);
        CHECK(found.front() == row.sizes);
    }
}

TEST_CASE("the search finds the size of a type that the base lacks") {
    Items base = items_with_longer_tee();
    base[{9, 0}].pop_back();
    Items next = base;
    next.erase({4, 1});
    next[{10, 0}][2] = 9;
    next[{2, 8}] = {1, 2, 3, 4, 5, 6, 7};
    next[{2, 9}] = {1, 2, 3, 4, 5, 6, 8};
    const auto found = search_sizes(write_delta(base, next, sizes_with(2, 7)));
    REQUIRE(found.size() == 1);
    CHECK(found.front() == sizes_with(2, 7));
}

TEST_CASE("the search does not change certain sizes") {
    KnownSizes known;
    known.certain_types.set(9);
    CHECK(search_sizes(write_delta({}, items_with_longer_tee(), sizes_with(9, 23)), known).empty());
}

TEST_CASE("searches stay within their budget, which is refilled over time") {
    SearchBudget budget;
    std::int64_t taken = 0;
    const auto spend = [&](std::int64_t time) {
        budget.begin_search(time);
        std::int64_t count = 0;
        for (; budget.spend_items(); ++count) {
        }
        budget.end_search();
        return count;
    };
    for (int i = 0; i < 10; ++i) {
        taken += spend(kSecond);
    }
    CHECK(taken == SearchBudget::kItemsPerSecond);
    CHECK(spend(kSecond) == 0);
    CHECK(spend(kSecond + kSecond / 10) == SearchBudget::kItemsPerSecond / 10);
    CHECK(spend(kSecond) == 0);          // a clock that goes back adds no budget
    budget.begin_search(8 * kSecond, 3); // the connection's remaining budget
    CHECK(budget.limit_remaining_items(2) == 1);
    CHECK(budget.spend_items());
    CHECK(budget.spend_items());
    CHECK_FALSE(budget.spend_items());
    CHECK(budget.end_search() == 3);
    budget.begin_search(9 * kSecond);
    budget.end_search(); // the unused budget remains
    CHECK(spend(9 * kSecond) == SearchBudget::kItemsPerSearch);
    CHECK(SearchBudget::kItemsPerSession >= SearchBudget::kItemsPerSearch);
}
