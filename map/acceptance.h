#pragma once

#include "map/map.h"

#include <string>

namespace tw::map {

/// What two kinds of reader make of a map: "accepts", or "rejects:" and the name of the first error
/// or warning that speaks against it.
struct Acceptance {
    std::string strict;  ///< DDNet master
    std::string lenient; ///< a reader that only resolves positions
};

/// Inflates the physics layers to find out.
[[nodiscard]] Acceptance judge(const Map& map);
/// The same where the physics are loaded already; `warnings` holds those of both.
[[nodiscard]] Acceptance judge(const Warnings& warnings, const Result<Physics>& physics);
/// Of a file that is not even a map: both reject it.
[[nodiscard]] Acceptance judge(const MapError& error);

} // namespace tw::map
