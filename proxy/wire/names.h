#pragma once

#include "snapshot/objects.h"

/// Names behind the ints of messages. Those that objects have too stand in snapshot/names.h.
namespace tw::wire::names {

extern const snapshot::NameTable kTeam;       ///< -2 all .. 3 whisper_recv
extern const snapshot::NameTable kKillWeapon; ///< weapons, and -3..-1 for a death without
extern const snapshot::NameTable kWeapon;
extern const snapshot::NameTable kSound;
extern const snapshot::NameTable kEmoticon;
extern const snapshot::NameTable kServerCapFlag;
extern const snapshot::NameTable kSaveState;
extern const snapshot::NameTable kSpectatorSpecial; ///< what is not a client id

} // namespace tw::wire::names
