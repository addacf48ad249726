#pragma once

#include "proxy/wire/message_set.h"

#include <string>

namespace tw::cli {

/// Adds the objects and messages described in a mod's JSON file (snapshot/OBJECTS.md). Does nothing
/// for an empty path.
/// Errors: UsageError with the file, the place in it, and what is wrong there.
void read_objects_file(const std::string& path, wire::ModDescription& mod);

} // namespace tw::cli
