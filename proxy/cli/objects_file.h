#pragma once

#include "proxy/wire/message_set.h"

#include <string>

namespace tw::cli {

/// Adds the objects and messages that a mod describes in a JSON file (snapshot/OBJECTS.md). An empty
/// path describes nothing.
/// Errors: UsageError that names the file, the place in it, and what is wrong there.
void read_objects_file(const std::string& path, wire::ModDescription& mod);

} // namespace tw::cli
