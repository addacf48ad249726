#include "snapshot/names.h"

#include <array>

namespace tw::snapshot::names {

namespace {

constexpr std::array kWeapon{
    NamedValue{0, "hammer"},  NamedValue{1, "gun"},   NamedValue{2, "shotgun"},
    NamedValue{3, "grenade"}, NamedValue{4, "laser"}, NamedValue{5, "ninja"},
};

/// The weapon that a tee holds. From version 19.0 on, DDNet servers send -1 for a tee without a
/// weapon.
constexpr std::array kHeldWeapon{
    NamedValue{-1, "none"},   NamedValue{0, "hammer"},  NamedValue{1, "gun"},
    NamedValue{2, "shotgun"}, NamedValue{3, "grenade"}, NamedValue{4, "laser"},
    NamedValue{5, "ninja"},
};

constexpr std::array kAmmo{NamedValue{-1, "unlimited"}};

constexpr std::array kWeaponSpecial{
    NamedValue{-3, "game"},
    NamedValue{-2, "self"},
    NamedValue{-1, "world"},
};

constexpr std::array kPowerup{
    NamedValue{0, "health"},      NamedValue{1, "armor"},         NamedValue{2, "weapon"},
    NamedValue{3, "ninja"},       NamedValue{4, "armor_shotgun"}, NamedValue{5, "armor_grenade"},
    NamedValue{6, "armor_ninja"}, NamedValue{7, "armor_laser"},   NamedValue{8, "freeze"},
};

constexpr std::array kEmote{
    NamedValue{0, "normal"},   NamedValue{1, "pain"},  NamedValue{2, "happy"},
    NamedValue{3, "surprise"}, NamedValue{4, "angry"}, NamedValue{5, "blink"},
};

constexpr std::array kEmoticon{
    NamedValue{0, "oop"},       NamedValue{1, "exclamation"}, NamedValue{2, "hearts"},
    NamedValue{3, "drop"},      NamedValue{4, "dotdot"},      NamedValue{5, "music"},
    NamedValue{6, "sorry"},     NamedValue{7, "ghost"},       NamedValue{8, "sushi"},
    NamedValue{9, "splattee"},  NamedValue{10, "deviltee"},   NamedValue{11, "zomg"},
    NamedValue{12, "zzz"},      NamedValue{13, "wtf"},        NamedValue{14, "eyes"},
    NamedValue{15, "question"},
};

constexpr std::array kHookState{
    NamedValue{-1, "retracted"}, NamedValue{0, "idle"},        NamedValue{1, "retract_start"},
    NamedValue{2, "retract_2"},  NamedValue{3, "retract_end"}, NamedValue{4, "flying"},
    NamedValue{5, "grabbed"},
};

constexpr std::array kTeam{
    NamedValue{-2, "all"}, NamedValue{-1, "spectators"},  NamedValue{0, "red"},
    NamedValue{1, "blue"}, NamedValue{2, "whisper_send"}, NamedValue{3, "whisper_recv"},
};

constexpr std::array kChatTeam{
    NamedValue{0, "all"},
    NamedValue{1, "team"},
    NamedValue{2, "whisper_sent"},
    NamedValue{3, "whisper_received"},
};

constexpr std::array kAuthed{
    NamedValue{0, "no"},
    NamedValue{1, "helper"},
    NamedValue{2, "mod"},
    NamedValue{3, "admin"},
};

constexpr std::array kSound{
    NamedValue{0, "gun_fire"},
    NamedValue{1, "shotgun_fire"},
    NamedValue{2, "grenade_fire"},
    NamedValue{3, "hammer_fire"},
    NamedValue{4, "hammer_hit"},
    NamedValue{5, "ninja_fire"},
    NamedValue{6, "grenade_explode"},
    NamedValue{7, "ninja_hit"},
    NamedValue{8, "laser_fire"},
    NamedValue{9, "laser_bounce"},
    NamedValue{10, "weapon_switch"},
    NamedValue{11, "player_pain_short"},
    NamedValue{12, "player_pain_long"},
    NamedValue{13, "body_land"},
    NamedValue{14, "player_airjump"},
    NamedValue{15, "player_jump"},
    NamedValue{16, "player_die"},
    NamedValue{17, "player_spawn"},
    NamedValue{18, "player_skid"},
    NamedValue{19, "tee_cry"},
    NamedValue{20, "hook_loop"},
    NamedValue{21, "hook_attach_ground"},
    NamedValue{22, "hook_attach_player"},
    NamedValue{23, "hook_noattach"},
    NamedValue{24, "pickup_health"},
    NamedValue{25, "pickup_armor"},
    NamedValue{26, "pickup_grenade"},
    NamedValue{27, "pickup_shotgun"},
    NamedValue{28, "pickup_ninja"},
    NamedValue{29, "weapon_spawn"},
    NamedValue{30, "weapon_noammo"},
    NamedValue{31, "hit"},
    NamedValue{32, "chat_server"},
    NamedValue{33, "chat_client"},
    NamedValue{34, "chat_highlight"},
    NamedValue{35, "ctf_drop"},
    NamedValue{36, "ctf_return"},
    NamedValue{37, "ctf_grab_pl"},
    NamedValue{38, "ctf_grab_en"},
    NamedValue{39, "ctf_capture"},
    NamedValue{40, "menu"},
};

constexpr std::array kEntityclass{
    NamedValue{0, "projectile"},     NamedValue{1, "door"},           NamedValue{2, "dragger_weak"},
    NamedValue{3, "dragger_normal"}, NamedValue{4, "dragger_strong"}, NamedValue{5, "gun_normal"},
    NamedValue{6, "gun_explosive"},  NamedValue{7, "gun_freeze"},     NamedValue{8, "gun_unfreeze"},
    NamedValue{9, "light"},          NamedValue{10, "pickup"},
};

constexpr std::array kLasertype{
    NamedValue{0, "rifle"},  NamedValue{1, "shotgun"}, NamedValue{2, "door"},
    NamedValue{3, "freeze"}, NamedValue{4, "dragger"}, NamedValue{5, "gun"},
    NamedValue{6, "plasma"},
};

constexpr std::array kLaserdraggertype{
    NamedValue{0, "weak"},      NamedValue{1, "weak_nw"}, NamedValue{2, "normal"},
    NamedValue{3, "normal_nw"}, NamedValue{4, "strong"},  NamedValue{5, "strong_nw"},
};

constexpr std::array kLaserguntype{
    NamedValue{0, "unfreeze"},
    NamedValue{1, "explosive"},
    NamedValue{2, "freeze"},
    NamedValue{3, "expfreeze"},
};

constexpr std::array kFlagCarrierSpecial{
    NamedValue{-3, "missing"},
    NamedValue{-2, "at_stand"},
    NamedValue{-1, "taken"},
};

constexpr std::array kSpectatorSpecial{
    NamedValue{-1, "freeview"},
    NamedValue{-2, "follow"},
};

constexpr std::array kSavestate{
    NamedValue{0, "pending"}, NamedValue{1, "done"},  NamedValue{2, "fallbackfile"},
    NamedValue{3, "warning"}, NamedValue{4, "error"},
};

constexpr std::array kKillWeapon{
    NamedValue{-3, "game"},   NamedValue{-2, "self"}, NamedValue{-1, "world"},
    NamedValue{0, "hammer"},  NamedValue{1, "gun"},   NamedValue{2, "shotgun"},
    NamedValue{3, "grenade"}, NamedValue{4, "laser"}, NamedValue{5, "ninja"},
};

constexpr std::array kPlayerflag{
    NamedValue{0x1, "playing"},
    NamedValue{0x2, "in_menu"},
    NamedValue{0x4, "chatting"},
    NamedValue{0x8, "scoreboard"},
    NamedValue{0x10, "aim"},
    NamedValue{0x20, "spec_cam"},
    NamedValue{0x40, "input_absolute"},
    NamedValue{0x80, "input_manual"},
};

constexpr std::array kGameflag{
    NamedValue{0x1, "teams"},
    NamedValue{0x2, "flags"},
};

constexpr std::array kGamestateflag{
    NamedValue{0x1, "gameover"},
    NamedValue{0x2, "suddendeath"},
    NamedValue{0x4, "paused"},
    NamedValue{0x8, "racetime"},
};

constexpr std::array kCharacterflag{
    NamedValue{0x1, "solo"},
    NamedValue{0x2, "jetpack"},
    NamedValue{0x4, "collision_disabled"},
    NamedValue{0x8, "endless_hook"},
    NamedValue{0x10, "endless_jump"},
    NamedValue{0x20, "super"},
    NamedValue{0x40, "hammer_hit_disabled"},
    NamedValue{0x80, "shotgun_hit_disabled"},
    NamedValue{0x100, "grenade_hit_disabled"},
    NamedValue{0x200, "laser_hit_disabled"},
    NamedValue{0x400, "hook_hit_disabled"},
    NamedValue{0x800, "telegun_gun"},
    NamedValue{0x1000, "telegun_grenade"},
    NamedValue{0x2000, "telegun_laser"},
    NamedValue{0x4000, "weapon_hammer"},
    NamedValue{0x8000, "weapon_gun"},
    NamedValue{0x10000, "weapon_shotgun"},
    NamedValue{0x20000, "weapon_grenade"},
    NamedValue{0x40000, "weapon_laser"},
    NamedValue{0x80000, "weapon_ninja"},
    NamedValue{0x100000, "movements_disabled"},
    NamedValue{0x200000, "in_freeze"},
    NamedValue{0x400000, "practice_mode"},
    NamedValue{0x800000, "lock_mode"},
    NamedValue{0x1000000, "team0_mode"},
    NamedValue{0x2000000, "invincible"},
};

constexpr std::array kExplayerflag{
    NamedValue{0x1, "afk"},
    NamedValue{0x2, "paused"},
    NamedValue{0x4, "spec"},
};

constexpr std::array kGameinfoflag{
    NamedValue{0x1, "timescore"},
    NamedValue{0x2, "gametype_race"},
    NamedValue{0x4, "gametype_fastcap"},
    NamedValue{0x8, "gametype_fng"},
    NamedValue{0x10, "gametype_ddrace"},
    NamedValue{0x20, "gametype_ddnet"},
    NamedValue{0x40, "gametype_block_worlds"},
    NamedValue{0x80, "gametype_vanilla"},
    NamedValue{0x100, "gametype_plus"},
    NamedValue{0x200, "flag_starts_race"},
    NamedValue{0x400, "race"},
    NamedValue{0x800, "unlimited_ammo"},
    NamedValue{0x1000, "ddrace_record_message"},
    NamedValue{0x2000, "race_record_message"},
    NamedValue{0x4000, "allow_eye_wheel"},
    NamedValue{0x8000, "allow_hook_coll"},
    NamedValue{0x10000, "allow_zoom"},
    NamedValue{0x20000, "bug_ddrace_ghost"},
    NamedValue{0x40000, "bug_ddrace_input"},
    NamedValue{0x80000, "bug_fng_laser_range"},
    NamedValue{0x100000, "bug_vanilla_bounce"},
    NamedValue{0x200000, "predict_fng"},
    NamedValue{0x400000, "predict_ddrace"},
    NamedValue{0x800000, "predict_ddrace_tiles"},
    NamedValue{0x1000000, "predict_vanilla"},
    NamedValue{0x2000000, "entities_ddnet"},
    NamedValue{0x4000000, "entities_ddrace"},
    NamedValue{0x8000000, "entities_race"},
    NamedValue{0x10000000, "entities_fng"},
    NamedValue{0x20000000, "entities_vanilla"},
    NamedValue{0x40000000, "dont_mask_entities"},
    NamedValue{0x80000000, "entities_bw"},
};

constexpr std::array kGameinfoflag2{
    NamedValue{0x1, "allow_x_skins"},
    NamedValue{0x2, "gametype_city"},
    NamedValue{0x4, "gametype_fddrace"},
    NamedValue{0x8, "entities_fddrace"},
    NamedValue{0x10, "hud_health_armor"},
    NamedValue{0x20, "hud_ammo"},
    NamedValue{0x40, "hud_ddrace"},
    NamedValue{0x80, "no_weak_hook"},
    NamedValue{0x100, "no_skin_change_for_frozen"},
    NamedValue{0x200, "ddrace_team"},
    NamedValue{0x400, "predict_events"},
    NamedValue{0x800, "supports_128_teams"},
};

constexpr std::array kProjectileflag{
    NamedValue{0x1, "bounce_horizontal"}, NamedValue{0x2, "bounce_vertical"},
    NamedValue{0x4, "explosive"},         NamedValue{0x8, "freeze"},
    NamedValue{0x10, "normalize_vel"},
};

constexpr std::array kLegacyprojectileflag{
    NamedValue{0x1, "clientid_bit0"},       NamedValue{0x2, "clientid_bit1"},
    NamedValue{0x4, "clientid_bit2"},       NamedValue{0x8, "clientid_bit3"},
    NamedValue{0x10, "clientid_bit4"},      NamedValue{0x20, "clientid_bit5"},
    NamedValue{0x40, "clientid_bit6"},      NamedValue{0x80, "clientid_bit7"},
    NamedValue{0x100, "no_owner"},          NamedValue{0x200, "is_ddnet"},
    NamedValue{0x400, "bounce_horizontal"}, NamedValue{0x800, "bounce_vertical"},
    NamedValue{0x1000, "explosive"},        NamedValue{0x2000, "freeze"},
};

constexpr std::array kLaserflag{
    NamedValue{0x1, "no_predict"},
};

constexpr std::array kPickupflag{
    NamedValue{0x1, "xflip"},
    NamedValue{0x2, "yflip"},
    NamedValue{0x4, "rotate"},
    NamedValue{0x8, "no_predict"},
};

constexpr std::array kServercapflag{
    NamedValue{0x1, "ddnet"},         NamedValue{0x2, "chattimeoutcode"},
    NamedValue{0x4, "anyplayerflag"}, NamedValue{0x8, "pingex"},
    NamedValue{0x10, "allowdummy"},   NamedValue{0x20, "syncweaponinput"},
};

constexpr std::array kRcontypeflag{
    NamedValue{0x1, "username_required"},
};

} // namespace

constexpr NameTable weapon{"weapon", false, kWeapon};
constexpr NameTable held_weapon{"weapon", false, kHeldWeapon};
constexpr NameTable ammo{"ammo", false, kAmmo};
constexpr NameTable weapon_special{"weapon_special", false, kWeaponSpecial};
constexpr NameTable powerup{"powerup", false, kPowerup};
constexpr NameTable emote{"emote", false, kEmote};
constexpr NameTable emoticon{"emoticon", false, kEmoticon};
constexpr NameTable hook_state{"hook_state", false, kHookState};
constexpr NameTable team{"team", false, kTeam};
constexpr NameTable chat_team{"chat_team", false, kChatTeam};
constexpr NameTable authed{"authed", false, kAuthed};
constexpr NameTable sound{"sound", false, kSound};
constexpr NameTable entityclass{"entityclass", false, kEntityclass};
constexpr NameTable lasertype{"lasertype", false, kLasertype};
constexpr NameTable laserdraggertype{"laserdraggertype", false, kLaserdraggertype};
constexpr NameTable laserguntype{"laserguntype", false, kLaserguntype};
constexpr NameTable flag_carrier_special{"flag_carrier_special", false, kFlagCarrierSpecial};
constexpr NameTable spectator_special{"spectator_special", false, kSpectatorSpecial};
constexpr NameTable savestate{"savestate", false, kSavestate};
constexpr NameTable kill_weapon{"kill_weapon", false, kKillWeapon};

constexpr NameTable playerflag{"playerflag", true, kPlayerflag};
constexpr NameTable gameflag{"gameflag", true, kGameflag};
constexpr NameTable gamestateflag{"gamestateflag", true, kGamestateflag};
constexpr NameTable characterflag{"characterflag", true, kCharacterflag};
constexpr NameTable explayerflag{"explayerflag", true, kExplayerflag};
constexpr NameTable gameinfoflag{"gameinfoflag", true, kGameinfoflag};
constexpr NameTable gameinfoflag2{"gameinfoflag2", true, kGameinfoflag2};
constexpr NameTable projectileflag{"projectileflag", true, kProjectileflag};
constexpr NameTable legacyprojectileflag{"legacyprojectileflag", true, kLegacyprojectileflag};
constexpr NameTable laserflag{"laserflag", true, kLaserflag};
constexpr NameTable pickupflag{"pickupflag", true, kPickupflag};
constexpr NameTable servercapflag{"servercapflag", true, kServercapflag};
constexpr NameTable rcontypeflag{"rcontypeflag", true, kRcontypeflag};

} // namespace tw::snapshot::names

