#include "map/map.h"

#include "map/checks.h"
#include "map/tile_data.h"

#include <numeric>
#include <utility>

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

std::size_t Map::count(std::uint16_t type) const {
    const auto range = file_.find_type(type);
    return range ? range->num : 0;
}

MapErrc Map::check_version() {
    const auto item = file_.find_id(kItemVersion, 0);
    const bool there = item && !item->ints.empty();
    if (there && item->ints[0] == 1) {
        return MapErrc::none;
    }
    warnings_.add(there ? WarningId::version_item_unknown : WarningId::version_item_missing);
    // Files of 2007 lack the item and mean something else by their types; some block maps lost it
    // and are normal otherwise.
    if (items_look_sane(*this)) {
        return MapErrc::none;
    }
    return there ? MapErrc::unknown_map_version : MapErrc::no_version_item;
}

std::optional<Group> Map::group(std::size_t index) const {
    const auto item = file_.find_item(kItemGroup, static_cast<std::int64_t>(index));
    return item ? decode_group(item->ints) : std::nullopt;
}

std::optional<MapLayer> Map::layer(std::size_t index) const {
    const auto item = file_.find_item(kItemLayer, static_cast<std::int64_t>(index));
    return item ? decode_layer(item->ints) : std::nullopt;
}

std::vector<std::optional<std::uint32_t>> Map::groups_of_layers() const {
    const std::size_t layers = layer_count();
    std::vector<std::optional<std::uint32_t>> groups(layers);
    // next_free[i]: the first layer from i on that has no group yet (paths are halved on the way).
    // Without it a file of n groups that all name n layers would take n * n steps.
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
    for (std::size_t i = 0; i < groups.size(); ++i) {
        const auto item = layer(i);
        const auto* const tiles = item ? std::get_if<TileLayer>(&item->content) : nullptr;
        const auto kind = tiles != nullptr ? physics_layer_of(tiles->flags) : std::nullopt;
        if (!groups[i] || !kind || !own_data(*tiles, *kind)) {
            continue;
        }
        auto& place = physics_[static_cast<std::size_t>(*kind)];
        if (place) {
            warnings_.add(WarningId::physics_layer_twice, i);
        }
        if (!place || place->group <= *groups[i]) {
            place = LayerPlace{*groups[i], i};
        }
    }
    if (auto& game = physics_[static_cast<std::size_t>(Layer::game)]; !game) {
        game = find_mixed_game_layer(groups);
    }
}

std::optional<LayerPlace>
Map::find_mixed_game_layer(std::span<const std::optional<std::uint32_t>> groups) const {
    std::optional<LayerPlace> place;
    for (std::size_t i = 0; i < groups.size(); ++i) {
        const auto item = layer(i);
        const auto* const tiles = item ? std::get_if<TileLayer>(&item->content) : nullptr;
        if (groups[i] && tiles != nullptr && (tiles->flags & kFlagGame) != 0 &&
            (!place || place->group <= *groups[i])) {
            place = LayerPlace{*groups[i], i};
        }
    }
    return place;
}

namespace {

/// One of DDNet's layers, or nothing if it cannot be used with a game layer of that many tiles.
Block load_extra_layer(const Map& map, Layer kind, std::uint64_t game_tiles, Warnings* warnings) {
    const auto place = map.physics_layer(kind);
    if (!place) {
        return {};
    }
    const auto item = map.layer(place->layer);
    const TileLayer layer = with_plain_records(std::get<TileLayer>(item->content));
    const auto tiles = count_tiles(layer, map.datafile().limits());
    Warnings unused;
    Warnings& report = warnings != nullptr ? *warnings : unused;
    if (is_packed(layer)) {
        report.add(WarningId::physics_layer_packed, place->layer);
        return {};
    }
    if (!tiles || *tiles < game_tiles) {
        return {}; // reported when the map was parsed
    }
    auto block = load_tiles(map.datafile(), layer, *own_data(layer, kind), record_size(kind));
    if (!block) {
        report.add(WarningId::physics_data_unusable, place->layer);
        return {};
    }
    return std::move(*block);
}

} // namespace

Result<Physics> Map::physics(Warnings* warnings) const {
    const auto place = physics_layer(Layer::game);
    if (!place) {
        return tl::unexpected{MapError{.code = MapErrc::no_game_layer}};
    }
    const auto item = layer(place->layer);
    const auto& game = std::get<TileLayer>(item->content);
    auto records =
        load_tiles(file_, game, game.data, record_size(Layer::game), warnings, place->layer);
    if (!records) {
        return tl::unexpected{records.error()};
    }
    Physics::Planes planes{.width = game.width, .height = game.height, .records = {}};
    const auto tiles =
        static_cast<std::uint64_t>(game.width) * static_cast<std::uint64_t>(game.height);
    planes.records[static_cast<std::size_t>(Layer::game)] = std::move(*records);
    for (const Layer kind :
         {Layer::front, Layer::tele, Layer::speedup, Layer::switch_, Layer::tune}) {
        planes.records[static_cast<std::size_t>(kind)] =
            load_extra_layer(*this, kind, tiles, warnings);
    }
    return Physics{std::move(planes)};
}

} // namespace tw::map
