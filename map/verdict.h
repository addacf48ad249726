#pragma once

#include "map/map.h"

#include <string>

namespace tw::map {

/// What two kinds of reader make of a map: "accepts", or "rejects:" and the name of the first error
/// or oddity that speaks against it.
struct Verdict {
    std::string strict;  ///< DDNet master
    std::string lenient; ///< a reader that only resolves positions
};

/// Inflates the physics layers to find out.
[[nodiscard]] Verdict judge(const Map& map);
/// The same where the physics are loaded already; `oddities` holds those of both.
[[nodiscard]] Verdict judge(const Oddities& oddities, const Result<Physics>& physics);
/// Of a file that is not even a map: both reject it.
[[nodiscard]] Verdict judge(const MapError& error);

} // namespace tw::map
