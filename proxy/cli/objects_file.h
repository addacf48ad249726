#pragma once

#include "snapshot/object_set.h"

#include <string>

namespace tw::cli {

/// Adds the objects a mod describes in a JSON file (snapshot/OBJECTS.md).
/// Errors: UsageError that names the file, the object and what is wrong with it.
void read_objects_file(const std::string& path, snapshot::ObjectSet& objects);

} // namespace tw::cli
