#pragma once

#include "map/describe.h"

#include <string_view>

#include <boost/json/fwd.hpp>

namespace tw::report {

/// A map's description as one JSON object, with the name of its file first.
///
/// Layout:  map/FORMAT.md, section 8.
[[nodiscard]] boost::json::object map_json(const map::Description& map, std::string_view file);

} // namespace tw::report
