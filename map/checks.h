#pragma once

#include "map/warning.h"

#include <cstddef>

namespace tw::map {

class Map;

/// Layers of a group: [first, end) among the layers of the map; those it names that do not exist
/// are left out.
struct LayerRange {
    std::size_t first = 0;
    std::size_t end = 0;
};

[[nodiscard]] LayerRange layers_of(const Map& map, std::size_t group);

/// True if groups and layers look as they do since 2008. For files whose version item is not there
/// or says something else than 1.
[[nodiscard]] bool items_look_sane(const Map& map);

/// Reports what DDNet master would reject in the groups and their layers, and other warnings.
/// Layers in no group are not looked at.
///
/// Source:  the checks of DDNet CMap as of 2026.
void check_items(const Map& map, Warnings& warnings);

} // namespace tw::map
