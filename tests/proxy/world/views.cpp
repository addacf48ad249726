#include "tests/proxy/world/views.h"

#include "snapshot/objects.h"

#include <algorithm>

namespace tw::test {

Ints make_ints(std::size_t size, IndexedInts set) {
    Ints data(size);
    for (const auto& [index, value] : set) {
        data[index] = value;
    }
    return data;
}

Ints client_info(std::string_view name) {
    Ints data(17);
    for (std::size_t i = 0; i < 16; ++i) {
        const auto letter = i < name.size() ? static_cast<std::uint8_t>(name[i]) : std::uint8_t{0};
        const auto shift = 24U - 8U * (i % 4);
        auto word = static_cast<std::uint32_t>(data[i / 4]);
        word |= static_cast<std::uint32_t>(letter ^ 0x80U) << shift;
        data[i / 4] = static_cast<std::int32_t>(word);
    }
    data[3] &= ~0xff; // the last byte ends the text
    return data;
}

Ints character(std::int32_t x, std::int32_t y, std::int32_t health) {
    return make_ints(22, {{1, x}, {2, y}, {8, -1}, {16, health}});
}

Views& Views::add_view(std::uint32_t session, std::int32_t version, const Items& items) {
    snapshots_.push_back(to_snapshot(items));
    views_.push_back(world::make_view(session, version, snapshots_.back().view()));
    return *this;
}

std::vector<world::View> Views::sorted_views() const {
    auto sorted = views_;
    std::ranges::sort(sorted, world::has_more_information);
    return sorted;
}

} // namespace tw::test
