#include "proxy/report/map_page.h"

#include "map/tiles.h"
#include "map/warning.h"
#include "proxy/record/terminal_text.h"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <string>
#include <vector>

#include <boost/json.hpp>
#include <fmt/format.h>

namespace tw::report {

namespace {

namespace json = boost::json;

std::string shown(const json::value& value) {
    if (value.is_string()) {
        return record::terminal_text({value.get_string().data(), value.get_string().size()});
    }
    return value.is_null() ? "-" : json::serialize(value);
}

const json::value& member(const json::value& object, std::string_view key) {
    static const json::value kNone;
    const json::value* found = object.is_object() ? object.get_object().if_contains(key) : nullptr;
    return found == nullptr ? kNone : *found;
}

/// The tiles of a histogram by name, most frequent ones as they stand, air left out.
std::string tiles(const json::value& histogram, map::Layer layer) {
    std::string text;
    if (!histogram.is_object()) {
        return text;
    }
    for (const auto& entry : histogram.get_object()) {
        unsigned index = 0;
        const std::string_view key{entry.key().data(), entry.key().size()};
        std::from_chars(key.data(), key.data() + key.size(), index);
        if (index == map::kTileAir) {
            continue;
        }
        const auto name = map::tile_name(layer, static_cast<std::uint8_t>(index));
        text += fmt::format("{}{} {}", text.empty() ? "" : ", ", shown(entry.value()),
                            name.empty() ? fmt::format("#{}", index) : std::string{name});
    }
    return text;
}

/// What is odd in words, with where it was met first.
std::vector<std::string> warnings(const json::value& list) {
    std::vector<std::string> lines;
    if (!list.is_array()) {
        return lines;
    }
    for (const json::value& entry : list.get_array()) {
        const std::string id = shown(member(entry, "id"));
        const auto table = map::warning_table();
        const auto found = std::find_if(table.begin(), table.end(),
                                        [&id](const auto& info) { return info.name == id; });
        if (found != table.end()) {
            const std::string count = shown(member(entry, "count"));
            lines.push_back(fmt::format("{} ({}, first at {}{})", found->sentence, id,
                                        shown(member(entry, "where")),
                                        count == "1" ? "" : ", " + count + " in all"));
        }
    }
    return lines;
}

} // namespace

std::string map_page(std::string_view description) {
    boost::system::error_code error;
    const json::value map = json::parse(description, error);
    std::string page;
    auto out = std::back_inserter(page);
    const auto line = [&](std::string_view key, const std::string& value) {
        if (!value.empty() && value != "-") {
            fmt::format_to(out, "{:<11} {}\n", key, value);
        }
    };
    const json::value& game = member(map, "game_layer");
    const json::value& datafile = member(map, "datafile");
    line("map", shown(member(map, "file")));
    line("bytes", shown(member(map, "size")));
    line("crc", shown(member(map, "crc32")));
    line("sha256", shown(member(map, "sha256")));
    line("datafile",
         fmt::format("version {}, {} items, {} data blocks", shown(member(datafile, "version")),
                     shown(member(datafile, "num_items")), shown(member(datafile, "num_data"))));
    for (const char* key : {"author", "map_version", "credits", "license"}) {
        line(key, shown(member(member(map, "info"), key)));
    }
    line("holds",
         fmt::format("{} groups, {} layers, {} images, {} sounds, {} envelopes",
                     shown(member(map, "groups")), shown(member(map, "layers")),
                     shown(member(member(map, "images"), "total")), shown(member(map, "sounds")),
                     shown(member(member(map, "envelopes"), "total"))));
    line("verdict",
         fmt::format("strict {}, lenient {}", shown(member(member(map, "verdict"), "strict")),
                     shown(member(member(map, "verdict"), "lenient"))));
    for (const std::string& warning : warnings(member(map, "oddities"))) {
        line("odd", warning);
    }
    if (game.is_object()) {
        line("size", fmt::format("{} x {} tiles", shown(member(game, "width")),
                                 shown(member(game, "height"))));
    }
    line("game", tiles(member(game, "histogram"), map::Layer::game));
    for (int i = 1; i < map::kPhysicsLayers; ++i) {
        const auto layer = static_cast<map::Layer>(i);
        const json::value& found = member(member(map, "ddnet_layers"), map::layer_name(layer));
        if (found.is_object()) {
            line(map::layer_name(layer), tiles(member(found, "histogram"), layer));
        }
    }
    return page;
}

std::string place_line(const map::Physics& physics, double x, double y) {
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

} // namespace tw::report
