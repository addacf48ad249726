#pragma once

#include "proxy/record/roster.h"
#include "proxy/wire/message.h"

namespace tw::inspect {

/// Messages of 0.7 tell who plays (0.7 sheet, section 6.2); others change nothing.
void follow_roster(const wire::MessageHead& head, record::Roster& roster);

} // namespace tw::inspect
