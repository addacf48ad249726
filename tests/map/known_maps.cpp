#include "tests/map/known_maps.h"

#include "tests/support/test_data.h"

#include <fstream>
#include <iterator>
#include <string_view>
#include <system_error>

namespace tw::map::test {
namespace {

constexpr std::string_view kPackageRoot = "/usr/share/games/";

/// Returns the folder of a set named PACKAGE/FOLDER. A package has its files in games/NAME/data.
std::filesystem::path map_set_folder(std::string_view set) {
    const std::string_view package = set.substr(0, set.find('/'));
    const std::string_view folder = set.substr(set.find('/') + 1);
    return std::filesystem::path{kPackageRoot} / package.substr(0, package.find('-')) / "data" /
           folder;
}

std::vector<KnownMap> load_known_maps() {
    std::ifstream file{tw::test::test_data("spec/maps-truth.json")};
    const std::string text{std::istreambuf_iterator<char>{file}, {}};
    const auto document = boost::json::parse(text);
    std::vector<KnownMap> found;
    for (const auto& value : document.at("maps").as_array()) {
        const auto& entry = value.as_object();
        const std::string set{entry.at("set").as_string().c_str()};
        const std::string name{entry.at("file").as_string().c_str()};
        std::filesystem::path path = map_set_folder(set) / name;
        std::error_code error;
        const std::uintmax_t size = std::filesystem::file_size(path, error);
        if (!error && size == entry.at("size").to_number<std::uint64_t>()) {
            std::string title = set;
            title.append("/").append(name);
            found.push_back({std::move(title), entry, std::move(path)});
        }
    }
    return found;
}

} // namespace

const std::vector<KnownMap>& known_maps() {
    static const std::vector<KnownMap> loaded = load_known_maps();
    return loaded;
}

} // namespace tw::map::test
