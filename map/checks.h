#pragma once

#include "map/oddity.h"

#include <cstddef>

namespace tw::map {

class Map;

/// Layers of a group: [first, end) among the layers of the map, empty if the group names others.
struct LayerRange {
    std::size_t first = 0;
    std::size_t end = 0;
};

[[nodiscard]] LayerRange layers_of(const Map& map, std::size_t group);

/// True if groups and layers look as they do since 2008. For files without a version item.
[[nodiscard]] bool items_look_sane(const Map& map);

/// Reports what DDNet master would reject in the groups and layers, and other oddities.
///
/// Source:  the checks of DDNet CMap and CLayers as of 2025.
void check_items(const Map& map, Oddities& oddities);

} // namespace tw::map