namespace tw::snapshot::names::seven {

namespace {

constexpr std::array kPickup{
    NamedValue{0, "health"},  NamedValue{1, "armor"},  NamedValue{2, "grenade"},
    NamedValue{3, "shotgun"}, NamedValue{4, "laser"},  NamedValue{5, "ninja"},
    NamedValue{6, "gun"},     NamedValue{7, "hammer"},
};

constexpr std::array kVote{
    NamedValue{0, "unknown"},    NamedValue{1, "start_op"},  NamedValue{2, "start_kick"},
    NamedValue{3, "start_spec"}, NamedValue{4, "end_abort"}, NamedValue{5, "end_pass"},
    NamedValue{6, "end_fail"},
};

constexpr std::array kChat{
    NamedValue{0, "none"},
    NamedValue{1, "all"},
    NamedValue{2, "team"},
    NamedValue{3, "whisper"},
};

constexpr std::array kGamemsg{
    NamedValue{0, "team_swap"},    NamedValue{1, "spec_invalidid"},
    NamedValue{2, "team_shuffle"}, NamedValue{3, "team_balance"},
    NamedValue{4, "ctf_drop"},     NamedValue{5, "ctf_return"},
    NamedValue{6, "team_all"},     NamedValue{7, "team_balance_victim"},
    NamedValue{8, "ctf_grab"},     NamedValue{9, "ctf_capture"},
    NamedValue{10, "game_paused"},
};

constexpr std::array kSpecMode{
    NamedValue{0, "freeview"},
    NamedValue{1, "player"},
    NamedValue{2, "flag_red"},
    NamedValue{3, "flag_blue"},
};

constexpr std::array kPlayerflag{
    NamedValue{0x1, "admin"}, NamedValue{0x2, "chatting"}, NamedValue{0x4, "scoreboard"},
    NamedValue{0x8, "ready"}, NamedValue{0x10, "dead"},    NamedValue{0x20, "watching"},
    NamedValue{0x40, "bot"},  NamedValue{0x80, "aim"},
};

constexpr std::array kGameflag{
    NamedValue{0x1, "teams"},
    NamedValue{0x2, "flags"},
    NamedValue{0x4, "survival"},
    NamedValue{0x8, "race"},
};

constexpr std::array kGamestateflag{
    NamedValue{0x1, "warmup"},   NamedValue{0x2, "suddendeath"}, NamedValue{0x4, "roundover"},
    NamedValue{0x8, "gameover"}, NamedValue{0x10, "paused"},     NamedValue{0x20, "startcountdown"},
};

constexpr std::array kCoreeventflag{
    NamedValue{0x1, "ground_jump"},        NamedValue{0x2, "air_jump"},
    NamedValue{0x4, "hook_attach_player"}, NamedValue{0x8, "hook_attach_ground"},
    NamedValue{0x10, "hook_hit_nohook"},
};

constexpr std::array kRaceflag{
    NamedValue{0x1, "hide_killmsg"},
    NamedValue{0x2, "finishmsg_as_chat"},
    NamedValue{0x4, "keep_wanted_weapon"},
};

constexpr std::array kServerinfoflag{
    NamedValue{0x1, "password"},
    NamedValue{0x2, "timescore"},
};

} // namespace

constexpr NameTable pickup{"pickup", false, kPickup};
constexpr NameTable vote{"vote", false, kVote};
constexpr NameTable chat{"chat", false, kChat};
constexpr NameTable gamemsg{"gamemsg", false, kGamemsg};
constexpr NameTable spec_mode{"spec_mode", false, kSpecMode};

constexpr NameTable playerflag{"playerflag", true, kPlayerflag};
constexpr NameTable gameflag{"gameflag", true, kGameflag};
constexpr NameTable gamestateflag{"gamestateflag", true, kGamestateflag};
constexpr NameTable coreeventflag{"coreeventflag", true, kCoreeventflag};
constexpr NameTable raceflag{"raceflag", true, kRaceflag};
constexpr NameTable serverinfoflag{"serverinfoflag", true, kServerinfoflag};

} // namespace tw::snapshot::names::seven
