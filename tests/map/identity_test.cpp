#include "map/identity.h"
#include "tests/support/program.h"

#include <filesystem>
#include <string>
#include <vector>

#include <doctest/doctest.h>

namespace tw::map {
namespace {

namespace fs = std::filesystem;

/// A temporary folder with folders of maps.
struct MapFolderTree {
    tw::test::TemporaryFolder folder;
    fs::path path{folder.path()};

    MapFolderTree() {
        fs::create_directories(path / "maps");
        fs::create_directories(path / "downloadedmaps");
    }

    void add_file(const fs::path& name, const std::string& text) const {
        tw::test::write_text(path / name, text);
    }
};

} // namespace

TEST_CASE("crc and sha256 are those of the standard test vectors") {
    const Identity nothing = identify({});
    CHECK(nothing.crc == 0);
    CHECK(to_hex(nothing.sha256) ==
          "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    const Identity digits = identify(tw::test::as_bytes("123456789"));
    CHECK(to_hex(digits.crc) == "cbf43926");
    CHECK(digits.size == 9);
    CHECK(to_hex(std::uint32_t{0xab}) == "000000ab");
}

TEST_CASE("a map name that is not a valid file name everywhere is rejected") {
    struct Row {
        std::string_view name;
        bool valid;
    };

    using namespace std::string_view_literals;
    const std::string longest(127, 'a');
    const std::string too_long(128, 'a');
    const Row rows[] = {
        {"dm1"sv, true},
        {"Gold Mine"sv, true},
        {"Goo!"sv, true},
        {"v1.2-final"sv, true},
        {"\xc3\xa4\xe2\x82\xac"sv, true},
        {longest, true},
        {too_long, false},
        {""sv, false},
        {".."sv, false},
        {"."sv, false},
        {"a."sv, false},
        {"../dm1"sv, false},
        {"maps/dm1"sv, false},
        {"a\\b"sv, false},
        {"a\0b"sv, false},
        {"a\nb"sv, false},
        {"a\x7f"sv, false},
        {" a"sv, false},
        {"a "sv, false},
        {"a  b"sv, false},
        {"a\tb"sv, false},
        {"c:x"sv, false},
        {"a|b"sv, false},
        {"a*"sv, false},
        {"a?"sv, false},
        {"<a>"sv, false},
        {"\"a\""sv, false},
        {"con"sv, false},
        {"NUL"sv, false},
        {"com1.dm1"sv, false},
        {"com"sv, true},
        {"a\xff"sv, false},
        {"a\xc2\xa0"sv, false},
        {"a\xe2\x80\x8e"sv, false},
        {"\xc0\xae"sv, false},
    };
    for (const auto& row : rows) {
        CAPTURE(row.name);
        CHECK(is_valid_map_name(row.name) == row.valid);
    }
}

TEST_CASE("a map is found under every name it is stored by, and only with the right bytes") {
    const MapFolderTree folder;
    const Identity right = identify(tw::test::as_bytes("right"));
    const std::string sha_name = "downloadedmaps/dm1_" + to_hex(right.sha256) + ".map";
    const std::string crc_name = "downloadedmaps/dm1_" + to_hex(right.crc) + ".map";
    const fs::path folders[] = {folder.path / "not there", folder.path};
    CHECK_FALSE(find_map(folders, "dm1", right.crc, right.sha256).has_value());

    for (const std::string& name :
         {crc_name, sha_name, std::string{"maps/dm1.map"}, std::string{"dm1.map"}}) {
        CAPTURE(name);
        folder.add_file(name, "right");
        CHECK(find_map(folders, "dm1", right.crc, right.sha256) == folder.path / name);
    }
    CHECK_FALSE(find_map(folders, "../downloadedmaps/dm1", right.crc, right.sha256).has_value());
    CHECK_FALSE(find_map(folders, "dm2", right.crc, right.sha256).has_value());
}

TEST_CASE("a map with the right name and wrong bytes is not found but reported") {
    const MapFolderTree folder;
    folder.add_file("dm1.map", "wrong");
    folder.add_file("maps/dm1.map", "right");
    const Identity right = identify(tw::test::as_bytes("right"));
    const fs::path folders[] = {folder.path};
    std::vector<WrongMap> wrong;
    CHECK(find_map(folders, "dm1", right.crc, std::nullopt, &wrong) ==
          folder.path / "maps/dm1.map");
    REQUIRE(wrong.size() == 1);
    CHECK(wrong[0].path == folder.path / "dm1.map");
    CHECK(wrong[0].identity == identify(tw::test::as_bytes("wrong")));

    Sha256 other = right.sha256;
    other[0] ^= 1U;
    wrong.clear();
    CHECK_FALSE(find_map(folders, "dm1", right.crc, other, &wrong).has_value());
    CHECK(wrong.size() == 2);
    CHECK_FALSE(find_map(folders, "dm1", right.crc, other).has_value());
}

TEST_CASE("a map above the size limit is not read") {
    const MapFolderTree folder;
    folder.add_file("dm1.map", "right");
    Limits limits;
    limits.max_file_bytes = 4;
    const fs::path folders[] = {folder.path};
    const Identity right = identify(tw::test::as_bytes("right"));
    CHECK_FALSE(find_map(folders, "dm1", right.crc, std::nullopt, nullptr, limits).has_value());
}

} // namespace tw::map
