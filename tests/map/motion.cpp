#include "tests/map/motion.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

namespace tw::map::test {
namespace {

struct TuningRow {
    std::string_view name;
    double standard;
};

/// Source: tuning.h of the reference.
constexpr std::array<TuningRow, kTunings> kTuningTable = {{
    {"ground_control_speed", 10.0},
    {"ground_control_accel", 2.0},
    {"ground_friction", 0.5},
    {"ground_jump_impulse", 13.2},
    {"air_jump_impulse", 12.0},
    {"air_control_speed", 5.0},
    {"air_control_accel", 1.5},
    {"air_friction", 0.95},
    {"hook_length", 380.0},
    {"hook_fire_speed", 80.0},
    {"hook_drag_accel", 3.0},
    {"hook_drag_speed", 15.0},
    {"gravity", 0.5},
    {"velramp_start", 550.0},
    {"velramp_range", 2000.0},
    {"velramp_curvature", 1.4},
    {"gun_curvature", 1.25},
    {"gun_speed", 2200.0},
    {"gun_lifetime", 2.0},
    {"shotgun_curvature", 1.25},
    {"shotgun_speed", 2750.0},
    {"shotgun_speeddiff", 0.8},
    {"shotgun_lifetime", 0.2},
    {"grenade_curvature", 7.0},
    {"grenade_speed", 1000.0},
    {"grenade_lifetime", 2.0},
    {"laser_reach", 800.0},
    {"laser_bounce_delay", 150.0},
    {"laser_bounce_num", 1.0},
    {"laser_bounce_cost", 0.0},
    {"laser_damage", 5.0},
    {"player_collision", 1.0},
    {"player_hooking", 1.0},
}};

struct Flight {
    Tuning curvature, speed, lifetime;
};

Flight flight_of(FlyingWeapon weapon) {
    switch (weapon) {
    case FlyingWeapon::shotgun:
        return {Tuning::shotgun_curvature, Tuning::shotgun_speed, Tuning::shotgun_lifetime};
    case FlyingWeapon::grenade:
        return {Tuning::grenade_curvature, Tuning::grenade_speed, Tuning::grenade_lifetime};
    case FlyingWeapon::gun:
        break;
    }
    return {Tuning::gun_curvature, Tuning::gun_speed, Tuning::gun_lifetime};
}

std::vector<std::string_view> split_words(std::string_view line) {
    std::vector<std::string_view> words;
    for (std::size_t at = 0; at < line.size();) {
        const std::size_t start = line.find_first_not_of(" \t", at);
        if (start == std::string_view::npos) {
            break;
        }
        at = std::min(line.find_first_of(" \t", start), line.size());
        words.push_back(line.substr(start, at - start));
    }
    return words;
}

template <typename T>
std::optional<T> parse_number(std::string_view word) {
    T value{};
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
    const bool whole = error == std::errc{} && end == word.data() + word.size();
    return whole ? std::optional{value} : std::nullopt;
}

std::optional<TuneCommand> parse_tune(std::string_view line) {
    const auto words = split_words(line);
    const bool global = words.size() == 3 && words[0] == "tune";
    const bool zoned = words.size() == 4 && words[0] == "tune_zone";
    if (!global && !zoned) {
        return std::nullopt;
    }
    const auto zone = zoned ? parse_number<std::uint8_t>(words[1]) : std::uint8_t{0};
    const auto value = parse_number<double>(words.back());
    if (!zone || !value || !std::isfinite(*value)) {
        return std::nullopt;
    }
    return TuneCommand{*zone, std::string{words[words.size() - 2]}, *value};
}

} // namespace

std::array<WorldPos, 4> tee_corners(WorldPos centre) {
    constexpr int kHalf = 14;
    const auto moved = [](int value, int by) {
        const std::int64_t sum = std::int64_t{value} + by;
        return static_cast<int>(std::clamp<std::int64_t>(sum, std::numeric_limits<int>::min(),
                                                         std::numeric_limits<int>::max()));
    };
    const int left = moved(centre.x, -kHalf);
    const int right = moved(centre.x, kHalf);
    const int top = moved(centre.y, -kHalf);
    const int bottom = moved(centre.y, kHalf);
    return {{{left, top}, {right, top}, {left, bottom}, {right, bottom}}};
}

bool has_tile(const Location& location, std::string_view name) {
    return tile_name(Layer::game, location.game) == name ||
           tile_name(Layer::front, location.front) == name ||
           tile_name(Layer::tele, location.tele.index) == name ||
           tile_name(Layer::speedup, location.speedup.index) == name ||
           tile_name(Layer::switch_, location.switch_.index) == name ||
           tile_name(Layer::tune, location.tune.index) == name;
}

std::optional<LineHit> intersect_line(const PhysicsLayers& physics, WorldVec from, WorldVec to) {
    const double distance = std::hypot(to.x - from.x, to.y - from.y);
    if (!(distance <= kMaxLine)) { // true for NaN, too
        return std::nullopt;
    }
    const auto steps = static_cast<int>(distance) + 1;
    WorldVec before = from;
    for (int i = 0; i <= steps; ++i) {
        const double part = static_cast<double>(i) / steps;
        const WorldVec point{from.x + (to.x - from.x) * part, from.y + (to.y - from.y) * part};
        const TilePos tile = physics.tile_at(point.x, point.y);
        const std::uint8_t index = physics.index(Layer::game, tile);
        if (is_wall(index)) {
            return LineHit{point, before, tile, index};
        }
        before = point;
    }
    return std::nullopt;
}

std::string_view tuning_name(Tuning tuning) {
    return kTuningTable.at(static_cast<std::size_t>(tuning)).name;
}

std::optional<Tuning> find_tuning(std::string_view name) {
    const auto* const row = std::ranges::find_if(
        kTuningTable, [name](const TuningRow& candidate) { return candidate.name == name; });
    return row == kTuningTable.end()
               ? std::nullopt
               : std::optional{static_cast<Tuning>(row - kTuningTable.begin())};
}

Tunings::Tunings() {
    for (std::size_t i = 0; i < kTunings; ++i) {
        set(static_cast<Tuning>(i), kTuningTable.at(i).standard);
    }
}

void Tunings::set(Tuning tuning, double value) {
    constexpr double kMost = 21474836; // in hundredths, it fits into an int
    const double bounded = std::isnan(value) ? 0 : std::clamp(value, -kMost, kMost);
    hundredths_.at(static_cast<std::size_t>(tuning)) =
        static_cast<std::int32_t>(std::lround(bounded * 100));
}

void Tunings::apply_message(std::span<const std::int32_t> hundredths) {
    std::copy_n(hundredths.begin(), std::min(hundredths.size(), kTunings), hundredths_.begin());
}

std::vector<TuneCommand> tune_commands(std::span<const std::string> settings) {
    std::vector<TuneCommand> commands;
    for (const std::string& line : settings) {
        if (auto command = parse_tune(line)) {
            commands.push_back(std::move(*command));
        }
    }
    return commands;
}

Tunings tunings_of(std::span<const TuneCommand> commands, std::uint8_t zone) {
    Tunings tunings;
    for (const TuneCommand& command : commands) {
        const auto tuning = find_tuning(command.name);
        if (command.zone == zone && tuning) {
            tunings.set(*tuning, command.value);
        }
    }
    return tunings;
}

WorldVec projectile_at(WorldVec start, WorldVec direction, FlyingWeapon weapon, double seconds,
                       const Tunings& tunings) {
    const Flight flight = flight_of(weapon);
    const double way = tunings.value(flight.speed) * seconds;
    const double fall = tunings.value(flight.curvature) / 10000 * way * way;
    return {start.x + direction.x * way, start.y + direction.y * way + fall};
}

double projectile_lifetime(FlyingWeapon weapon, const Tunings& tunings) {
    return tunings.value(flight_of(weapon).lifetime);
}

} // namespace tw::map::test
