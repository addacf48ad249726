#pragma once

#include "proxy/cli/json_reader.h"
#include "proxy/wire/message_set.h"

namespace tw::cli {

/// Adds a message that a mod describes: an element of the list `messages` of its file
/// (snapshot/OBJECTS.md). Errors: UsageError.
void add_message(const JsonReader& in, wire::MessageSet& messages);

} // namespace tw::cli
