#include "proxy/capture/demo_snapshot.h"

#include <algorithm>
#include <vector>

namespace tw::capture {

namespace {

constexpr std::int32_t kBytesOfInt = 4;
constexpr std::size_t kHeadInts = 2;

struct Item {
    std::uint32_t key = 0;
    std::span<const std::int32_t> data;
};

DemoSnapshotRead fail(DemoSnapshotError::Kind kind, std::size_t index) {
    return {.ok = false, .error = {.kind = kind, .index = index}};
}

} // namespace

DemoSnapshotRead decode_demo_snapshot(std::span<const std::int32_t> ints, snapshot::Snapshot& out) {
    using Kind = DemoSnapshotError::Kind;
    out.clear();
    if (ints.size() < kHeadInts || ints[0] < 0 || ints[1] < 0 ||
        static_cast<std::size_t>(ints[1]) > snapshot::kMaxItems) {
        return fail(Kind::counts, 0);
    }
    const auto num_items = static_cast<std::size_t>(ints[1]);
    const std::int32_t bytes = ints[0];
    if (bytes % kBytesOfInt != 0 ||
        ints.size() != kHeadInts + num_items + static_cast<std::size_t>(bytes / kBytesOfInt)) {
        return fail(Kind::counts, 0);
    }
    const auto offsets = ints.subspan(kHeadInts, num_items);
    const auto data = ints.subspan(kHeadInts + num_items);
    std::vector<Item> items;
    items.reserve(num_items);
    for (std::size_t i = 0; i < num_items; ++i) {
        const std::int32_t begin = offsets[i];
        const std::int32_t end = i + 1 < num_items ? offsets[i + 1] : bytes;
        const bool inside = begin >= 0 && begin <= bytes && end >= 0 && end <= bytes;
        if (!inside || begin % kBytesOfInt != 0 || end % kBytesOfInt != 0 ||
            end - begin < kBytesOfInt) {
            return fail(Kind::offsets, kHeadInts + i);
        }
        const auto item = data.subspan(static_cast<std::size_t>(begin / kBytesOfInt),
                                       static_cast<std::size_t>((end - begin) / kBytesOfInt));
        if (item[0] < 0) {
            return fail(Kind::type,
                        kHeadInts + num_items + static_cast<std::size_t>(begin / kBytesOfInt));
        }
        items.push_back({static_cast<std::uint32_t>(item[0]), item.subspan(1)});
    }
    std::stable_sort(items.begin(), items.end(),
                     [](const Item& left, const Item& right) { return left.key < right.key; });
    DemoSnapshotRead read;
    for (std::size_t i = 0; i < items.size(); ++i) {
        if (i != 0 && items[i].key == items[i - 1].key) {
            ++read.duplicates;
        } else {
            out.append(snapshot::ItemKey::from_packed(items[i].key), items[i].data);
        }
    }
    return read;
}

} // namespace tw::capture
