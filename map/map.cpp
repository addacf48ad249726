#include "map/map.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <string_view>
#include <utility>
#include <variant>

namespace tw::map {

Map::Map(Datafile file) : file_{std::move(file)}, warnings_{file_.warnings()} {}

Result<Map> Map::parse(std::vector<std::byte> file, const Limits& limits) {
    auto datafile = Datafile::parse(std::move(file), limits);
    if (!datafile) {
        return tl::unexpected{datafile.error()};
    }
    Map map{std::move(*datafile)};
    if (const MapErrc code = map.check_version(); code != MapErrc::none) {
        return tl::unexpected{MapError{.code = code}};
    }
    map.find_physics_layers();
    check_items(map, map.warnings_);
    return map;
}

Result<Map> Map::open(const std::filesystem::path& path, const Limits& limits) {
    auto file = read_file(path, limits.max_file_bytes);
    if (!file) {
        return tl::unexpected{file.error()};
    }
    return parse(std::move(*file), limits);
}

std::size_t Map::count_items(std::uint16_t type) const {
    const auto range = file_.find_type(type);
    return range ? range->num : 0;
}

MapErrc Map::check_version() {
    const auto item = file_.find_item_by_id(kItemTypeVersion, 0);
    const bool there = item && !item->ints.empty();
    if (there && item->ints[0] == 1) {
        return MapErrc::none;
    }
    warnings_.add(there ? WarningId::version_item_unknown : WarningId::version_item_missing);
    // Some maps of block servers have no version item, but are otherwise valid: they are accepted.
    // Files of 2007 have no version item either, but they use other item types.
    if (items_look_sane(*this)) {
        return MapErrc::none;
    }
    return there ? MapErrc::unknown_map_version : MapErrc::no_version_item;
}

std::optional<Group> Map::group(std::size_t index) const {
    const auto item = file_.find_item(kItemTypeGroup, static_cast<std::int64_t>(index));
    return item ? decode_group(item->ints) : std::nullopt;
}

std::optional<MapLayer> Map::layer(std::size_t index) const {
    const auto item = file_.find_item(kItemTypeLayer, static_cast<std::int64_t>(index));
    return item ? decode_layer(item->ints) : std::nullopt;
}

std::vector<std::optional<std::uint32_t>> Map::groups_of_layers() const {
    const std::size_t layers = layer_count();
    std::vector<std::optional<std::uint32_t>> groups(layers);
    // A chain of next_free indices leads from each layer i to the first layer without a group at or
    // after i. Each search shortens the chain. Otherwise a file with n groups of the same n layers
    // would take n * n steps.
    std::vector<std::uint32_t> next_free(layers + 1);
    std::iota(next_free.begin(), next_free.end(), 0U);
    const auto find_free = [&next_free](std::size_t i) -> std::size_t {
        while (next_free[i] != i) {
            next_free[i] = next_free[next_free[i]];
            i = next_free[i];
        }
        return i;
    };
    for (std::size_t g = group_count(); g-- > 0;) {
        const auto range = layers_of(*this, g);
        for (std::size_t i = find_free(range.first); i < range.end; i = find_free(i)) {
            groups[i] = static_cast<std::uint32_t>(g);
            next_free[i] = static_cast<std::uint32_t>(i + 1);
        }
    }
    return groups;
}

void Map::find_physics_layers() {
    const auto groups = groups_of_layers();
    std::optional<LayerPlace> mixed_game_layer; // used if no layer has the game flag alone
    const auto set_last = [](std::optional<LayerPlace>& place, const LayerPlace& found) {
        if (!place || place->group <= found.group) {
            place = found;
        }
    };
    for (std::size_t i = 0; i < groups.size(); ++i) {
        const auto item = layer(i);
        const auto* const tiles = item ? std::get_if<TileLayer>(&item->content) : nullptr;
        if (!groups[i] || tiles == nullptr) {
            continue;
        }
        const LayerPlace here{*groups[i], i};
        if ((tiles->flags & kLayerFlagGame) != 0) {
            set_last(mixed_game_layer, here);
        }
        if (const auto kind = physics_layer_of(tiles->flags); kind && tile_block(*tiles, *kind)) {
            auto& place = physics_[static_cast<std::size_t>(*kind)];
            if (place) {
                warnings_.add(WarningId::physics_layer_twice, i);
            }
            set_last(place, here);
        }
    }
    if (auto& game = physics_[static_cast<std::size_t>(Layer::game)]; !game) {
        game = mixed_game_layer;
    }
}

namespace {

/// Loads one of DDNet's layers. Returns an empty block if the layer does not exist, is unusable, or
/// has fewer tiles than the game layer (`game_tiles`).
Block load_extra_layer(const Map& map, Layer kind, std::uint64_t game_tiles, Warnings* warnings) {
    const auto place = map.physics_layer(kind);
    if (!place) {
        return {};
    }
    const auto item = map.layer(place->layer);
    const TileLayer layer = downgrade_unknown_version(std::get<TileLayer>(item->content));
    const auto tiles = count_tiles(layer, map.datafile().limits());
    Warnings unused;
    Warnings& report = warnings != nullptr ? *warnings : unused;
    if (is_packed(layer)) {
        report.add(WarningId::physics_layer_packed, place->layer);
        return {};
    }
    if (!tiles || *tiles < game_tiles) {
        return {}; // Map::warnings() contains a warning about such a layer
    }
    auto block = load_tiles(map.datafile(), layer, *tile_block(layer, kind), tile_bytes(kind));
    if (!block) {
        report.add(WarningId::physics_data_unusable, place->layer);
        return {};
    }
    return std::move(*block);
}

} // namespace

Result<PhysicsLayers> Map::physics(Warnings* warnings) const {
    const auto place = physics_layer(Layer::game);
    if (!place) {
        return tl::unexpected{MapError{.code = MapErrc::no_game_layer}};
    }
    const auto item = layer(place->layer);
    const auto& game = std::get<TileLayer>(item->content);
    auto records =
        load_tiles(file_, game, game.data, tile_bytes(Layer::game), warnings, place->layer);
    if (!records) {
        return tl::unexpected{records.error()};
    }
    PhysicsLayers::Contents planes{.width = game.width, .height = game.height, .records = {}};
    const auto tiles =
        static_cast<std::uint64_t>(game.width) * static_cast<std::uint64_t>(game.height);
    planes.records[static_cast<std::size_t>(Layer::game)] = std::move(*records);
    for (const Layer kind :
         {Layer::front, Layer::tele, Layer::speedup, Layer::switch_, Layer::tune}) {
        planes.records[static_cast<std::size_t>(kind)] =
            load_extra_layer(*this, kind, tiles, warnings);
    }
    return PhysicsLayers{std::move(planes)};
}

namespace {

/// The smallest width and height of a tile layer that DDNet master accepts. Source: DDNet CMap.
constexpr std::int32_t kMinSide = 2;
/// The number of ints of a tile layer's item up to the end of the name. Source:
/// CMapItemLayerTilemap.
constexpr std::size_t kNamedTileLayerInts = 18;
constexpr std::int32_t kNamedTileLayerVersion = 3;

bool is_known_tilemap_version(std::int32_t version) {
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

/// The set of data blocks that tile layers use.
class UsedBlocks {
  public:
    explicit UsedBlocks(std::size_t blocks) : used_(blocks) {}

    /// Adds a block that a layer uses. Warns if the block does not exist or another layer uses it.
    void add(std::int32_t block, std::size_t layer, Warnings& warnings) {
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

std::int64_t num_tiles_of(const TileLayer& layer) {
    return static_cast<std::int64_t>(layer.width) * layer.height;
}

void check_size(const TileLayer& layer, const TileLayer* game, std::size_t index,
                Warnings& warnings) {
    const auto kind = physics_layer_of(layer.flags);
    if (layer.width < kMinSide || layer.height < kMinSide) {
        warnings.add(kind == Layer::game ? WarningId::game_layer_too_small
                                         : WarningId::tile_layer_too_small,
                     index);
    } else if (num_tiles_of(layer) > std::numeric_limits<std::int32_t>::max()) {
        warnings.add(WarningId::layer_dimensions, index);
    }
    if (game == nullptr || !kind || *kind == Layer::game) {
        return;
    }
    if (num_tiles_of(layer) < num_tiles_of(*game)) {
        warnings.add(WarningId::physics_layer_too_small, index);
    } else if (layer.width != game->width || layer.height != game->height) {
        warnings.add(WarningId::physics_layer_differs, index);
    }
}

bool is_valid_color(const Color& color) {
    const auto fits = [](std::int32_t value) { return value >= 0 && value <= 255; };
    return fits(color.r) && fits(color.g) && fits(color.b) && fits(color.a);
}

void check_tiles(const MapLayer& item, const TileLayer* game, std::size_t index, UsedBlocks& use,
                 Warnings& warnings) {
    const auto& layer = std::get<TileLayer>(item.content);
    if (!is_known_tilemap_version(layer.version)) {
        warnings.add(WarningId::tilemap_version, index);
    }
    if (layer.version >= kNamedTileLayerVersion && item.num_item_ints < kNamedTileLayerInts) {
        warnings.add(WarningId::layer_item_short, index);
    }
    if (!layer.name_is_utf8) {
        warnings.add(WarningId::layer_name_not_utf8, index);
    }
    check_size(layer, game, index, warnings);
    const auto flags = static_cast<std::uint32_t>(layer.flags & kPhysicsLayerFlags);
    if (flags == 0 && !is_valid_color(layer.color)) {
        warnings.add(WarningId::layer_color, index);
    }
    if ((flags & (flags - 1)) != 0) {
        warnings.add(WarningId::several_physics_flags, index);
        return;
    }
    const auto kind = physics_layer_of(layer.flags);
    if (const auto block = kind ? tile_block(layer, *kind) : std::optional{layer.data}) {
        use.add(*block, index, warnings);
    } else {
        warnings.add(WarningId::physics_index_missing, index);
    }
}

bool group_looks_sane(const Group& group) {
    return group.version >= 1 && group.version <= 3;
}

bool layer_looks_sane(const MapLayer& layer) {
    if (const auto* const tiles = std::get_if<TileLayer>(&layer.content)) {
        return is_known_tilemap_version(tiles->version) && tiles->width >= 1 && tiles->height >= 1;
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
    UsedBlocks use{map.datafile().block_count()};
    for (std::size_t i = 0; i < map.layer_count(); ++i) {
        if (!groups[i]) {
            continue; // check_items() does not check layers without a group
        }
        const auto layer = map.layer(i);
        if (!layer || (layer->type == kLayerTypeTiles &&
                       std::holds_alternative<UnknownLayer>(layer->content))) {
            warnings.add(WarningId::layer_item_short, i);
        } else if (std::holds_alternative<TileLayer>(layer->content)) {
            check_tiles(*layer, game, i, use, warnings);
        }
    }
}

namespace {

std::string rejection_text(std::string_view why) {
    return "rejects:" + std::string{why};
}

} // namespace

MapAcceptance acceptance_of(const Warnings& warnings, const Result<PhysicsLayers>& physics) {
    if (!physics) {
        return acceptance_of(physics.error());
    }
    const auto strict = warnings.first_warning_rejected_by_ddnet();
    return {strict ? rejection_text(warning_info(*strict).name) : "accepts", "accepts"};
}

MapAcceptance acceptance_of(const MapError& error) {
    const std::string acceptance = rejection_text(error_info(error.code).name);
    return {acceptance, acceptance};
}

} // namespace tw::map
