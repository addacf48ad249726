#include "proxy/analyze/map_report.h"

#include "map/error.h"
#include "map/identity.h"
#include "map/items.h"
#include "map/layers.h"
#include "map/tiles.h"
#include "proxy/record/json.h"
#include "proxy/record/terminal_text.h"

#include <map>
#include <set>
#include <utility>

#include <fmt/format.h>

namespace tw::analyze {

namespace {

namespace json = boost::json;

template <typename Range>
json::array to_json_array(const Range& range) {
    return json::array(range.begin(), range.end());
}

/// Converts counts to a JSON object whose keys are the counted numbers or names.
template <typename Counts>
json::object counts_json(const Counts& counts) {
    json::object object;
    for (const auto& [key, count] : counts) {
        object.emplace(fmt::to_string(key), count);
    }
    return object;
}

std::string_view size_check_name(map::SizeFieldCheck field) {
    constexpr std::array<std::string_view, 3> kNames = {"full", "short", "wrong"};
    return kNames.at(static_cast<std::size_t>(field));
}

json::object file_identity_json(std::string_view file, std::span<const std::byte> bytes) {
    const map::Identity identity = map::identify(bytes);
    return {{"file", file},
            {"size", identity.size},
            {"crc32", map::to_hex(identity.crc)},
            {"sha256", map::to_hex(identity.sha256)}};
}

void add_datafile(json::object& out, const map::Datafile& file) {
    const map::DatafileHeader& header = file.header();
    out["datafile"] = {{"magic", header.reversed_magic ? "ATAD" : "DATA"},
                       {"version", header.version},
                       {"num_item_types", header.num_item_types},
                       {"num_items", header.num_items},
                       {"num_data", header.num_data},
                       {"item_size", header.item_size},
                       {"data_size", header.data_size},
                       {"size_field", size_check_name(file.check_size_field())},
                       {"swaplen_field", size_check_name(file.check_swaplen_field())},
                       {"trailing_bytes", file.trailing_bytes()}};
    json::array types;
    for (const map::ItemType& type : file.item_types()) {
        types.push_back({type.type, type.start, type.num});
    }
    out["item_types"] = std::move(types);
    json::array unreadable;
    for (std::size_t i = 0; i < file.block_count(); ++i) {
        const auto block = file.block(static_cast<std::int64_t>(i));
        if (!block && block.error().code != map::MapErrc::block_empty) {
            unreadable.push_back(i);
        }
    }
    out["unreadable_data"] = std::move(unreadable);
    json::object uuids;
    for (const map::UuidType& type : map::uuid_types(file)) {
        uuids.emplace(fmt::to_string(type.type), map::to_text(type.uuid));
    }
    out["uuid_item_types"] = std::move(uuids);
}

json::value info_json(const map::Map& map) {
    const auto info = map::read_info(map);
    if (!info) {
        return {};
    }
    json::object out{{"ints", info->num_item_ints},
                     {"version", info->version},
                     {"author", record::value_or_null(info->author)},
                     {"map_version", record::value_or_null(info->map_version)},
                     {"credits", record::value_or_null(info->credits)},
                     {"license", record::value_or_null(info->license)}};
    if (info->settings) {
        out["settings_lines"] = info->settings->size();
    }
    return out;
}

json::object images_json(const map::Map& map) {
    std::size_t external = 0;
    std::set<std::int32_t> versions;
    for (std::size_t i = 0; i < map.count_items(map::kItemTypeImage); ++i) {
        if (const auto image = map::read_image(map, i)) {
            external += image->external ? 1U : 0U;
            versions.insert(image->version);
        }
    }
    return {{"total", map.count_items(map::kItemTypeImage)},
            {"external", external},
            {"versions", to_json_array(versions)}};
}

json::object envelopes_json(const map::Map& map) {
    std::set<std::int32_t> versions;
    std::set<std::size_t> ints;
    std::map<std::int32_t, std::size_t> channels;
    std::int64_t points_needed = 0;
    for (std::size_t i = 0; i < map.count_items(map::kItemTypeEnvelope); ++i) {
        if (const auto envelope = map::read_envelope(map, i)) {
            versions.insert(envelope->version);
            ints.insert(envelope->num_item_ints);
            ++channels[envelope->channels];
            points_needed =
                std::max(points_needed, std::int64_t{envelope->first_point} + envelope->num_points);
        }
    }
    json::array points_ints;
    const auto range = map.datafile().find_type(map::kItemTypeEnvelopePoints);
    for (std::size_t i = 0; range && i < range->num; ++i) {
        points_ints.push_back(map.datafile().item(range->start + i).ints.size());
    }
    return {{"total", map.count_items(map::kItemTypeEnvelope)},
            {"versions", to_json_array(versions)},
            {"ints", to_json_array(ints)},
            {"channels", counts_json(channels)},
            {"points_ints", std::move(points_ints)},
            {"points_needed", points_needed}};
}

void add_layers(json::object& out, const map::Map& map) {
    std::set<std::int32_t> group_versions;
    for (std::size_t i = 0; i < map.group_count(); ++i) {
        if (const auto group = map.group(i)) {
            group_versions.insert(group->version);
        }
    }
    std::map<std::int32_t, std::size_t> types;
    std::map<std::pair<std::int32_t, std::size_t>, std::size_t> forms;
    std::map<std::string_view, std::size_t> physics;
    for (std::size_t i = 0; i < map.layer_count(); ++i) {
        const auto layer = map.layer(i);
        if (!layer) {
            continue;
        }
        ++types[layer->type];
        if (const auto* const tiles = std::get_if<map::TileLayer>(&layer->content)) {
            ++forms[{tiles->version, layer->num_item_ints}];
            if (const auto kind = map::physics_layer_of(tiles->flags)) {
                ++physics[map::layer_name(*kind)];
            }
        }
    }
    json::array tilemap_forms;
    for (const auto& [form, count] : forms) {
        tilemap_forms.push_back({form.first, form.second, count});
    }
    out["groups"] = map.group_count();
    out["group_versions"] = to_json_array(group_versions);
    out["layers"] = map.layer_count();
    out["layer_types"] = counts_json(types);
    out["tilemap_item_forms"] = std::move(tilemap_forms);
    out["physics_layer_counts"] = counts_json(physics);
}

json::object layer_place_json(map::LayerPlace place, const map::TileLayer& layer) {
    return {{"group", place.group},
            {"layer", place.layer},
            {"width", layer.width},
            {"height", layer.height},
            {"tilemap_version", layer.version}};
}

/// Returns how many tiles have each id; ids that no tile has are left out. `size`: the size of a
/// tile in bytes; `id_at`: the position of the id among these bytes.
json::object count_tiles_by_id(std::span<const std::byte> records, std::size_t size,
                               std::size_t id_at) {
    std::array<std::size_t, 256> counts{};
    for (std::size_t at = id_at; at < records.size(); at += size) {
        ++counts.at(std::to_integer<std::size_t>(records[at]));
    }
    json::object object;
    for (std::size_t id = 0; id < counts.size(); ++id) {
        if (counts.at(id) != 0) {
            object.emplace(fmt::to_string(id), counts.at(id));
        }
    }
    return object;
}

std::uint64_t declared_block_size(const map::Map& map, std::int32_t block) {
    const bool there = block >= 0 && static_cast<std::size_t>(block) < map.datafile().block_count();
    return there ? map.datafile().block_info(static_cast<std::size_t>(block)).size : 0;
}

/// Returns the tiles of a layer, without the data block's trailing bytes. `size`: bytes of a tile.
std::span<const std::byte> used_tile_bytes(const map::TileLayer& layer, const map::Block& block,
                                           std::size_t size) {
    return block.bytes().first(static_cast<std::size_t>(layer.width) *
                               static_cast<std::size_t>(layer.height) * size);
}

std::string_view error_name(const map::MapError& error) {
    return map::error_info(error.code).name;
}

void add_game_tiles(json::object& out, std::span<const std::byte> tiles) {
    constexpr std::size_t kTileBytes = 4;
    std::vector<std::byte> ids;
    std::vector<std::byte> flags;
    ids.reserve(tiles.size() / kTileBytes);
    flags.reserve(tiles.size() / kTileBytes);
    std::size_t skips = 0;
    std::size_t entities = 0;
    for (std::size_t at = 0; at < tiles.size(); at += kTileBytes) {
        ids.push_back(tiles[at]);
        flags.push_back(tiles[at + 1]);
        skips += (tiles[at + 2] | tiles[at + 3]) != std::byte{0} ? 1U : 0U;
        entities += std::to_integer<unsigned>(tiles[at]) >= map::kFirstEntity ? 1U : 0U;
    }
    out["index_sha256"] = map::to_hex(map::sha256_of(ids));
    out["flags_sha256"] = map::to_hex(map::sha256_of(flags));
    out["histogram"] = count_tiles_by_id(ids, 1, 0);
    out["nonzero_skip_or_pad"] = skips;
    out["entities"] = entities;
}

json::value game_layer_json(const map::Map& map) {
    const auto place = map.physics_layer(map::Layer::game);
    if (!place) {
        return {};
    }
    const auto item = map.layer(place->layer);
    const auto& layer = std::get<map::TileLayer>(item->content);
    const std::uint64_t bytes = declared_block_size(map, layer.data);
    json::object out = layer_place_json(*place, layer);
    out["name"] = record::value_or_null(layer.name);
    if (map::is_packed(layer)) {
        out["packed_tiles"] = bytes / 4;
    }
    out["data_bytes"] = bytes;
    if (const auto tiles = map::read_tiles(map, layer)) {
        add_game_tiles(out, used_tile_bytes(layer, *tiles, 4));
    } else {
        out["problem"] = error_name(tiles.error());
    }
    return out;
}

json::object ddnet_layer_json(const map::Map& map, map::Layer kind, const map::LayerPlace& place) {
    constexpr std::array<std::size_t, map::kPhysicsLayers> kIdAt = {0, 0, 1, 2, 1, 1};
    const auto item = map.layer(place.layer);
    const auto& layer = std::get<map::TileLayer>(item->content);
    const std::int32_t own = map::tile_block(layer, kind).value_or(-1);
    json::object out = layer_place_json(place, layer);
    out["item_ints"] = item->num_item_ints;
    out["name"] = record::value_or_null(layer.name);
    out["data_bytes"] = declared_block_size(map, own);
    out["own_data_index"] = own;
    out["compat_data_index"] = layer.data;
    const map::TileLayer plain = map::downgrade_unknown_version(layer);
    if (map::is_packed(plain)) {
        out["problem"] = error_name({.code = map::MapErrc::unknown_tile_record});
        return out;
    }
    const std::size_t size = map::tile_bytes(kind);
    const auto records = map::load_tiles(map.datafile(), plain, own, size);
    if (!records) {
        out["problem"] = error_name(records.error());
        return out;
    }
    const auto bytes = used_tile_bytes(layer, *records, size);
    out["histogram"] = count_tiles_by_id(bytes, size, kIdAt.at(static_cast<std::size_t>(kind)));
    out["sha256"] = map::to_hex(map::sha256_of(bytes));
    return out;
}

void add_map_contents(json::object& out, const map::Map& map) {
    out["info"] = info_json(map);
    out["images"] = images_json(map);
    out["sounds"] = map.count_items(map::kItemTypeSound);
    out["envelopes"] = envelopes_json(map);
    add_layers(out, map);
    out["game_layer"] = game_layer_json(map);
    json::object layers;
    for (const map::Layer kind : {map::Layer::front, map::Layer::tele, map::Layer::speedup,
                                  map::Layer::switch_, map::Layer::tune}) {
        if (const auto place = map.physics_layer(kind)) {
            layers.emplace(map::layer_name(kind), ddnet_layer_json(map, kind, *place));
        }
    }
    out["ddnet_layers"] = std::move(layers);
}

void add_acceptance(json::object& out, const map::MapAcceptance& acceptance,
                    const map::Warnings& warnings) {
    out["verdict"] = {{"strict", acceptance.strict}, {"lenient", acceptance.lenient}};
    json::array oddities;
    for (const map::Warning& warning : warnings.list()) {
        oddities.push_back({{"id", map::warning_info(warning.id).name},
                            {"where", warning.where},
                            {"count", warning.count}});
    }
    out["oddities"] = std::move(oddities);
}

void add_positions(json::object& out, const map::PhysicsLayers& physics,
                   const MapPositions& positions) {
    json::array points;
    for (const auto& [x, y] : positions.points) {
        const map::Location at = physics.locate(x, y);
        const map::TilePos effect = physics.effect_tile_at(x, y);
        points.push_back({x, y, at.tile.x, at.tile.y, at.game, map::collision_index(at.game),
                          map::is_wall(at.game) ? 1 : 0,
                          physics.has(map::Layer::front) ? int{at.front} : -1, effect.x, effect.y});
    }
    out["points"] = std::move(points);
    json::array tee_centres;
    for (const map::WorldPos centre : positions.tee_centres) {
        tee_centres.push_back({centre.x, centre.y, physics.tee_in_solid(centre) ? 1 : 0,
                               physics.tee_on_ground(centre) ? 1 : 0,
                               physics.tee_touches_death(centre, map::Layer::game) ? 1 : 0,
                               physics.tee_touches_death(centre, map::Layer::front) ? 1 : 0});
    }
    out["boxes"] = std::move(tee_centres);
}

using record::object_of, record::text_of;

std::uint64_t count_in(const json::object& object, std::string_view key) {
    return object.at(key).to_number<std::uint64_t>();
}

/// A text with a line for each key and value. Empty values are left out.
struct KeyValueText {
    std::string text{};

