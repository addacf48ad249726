#include "map/error.h"
#include "map/identity.h"
#include "map/map.h"
#include "map/picture.h"
#include "map/tiles.h"
#include "proxy/analyze/map_report.h"
#include "proxy/analyze/recorded_paths.h"
#include "proxy/base/files.h"
#include "proxy/base/numbers.h"
#include "proxy/cli/commands.h"
#include "proxy/cli/output_file.h"
#include "proxy/cli/records_files.h"
#include "proxy/cli/settings.h"
#include "proxy/record/json.h"
#include "proxy/record/terminal_text.h"
#include "proxy/sink/output.h"

#include <cerrno>
#include <cmath>

#include <fmt/ranges.h>
#include <unistd.h>

namespace tw::cli {

namespace {

struct MapFlags {
    std::string file;
    std::vector<std::string> at;
    bool json = false;
    std::string png;
    std::vector<std::string> layers; ///< empty for all
    int scale = 0;
    bool whole = false;
    std::string path;
    std::string heat;
    std::vector<std::string> players; ///< empty for all
    analyze::PathColor color_by = analyze::PathColor::player;

    /// The recording whose players are drawn; empty for none.
    [[nodiscard]] const std::string& recording() const { return path.empty() ? heat : path; }

    [[nodiscard]] std::string_view recording_flag() const {
        return path.empty() ? "--heat" : "--path";
    }
};

analyze::MapPoint parse_point(const std::string& text) {
    const std::size_t comma = std::min(text.find(','), text.size() - 1);
    const auto x = base::parse_number<double>(text.substr(0, comma));
    const auto y = base::parse_number<double>(text.substr(comma + 1));
    if (x && y && std::isfinite(*x) && std::isfinite(*y)) {
        return {*x, *y};
    }
    throw usage_error("--at {}: expected X,Y in world units (32 to a tile), for example "
                      "--at 1616,1040",
                      text);
}

unsigned parse_layers(const std::vector<std::string>& names) {
    unsigned layers = names.empty() ? map::kAllLayers : 0U;
    for (const std::string& name : names) {
        if (name == "all") {
            layers |= map::kAllLayers;
        }
        for (int i = 0; i < map::kPhysicsLayers; ++i) {
            if (map::layer_name(static_cast<map::Layer>(i)) == name) {
                layers |= 1U << static_cast<unsigned>(i);
            }
        }
    }
    return layers;
}

std::string reason_unreadable(const std::string& file) {
    std::error_code error;
    const auto status = std::filesystem::status(file, error);
    if (!error && !std::filesystem::is_regular_file(status)) {
        return std::filesystem::is_directory(status) ? "is a folder; name one of its .map files"
                                                     : "is not a regular file";
    }
    return ::access(file.c_str(), R_OK) != 0
               ? std::generic_category().message(errno)
               : std::string{map::error_info(map::MapErrc::file_unreadable).sentence};
}

UsageError map_file_error(const std::string& file, const map::MapError& error) {
    if (error.code == map::MapErrc::file_unreadable) {
        return usage_error("{}: {}", file, reason_unreadable(file));
    }
    const bool has_no_header = error.code == map::MapErrc::file_too_short;
    if (has_no_header && error.offset == 0) {
        return usage_error("{}: is empty", file);
    }
    std::string where;
    if (error.block != map::MapError::kNoIndex) {
        where += fmt::format(" (data block {})", error.block);
    } else if (error.item != map::MapError::kNoIndex) {
        where += fmt::format(" (item {})", error.item);
    } else if (error.offset > 0) {
        where += fmt::format(" (offset {})", error.offset);
    }
    return usage_error(
        "{}: {}{}{}{}", file,
        has_no_header || error.code == map::MapErrc::bad_magic ? "is not a map: " : "",
        map::error_info(error.code).sentence, where, file_type_hint(file, FileType::map));
}

std::string join_names(const std::set<std::string>& names) {
    return record::escape_for_terminal(fmt::format("{}", fmt::join(names, ", ")));
}

/// The part of a recording that a picture shows, and a sentence about this part.
struct DrawnRecording {
    map::Overlay overlay;
    std::optional<map::TileArea> area; ///< the part of the map that is drawn; nullopt: all
    std::string about;
    bool is_complete = true; ///< false if some records could not be read, which was printed
};

DrawnRecording read_paths(const map::Map& map, const MapFlags& flags) {
    const std::string& file = flags.recording();
    RecordsFiles{{file}}.check_are_recordings();
    const auto bytes = map::read_file(flags.file, map::Limits{}.max_file_bytes);
    if (!bytes) {
        throw map_file_error(flags.file, bytes.error());
    }
    const std::string crc = map::to_hex(map::continue_crc(0, *bytes));
    const std::string name = std::filesystem::path{flags.file}.stem().string();
    DrawnRecording drawn;
    const auto found =
        analyze::find_paths([&](const auto& use) { drawn.is_complete = read_records(file, use); },
                            crc, name, {flags.players.begin(), flags.players.end()});
    if (found.players_on_map.empty() && !found.other_maps.empty()) {
        throw usage_error(
            "{} {}: all its positions are on other maps: {}{}", flags.recording_flag(), file,
            join_names(found.other_maps),
            found.other_maps.contains(name)
                ? fmt::format("; its {} has another checksum than this file ({})", name, crc)
                : std::string{});
    }
    if (found.players_on_map.empty()) {
        throw usage_error("{} {}: contains no snapshot or world with characters; record "
                          "with --items changed or all",
                          flags.recording_flag(), file);
    }
    for (const std::string& player : flags.players) {
        if (!found.players_on_map.contains(player)) {
            throw usage_error("--player {}: not on this map; the players are {}", player,
                              join_names(found.players_on_map));
        }
    }
    if (found.positions_on_other_maps != 0) {
        sink::print_error("{}: skipped {} on other maps: {}", file,
                          record::count_with_noun(found.positions_on_other_maps, "position[s]"),
                          join_names(found.other_maps));
    }
    if (found.positions_on_unknown_maps != 0) {
        sink::print_error(
            "{}: {} no map record; taken to be of this map", file,
            record::count_with_noun(found.positions_on_unknown_maps, "position[s] [has|have]"));
    }
    if (found.stopped_ms != 0) {
        sink::print_error("{}: left out {:.1f} s in which the game was paused or over", file,
                          static_cast<double>(found.stopped_ms) / 1000);
    }
    if (found.num_jumps != 0) {
        constexpr double kTicksPerSecond = 50;
        sink::print_error("{}: left out {} ({:.1f} s): farther than a tee moves, as through a "
                          "teleporter",
                          file, record::count_with_noun(found.num_jumps, "step[s]"),
                          static_cast<double>(found.jump_ticks) / kTicksPerSecond);
    }
    if (found.num_left_out != 0) {
        sink::print_error("{}: left out {}: too many players, sessions or deaths", file,
                          record::count_with_noun(found.num_left_out, "position[s] and deaths"));
    }
    drawn.about = fmt::format(" with {} from {} to {}",
                              record::count_with_noun(found.players.size(), "player[s]"),
                              found.begin, found.end);
    if (!flags.heat.empty()) {
        drawn.about +=
            found.are_deaths_known
                ? ", " + record::count_with_noun(found.deaths.size(), "recorded death[s]")
                : "; deaths are not known: the recording has no message records or no "
                  "session records";
    }
    const auto physics = map.physics();
    if (!physics) {
        throw map_file_error(flags.file, physics.error());
    }
    drawn.overlay = flags.heat.empty()
                        ? analyze::path_overlay(found, flags.color_by)
                        : analyze::heat_map_overlay(found, physics->width(), physics->height());
    const map::TileArea all{0, 0, physics->width(), physics->height()};
    const map::TileArea area = flags.whole ? all : map::area_of(drawn.overlay, *physics);
    if (area != all) {
        drawn.area = area;
        drawn.about += fmt::format(", on {} x {} tiles from {},{} (--whole draws all {} x {})",
                                   area.width, area.height, area.x, area.y, all.width, all.height);
    }
    return drawn;
}

/// Writes a picture. An existing picture is replaced once the new one is complete. A pipe, a device
/// or standard output is written directly.
std::error_code write_picture(const std::string& path, std::span<const std::byte> bytes) {
    namespace fs = std::filesystem;
    std::error_code ignored;
    const fs::file_status there = fs::status(path, ignored);
    const bool new_name = !fs::exists(there) && !fs::is_symlink(fs::symlink_status(path, ignored));
    if (path != "-" && (new_name || fs::is_regular_file(there))) {
        // Replaces the file to which a symbolic link points, not the link.
        return base::replace_file(fs::weakly_canonical(path, ignored), bytes);
    }
    const auto output = open_output_file("--png", path);
    output->write({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
    return {output->error(), std::generic_category()};
}

/// Draws the picture. Returns false if some records could not be read, or the picture could not be
/// written.
bool draw_picture(const map::Map& file, const MapFlags& flags) {
    const DrawnRecording drawn =
        flags.recording().empty() ? DrawnRecording{} : read_paths(file, flags);
    const auto picture = map::draw_png(file, {.layers = parse_layers(flags.layers),
                                              .scale = flags.scale,
                                              .overlay = &drawn.overlay,
                                              .area = drawn.area});
    if (!picture) {
        if (picture.error().code == map::MapErrc::picture_too_large && flags.scale != 0) {
            const auto physics = file.physics();
            throw usage_error("--scale {}: the picture would have more than {} pixels; "
                              "the largest scale for this picture is {}",
                              flags.scale, map::kMaxPicturePixels,
                              map::largest_scale(drawn.area.value_or(
                                  map::TileArea{0, 0, physics->width(), physics->height()})));
        }
        throw map_file_error(flags.file, picture.error());
    }
    if (const std::error_code error = write_picture(flags.png, *picture)) {
        sink::print_error("--png {}: {}", flags.png, error.message());
        return false;
    }
    if (flags.png != "-") {
        sink::print_text(stderr, fmt::format("wrote {}{}\n", flags.png, drawn.about));
    }
    return drawn.is_complete;
}

void check_picture(const MapFlags& flags) {
    if (!flags.path.empty() && !flags.heat.empty()) {
        throw UsageError{"--heat and --path draw different pictures; give one of them"};
    }
    if (flags.png.empty() && !flags.recording().empty()) {
        throw usage_error("{} needs a picture to draw on; add --png FILE", flags.recording_flag());
    }
    if (flags.recording().empty() && !flags.players.empty()) {
        throw UsageError{"--player selects from a recording; add --heat FILE or --path FILE"};
    }
    if (flags.recording().empty() && flags.whole) {
        throw UsageError{"--whole: without --heat FILE or --path FILE, the whole map is drawn"};
    }
    if (flags.path.empty() && flags.color_by != analyze::PathColor::player) {
        throw UsageError{"--color-by applies only to paths; add --path FILE"};
    }
    if (flags.png.empty() && (flags.scale != 0 || !flags.layers.empty())) {
        throw usage_error("{} applies only to a picture; add --png FILE",
                          flags.layers.empty() ? "--scale" : "--layer");
    }
    if (flags.png == "-" && (flags.json || !flags.at.empty())) {
        throw UsageError{"--png -: --json and --at also write to standard output; name a file"};
    }
    constexpr std::array<std::string_view, 6> kOtherPictures = {".bmp", ".gif", ".jpeg",
                                                                ".jpg", ".svg", ".webp"};
    std::filesystem::path name{flags.png};
    if (std::ranges::find(kOtherPictures, name.extension().string()) != kOtherPictures.end()) {
        throw usage_error("--png {}: pictures are PNG files; name it {}", flags.png,
                          name.replace_extension(".png").string());
    }
    check_outputs({flags.file, flags.recording()}, {{"--png", flags.png}});
    check_replaceable("--png", flags.png, FileType::picture);
}

int run_map(const MapFlags& flags) {
    std::vector<analyze::MapPoint> points;
    std::vector<map::WorldPos> tee_centres;
    for (const std::string& text : flags.at) {
        points.push_back(parse_point(text));
        tee_centres.push_back(
            {map::round_to_int(points.back().x), map::round_to_int(points.back().y)});
    }
    check_picture(flags);
    const std::string name = std::filesystem::path{flags.file}.filename().string();
    const auto file = map::Map::open(flags.file);
    if (!file) {
        if (auto bytes = map::read_file(flags.file, map::Limits{}.max_file_bytes);
            bytes && flags.json) {
            fmt::print("{}\n", record::json_text(analyze::rejected_map_json(std::move(*bytes),
                                                                            file.error(), name)));
        }
        throw map_file_error(flags.file, file.error());
    }
    int status = 0;
    if (!flags.png.empty()) {
        status = draw_picture(*file, flags) ? 0 : kExitFailed;
        if (!flags.json && points.empty()) {
            return status;
        }
    }
    const auto description =
        analyze::map_json(*file, name, {.points = points, .tee_centres = tee_centres});
    const auto physics = file->physics();
    if (flags.json) {
        fmt::print("{}\n", record::json_text(description));
    } else if (points.empty()) {
        sink::print_wrapped(stdout, analyze::map_text(description));
    } else if (physics) {
        for (const auto& point : points) {
            fmt::print("{}\n", analyze::describe_position(*physics, point.x, point.y));
        }
    }
    if (!physics) {
        throw map_file_error(flags.file, physics.error());
    }
    return status;
}

} // namespace

void add_map_command(Command& command) {
    command.about = "Show what a map contains and what is where";
    MapFlags& flags = add_settings_and_action(command, run_map);
    command.add("file", &flags.file, "FILE", "A map file").is_required = true;
    command.add("--at", &flags.at, "X,Y",
                "Show what is at this position, in world units, 32 per tile (repeatable)");
    command.add_switch("--json", flags.json, "Print one JSON object (map/FORMAT.md, section 8)");
    command.add("--png", &flags.png, "FILE",
                "Draw the physics layers to this PNG file; - means standard output");
    Flag& layer = command.add("--layer", &flags.layers, "LAYER", "Layers to draw (repeatable)");
    layer.allowed_words = {"all", "game", "front", "tele", "speedup", "switch", "tune"};
    layer.default_text = "all";
    command.add_number("--scale", &flags.scale, 1, 64,
                       "Pixels per tile (by default, depends on the map's size)");
    command.add("--path", &flags.path, "FILE",
                "Draw the tees' paths from these records on top (twscope proxy -o): a file, or a "
                "folder of segments");
    command.add("--heat", &flags.heat, "FILE",
                "Draw how long tees were in each tile, and where they died, from these records: a "
                "file, or a folder of segments");
    command.add_switch("--whole", flags.whole,
                       "With --heat or --path, draw the whole map, not only where players were");
    command.add("--player", &flags.players, "NAME",
                "Draw only this player, with --heat or --path (repeatable)");
    using analyze::PathColor;
    command.add_choice<PathColor>(
        "--color-by", flags.color_by, "WHAT",
        {{"player", PathColor::player}, {"session", PathColor::session}, {"time", PathColor::time}},
        "What the colour of a path means");
}

} // namespace tw::cli
