// Tests reading and writing snapshots, item by item and in runs.
#include "snapshot/snapshot.h"

#include <array>
#include <vector>

#include <doctest/doctest.h>

using namespace tw::snapshot;

namespace {

/// Returns a snapshot of one type with the ids 2, 4, 6 ... and 0, 1, 2 ... ints.
Snapshot snapshot_with_even_ids(std::size_t count) {
    Snapshot snapshot;
    for (std::size_t i = 0; i < count; ++i) {
        snapshot.append({.type = 1, .id = static_cast<std::uint16_t>(2 * i + 2)},
                        std::vector<std::int32_t>(i, static_cast<std::int32_t>(i)));
    }
    return snapshot;
}

} // namespace

TEST_CASE("find() and lower_bound() work in snapshots of any size") {
    for (std::size_t size = 0; size < 20; ++size) {
        const Snapshot snapshot = snapshot_with_even_ids(size);
        for (std::uint16_t id = 0; id < 45; ++id) {
            CAPTURE(size);
            CAPTURE(id);
            std::size_t wanted = 0;
            while (wanted < size && snapshot.view()[wanted].key.id < id) {
                ++wanted;
            }
            CHECK(snapshot.view().lower_bound({.type = 1, .id = id}) == wanted);
            const bool there = wanted < size && snapshot.view()[wanted].key.id == id;
            CHECK(snapshot.view().find({.type = 1, .id = id}) ==
                  (there ? std::optional{wanted} : std::nullopt));
        }
        CHECK(snapshot.view().lower_bound({.type = 0, .id = 99}) == 0);
        CHECK(snapshot.view().lower_bound({.type = 2, .id = 0}) == size);
    }
}

TEST_CASE("a snapshot that is written in sequences equals one that is appended item by item") {
    const Snapshot base = snapshot_with_even_ids(9);
    for (std::size_t first = 0; first <= 9; ++first) {
        for (std::size_t last = first; last <= 9; ++last) {
            CAPTURE(first);
            CAPTURE(last);
            const std::array<std::int32_t, 2> added{7, 8};
            Snapshot wanted;
            wanted.append({.type = 0, .id = 1}, added);
            for (std::size_t i = first; i < last; ++i) {
                wanted.append(base.view()[i].key, base.view()[i].data);
            }
            const std::size_t size = wanted.view().size();
            const std::size_t num_ints = wanted.view().data().size();
            Snapshot own;
            std::vector<std::int32_t> block(2 * size + num_ints);
            for (SnapshotWriter writer :
                 {SnapshotWriter{own, size, num_ints}, SnapshotWriter{block.data(), size}}) {
                CHECK(writer.add(1, added).size() == 2);
                writer.copy(base.view(), first, last);
                CHECK(writer.num_items() == size);
            }
            CHECK(own == wanted);
            const bool same = SnapshotView::of_block(block, size, num_ints) == wanted.view();
            CHECK(same);
        }
    }
}

TEST_CASE("snapshots are equal if all their items are equal") {
    const auto snapshot = [](ItemKey first, std::vector<std::int32_t> ints) {
        Snapshot made;
        made.append(first, ints);
        made.append({.type = 9, .id = 9}, std::vector<std::int32_t>{5, 6});
        return made;
    };
    const Snapshot one = snapshot({.type = 4, .id = 1}, {1, 2});
    CHECK((one.view() == snapshot({.type = 4, .id = 1}, {1, 2}).view()));
    CHECK((SnapshotView{} == Snapshot{}.view()));
    CHECK_FALSE((one.view() == SnapshotView{}));
    CHECK_FALSE((one.view() == snapshot({.type = 4, .id = 2}, {1, 2}).view()));
    CHECK_FALSE((one.view() == snapshot({.type = 4, .id = 1}, {1, 3}).view()));
    CHECK_FALSE((one.view() == snapshot({.type = 4, .id = 1}, {1, 2, 3}).view()));
    // The ints are the same, but belong to items with other keys.
    Snapshot moved;
    moved.append({.type = 4, .id = 1}, std::vector<std::int32_t>{1, 2, 5});
    moved.append({.type = 9, .id = 9}, std::vector<std::int32_t>{6});
    CHECK_FALSE((one.view() == moved.view()));
}