    void add_line(std::string_view key, std::string_view value) {
        if (!value.empty() && value != "-") {
            text += fmt::format("{:<11} {}\n", key, value);
        }
    }
};

/// Returns the number of tiles of each kind in a layer as text, by tile id, without air.
std::string tile_counts(const json::object& layer, map::Layer kind) {
    std::string text;
    const json::object* const counts = object_of(layer, "histogram");
    for (std::size_t i = 0; counts != nullptr && i < counts->size(); ++i) {
        const json::key_value_pair& pair = *(counts->begin() + i);
        const auto index = static_cast<std::uint8_t>(std::stoi(std::string{pair.key()}));
        if (index == map::kTileAir) {
            continue;
        }
        const auto name = map::tile_name(kind, index);
        text += fmt::format("{}{} {}", text.empty() ? "" : ", ",
                            pair.value().to_number<std::uint64_t>(),
                            name.empty() ? fmt::format("#{}", index) : std::string{name});
    }
    return text;
}

/// Returns a warning as a sentence with the position of its first occurrence.
std::string warning_text(const json::object& warning) {
    const auto info =
        std::ranges::find(map::kWarningTable, text_of(warning, "id"), &map::WarningInfo::name);
    const std::uint64_t count = count_in(warning, "count");
    return fmt::format("{} ({}, first at {}{})", info->sentence, info->name,
                       count_in(warning, "where"),
                       count == 1 ? "" : fmt::format(", {} in all", count));
}

std::string count_with_noun(const json::object& object, std::string_view key,
                            std::string_view noun) {
    return record::count_with_noun(count_in(object, key), noun);
}

void add_content_lines(KeyValueText& page, const json::object& map) {
    if (const json::object* const info = object_of(map, "info"); info != nullptr) {
        for (const std::string_view key : {"author", "map_version", "credits", "license"}) {
            page.add_line(key, record::escape_for_terminal(text_of(*info, key)));
        }
    }
    page.add_line(
        "holds",
        fmt::format("{}, {}, {}, {}, {}", count_with_noun(map, "groups", "group[s]"),
                    count_with_noun(map, "layers", "layer[s]"),
                    count_with_noun(*object_of(map, "images"), "total", "image[s]"),
                    count_with_noun(map, "sounds", "sound[s]"),
                    count_with_noun(*object_of(map, "envelopes"), "total", "envelope[s]")));
}

void add_physics_lines(KeyValueText& page, const json::object& map) {
    if (const json::object* const game = object_of(map, "game_layer"); game != nullptr) {
        page.add_line("size",
                      fmt::format("{} x {} tiles", game->at("width").to_number<std::int64_t>(),
                                  game->at("height").to_number<std::int64_t>()));
        page.add_line("game", tile_counts(*game, map::Layer::game));
    }
    for (int i = 0; i < map::kPhysicsLayers; ++i) {
        const auto kind = static_cast<map::Layer>(i);
        const json::object* const layer =
            object_of(*object_of(map, "ddnet_layers"), map::layer_name(kind));
        page.add_line(map::layer_name(kind),
                      layer == nullptr ? std::string{} : tile_counts(*layer, kind));
    }
}

} // namespace

json::object map_json(const map::Map& map, std::string_view file, const MapPositions& positions) {
    json::object out = file_identity_json(file, map.datafile().bytes());
    add_datafile(out, map.datafile());
    add_map_contents(out, map);
    map::Warnings warnings = map.warnings();
    const auto physics = map.physics(&warnings);
    add_acceptance(out, map::acceptance_of(warnings, physics), warnings);
    if (physics) {
        add_positions(out, *physics, positions);
    }
    return out;
}

json::object rejected_map_json(std::vector<std::byte> bytes, const map::MapError& error,
                               std::string_view file) {
    json::object out = file_identity_json(file, bytes);
    map::Warnings warnings;
    if (const auto datafile = map::Datafile::parse(std::move(bytes))) {
        add_datafile(out, *datafile);
        warnings = datafile->warnings();
    }
    add_acceptance(out, map::acceptance_of(error), warnings);
    return out;
}

std::string map_text(const json::object& map) {
    KeyValueText page;
    page.add_line("map", record::escape_for_terminal(text_of(map, "file")));
    page.add_line("bytes", fmt::to_string(count_in(map, "size")));
    page.add_line("crc", text_of(map, "crc32"));
    page.add_line("sha256", text_of(map, "sha256"));
    const json::object& datafile = *object_of(map, "datafile");
    page.add_line("datafile", fmt::format("version {}, {}, {}", count_in(datafile, "version"),
                                          count_with_noun(datafile, "num_items", "item[s]"),
                                          count_with_noun(datafile, "num_data", "data block[s]")));
    add_content_lines(page, map);
    const json::object& verdict = *object_of(map, "verdict");
    page.add_line("verdict", fmt::format("strict {}, lenient {}", text_of(verdict, "strict"),
                                         text_of(verdict, "lenient")));
    for (const json::value& warning : map.at("oddities").as_array()) {
        page.add_line("odd", warning_text(warning.as_object()));
    }
    add_physics_lines(page, map);
    return page.text;
}

std::string describe_position(const map::PhysicsLayers& physics, double x, double y) {
    const map::Location at = physics.locate(x, y);
    std::string line = fmt::format("{},{}: tile {},{} {}", x, y, at.tile.x, at.tile.y,
                                   map::tile_name(map::Layer::game, at.game));
    const auto add = [&](map::Layer layer, std::uint8_t index, int number) {
        if (index != 0) {
            line += fmt::format(", {} {}", map::layer_name(layer), map::tile_name(layer, index));
            line += number == 0 ? "" : fmt::format(" {}", number);
        }
    };
    add(map::Layer::front, at.front, 0);
    add(map::Layer::tele, at.tele.index, at.tele.number);
    add(map::Layer::speedup, at.speedup.index, 0);
    add(map::Layer::switch_, at.switch_.index, at.switch_.number);
    add(map::Layer::tune, at.tune.index, at.tune.number);
    const map::WorldPos centre{map::round_to_int(x), map::round_to_int(y)};
    line += at.outside ? "; outside the map" : "";
    line += physics.tee_in_solid(centre)    ? "; a tee here is inside a wall"
            : physics.tee_on_ground(centre) ? "; a tee here stands on the ground"
                                            : "; a tee here is in the air";
    line += physics.tee_in_death(centre) ? " and dies" : "";
    return line;
}

} // namespace tw::analyze
