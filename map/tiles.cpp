#include "map/tiles.h"

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
constexpr unsigned kAll = 0x3fU;

struct Row {
    std::uint8_t index;
    unsigned layers;
    std::string_view name;
};

constexpr Row kRows[] = {
    {0, kAll, "air"},
    {1, kGame, "solid"},
    {2, kGame | kFront, "death"},
    {3, kGame, "nohook"},
    {4, kGame | kFront, "nolaser"},
    {5, kGame | kFront, "through_cut"},
    {6, kGame | kFront, "through"},
    {7, kSwitch, "jump"},
    {9, kGame | kFront | kSwitch, "freeze"},
    {10, kTele, "teleinevil"},
    {11, kGame | kFront, "unfreeze"},
    {12, kGame | kFront | kSwitch, "dfreeze"},
    {13, kGame | kFront | kSwitch, "dunfreeze"},
    {14, kTele, "teleinweapon"},
    {15, kTele, "teleinhook"},
    {16, kGame | kFront, "walljump"},
    {17, kGame | kFront, "ehook_enable"},
    {18, kGame | kFront, "ehook_disable"},
    {19, kGame | kFront | kSwitch, "hit_enable"},
    {20, kGame | kFront | kSwitch, "hit_disable"},
    {21, kGame | kFront, "solo_enable"},
    {22, kGame | kFront, "solo_disable"},
    {22, kSwitch, "switchtimedopen"},
    {23, kSwitch, "switchtimedclose"},
    {24, kSwitch, "switchopen"},
    {25, kSwitch, "switchclose"},
    {26, kTele, "telein"},
    {27, kTele, "teleout"},
    {28, kSpeedup, "speed_boost_old"},
    {29, kSpeedup, "speed_boost"},
    {29, kTele, "telecheck"},
    {30, kTele, "telecheckout"},
    {31, kTele, "telecheckin"},
    {32, kGame | kFront, "refill_jumps"},
    {33, kGame | kFront, "start"},
    {34, kGame | kFront, "finish"},
    {35, kGame | kFront, "time_checkpoint_1"},
    {36, kGame | kFront, "time_checkpoint_2"},
    {37, kGame | kFront, "time_checkpoint_3"},
    {38, kGame | kFront, "time_checkpoint_4"},
    {39, kGame | kFront, "time_checkpoint_5"},
    {40, kGame | kFront, "time_checkpoint_6"},
    {41, kGame | kFront, "time_checkpoint_7"},
    {42, kGame | kFront, "time_checkpoint_8"},
    {43, kGame | kFront, "time_checkpoint_9"},
    {44, kGame | kFront, "time_checkpoint_10"},
    {45, kGame | kFront, "time_checkpoint_11"},
    {46, kGame | kFront, "time_checkpoint_12"},
    {47, kGame | kFront, "time_checkpoint_13"},
    {48, kGame | kFront, "time_checkpoint_14"},
    {49, kGame | kFront, "time_checkpoint_15"},
    {50, kGame | kFront, "time_checkpoint_16"},
    {51, kGame | kFront, "time_checkpoint_17"},
    {52, kGame | kFront, "time_checkpoint_18"},
    {53, kGame | kFront, "time_checkpoint_19"},
    {54, kGame | kFront, "time_checkpoint_20"},
    {55, kGame | kFront, "time_checkpoint_21"},
    {56, kGame | kFront, "time_checkpoint_22"},
    {57, kGame | kFront, "time_checkpoint_23"},
    {58, kGame | kFront, "time_checkpoint_24"},
    {59, kGame | kFront, "time_checkpoint_25"},
    {60, kGame | kFront, "stop"},
    {61, kGame | kFront, "stops"},
    {62, kGame | kFront, "stopa"},
    {63, kTele, "telecheckinevil"},
    {64, kGame | kFront, "cp"},
    {65, kGame | kFront, "cp_f"},
    {66, kGame | kFront, "through_all"},
    {67, kGame | kFront, "through_dir"},
    {68, kTune, "tune"},
    {71, kGame | kFront, "oldlaser"},
    {72, kGame | kFront, "npc"},
    {73, kGame | kFront, "ehook"},
    {74, kGame | kFront, "nohit"},
    {75, kGame | kFront, "nph"},
    {76, kGame | kFront, "unlock_team"},
    {79, kSwitch, "add_time"},
    {88, kGame | kFront, "npc_disable"},
    {89, kGame | kFront, "unlimited_jumps_disable"},
    {90, kGame | kFront, "jetpack_disable"},
    {91, kGame | kFront, "nph_disable"},
    {95, kSwitch, "subtract_time"},
    {96, kGame | kFront, "tele_gun_enable"},
    {97, kGame | kFront, "tele_gun_disable"},
    {98, kFront | kSwitch, "allow_tele_gun"},
    {99, kFront | kSwitch, "allow_blue_tele_gun"},
    {104, kGame | kFront, "npc_enable"},
    {105, kGame | kFront, "unlimited_jumps_enable"},
    {106, kGame | kFront, "jetpack_enable"},
    {107, kGame | kFront, "nph_enable"},
    {112, kGame | kFront, "tele_grenade_enable"},
    {113, kGame | kFront, "tele_grenade_disable"},
    {128, kGame | kFront, "tele_laser_enable"},
    {129, kGame | kFront, "tele_laser_disable"},
    {140, kGame | kFront, "credits_1"},
    {141, kGame | kFront, "credits_2"},
    {142, kGame | kFront, "credits_3"},
    {143, kGame | kFront, "credits_4"},
    {144, kGame | kFront | kSwitch, "lfreeze"},
    {145, kGame | kFront | kSwitch, "lunfreeze"},
    {156, kGame | kFront, "credits_5"},
    {157, kGame | kFront, "credits_6"},
    {158, kGame | kFront, "credits_7"},
    {159, kGame | kFront, "credits_8"},
    {190, kGame | kFront, "entities_off_1"},
    {191, kGame | kFront, "entities_off_2"},
    {192, kGame | kFront, "entity_spawn"},
    {193, kGame | kFront, "entity_spawn_red"},
    {194, kGame | kFront, "entity_spawn_blue"},
    {195, kGame | kFront, "entity_flagstand_red"},
    {196, kGame | kFront, "entity_flagstand_blue"},
    {197, kGame | kFront | kSwitch, "entity_armor_1"},
    {198, kGame | kFront | kSwitch, "entity_health_1"},
    {199, kGame | kFront | kSwitch, "entity_weapon_shotgun"},
    {200, kGame | kFront | kSwitch, "entity_weapon_grenade"},
    {201, kGame | kFront | kSwitch, "entity_powerup_ninja"},
    {202, kGame | kFront | kSwitch, "entity_weapon_laser"},
    {203, kGame | kFront | kSwitch, "entity_laser_fast_ccw"},
    {204, kGame | kFront | kSwitch, "entity_laser_normal_ccw"},
    {205, kGame | kFront | kSwitch, "entity_laser_slow_ccw"},
    {206, kGame | kFront | kSwitch, "entity_laser_stop"},
    {207, kGame | kFront | kSwitch, "entity_laser_slow_cw"},
    {208, kGame | kFront | kSwitch, "entity_laser_normal_cw"},
    {209, kGame | kFront | kSwitch, "entity_laser_fast_cw"},
    {210, kGame | kFront | kSwitch, "entity_laser_short"},
    {211, kGame | kFront | kSwitch, "entity_laser_medium"},
    {212, kGame | kFront | kSwitch, "entity_laser_long"},
    {213, kGame | kFront | kSwitch, "entity_laser_c_slow"},
    {214, kGame | kFront | kSwitch, "entity_laser_c_normal"},
    {215, kGame | kFront | kSwitch, "entity_laser_c_fast"},
    {216, kGame | kFront | kSwitch, "entity_laser_o_slow"},
    {217, kGame | kFront | kSwitch, "entity_laser_o_normal"},
    {218, kGame | kFront | kSwitch, "entity_laser_o_fast"},
    {220, kGame | kFront | kSwitch, "entity_plasmae"},
    {221, kGame | kFront | kSwitch, "entity_plasmaf"},
    {222, kGame | kFront | kSwitch, "entity_plasma"},
    {223, kGame | kFront | kSwitch, "entity_plasmau"},
    {224, kGame | kFront | kSwitch, "entity_crazy_shotgun_ex"},
    {225, kGame | kFront | kSwitch, "entity_crazy_shotgun"},
    {226, kGame | kFront | kSwitch, "entity_armor_shotgun"},
    {227, kGame | kFront | kSwitch, "entity_armor_grenade"},
    {228, kGame | kFront | kSwitch, "entity_armor_ninja"},
    {229, kGame | kFront | kSwitch, "entity_armor_laser"},
    {233, kGame | kFront | kSwitch, "entity_dragger_weak"},
    {234, kGame | kFront | kSwitch, "entity_dragger_normal"},
    {235, kGame | kFront | kSwitch, "entity_dragger_strong"},
    {236, kGame | kFront | kSwitch, "entity_dragger_weak_nw"},
    {237, kGame | kFront | kSwitch, "entity_dragger_normal_nw"},
    {238, kGame | kFront | kSwitch, "entity_dragger_strong_nw"},
    {240, kGame | kFront | kSwitch, "entity_door"},
};

using Names = std::array<std::array<std::string_view, 256>, kPhysicsLayers>;

constexpr Names make_names() {
    Names names;
    for (const Row& row : kRows) {
        for (std::size_t layer = 0; layer < names.size(); ++layer) {
            if ((row.layers >> layer & 1U) != 0) {
                names[layer][row.index] = row.name;
            }
        }
    }
    return names;
}

constexpr Names kNames = make_names();
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
