#pragma once

#include "snapshot/names.h"

/// Names of Teeworlds 0.7 that are others than those of 0.6.
namespace tw::snapshot::names::seven {

// NOLINTBEGIN(readability-identifier-naming): named as the fields are
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
