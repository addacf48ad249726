#include "snapshot/names.h"

#include <array>

namespace tw::snapshot::names {

namespace {

/// Names consecutive values of an enum, the lowest first.
template <std::size_t kCount>
constexpr auto values_from(std::int64_t first, const std::string_view (&names)[kCount]) {
    std::array<NamedValue, kCount> values{};
    for (std::size_t i = 0; i < kCount; ++i) {
        values[i] = {first + static_cast<std::int64_t>(i), names[i]};
    }
    return values;
}

/// Names the bits of flags, the lowest first.
template <std::size_t kCount>
constexpr auto bits(const std::string_view (&names)[kCount]) {
    std::array<NamedValue, kCount> values{};
    for (std::size_t i = 0; i < kCount; ++i) {
        values[i] = {std::int64_t{1} << i, names[i]};
    }
    return values;
}

constexpr auto kWeapon = values_from(0, {"hammer", "gun", "shotgun", "grenade", "laser", "ninja"});

/// The weapon that a tee holds. From version 19.0 on, DDNet servers send -1 for a tee without a
/// weapon.
constexpr auto kHeldWeapon =
    values_from(-1, {"none", "hammer", "gun", "shotgun", "grenade", "laser", "ninja"});

constexpr auto kAmmo = values_from(-1, {"unlimited"});

constexpr auto kWeaponSpecial = values_from(-3, {"game", "self", "world"});

constexpr auto kPowerup = values_from(0, {"health", "armor", "weapon", "ninja", "armor_shotgun",
                                          "armor_grenade", "armor_ninja", "armor_laser", "freeze"});

constexpr auto kEmote = values_from(0, {"normal", "pain", "happy", "surprise", "angry", "blink"});

constexpr auto kEmoticon =
    values_from(0, {"oop", "exclamation", "hearts", "drop", "dotdot", "music", "sorry", "ghost",
                    "sushi", "splattee", "deviltee", "zomg", "zzz", "wtf", "eyes", "question"});

constexpr auto kHookState = values_from(
    -1, {"retracted", "idle", "retract_start", "retract_2", "retract_end", "flying", "grabbed"});

constexpr auto kTeam =
    values_from(-2, {"all", "spectators", "red", "blue", "whisper_send", "whisper_recv"});

constexpr auto kChatTeam = values_from(0, {"all", "team", "whisper_sent", "whisper_received"});

constexpr auto kAuthed = values_from(0, {"no", "helper", "mod", "admin"});

constexpr auto kSound = values_from(0, {"gun_fire",
                                        "shotgun_fire",
                                        "grenade_fire",
                                        "hammer_fire",
                                        "hammer_hit",
                                        "ninja_fire",
                                        "grenade_explode",
                                        "ninja_hit",
                                        "laser_fire",
                                        "laser_bounce",
                                        "weapon_switch",
                                        "player_pain_short",
                                        "player_pain_long",
                                        "body_land",
                                        "player_airjump",
                                        "player_jump",
                                        "player_die",
                                        "player_spawn",
                                        "player_skid",
                                        "tee_cry",
                                        "hook_loop",
                                        "hook_attach_ground",
                                        "hook_attach_player",
                                        "hook_noattach",
                                        "pickup_health",
                                        "pickup_armor",
                                        "pickup_grenade",
                                        "pickup_shotgun",
                                        "pickup_ninja",
                                        "weapon_spawn",
                                        "weapon_noammo",
                                        "hit",
                                        "chat_server",
                                        "chat_client",
                                        "chat_highlight",
                                        "ctf_drop",
                                        "ctf_return",
                                        "ctf_grab_pl",
                                        "ctf_grab_en",
                                        "ctf_capture",
                                        "menu"});

constexpr auto kEntityclass = values_from(
    0, {"projectile", "door", "dragger_weak", "dragger_normal", "dragger_strong", "gun_normal",
        "gun_explosive", "gun_freeze", "gun_unfreeze", "light", "pickup"});

constexpr auto kLasertype =
    values_from(0, {"rifle", "shotgun", "door", "freeze", "dragger", "gun", "plasma"});

constexpr auto kLaserdraggertype =
    values_from(0, {"weak", "weak_nw", "normal", "normal_nw", "strong", "strong_nw"});

constexpr auto kLaserguntype = values_from(0, {"unfreeze", "explosive", "freeze", "expfreeze"});

constexpr auto kFlagCarrierSpecial = values_from(-3, {"missing", "at_stand", "taken"});

constexpr std::array kSpectatorSpecial{
    NamedValue{-1, "freeview"},
    NamedValue{-2, "follow"},
};

constexpr auto kSavestate = values_from(0, {"pending", "done", "fallbackfile", "warning", "error"});

constexpr auto kKillWeapon = values_from(
    -3, {"game", "self", "world", "hammer", "gun", "shotgun", "grenade", "laser", "ninja"});

constexpr auto kPlayerflag = bits({"playing", "in_menu", "chatting", "scoreboard", "aim",
                                   "spec_cam", "input_absolute", "input_manual"});

constexpr auto kGameflag = bits({"teams", "flags"});

constexpr auto kGamestateflag = bits({"gameover", "suddendeath", "paused", "racetime"});

constexpr auto kCharacterflag = bits({"solo",
                                      "jetpack",
                                      "collision_disabled",
                                      "endless_hook",
                                      "endless_jump",
                                      "super",
                                      "hammer_hit_disabled",
                                      "shotgun_hit_disabled",
                                      "grenade_hit_disabled",
                                      "laser_hit_disabled",
                                      "hook_hit_disabled",
                                      "telegun_gun",
                                      "telegun_grenade",
                                      "telegun_laser",
                                      "weapon_hammer",
                                      "weapon_gun",
                                      "weapon_shotgun",
                                      "weapon_grenade",
                                      "weapon_laser",
                                      "weapon_ninja",
                                      "movements_disabled",
                                      "in_freeze",
                                      "practice_mode",
                                      "lock_mode",
                                      "team0_mode",
                                      "invincible"});

constexpr auto kExplayerflag = bits({"afk", "paused", "spec"});

constexpr auto kGameinfoflag = bits({"timescore",
                                     "gametype_race",
                                     "gametype_fastcap",
                                     "gametype_fng",
                                     "gametype_ddrace",
                                     "gametype_ddnet",
                                     "gametype_block_worlds",
                                     "gametype_vanilla",
                                     "gametype_plus",
                                     "flag_starts_race",
                                     "race",
                                     "unlimited_ammo",
                                     "ddrace_record_message",
                                     "race_record_message",
                                     "allow_eye_wheel",
                                     "allow_hook_coll",
                                     "allow_zoom",
                                     "bug_ddrace_ghost",
                                     "bug_ddrace_input",
                                     "bug_fng_laser_range",
                                     "bug_vanilla_bounce",
                                     "predict_fng",
                                     "predict_ddrace",
                                     "predict_ddrace_tiles",
                                     "predict_vanilla",
                                     "entities_ddnet",
                                     "entities_ddrace",
                                     "entities_race",
                                     "entities_fng",
                                     "entities_vanilla",
                                     "dont_mask_entities",
                                     "entities_bw"});

constexpr auto kGameinfoflag2 =
    bits({"allow_x_skins", "gametype_city", "gametype_fddrace", "entities_fddrace",
          "hud_health_armor", "hud_ammo", "hud_ddrace", "no_weak_hook", "no_skin_change_for_frozen",
          "ddrace_team", "predict_events", "supports_128_teams"});

constexpr auto kProjectileflag =
    bits({"bounce_horizontal", "bounce_vertical", "explosive", "freeze", "normalize_vel"});

constexpr auto kLegacyprojectileflag =
    bits({"clientid_bit0", "clientid_bit1", "clientid_bit2", "clientid_bit3", "clientid_bit4",
          "clientid_bit5", "clientid_bit6", "clientid_bit7", "no_owner", "is_ddnet",
          "bounce_horizontal", "bounce_vertical", "explosive", "freeze"});

constexpr auto kLaserflag = bits({"no_predict"});

constexpr auto kPickupflag = bits({"xflip", "yflip", "rotate", "no_predict"});

constexpr auto kServercapflag =
    bits({"ddnet", "chattimeoutcode", "anyplayerflag", "pingex", "allowdummy", "syncweaponinput"});

constexpr auto kRcontypeflag = bits({"username_required"});

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

constexpr auto kPickup =
    values_from(0, {"health", "armor", "grenade", "shotgun", "laser", "ninja", "gun", "hammer"});

constexpr auto kVote = values_from(
    0, {"unknown", "start_op", "start_kick", "start_spec", "end_abort", "end_pass", "end_fail"});

constexpr auto kChat = values_from(0, {"none", "all", "team", "whisper"});

constexpr auto kGamemsg = values_from(
    0, {"team_swap", "spec_invalidid", "team_shuffle", "team_balance", "ctf_drop", "ctf_return",
        "team_all", "team_balance_victim", "ctf_grab", "ctf_capture", "game_paused"});

constexpr auto kSpecMode = values_from(0, {"freeview", "player", "flag_red", "flag_blue"});

constexpr auto kPlayerflag =
    bits({"admin", "chatting", "scoreboard", "ready", "dead", "watching", "bot", "aim"});

constexpr auto kGameflag = bits({"teams", "flags", "survival", "race"});

constexpr auto kGamestateflag =
    bits({"warmup", "suddendeath", "roundover", "gameover", "paused", "startcountdown"});

constexpr auto kCoreeventflag = bits(
    {"ground_jump", "air_jump", "hook_attach_player", "hook_attach_ground", "hook_hit_nohook"});

constexpr auto kRaceflag = bits({"hide_killmsg", "finishmsg_as_chat", "keep_wanted_weapon"});

constexpr auto kServerinfoflag = bits({"password", "timescore"});

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
