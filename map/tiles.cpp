#include "map/tiles.h"

#include <algorithm>
#include <array>
#include <cstddef>

namespace tw::map {
namespace {

constexpr unsigned kGame = 1U << 0U;
constexpr unsigned kFront = 1U << 1U;
constexpr unsigned kTele = 1U << 2U;
constexpr unsigned kSpeedup = 1U << 3U;
constexpr unsigned kSwitch = 1U << 4U;
constexpr unsigned kTune = 1U << 5U;
constexpr unsigned kGameAndFront = kGame | kFront;
constexpr unsigned kAllLayerBits = 0x3fU;

/// The names of consecutive tile ids from `first` on, separated by spaces. They apply in the layers
/// whose bits are set in `layers`.
struct TileNameRange {
    std::size_t first;
    unsigned layers;
    std::string_view names;
};

constexpr TileNameRange kTileNameRanges[] = {
    {0, kAllLayerBits, "air"},
    {1, kGame, "solid"},
    {2, kGameAndFront, "death"},
    {3, kGame, "nohook"},
    {4, kGameAndFront, "nolaser through_cut through"},
    {7, kSwitch, "jump"},
    {9, kGameAndFront | kSwitch, "freeze"},
    {10, kTele, "teleinevil"},
    {11, kGameAndFront, "unfreeze"},
    {12, kGameAndFront | kSwitch, "dfreeze dunfreeze"},
    {14, kTele, "teleinweapon teleinhook"},
    {16, kGameAndFront, "walljump ehook_enable ehook_disable"},
    {19, kGameAndFront | kSwitch, "hit_enable hit_disable"},
    {21, kGameAndFront, "solo_enable solo_disable"},
    {22, kSwitch, "switchtimedopen switchtimedclose switchopen switchclose"},
    {26, kTele, "telein teleout"},
    {28, kSpeedup, "speed_boost_old speed_boost"},
    {29, kTele, "telecheck telecheckout telecheckin"},
    {32, kGameAndFront,
     "refill_jumps start finish time_checkpoint_1 time_checkpoint_2 time_checkpoint_3 "
     "time_checkpoint_4 time_checkpoint_5 time_checkpoint_6 time_checkpoint_7 "
     "time_checkpoint_8 time_checkpoint_9 time_checkpoint_10 time_checkpoint_11 "
     "time_checkpoint_12 time_checkpoint_13 time_checkpoint_14 time_checkpoint_15 "
     "time_checkpoint_16 time_checkpoint_17 time_checkpoint_18 time_checkpoint_19 "
     "time_checkpoint_20 time_checkpoint_21 time_checkpoint_22 time_checkpoint_23 "
     "time_checkpoint_24 time_checkpoint_25 stop stops stopa"},
    {63, kTele, "telecheckinevil"},
    {64, kGameAndFront, "cp cp_f through_all through_dir"},
    {68, kTune, "tune"},
    {71, kGameAndFront, "oldlaser npc ehook nohit nph unlock_team"},
    {79, kSwitch, "add_time"},
    {88, kGameAndFront, "npc_disable unlimited_jumps_disable jetpack_disable nph_disable"},
    {95, kSwitch, "subtract_time"},
    {96, kGameAndFront, "tele_gun_enable tele_gun_disable"},
    {98, kFront | kSwitch, "allow_tele_gun allow_blue_tele_gun"},
    {104, kGameAndFront, "npc_enable unlimited_jumps_enable jetpack_enable nph_enable"},
    {112, kGameAndFront, "tele_grenade_enable tele_grenade_disable"},
    {128, kGameAndFront, "tele_laser_enable tele_laser_disable"},
    {140, kGameAndFront, "credits_1 credits_2 credits_3 credits_4"},
    {144, kGameAndFront | kSwitch, "lfreeze lunfreeze"},
    {156, kGameAndFront, "credits_5 credits_6 credits_7 credits_8"},
    {190, kGameAndFront,
     "entities_off_1 entities_off_2 entity_spawn entity_spawn_red entity_spawn_blue "
     "entity_flagstand_red entity_flagstand_blue"},
    {197, kGameAndFront | kSwitch,
     "entity_armor_1 entity_health_1 entity_weapon_shotgun entity_weapon_grenade "
     "entity_powerup_ninja entity_weapon_laser entity_laser_fast_ccw entity_laser_normal_ccw "
     "entity_laser_slow_ccw entity_laser_stop entity_laser_slow_cw entity_laser_normal_cw "
     "entity_laser_fast_cw entity_laser_short entity_laser_medium entity_laser_long "
     "entity_laser_c_slow entity_laser_c_normal entity_laser_c_fast entity_laser_o_slow "
     "entity_laser_o_normal entity_laser_o_fast"},
    {220, kGameAndFront | kSwitch,
     "entity_plasmae entity_plasmaf entity_plasma entity_plasmau entity_crazy_shotgun_ex "
     "entity_crazy_shotgun entity_armor_shotgun entity_armor_grenade entity_armor_ninja "
     "entity_armor_laser"},
    {233, kGameAndFront | kSwitch,
     "entity_dragger_weak entity_dragger_normal entity_dragger_strong entity_dragger_weak_nw "
     "entity_dragger_normal_nw entity_dragger_strong_nw"},
    {240, kGameAndFront | kSwitch, "entity_door"},
};

using TileNames = std::array<std::array<std::string_view, 256>, kPhysicsLayers>;

constexpr TileNames make_tile_names() {
    TileNames names;
    for (const TileNameRange& run : kTileNameRanges) {
        std::string_view left = run.names;
        for (std::size_t index = run.first; !left.empty(); ++index) {
            const std::string_view name = left.substr(0, left.find(' '));
            left.remove_prefix(std::min(left.size(), name.size() + 1));
            for (std::size_t layer = 0; layer < names.size(); ++layer) {
                if ((run.layers >> layer & 1U) != 0) {
                    names[layer][index] = name;
                }
            }
        }
    }
    return names;
}

constexpr TileNames kNames = make_tile_names();
constexpr std::array<std::string_view, kPhysicsLayers> kLayerNames = {"game",    "front",  "tele",
                                                                      "speedup", "switch", "tune"};

} // namespace

std::string_view layer_name(Layer layer) {
    return kLayerNames.at(static_cast<std::size_t>(layer));
}

std::string_view tile_name(Layer layer, std::uint8_t index) {
    return kNames.at(static_cast<std::size_t>(layer)).at(index);
}

} // namespace tw::map
