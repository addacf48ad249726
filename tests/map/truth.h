#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <boost/json.hpp>

namespace tw::map::test {

/// One entry of the file with the known contents of real maps.
struct Truth {
    std::string label; ///< set and file name
    boost::json::object entry;
    std::filesystem::path path; ///< where the distribution's package puts the file
};

/// All entries whose file is installed, as long as it was. The packages are ddnet-data and teeworlds-data of Debian 12; those of
/// Debian 13 have six other files.
[[nodiscard]] const std::vector<Truth>& truths();

} // namespace tw::map::test
