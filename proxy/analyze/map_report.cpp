#include "proxy/analyze/map_report.h"

#include "map/error.h"
#include "map/identity.h"
#include "map/tiles.h"
#include "proxy/record/json.h"
#include "proxy/record/terminal_text.h"

#include <array>
#include <cstdint>
#include <cstdlib>
#include <iterator>
#include <map>
#include <optional>
#include <utility>

#include <boost/json.hpp>
#include <fmt/format.h>

namespace tw::analyze {

namespace {

namespace json = boost::json;

json::string_view view(std::string_view text) {
    return {text.data(), text.size()};
}

json::value text(const std::optional<std::string>& optional) {
    // NOLINTNEXTLINE(modernize-return-braced-init-list): in braces it is an array
    return optional ? json::value(*optional) : json::value{};
}

template <typename Range>
json::array array_of(const Range& range) {
    return json::array(range.begin(), range.end());
}

/// Converts counts to a JSON object whose keys are the counted numbers or names.
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
    json::object out{{"file", view(file)},
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

namespace {

/// Builds a text with a line for each key and value. Empty values are left out.
class Page {
  public:
    void add(std::string_view key, std::string_view value) {
        if (!value.empty() && value != "-") {
            fmt::format_to(std::back_inserter(text_), "{:<11} {}\n", key, value);
        }
    }

    /// Adds a text of the map file, made safe for a terminal.
    void add_text(std::string_view key, std::string_view text) {
        add(key, record::terminal_text(text));
    }

    void add_text(std::string_view key, const std::optional<std::string>& text) {
        add_text(key, text ? std::string_view{*text} : std::string_view{});
    }

    [[nodiscard]] std::string take() { return std::move(text_); }

  private:
    std::string text_;
};

/// Returns the number of tiles of each kind in a layer as text, by tile id, without air.
std::string tiles(const map::Histogram& histogram, map::Layer layer) {
    std::string text;
    for (const auto& [index, count] : histogram) {
        if (index == map::kTileAir) {
            continue;
        }
        const auto name = map::tile_name(layer, index);
        text += fmt::format("{}{} {}", text.empty() ? "" : ", ", count,
                            name.empty() ? fmt::format("#{}", index) : std::string{name});
    }
    return text;
}

/// Returns a warning as a sentence with the position of its first occurrence.
std::string warning_text(const map::Warning& warning) {
    const map::WarningInfo& info = map::warning_info(warning.id);
    return fmt::format("{} ({}, first at {}{})", info.sentence, info.name, warning.where,
                       warning.count == 1 ? "" : fmt::format(", {} in all", warning.count));
}

template <typename Number>
std::string counted(Number count, std::string_view noun) {
    return record::counted(static_cast<std::uint64_t>(count), noun);
}

void add_datafile(Page& page, const map::DatafileHeader& header) {
    page.add("datafile",
             fmt::format("version {}, {}, {}", header.version, counted(header.num_items, "item[s]"),
                         counted(header.num_data, "data block[s]")));
}

void add_content(Page& page, const map::ContentDescription& content) {
    if (content.info) {
        page.add_text("author", content.info->author);
        page.add_text("map_version", content.info->map_version);
        page.add_text("credits", content.info->credits);
        page.add_text("license", content.info->license);
    }
    page.add("holds", fmt::format("{}, {}, {}, {}, {}", counted(content.layers.groups, "group[s]"),
                                  counted(content.layers.layers, "layer[s]"),
                                  counted(content.images.total, "image[s]"),
                                  counted(content.sounds, "sound[s]"),
                                  counted(content.envelopes.total, "envelope[s]")));
}

void add_physics(Page& page, const map::ContentDescription& content) {
    if (const auto& game = content.game_layer) {
        page.add("size", fmt::format("{} x {} tiles", game->layer.width, game->layer.height));
        if (game->tiles) {
            page.add("game", tiles(game->tiles->histogram, map::Layer::game));
        }
    }
    for (const map::DdnetLayerDescription& layer : content.ddnet_layers) {
        if (layer.tiles) {
            page.add(map::layer_name(layer.kind), tiles(layer.tiles->histogram, layer.kind));
        }
    }
}

} // namespace

std::string map_text(const map::Description& map, std::string_view file) {
    Page page;
    page.add_text("map", file);
    page.add("bytes", fmt::to_string(map.identity.size));
    page.add("crc", map::to_hex(map.identity.crc));
    page.add("sha256", map::to_hex(map.identity.sha256));
    if (map.container) {
        add_datafile(page, map.container->header);
    }
    if (map.content) {
        add_content(page, *map.content);
    }
    page.add("verdict",
             fmt::format("strict {}, lenient {}", map.acceptance.strict, map.acceptance.lenient));
    for (const map::Warning& warning : map.warnings.list()) {
        page.add("odd", warning_text(warning));
    }
    if (map.content) {
        add_physics(page, *map.content);
    }
    return page.take();
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
