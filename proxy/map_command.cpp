#include "map/error.h"
#include "map/game_layer.h"
#include "map/map.h"
#include "map/tiles.h"
#include "proxy/commands.h"
#include "proxy/settings.h"

#include <charconv>
#include <memory>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

namespace tw {

namespace {

struct MapFlags {
    std::string file;
    std::vector<std::string> at;
};

struct Point {
    double x = 0;
    double y = 0;
};

Point parse_point(const std::string& text) {
    Point point;
    const char* const end = text.data() + text.size();
    const auto x = std::from_chars(text.data(), end, point.x);
    if (x.ec == std::errc{} && x.ptr != end && *x.ptr == ',') {
        const auto y = std::from_chars(x.ptr + 1, end, point.y);
        if (y.ec == std::errc{} && y.ptr == end) {
            return point;
        }
    }
    throw UsageError{fmt::format("--at {}: expected X,Y in world units (32 a tile), for example "
                                 "--at 1616,1040",
                                 text)};
}

int run_map(const MapFlags& flags) {
    std::vector<Point> points;
    for (const std::string& text : flags.at) {
        points.push_back(parse_point(text));
    }
    const auto complain = [&](const map::MapError& error) -> UsageError {
        return UsageError{fmt::format("{}: {} (offset {})", flags.file,
                                      map::error_info(error.code).sentence, error.offset)};
    };
    const auto file = map::Map::open(flags.file);
    if (!file) {
        throw complain(file.error());
    }
    const auto physics = file->physics();
    if (!physics) {
        throw complain(physics.error());
    }
    fmt::print("{}: {} x {} tiles\n", flags.file, physics->width(), physics->height());
    for (const Point& point : points) {
        const map::Location at = physics->locate(point.x, point.y);
        fmt::print("{},{}: tile {},{} {}\n", point.x, point.y, at.tile.x, at.tile.y,
                   map::tile_name(map::Layer::game, at.game));
    }
    return 0;
}

} // namespace

Action add_map_command(CLI::App& app) {
    CLI::App* command = app.add_subcommand("map", "Tell what a map holds and what is where");
    auto flags = std::make_shared<MapFlags>();
    auto settings = std::make_shared<Settings>(*command);
    command->add_option("file", flags->file, "The map file")->type_name("FILE")->required();
    command
        ->add_option("--at", flags->at,
                     "Tell what is at this position (repeatable), in world units")
        ->type_name("X,Y")
        ->expected(1)
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
    return [flags, settings] {
        settings->complete();
        return run_map(*flags);
    };
}

} // namespace tw
