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

constexpr std::array kRows = {
    Row{0, kAll, "air"},
    Row{1, kGame, "solid"},
    Row{2, kGame | kFront, "death"},
    Row{3, kGame, "nohook"},
    Row{4, kGame | kFront, "nolaser"},
    Row{5, kGame | kFront, "through_cut"},
    Row{6, kGame | kFront, "through"},
    Row{7, kSwitch, "jump"},
    Row{9, kGame | kFront | kSwitch, "freeze"},
    Row{10, kTele, "teleinevil"},
    Row{11, kGame | kFront, "unfreeze"},
    Row{12, kGame | kFront | kSwitch, "dfreeze"},
    Row{13, kGame | kFront | kSwitch, "dunfreeze"},
    Row{14, kTele, "teleinweapon"},
    Row{15, kTele, "teleinhook"},
    Row{16, kGame | kFront, "walljump"},
    Row{17, kGame | kFront, "ehook_enable"},
    Row{18, kGame | kFront, "ehook_disable"},
    Row{19, kGame | kFront | kSwitch, "hit_enable"},
    Row{20, kGame | kFront | kSwitch, "hit_disable"},
    Row{21, kGame | kFront, "solo_enable"},
    Row{22, kGame | kFront, "solo_disable"},
    Row{22, kSwitch, "switchtimedopen"},
    Row{23, kSwitch, "switchtimedclose"},
    Row{24, kSwitch, "switchopen"},
    Row{25, kSwitch, "switchclose"},
    Row{26, kTele, "telein"},
    Row{27, kTele, "teleout"},
    Row{28, kSpeedup, "speed_boost_old"},
    Row{29, kSpeedup, "speed_boost"},
    Row{29, kTele, "telecheck"},
    Row{30, kTele, "telecheckout"},
    Row{31, kTele, "telecheckin"},
    Row{32, kGame | kFront, "refill_jumps"},
    Row{33, kGame | kFront, "start"},
    Row{34, kGame | kFront, "finish"},
    Row{35, kGame | kFront, "time_checkpoint_1"},
    Row{36, kGame | kFront, "time_checkpoint_2"},
    Row{37, kGame | kFront, "time_checkpoint_3"},
    Row{38, kGame | kFront, "time_checkpoint_4"},
    Row{39, kGame | kFront, "time_checkpoint_5"},
    Row{40, kGame | kFront, "time_checkpoint_6"},
    Row{41, kGame | kFront, "time_checkpoint_7"},
    Row{42, kGame | kFront, "time_checkpoint_8"},
    Row{43, kGame | kFront, "time_checkpoint_9"},
    Row{44, kGame | kFront, "time_checkpoint_10"},
    Row{45, kGame | kFront, "time_checkpoint_11"},
    Row{46, kGame | kFront, "time_checkpoint_12"},
    Row{47, kGame | kFront, "time_checkpoint_13"},
    Row{48, kGame | kFront, "time_checkpoint_14"},
    Row{49, kGame | kFront, "time_checkpoint_15"},
    Row{50, kGame | kFront, "time_checkpoint_16"},
    Row{51, kGame | kFront, "time_checkpoint_17"},
    Row{52, kGame | kFront, "time_checkpoint_18"},
    Row{53, kGame | kFront, "time_checkpoint_19"},
    Row{54, kGame | kFront, "time_checkpoint_20"},
    Row{55, kGame | kFront, "time_checkpoint_21"},
    Row{56, kGame | kFront, "time_checkpoint_22"},
    Row{57, kGame | kFront, "time_checkpoint_23"},
    Row{58, kGame | kFront, "time_checkpoint_24"},
    Row{59, kGame | kFront, "time_checkpoint_25"},
    Row{60, kGame | kFront, "stop"},
    Row{61, kGame | kFront, "stops"},
    Row{62, kGame | kFront, "stopa"},
    Row{63, kTele, "telecheckinevil"},
    Row{64, kGame | kFront, "cp"},
    Row{65, kGame | kFront, "cp_f"},
    Row{66, kGame | kFront, "through_all"},
    Row{67, kGame | kFront, "through_dir"},
    Row{68, kTune, "tune"},
    Row{71, kGame | kFront, "oldlaser"},
    Row{72, kGame | kFront, "npc"},
    Row{73, kGame | kFront, "ehook"},
    Row{74, kGame | kFront, "nohit"},
    Row{75, kGame | kFront, "nph"},
    Row{76, kGame | kFront, "unlock_team"},
    Row{79, kSwitch, "add_time"},
    Row{88, kGame | kFront, "npc_disable"},
    Row{89, kGame | kFront, "unlimited_jumps_disable"},
    Row{90, kGame | kFront, "jetpack_disable"},
    Row{91, kGame | kFront, "nph_disable"},
    Row{95, kSwitch, "subtract_time"},
    Row{96, kGame | kFront, "tele_gun_enable"},
    Row{97, kGame | kFront, "tele_gun_disable"},
    Row{98, kFront | kSwitch, "allow_tele_gun"},
    Row{99, kFront | kSwitch, "allow_blue_tele_gun"},
    Row{104, kGame | kFront, "npc_enable"},
    Row{105, kGame | kFront, "unlimited_jumps_enable"},
    Row{106, kGame | kFront, "jetpack_enable"},
    Row{107, kGame | kFront, "nph_enable"},
    Row{112, kGame | kFront, "tele_grenade_enable"},
    Row{113, kGame | kFront, "tele_grenade_disable"},
    Row{128, kGame | kFront, "tele_laser_enable"},
    Row{129, kGame | kFront, "tele_laser_disable"},
    Row{140, kGame | kFront, "credits_1"},
    Row{141, kGame | kFront, "credits_2"},
    Row{142, kGame | kFront, "credits_3"},
    Row{143, kGame | kFront, "credits_4"},
    Row{144, kGame | kFront | kSwitch, "lfreeze"},
    Row{145, kGame | kFront | kSwitch, "lunfreeze"},
    Row{156, kGame | kFront, "credits_5"},
    Row{157, kGame | kFront, "credits_6"},
    Row{158, kGame | kFront, "credits_7"},
    Row{159, kGame | kFront, "credits_8"},
    Row{190, kGame | kFront, "entities_off_1"},
    Row{191, kGame | kFront, "entities_off_2"},
    Row{192, kGame | kFront, "entity_spawn"},
    Row{193, kGame | kFront, "entity_spawn_red"},
    Row{194, kGame | kFront, "entity_spawn_blue"},
    Row{195, kGame | kFront, "entity_flagstand_red"},
    Row{196, kGame | kFront, "entity_flagstand_blue"},
    Row{197, kGame | kFront | kSwitch, "entity_armor_1"},
    Row{198, kGame | kFront | kSwitch, "entity_health_1"},
    Row{199, kGame | kFront | kSwitch, "entity_weapon_shotgun"},
    Row{200, kGame | kFront | kSwitch, "entity_weapon_grenade"},
    Row{201, kGame | kFront | kSwitch, "entity_powerup_ninja"},
    Row{202, kGame | kFront | kSwitch, "entity_weapon_laser"},
    Row{203, kGame | kFront | kSwitch, "entity_laser_fast_ccw"},
    Row{204, kGame | kFront | kSwitch, "entity_laser_normal_ccw"},
    Row{205, kGame | kFront | kSwitch, "entity_laser_slow_ccw"},
    Row{206, kGame | kFront | kSwitch, "entity_laser_stop"},
    Row{207, kGame | kFront | kSwitch, "entity_laser_slow_cw"},
    Row{208, kGame | kFront | kSwitch, "entity_laser_normal_cw"},
    Row{209, kGame | kFront | kSwitch, "entity_laser_fast_cw"},
    Row{210, kGame | kFront | kSwitch, "entity_laser_short"},
    Row{211, kGame | kFront | kSwitch, "entity_laser_medium"},
    Row{212, kGame | kFront | kSwitch, "entity_laser_long"},
    Row{213, kGame | kFront | kSwitch, "entity_laser_c_slow"},
    Row{214, kGame | kFront | kSwitch, "entity_laser_c_normal"},
    Row{215, kGame | kFront | kSwitch, "entity_laser_c_fast"},
    Row{216, kGame | kFront | kSwitch, "entity_laser_o_slow"},
    Row{217, kGame | kFront | kSwitch, "entity_laser_o_normal"},
    Row{218, kGame | kFront | kSwitch, "entity_laser_o_fast"},
    Row{220, kGame | kFront | kSwitch, "entity_plasmae"},
    Row{221, kGame | kFront | kSwitch, "entity_plasmaf"},
    Row{222, kGame | kFront | kSwitch, "entity_plasma"},
    Row{223, kGame | kFront | kSwitch, "entity_plasmau"},
    Row{224, kGame | kFront | kSwitch, "entity_crazy_shotgun_ex"},
    Row{225, kGame | kFront | kSwitch, "entity_crazy_shotgun"},
    Row{226, kGame | kFront | kSwitch, "entity_armor_shotgun"},
    Row{227, kGame | kFront | kSwitch, "entity_armor_grenade"},
    Row{228, kGame | kFront | kSwitch, "entity_armor_ninja"},
    Row{229, kGame | kFront | kSwitch, "entity_armor_laser"},
    Row{233, kGame | kFront | kSwitch, "entity_dragger_weak"},
    Row{234, kGame | kFront | kSwitch, "entity_dragger_normal"},
    Row{235, kGame | kFront | kSwitch, "entity_dragger_strong"},
    Row{236, kGame | kFront | kSwitch, "entity_dragger_weak_nw"},
    Row{237, kGame | kFront | kSwitch, "entity_dragger_normal_nw"},
    Row{238, kGame | kFront | kSwitch, "entity_dragger_strong_nw"},
    Row{240, kGame | kFront | kSwitch, "entity_door"},
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
