#pragma once

#include "snapshot/objects.h"

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string_view>

/// The names of the enum values and flags in objects and messages: DDNet's names in snake_case.
namespace tw::snapshot::names {

/// A NameTable that stores its values.
template <std::size_t kCount>
class Names : public NameTable {
  public:
    /// Gives names to consecutive values of an enum, from `first` on.
    template <typename... Words>
    constexpr Names(std::string_view table_name, std::int64_t first, Words... words)
        : NameTable{table_name, false, {}}, named_{NamedValue{first++, words}...} {
        values = named_;
    }

    /// Gives names to the bits of flags, the lowest first.
    template <typename... Words>
    constexpr Names(std::string_view table_name, std::string_view word, Words... words)
        : Names{table_name, 0, word, words...} {
        flags = true;
        for (NamedValue& bit : named_) {
            bit.value = std::int64_t{1} << bit.value;
        }
    }

    Names(const Names&) = delete;
    Names& operator=(const Names&) = delete;
    ~Names() = default;

  private:
    std::array<NamedValue, kCount> named_;
};

template <typename... Words>
Names(std::string_view, int, Words...) -> Names<sizeof...(Words)>;
template <std::convertible_to<std::string_view> Word, typename... Words>
Names(std::string_view, Word, Words...) -> Names<1 + sizeof...(Words)>;

// NOLINTBEGIN(readability-identifier-naming): the tables have the names of the fields
inline constexpr Names weapon("weapon", 0, "hammer", "gun", "shotgun", "grenade", "laser", "ninja");
/// The weapon that a tee holds. From version 19.0 on, DDNet servers send -1 for a tee without a
/// weapon.
inline constexpr Names held_weapon("weapon", -1, "none", "hammer", "gun", "shotgun", "grenade",
                                   "laser", "ninja");
inline constexpr Names ammo("ammo", -1, "unlimited");
inline constexpr Names powerup("powerup", 0, "health", "armor", "weapon", "ninja", "armor_shotgun",
                               "armor_grenade", "armor_ninja", "armor_laser", "freeze");
inline constexpr Names emote("emote", 0, "normal", "pain", "happy", "surprise", "angry", "blink");
inline constexpr Names emoticon("emoticon", 0, "oop", "exclamation", "hearts", "drop", "dotdot",
                                "music", "sorry", "ghost", "sushi", "splattee", "deviltee", "zomg",
                                "zzz", "wtf", "eyes", "question");
inline constexpr Names hook_state("hook_state", -1, "retracted", "idle", "retract_start",
                                  "retract_2", "retract_end", "flying", "grabbed");
inline constexpr Names team("team", -2, "all", "spectators", "red", "blue", "whisper_send",
                            "whisper_recv");
/// The receivers of a chat line from the server. This is not a player's team.
inline constexpr Names chat_team("chat_team", 0, "all", "team", "whisper_sent", "whisper_received");
inline constexpr Names authed("authed", 0, "no", "helper", "mod", "admin");
inline constexpr Names sound("sound", 0, "gun_fire", "shotgun_fire", "grenade_fire", "hammer_fire",
                             "hammer_hit", "ninja_fire", "grenade_explode", "ninja_hit",
                             "laser_fire", "laser_bounce", "weapon_switch", "player_pain_short",
                             "player_pain_long", "body_land", "player_airjump", "player_jump",
                             "player_die", "player_spawn", "player_skid", "tee_cry", "hook_loop",
                             "hook_attach_ground", "hook_attach_player", "hook_noattach",
                             "pickup_health", "pickup_armor", "pickup_grenade", "pickup_shotgun",
                             "pickup_ninja", "weapon_spawn", "weapon_noammo", "hit", "chat_server",
                             "chat_client", "chat_highlight", "ctf_drop", "ctf_return",
                             "ctf_grab_pl", "ctf_grab_en", "ctf_capture", "menu");
inline constexpr Names entityclass("entityclass", 0, "projectile", "door", "dragger_weak",
                                   "dragger_normal", "dragger_strong", "gun_normal",
                                   "gun_explosive", "gun_freeze", "gun_unfreeze", "light",
                                   "pickup");
inline constexpr Names lasertype("lasertype", 0, "rifle", "shotgun", "door", "freeze", "dragger",
                                 "gun", "plasma");
inline constexpr Names flag_carrier_special("flag_carrier_special", -3, "missing", "at_stand",
                                            "taken");
inline constexpr Names spectator_special("spectator_special", -2, "follow", "freeview");
inline constexpr Names savestate("savestate", 0, "pending", "done", "fallbackfile", "warning",
                                 "error");
/// The cause of a kill: a weapon; or "game", "self" or "world" for a kill without a weapon.
inline constexpr Names kill_weapon("kill_weapon", -3, "game", "self", "world", "hammer", "gun",
                                   "shotgun", "grenade", "laser", "ninja");
inline constexpr Names playerflag("playerflag", "playing", "in_menu", "chatting", "scoreboard",
                                  "aim", "spec_cam", "input_absolute", "input_manual");
inline constexpr Names gameflag("gameflag", "teams", "flags");
inline constexpr Names gamestateflag("gamestateflag", "gameover", "suddendeath", "paused",
                                     "racetime");
inline constexpr Names characterflag("characterflag", "solo", "jetpack", "collision_disabled",
                                     "endless_hook", "endless_jump", "super", "hammer_hit_disabled",
                                     "shotgun_hit_disabled", "grenade_hit_disabled",
                                     "laser_hit_disabled", "hook_hit_disabled", "telegun_gun",
                                     "telegun_grenade", "telegun_laser", "weapon_hammer",
                                     "weapon_gun", "weapon_shotgun", "weapon_grenade",
                                     "weapon_laser", "weapon_ninja", "movements_disabled",
                                     "in_freeze", "practice_mode", "lock_mode", "team0_mode",
                                     "invincible");
inline constexpr Names explayerflag("explayerflag", "afk", "paused", "spec");
inline constexpr Names gameinfoflag("gameinfoflag", "timescore", "gametype_race",
                                    "gametype_fastcap", "gametype_fng", "gametype_ddrace",
                                    "gametype_ddnet", "gametype_block_worlds", "gametype_vanilla",
                                    "gametype_plus", "flag_starts_race", "race", "unlimited_ammo",
                                    "ddrace_record_message", "race_record_message",
                                    "allow_eye_wheel", "allow_hook_coll", "allow_zoom",
                                    "bug_ddrace_ghost", "bug_ddrace_input", "bug_fng_laser_range",
                                    "bug_vanilla_bounce", "predict_fng", "predict_ddrace",
                                    "predict_ddrace_tiles", "predict_vanilla", "entities_ddnet",
                                    "entities_ddrace", "entities_race", "entities_fng",
                                    "entities_vanilla", "dont_mask_entities", "entities_bw");
inline constexpr Names gameinfoflag2("gameinfoflag2", "allow_x_skins", "gametype_city",
                                     "gametype_fddrace", "entities_fddrace", "hud_health_armor",
                                     "hud_ammo", "hud_ddrace", "no_weak_hook",
                                     "no_skin_change_for_frozen", "ddrace_team", "predict_events",
                                     "supports_128_teams");
inline constexpr Names projectileflag("projectileflag", "bounce_horizontal", "bounce_vertical",
                                      "explosive", "freeze", "normalize_vel");
inline constexpr Names legacyprojectileflag("legacyprojectileflag", "clientid_bit0",
                                            "clientid_bit1", "clientid_bit2", "clientid_bit3",
                                            "clientid_bit4", "clientid_bit5", "clientid_bit6",
                                            "clientid_bit7", "no_owner", "is_ddnet",
                                            "bounce_horizontal", "bounce_vertical", "explosive",
                                            "freeze");
inline constexpr Names laserflag("laserflag", "no_predict");
inline constexpr Names pickupflag("pickupflag", "xflip", "yflip", "rotate", "no_predict");
inline constexpr Names servercapflag("servercapflag", "ddnet", "chattimeoutcode", "anyplayerflag",
                                     "pingex", "allowdummy", "syncweaponinput");
inline constexpr Names rcontypeflag("rcontypeflag", "username_required");
// NOLINTEND(readability-identifier-naming)

} // namespace tw::snapshot::names

