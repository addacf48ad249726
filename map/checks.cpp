#include "map/checks.h"

#include "map/map.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <span>
#include <variant>
#include <vector>

namespace tw::map {
namespace {

/// Smallest side of a tile layer. Source: DDNet master, CMap.
constexpr std::int32_t kMinSide = 2;
/// Ints of a tile layer's item up to the end of its name. Source: CMapItemLayerTilemap.
constexpr std::size_t kNamedTileLayerInts = 18;
constexpr std::int32_t kNamedTileLayerVersion = 3;

bool is_known_tilemap(std::int32_t version) {
    return version >= 2 && version <= 4;
}

void check_groups(const Map& map, std::span<const std::optional<std::uint32_t>> groups,
                  Warnings& warnings) {
    std::uint64_t named = 0;
    for (std::size_t g = 0; g < map.group_count(); ++g) {
        const auto group = map.group(g);
        if (!group) {
            warnings.add(WarningId::group_item_short, g);
            continue;
        }
        if (group->first_layer < 0 || group->num_layers < 0 ||
            std::int64_t{group->first_layer} + group->num_layers >
                static_cast<std::int64_t>(map.layer_count())) {
            warnings.add(WarningId::group_layers_out_of_range, g);
        }
        const LayerRange range = layers_of(map, g);
        named += static_cast<std::uint64_t>(range.end - range.first);
    }
    std::uint64_t held = 0;
    for (const auto& group : groups) {
        held += group.has_value() ? 1U : 0U;
    }
    if (named > held) {
        warnings.add(WarningId::layer_in_two_groups);
    }
}

/// The blocks that tile layers took their tiles from so far.
class BlockUse {
  public:
    explicit BlockUse(std::size_t blocks) : used_(blocks) {}

    /// Reports a block that does not exist or that another layer took before.
    void take(std::int32_t block, std::size_t layer, Warnings& warnings) {
        if (block < 0 || static_cast<std::size_t>(block) >= used_.size()) {
            warnings.add(WarningId::tile_block_missing, layer);
            return;
        }
        if (used_[static_cast<std::size_t>(block)]) {
            warnings.add(WarningId::tile_block_shared, layer);
        }
        used_[static_cast<std::size_t>(block)] = true;
    }

  private:
    std::vector<bool> used_;
};

std::int64_t area_of(const TileLayer& layer) {
    return static_cast<std::int64_t>(layer.width) * layer.height;
}

void check_size(const TileLayer& layer, const TileLayer* game, std::size_t index,
                Warnings& warnings) {
    const auto kind = physics_layer_of(layer.flags);
    if (layer.width < kMinSide || layer.height < kMinSide) {
        warnings.add(kind == Layer::game ? WarningId::game_layer_too_small
                                         : WarningId::tile_layer_too_small,
                     index);
    } else if (area_of(layer) > std::numeric_limits<std::int32_t>::max()) {
        warnings.add(WarningId::layer_dimensions, index);
    }
    if (game == nullptr || !kind || *kind == Layer::game) {
        return;
    }
    if (area_of(layer) < area_of(*game)) {
        warnings.add(WarningId::physics_layer_too_small, index);
    } else if (layer.width != game->width || layer.height != game->height) {
        warnings.add(WarningId::physics_layer_differs, index);
    }
}

bool is_color(const Color& color) {
    const auto fits = [](std::int32_t value) { return value >= 0 && value <= 255; };
    return fits(color.r) && fits(color.g) && fits(color.b) && fits(color.a);
}

void check_tiles(const MapLayer& item, const TileLayer* game, std::size_t index, BlockUse& use,
                 Warnings& warnings) {
    const auto& layer = std::get<TileLayer>(item.content);
    if (!is_known_tilemap(layer.version)) {
        warnings.add(WarningId::tilemap_version, index);
    }
    if (layer.version >= kNamedTileLayerVersion && item.item_ints < kNamedTileLayerInts) {
        warnings.add(WarningId::layer_item_short, index);
    }
    if (!layer.name_is_utf8) {
        warnings.add(WarningId::layer_name_not_utf8, index);
    }
    check_size(layer, game, index, warnings);
    const auto flags = static_cast<std::uint32_t>(layer.flags & kPhysicsFlags);
    if (flags == 0 && !is_color(layer.color)) {
        warnings.add(WarningId::layer_color, index);
    }
    if ((flags & (flags - 1)) != 0) {
        warnings.add(WarningId::several_physics_flags, index);
        return;
    }
    const auto kind = physics_layer_of(layer.flags);
    if (const auto block = kind ? own_data(layer, *kind) : std::optional{layer.data}) {
        use.take(*block, index, warnings);
    } else {
        warnings.add(WarningId::physics_index_missing, index);
    }
}

bool group_looks_sane(const Group& group) {
    return group.version >= 1 && group.version <= 3;
}

bool layer_looks_sane(const MapLayer& layer) {
    if (const auto* const tiles = std::get_if<TileLayer>(&layer.content)) {
        return is_known_tilemap(tiles->version) && tiles->width >= 1 && tiles->height >= 1;
    }
    return !std::holds_alternative<UnknownLayer>(layer.content);
}

} // namespace

LayerRange layers_of(const Map& map, std::size_t group) {
    const auto item = map.group(group);
    if (!item) {
        return {};
    }
    const auto layers = static_cast<std::int64_t>(map.layer_count());
    const std::int64_t first = item->first_layer;
    const std::int64_t end = first + item->num_layers;
    const auto bounded = [layers](std::int64_t index) {
        return static_cast<std::size_t>(std::clamp<std::int64_t>(index, 0, layers));
    };
    return first < end ? LayerRange{bounded(first), bounded(end)} : LayerRange{};
}

bool items_look_sane(const Map& map) {
    for (std::size_t g = 0; g < map.group_count(); ++g) {
        const auto group = map.group(g);
        if (!group || !group_looks_sane(*group)) {
            return false;
        }
    }
    for (std::size_t i = 0; i < map.layer_count(); ++i) {
        const auto layer = map.layer(i);
        if (!layer || !layer_looks_sane(*layer)) {
            return false;
        }
    }
    return map.group_count() > 0 && map.layer_count() > 0;
}

void check_items(const Map& map, Warnings& warnings) {
    const auto groups = map.groups_of_layers();
    check_groups(map, groups, warnings);
    const auto place = map.physics_layer(Layer::game);
    const auto game_item = place ? map.layer(place->layer) : std::nullopt;
    const auto* const game = game_item ? std::get_if<TileLayer>(&game_item->content) : nullptr;
    BlockUse use{map.datafile().block_count()};
    for (std::size_t i = 0; i < map.layer_count(); ++i) {
        if (!groups[i]) {
            continue; // nobody looks at a layer that is in no group
        }
        const auto layer = map.layer(i);
        if (!layer ||
            (layer->type == kLayerTiles && std::holds_alternative<UnknownLayer>(layer->content))) {
            warnings.add(WarningId::layer_item_short, i);
        } else if (std::holds_alternative<TileLayer>(layer->content)) {
            check_tiles(*layer, game, i, use, warnings);
        }
    }
}

} // namespace tw::map
