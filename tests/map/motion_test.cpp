#include "map/map.h"
#include "tests/map/map_builder.h"
#include "tests/map/motion.h"

#include <limits>
#include <string>
#include <vector>

#include <doctest/doctest.h>

namespace tw::map::test {
namespace {

PhysicsLayers one_wall() {
    MapBuilder builder{10, 10};
    for (int y = 0; y < 10; ++y) {
        builder.set_game(5, y, kTileNohook);
    }
    const std::uint8_t freeze[] = {9};
    const std::uint8_t tele[] = {3, 26};
    builder.set(Layer::front, 1, 1, freeze).set(Layer::tele, 1, 1, tele);
    const auto map = Map::parse(builder.build());
    REQUIRE(map.has_value());
    auto physics = map->physics();
    REQUIRE(physics.has_value());
    return std::move(*physics);
}

} // namespace

TEST_CASE("a line stops at the first wall and knows the point before it") {
    const PhysicsLayers physics = one_wall();
    const auto hit = intersect_line(physics, {100, 50}, {200, 50});
    REQUIRE(hit.has_value());
    CHECK(hit->tile == TilePos{5, 1});
    CHECK(hit->index == kTileNohook);
    CHECK(hit->point.x == doctest::Approx(160).epsilon(0.01));
    CHECK(hit->before.x < 159.5);
    CHECK(hit->point.x >= 159.5);
}

TEST_CASE("a line without a wall, without a length or without an end hits nothing") {
    const PhysicsLayers physics = one_wall();
    constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
    constexpr double kInf = std::numeric_limits<double>::infinity();
    CHECK_FALSE(intersect_line(physics, {10, 50}, {100, 50}).has_value());
    CHECK_FALSE(intersect_line(physics, {10, 50}, {10, 50}).has_value());
    CHECK_FALSE(intersect_line(physics, {-1e9, 50}, {1e9, 50}).has_value());
    CHECK_FALSE(intersect_line(physics, {kNan, 50}, {1, 50}).has_value());
    CHECK_FALSE(intersect_line(physics, {0, 50}, {kInf, 50}).has_value());
    CHECK(intersect_line(physics, {170, 50}, {170, 50}).has_value());
}

TEST_CASE("a place has a tile of a name if any layer has") {
    const Location found = one_wall().locate(WorldPos{40, 40});
    CHECK(has_tile(found, "freeze"));
    CHECK(has_tile(found, "telein"));
    CHECK(has_tile(found, "air"));
    CHECK_FALSE(has_tile(found, "death"));
}

TEST_CASE("the corners of a tee never overflow") {
    CHECK(tee_corners({100, 50})[3] == WorldPos{114, 64});
    constexpr int kMost = std::numeric_limits<int>::max();
    CHECK(tee_corners({kMost, -kMost - 1})[1] == WorldPos{kMost, -kMost - 1});
}

TEST_CASE("a shot flies as the reference's formula says") {
    struct Row {
        FlyingWeapon weapon;
        double seconds;
        WorldVec at;
    };

    const Row rows[] = {
        {FlyingWeapon::gun, 0, {100, 50}},
        {FlyingWeapon::gun, 0.02, {144, 50 + 1.25 / 10000 * 44 * 44}},
        {FlyingWeapon::shotgun, 0.1, {375, 50 + 1.25 / 10000 * 275 * 275}},
        {FlyingWeapon::grenade, 1, {1100, 50 + 7.0 / 10000 * 1000 * 1000}},
    };
    for (const auto& row : rows) {
        const WorldVec at = projectile_at({100, 50}, {1, 0}, row.weapon, row.seconds);
        CHECK(at.x == doctest::Approx(row.at.x));
        CHECK(at.y == doctest::Approx(row.at.y));
    }
    CHECK(projectile_lifetime(FlyingWeapon::shotgun) == doctest::Approx(0.2));
}

TEST_CASE("a map's settings tune its zones, and only whole tune commands do") {
    const std::vector<std::string> settings = {
        "tune gravity 0.25", "tune_zone 2 gun_speed 100", "  tune   gun_speed\t50 ", "tune gravity",
        "tune gravity zero", "tune_zone 256 gravity 1",   "tune_zone -1 gravity 1",  "sv_gravity 1",
        "tune gravity 1 2",  "tune unknown_thing 5",      "tune gravity nan",        ""};
    const auto commands = tune_commands(settings);
    CHECK(commands == std::vector<TuneCommand>{{0, "gravity", 0.25},
                                               {2, "gun_speed", 100},
                                               {0, "gun_speed", 50},
                                               {0, "unknown_thing", 5}});
    CHECK(tunings_of(commands, 0).value(Tuning::gravity) == doctest::Approx(0.25));
    CHECK(tunings_of(commands, 0).value(Tuning::gun_speed) == doctest::Approx(50));
    CHECK(tunings_of(commands, 2).value(Tuning::gun_speed) == doctest::Approx(100));
    CHECK(tunings_of(commands, 2).value(Tuning::gravity) == doctest::Approx(0.5));
    CHECK(tunings_of(commands, 7) == Tunings{});
}

TEST_CASE("tunings follow the message, however short or long it is") {
    Tunings tunings;
    const std::vector<std::int32_t> longer(40, 700);
    tunings.apply_message(std::span{longer}.first(1));
    CHECK(tunings.value(Tuning::ground_control_speed) == doctest::Approx(7));
    CHECK(tunings.value(Tuning::ground_control_accel) == doctest::Approx(2));
    tunings.apply_message(longer);
    CHECK(tunings.value(Tuning::player_hooking) == doctest::Approx(7));
    tunings.set(Tuning::gravity, 1e300);
    CHECK(tunings.value(Tuning::gravity) > 20000000);
    for (std::size_t i = 0; i < kTunings; ++i) {
        const auto tuning = static_cast<Tuning>(i);
        CHECK(find_tuning(tuning_name(tuning)) == tuning);
    }
    CHECK_FALSE(find_tuning("").has_value());
}

} // namespace tw::map::test