/// The names of enum values and flags that Teeworlds 0.7 defines differently from 0.6.
namespace tw::snapshot::names::seven {

// NOLINTBEGIN(readability-identifier-naming): the tables have the names of the fields
inline constexpr Names pickup("pickup", 0, "health", "armor", "grenade", "shotgun", "laser",
                              "ninja", "gun", "hammer");
inline constexpr Names vote("vote", 0, "unknown", "start_op", "start_kick", "start_spec",
                            "end_abort", "end_pass", "end_fail");
inline constexpr Names chat("chat", 0, "none", "all", "team", "whisper");
inline constexpr Names gamemsg("gamemsg", 0, "team_swap", "spec_invalidid", "team_shuffle",
                               "team_balance", "ctf_drop", "ctf_return", "team_all",
                               "team_balance_victim", "ctf_grab", "ctf_capture", "game_paused");
inline constexpr Names spec_mode("spec_mode", 0, "freeview", "player", "flag_red", "flag_blue");
inline constexpr Names playerflag("playerflag", "admin", "chatting", "scoreboard", "ready", "dead",
                                  "watching", "bot", "aim");
inline constexpr Names gameflag("gameflag", "teams", "flags", "survival", "race");
inline constexpr Names gamestateflag("gamestateflag", "warmup", "suddendeath", "roundover",
                                     "gameover", "paused", "startcountdown");
inline constexpr Names coreeventflag("coreeventflag", "ground_jump", "air_jump",
                                     "hook_attach_player", "hook_attach_ground", "hook_hit_nohook");
inline constexpr Names raceflag("raceflag", "hide_killmsg", "finishmsg_as_chat",
                                "keep_wanted_weapon");
inline constexpr Names serverinfoflag("serverinfoflag", "password", "timescore");
// NOLINTEND(readability-identifier-naming)

} // namespace tw::snapshot::names::seven
