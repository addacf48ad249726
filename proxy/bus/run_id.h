#pragma once

#include <string>

namespace tw::bus {

/// Another one with every call: a UUID that begins with the time (version 7), so that what it names
/// sorts by it.
[[nodiscard]] std::string make_run_id();

} // namespace tw::bus
