#include "proxy/report/map_page.h"

#include "map/identity.h"
#include "map/tiles.h"
#include "map/warning.h"
#include "proxy/record/terminal_text.h"

#include <iterator>
#include <optional>
#include <string>

#include <fmt/format.h>

namespace tw::report {

namespace {

/// Lines of a key and its value, without those that have nothing to say.
class Page {
  public:
    void add(std::string_view key, std::string_view value) {
        if (!value.empty() && value != "-") {
            fmt::format_to(std::back_inserter(text_), "{:<11} {}\n", key, value);
        }
    }

    /// A text out of a file, which may be absent.
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

/// The tiles of a layer by name, in the order of their ids, air left out.
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

/// What is odd in words, with where it was met first.
std::string warning_text(const map::Warning& warning) {
    const map::WarningInfo& info = map::warning_info(warning.id);
    return fmt::format("{} ({}, first at {}{})", info.sentence, info.name, warning.where,
                       warning.count == 1 ? "" : fmt::format(", {} in all", warning.count));
}

void add_datafile(Page& page, const map::DatafileHeader& header) {
    page.add("datafile", fmt::format("version {}, {} items, {} data blocks", header.version,
                                     header.num_items, header.num_data));
}

void add_content(Page& page, const map::ContentDescription& content) {
    if (content.info) {
        page.add_text("author", content.info->author);
        page.add_text("map_version", content.info->map_version);
        page.add_text("credits", content.info->credits);
        page.add_text("license", content.info->license);
    }
    page.add("holds", fmt::format("{} groups, {} layers, {} images, {} sounds, {} envelopes",
                                  content.layers.groups, content.layers.layers,
                                  content.images.total, content.sounds, content.envelopes.total));
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

std::string map_page(const map::Description& map, std::string_view file) {
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
