#pragma once

#include "map/game_layer.h"

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tw::map::test {

/// A point or direction with fractions. Units: world units, unless documented otherwise.
struct WorldVec {
    double x = 0, y = 0;

    friend bool operator==(const WorldVec&, const WorldVec&) = default;
};

/// The four corners of a tee's box, which collide with walls.
[[nodiscard]] std::array<WorldPos, 4> tee_corners(WorldPos centre);

/// Whether any layer has a tile of this name at the location, for example "freeze".
[[nodiscard]] bool has_tile(const Location& location, std::string_view name);

/// Where a line meets a wall.
struct LineHit {
    WorldVec point;  ///< in the wall
    WorldVec before; ///< the last point before the wall
    TilePos tile;
    std::uint8_t index = 0; ///< index of the wall tile: solid or unhookable

    friend bool operator==(const LineHit&, const LineHit&) = default;
};

/// The longest line that is examined. Units: world units. No weapon reaches a thousandth of it.
inline constexpr double kMaxLine = 1 << 20U;

/// Finds the first wall on a line, in steps of about one unit. Returns nullopt if there is no wall or
/// the line is longer than kMaxLine.
///
/// Source:  CCollision::IntersectLine.
[[nodiscard]] std::optional<LineHit> intersect_line(const PhysicsLayers& physics, WorldVec from,
                                                    WorldVec to);

/// The settings of the physics, in the order of the message Sv_TuneParams.
enum class Tuning : std::uint8_t {
    ground_control_speed,
    ground_control_accel,
    ground_friction,
    ground_jump_impulse,
    air_jump_impulse,
    air_control_speed,
    air_control_accel,
    air_friction,
    hook_length,
    hook_fire_speed,
    hook_drag_accel,
    hook_drag_speed,
    gravity,
    velramp_start,
    velramp_range,
    velramp_curvature,
    gun_curvature,
    gun_speed,
    gun_lifetime,
    shotgun_curvature,
    shotgun_speed,
    shotgun_speeddiff,
    shotgun_lifetime,
    grenade_curvature,
    grenade_speed,
    grenade_lifetime,
    laser_reach,
    laser_bounce_delay,
    laser_bounce_num,
    laser_bounce_cost,
    laser_damage,
    player_collision,
    player_hooking
};
inline constexpr std::size_t kTunings = 33;

[[nodiscard]] std::string_view tuning_name(Tuning tuning);
[[nodiscard]] std::optional<Tuning> find_tuning(std::string_view name);

/// A value for each tuning. Units: hundredths, as on the wire.
class Tunings {
  public:
    /// Sets the reference's default values.
    Tunings();

    [[nodiscard]] double value(Tuning tuning) const {
        return static_cast<double>(hundredths_[static_cast<std::size_t>(tuning)]) / 100;
    }

    void set(Tuning tuning, double value);
    /// Applies the ints of an Sv_TuneParams message. Tunings without an int keep their value; surplus ints
    /// are ignored.
    void apply_message(std::span<const std::int32_t> hundredths);

    friend bool operator==(const Tunings&, const Tunings&) = default;

  private:
    std::array<std::int32_t, kTunings> hundredths_{};
};

/// A console command of a map that sets a tuning: `tune NAME VALUE` (zone 0) or
/// `tune_zone ZONE NAME VALUE`.
struct TuneCommand {
    std::uint8_t zone = 0;
    std::string name;
    double value = 0;

    friend bool operator==(const TuneCommand&, const TuneCommand&) = default;
};

/// Returns the tuning commands among a map's settings, in order.
[[nodiscard]] std::vector<TuneCommand> tune_commands(std::span<const std::string> settings);

/// Returns the tunings of a zone of the map: the defaults, changed by the commands for this zone.
/// Unknown names are ignored.
[[nodiscard]] Tunings tunings_of(std::span<const TuneCommand> commands, std::uint8_t zone);

/// Weapons with projectiles, with their numbers in snapshots.
enum class FlyingWeapon : std::uint8_t { gun = 1, shotgun = 2, grenade = 3 };

/// The position of a projectile some time after its start, if there is no wall.
///
/// Units:   seconds; `direction` is that of the snapshot's item divided by its factor, usually a unit
///          vector.
/// Source:  CalcPos of the reference.
[[nodiscard]] WorldVec projectile_at(WorldVec start, WorldVec direction, FlyingWeapon weapon,
                                     double seconds, const Tunings& tunings = {});

/// The longest time that a projectile flies. Units: seconds.
[[nodiscard]] double projectile_lifetime(FlyingWeapon weapon, const Tunings& tunings = {});

} // namespace tw::map::test
