#pragma once

#include "snapshot/object_set.h"

#include <string>

namespace tw::admin {

/// What is known of items, as /api/objects gives it: frames name an object by its place in this list.
[[nodiscard]] std::string objects_json(const snapshot::ObjectSet& objects);

} // namespace tw::admin
