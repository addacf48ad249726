#include "proxy/wire/names.h"

namespace tw::wire::names {
namespace {

using snapshot::NamedValue;
using snapshot::NameTable;

constexpr NamedValue kTeamValues[] = {{-2, "all"}, {-1, "spectators"},  {0, "red"},
                                      {1, "blue"}, {2, "whisper_send"}, {3, "whisper_recv"}};

constexpr NamedValue kKillWeaponValues[] = {{-3, "game"},   {-2, "self"}, {-1, "world"},
                                            {0, "hammer"},  {1, "gun"},   {2, "shotgun"},
                                            {3, "grenade"}, {4, "laser"}, {5, "ninja"}};

constexpr NamedValue kWeaponValues[] = {{0, "hammer"},  {1, "gun"},   {2, "shotgun"},
                                        {3, "grenade"}, {4, "laser"}, {5, "ninja"}};

constexpr NamedValue kSoundValues[] = {{0, "gun_fire"},
                                       {1, "shotgun_fire"},
                                       {2, "grenade_fire"},
                                       {3, "hammer_fire"},
                                       {4, "hammer_hit"},
                                       {5, "ninja_fire"},
                                       {6, "grenade_explode"},
                                       {7, "ninja_hit"},
                                       {8, "laser_fire"},
                                       {9, "laser_bounce"},
                                       {10, "weapon_switch"},
                                       {11, "player_pain_short"},
                                       {12, "player_pain_long"},
                                       {13, "body_land"},
                                       {14, "player_airjump"},
                                       {15, "player_jump"},
                                       {16, "player_die"},
                                       {17, "player_spawn"},
                                       {18, "player_skid"},
                                       {19, "tee_cry"},
                                       {20, "hook_loop"},
                                       {21, "hook_attach_ground"},
                                       {22, "hook_attach_player"},
                                       {23, "hook_noattach"},
                                       {24, "pickup_health"},
                                       {25, "pickup_armor"},
                                       {26, "pickup_grenade"},
                                       {27, "pickup_shotgun"},
                                       {28, "pickup_ninja"},
                                       {29, "weapon_spawn"},
                                       {30, "weapon_noammo"},
                                       {31, "hit"},
                                       {32, "chat_server"},
                                       {33, "chat_client"},
                                       {34, "chat_highlight"},
                                       {35, "ctf_drop"},
                                       {36, "ctf_return"},
                                       {37, "ctf_grab_pl"},
                                       {38, "ctf_grab_en"},
                                       {39, "ctf_capture"},
                                       {40, "menu"}};

constexpr NamedValue kEmoticonValues[] = {
    {0, "oop"},    {1, "exclamation"}, {2, "hearts"},    {3, "drop"},
    {4, "dotdot"}, {5, "music"},       {6, "sorry"},     {7, "ghost"},
    {8, "sushi"},  {9, "splattee"},    {10, "deviltee"}, {11, "zomg"},
    {12, "zzz"},   {13, "wtf"},        {14, "eyes"},     {15, "question"}};

constexpr NamedValue kServerCapFlagValues[] = {{1, "ddnet"},         {2, "chattimeoutcode"},
                                               {4, "anyplayerflag"}, {8, "pingex"},
                                               {16, "allowdummy"},   {32, "syncweaponinput"}};

constexpr NamedValue kSaveStateValues[] = {
    {0, "pending"}, {1, "done"}, {2, "fallbackfile"}, {3, "warning"}, {4, "error"}};

constexpr NamedValue kSpectatorSpecialValues[] = {{-1, "freeview"}, {-2, "follow"}};

} // namespace

constexpr NameTable kTeam{.name = "team", .values = kTeamValues};
constexpr NameTable kKillWeapon{.name = "kill_weapon", .values = kKillWeaponValues};
constexpr NameTable kWeapon{.name = "weapon", .values = kWeaponValues};
constexpr NameTable kSound{.name = "sound", .values = kSoundValues};
constexpr NameTable kEmoticon{.name = "emoticon", .values = kEmoticonValues};
constexpr NameTable kServerCapFlag{
    .name = "servercapflag", .flags = true, .values = kServerCapFlagValues};
constexpr NameTable kSaveState{.name = "savestate", .values = kSaveStateValues};
constexpr NameTable kSpectatorSpecial{.name = "spectator_special",
                                      .values = kSpectatorSpecialValues};

} // namespace tw::wire::names
