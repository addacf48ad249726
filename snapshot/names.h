#pragma once

#include "snapshot/objects.h"

/// The names of the enum values and flags in objects and messages: DDNet's names in snake_case.
namespace tw::snapshot::names {

// NOLINTBEGIN(readability-identifier-naming): the tables have the names of the fields
extern const NameTable weapon;
extern const NameTable held_weapon; ///< the weapon that a character holds, or `none`
extern const NameTable ammo;
extern const NameTable weapon_special;
extern const NameTable powerup;
extern const NameTable emote;
extern const NameTable emoticon;
extern const NameTable hook_state;
extern const NameTable team;
/// Who receives a chat line from the server (not a player's team).
extern const NameTable chat_team;
extern const NameTable authed;
extern const NameTable sound;
extern const NameTable entityclass;
extern const NameTable lasertype;
extern const NameTable laserdraggertype;
extern const NameTable laserguntype;
extern const NameTable flag_carrier_special;
extern const NameTable spectator_special;
extern const NameTable savestate;
/// The cause of a kill: a weapon, or one of the reasons of weapon_special.
extern const NameTable kill_weapon;

extern const NameTable playerflag;
extern const NameTable gameflag;
extern const NameTable gamestateflag;
extern const NameTable characterflag;
extern const NameTable explayerflag;
extern const NameTable gameinfoflag;
extern const NameTable gameinfoflag2;
extern const NameTable projectileflag;
extern const NameTable legacyprojectileflag;
extern const NameTable laserflag;
extern const NameTable pickupflag;
extern const NameTable servercapflag;
extern const NameTable rcontypeflag;
// NOLINTEND(readability-identifier-naming)

} // namespace tw::snapshot::names

/// The names of enum values and flags that Teeworlds 0.7 defines differently from 0.6.
namespace tw::snapshot::names::seven {

// NOLINTBEGIN(readability-identifier-naming): the tables have the names of the fields
extern const NameTable pickup;
extern const NameTable vote;
extern const NameTable chat;
extern const NameTable gamemsg;
extern const NameTable spec_mode;

extern const NameTable playerflag;
extern const NameTable gameflag;
extern const NameTable gamestateflag;
extern const NameTable coreeventflag;
extern const NameTable raceflag;
extern const NameTable serverinfoflag;
// NOLINTEND(readability-identifier-naming)

} // namespace tw::snapshot::names::seven
