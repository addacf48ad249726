#include "proxy/report/map_json.h"

#include "map/error.h"
#include "map/tiles.h"
#include "map/warning.h"
#include "proxy/report/json_text.h"

#include <array>
#include <map>
#include <optional>
#include <string>

#include <boost/json.hpp>
#include <fmt/format.h>

namespace tw::report {

namespace {

namespace json = boost::json;

json::string_view view(std::string_view text) {
    return {text.data(), text.size()};
}

json::value text(std::string_view text) {
    // NOLINTNEXTLINE(modernize-return-braced-init-list): in braces it is an array
    return json::value(view(utf8_text(text)));
}

json::value text(const std::optional<std::string>& optional) {
    return optional ? text(std::string_view{*optional}) : json::value{};
}

template <typename Range>
json::array array_of(const Range& range) {
    return json::array(range.begin(), range.end());
}

/// Numbers by number or by name.
template <typename Counts>
json::object counts_of(const Counts& counts) {
    json::object object;
    for (const auto& [key, count] : counts) {
        object.emplace(view(fmt::to_string(key)), count);
    }
    return object;
}

template <typename Counts>
json::array forms_of(const Counts& forms) {
    json::array array;
    for (const auto& [form, count] : forms) {
        array.push_back({form.first, form.second, count});
    }
    return array;
}

std::string_view field_name(map::SizeField field) {
    constexpr std::array<std::string_view, 3> kNames = {"full", "short", "wrong"};
    return kNames.at(static_cast<std::size_t>(field));
}

void add_container(json::object& out, const map::ContainerDescription& container) {
    const map::DatafileHeader& header = container.header;
    out["datafile"] = {{"magic", header.reversed_magic ? "ATAD" : "DATA"},
                       {"version", header.version},
                       {"num_item_types", header.num_item_types},
                       {"num_items", header.num_items},
                       {"num_data", header.num_data},
                       {"item_size", header.item_size},
                       {"data_size", header.data_size},
                       {"size_field", view(field_name(container.size_field))},
                       {"swaplen_field", view(field_name(container.swaplen_field))},
                       {"trailing_bytes", container.trailing_bytes}};
    json::array types;
    for (const map::ItemType& type : container.item_types) {
        types.push_back({type.type, type.start, type.num});
    }
    out["item_types"] = std::move(types);
    out["unreadable_data"] = array_of(container.unreadable_blocks);
    json::object uuids;
    for (const map::UuidType& type : container.uuid_types) {
        uuids.emplace(view(fmt::to_string(type.type)), view(map::to_text(type.uuid)));
    }
    out["uuid_item_types"] = std::move(uuids);
}

json::value info_json(const std::optional<map::Info>& info) {
    if (!info) {
        return {};
    }
    json::object out{{"ints", info->item_ints},        {"version", info->version},
                     {"author", text(info->author)},   {"map_version", text(info->map_version)},
                     {"credits", text(info->credits)}, {"license", text(info->license)}};
    if (info->settings) {
        out["settings_lines"] = info->settings->size();
    }
    return out;
}

json::object envelopes_json(const map::EnvelopesDescription& envelopes) {
    return {{"total", envelopes.total},
            {"versions", array_of(envelopes.versions)},
            {"ints", array_of(envelopes.item_ints)},
            {"channels", counts_of(envelopes.channels)},
            {"points_ints", array_of(envelopes.points_ints)},
            {"points_needed", envelopes.points_needed}};
}

void add_layers(json::object& out, const map::LayersDescription& layers) {
    out["groups"] = layers.groups;
    out["group_versions"] = array_of(layers.group_versions);
    out["layers"] = layers.layers;
    out["layer_types"] = counts_of(layers.types);
    out["tilemap_item_forms"] = forms_of(layers.tilemap_forms);
    std::map<std::string_view, std::size_t> by_name;
    for (const auto& [kind, count] : layers.physics) {
        by_name[map::layer_name(kind)] = count;
    }
    out["physics_layer_counts"] = counts_of(by_name);
}

json::object place_json(map::LayerPlace place, const map::TileLayer& layer) {
    return {{"group", place.group},
            {"layer", place.layer},
            {"width", layer.width},
            {"height", layer.height},
            {"tilemap_version", layer.version}};
}

json::value game_layer_json(const std::optional<map::GameLayerDescription>& game) {
    if (!game) {
        return {};
    }
    json::object out = place_json(game->place, game->layer);
    out["name"] = text(game->layer.name);
    if (game->packed_tiles) {
        out["packed_tiles"] = *game->packed_tiles;
    }
    out["data_bytes"] = game->data_bytes;
    if (game->tiles) {
        out["index_sha256"] = view(map::to_hex(game->tiles->ids));
        out["flags_sha256"] = view(map::to_hex(game->tiles->flags));
        out["histogram"] = counts_of(game->tiles->histogram);
        out["nonzero_skip_or_pad"] = game->tiles->skips;
        out["entities"] = game->tiles->entities;
    } else {
        out["problem"] = view(map::error_info(game->tiles.error().code).name);
    }
    return out;
}

json::object ddnet_layer_json(const map::DdnetLayerDescription& layer) {
    json::object out = place_json(layer.place, layer.layer);
    out["item_ints"] = layer.item_ints;
    out["name"] = text(layer.layer.name);
    out["data_bytes"] = layer.data_bytes;
    out["own_data_index"] = layer.own_data;
    out["compat_data_index"] = layer.layer.data;
    if (layer.tiles) {
        out["histogram"] = counts_of(layer.tiles->histogram);
        out["sha256"] = view(map::to_hex(layer.tiles->sha256));
    } else {
        out["problem"] = view(map::error_info(layer.tiles.error().code).name);
    }
    return out;
}

void add_content(json::object& out, const map::ContentDescription& content) {
    out["info"] = info_json(content.info);
    out["images"] = {{"total", content.images.total},
                     {"external", content.images.external},
                     {"versions", array_of(content.images.versions)}};
    out["sounds"] = content.sounds;
    out["envelopes"] = envelopes_json(content.envelopes);
    add_layers(out, content.layers);
    out["game_layer"] = game_layer_json(content.game_layer);
    json::object layers;
    for (const map::DdnetLayerDescription& layer : content.ddnet_layers) {
        layers.emplace(view(map::layer_name(layer.kind)), ddnet_layer_json(layer));
    }
    out["ddnet_layers"] = std::move(layers);
}

void add_acceptance(json::object& out, const map::Description& map) {
    out["verdict"] = {{"strict", view(map.acceptance.strict)},
                      {"lenient", view(map.acceptance.lenient)}};
    json::array warnings;
    for (const map::Warning& warning : map.warnings.list()) {
        warnings.push_back({{"id", view(map::warning_info(warning.id).name)},
                            {"where", warning.where},
                            {"count", warning.count}});
    }
    out["oddities"] = std::move(warnings);
}

void add_places(json::object& out, const map::PlacesDescription& places) {
    json::array points;
    for (const map::PointDescription& found : places.points) {
        points.push_back({found.point.x, found.point.y, found.at.tile.x, found.at.tile.y,
                          found.at.game, map::collision_index(found.at.game),
                          map::is_wall(found.at.game) ? 1 : 0, found.front ? int{*found.front} : -1,
                          found.effect_tile.x, found.effect_tile.y});
    }
    out["points"] = std::move(points);
    json::array boxes;
    for (const map::BoxDescription& box : places.boxes) {
        boxes.push_back({box.centre.x, box.centre.y, box.in_solid ? 1 : 0, box.on_ground ? 1 : 0,
                         box.touches_game_death ? 1 : 0, box.touches_front_death ? 1 : 0});
    }
    out["boxes"] = std::move(boxes);
}

} // namespace

json::object map_json(const map::Description& map, std::string_view file) {
    json::object out{{"file", text(file)},
                     {"size", map.identity.size},
                     {"crc32", view(map::to_hex(map.identity.crc))},
                     {"sha256", view(map::to_hex(map.identity.sha256))}};
    if (map.container) {
        add_container(out, *map.container);
    }
    if (map.content) {
        add_content(out, *map.content);
    }
    add_acceptance(out, map);
    if (map.places) {
        add_places(out, *map.places);
    }
    return out;
}

} // namespace tw::report
