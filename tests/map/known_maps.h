#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include <boost/json.hpp>

namespace tw::map::test {

/// One entry of the file with the known contents of real maps.
struct KnownMap {
    std::string label; ///< name of the set and the file
    boost::json::object entry;
    std::filesystem::path path; ///< path of the installed file
};

/// All entries whose file is installed with the known length. The files are those of the packages
/// ddnet-data and teeworlds-data of Debian 12; six files of Debian 13 differ.
[[nodiscard]] const std::vector<KnownMap>& known_maps();

} // namespace tw::map::test
