#include "map/checks.h"

#include "map/map.h"
#include "map/tile_data.h"

#include <variant>
#include <vector>

namespace tw::map {
namespace {

/// Smallest side of a game layer. Source: DDNet CLayers.
constexpr std::int32_t kMinGameSide = 2;

bool is_known_tilemap(std::int32_t version) {
    return version >= 2 && version <= 4;
}

void check_groups(const Map& map, Oddities& oddities) {
    std::uint64_t named = 0;
    for (std::size_t g = 0; g < map.group_count(); ++g) {
        const auto group = map.group(g);
        if (!group) {
            oddities.add(OddityId::group_item_short, g);
            continue;
        }
        const LayerRange range = layers_of(map, g);
        if (range.first == range.end && group->num_layers != 0) {
            oddities.add(OddityId::group_layers_out_of_range, g);
        }
        named += static_cast<std::uint64_t>(range.end - range.first);
    }
    const auto groups = map.groups_of_layers();
    std::uint64_t held = 0;
    for (const auto& group : groups) {
        held += group.has_value() ? 1U : 0U;
    }
    if (named > held) {
        oddities.add(OddityId::layer_in_two_groups);
    }
}

/// Tile layers must not share a block; every reference of a layer counts once.
class BlockUse {
  public:
    explicit BlockUse(std::size_t blocks) : used_(blocks) {}

    /// True if another layer took the block before.
    bool take(std::int32_t block) {
        if (block < 0 || static_cast<std::size_t>(block) >= used_.size()) {
            return false;
        }
        const bool taken = used_[static_cast<std::size_t>(block)];
        used_[static_cast<std::size_t>(block)] = true;
        return taken;
    }

  private:
    std::vector<bool> used_;
};

void check_tiles(const Map& map, const TileLayer& layer, std::size_t index, BlockUse& use,
                 Oddities& oddities) {
    if (!is_known_tilemap(layer.version)) {
        oddities.add(OddityId::tilemap_version, index);
    }
    if (!count_tiles(layer, map.datafile().limits())) {
        oddities.add(OddityId::layer_dimensions, index);
    }
    if (!layer.name_is_utf8) {
        oddities.add(OddityId::layer_name_not_utf8, index);
    }
    const std::int32_t flags = layer.flags & kPhysicsFlags;
    const auto kind = physics_layer_of(flags);
    if (flags != 0 && !kind) {
        oddities.add(OddityId::several_physics_flags, index);
    }
    bool shared = use.take(layer.data);
    if (kind && *kind != Layer::game) {
        const auto own = own_data(layer, *kind);
        if (!own) {
            oddities.add(OddityId::physics_index_missing, index);
        } else {
            shared = use.take(*own) || shared;
        }
    }
    if (shared) {
        oddities.add(OddityId::tile_block_shared, index);
    }
}

void check_dimensions(const Map& map, Oddities& oddities) {
    const auto place = map.physics_layer(Layer::game);
    if (!place) {
        return;
    }
    const auto game_item = map.layer(place->layer);
    const auto& game = std::get<TileLayer>(game_item->content);
    if (game.width < kMinGameSide || game.height < kMinGameSide) {
        oddities.add(OddityId::game_layer_too_small, place->layer);
    }
    for (const Layer kind :
         {Layer::front, Layer::tele, Layer::speedup, Layer::switch_, Layer::tune}) {
        const auto other = map.physics_layer(kind);
        if (!other) {
            continue;
        }
        const auto item = map.layer(other->layer);
        const auto& layer = std::get<TileLayer>(item->content);
        const auto area = [](const TileLayer& tiles) {
            return static_cast<std::int64_t>(tiles.width) * tiles.height;
        };
        if (area(layer) < area(game)) {
            oddities.add(OddityId::physics_layer_too_small, other->layer);
        } else if (layer.width != game.width || layer.height != game.height) {
            oddities.add(OddityId::physics_layer_differs, other->layer);
        }
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
    if (!item || item->first_layer < 0 || item->num_layers <= 0) {
        return {};
    }
    const auto first = static_cast<std::size_t>(item->first_layer);
    const auto end = first + static_cast<std::size_t>(item->num_layers);
    return end <= map.layer_count() ? LayerRange{first, end} : LayerRange{};
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

void check_items(const Map& map, Oddities& oddities) {
    check_groups(map, oddities);
    BlockUse use{map.datafile().block_count()};
    for (std::size_t i = 0; i < map.layer_count(); ++i) {
        const auto layer = map.layer(i);
        if (!layer ||
            (layer->type == kLayerTiles && std::holds_alternative<UnknownLayer>(layer->content))) {
            oddities.add(OddityId::layer_item_short, i);
        } else if (const auto* const tiles = std::get_if<TileLayer>(&layer->content)) {
            check_tiles(map, *tiles, i, use, oddities);
        }
    }
    check_dimensions(map, oddities);
}

} // namespace tw::map
