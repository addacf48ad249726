#include "map/map.h"
#include "tests/map/map_builder.h"
#include "tests/map/truth.h"
#include "tests/map/writer.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>

namespace tw::map::test {
namespace {

namespace fs = std::filesystem;

void check_same(const Datafile& a, const Datafile& b) {
    REQUIRE(a.item_count() == b.item_count());
    for (std::size_t i = 0; i < a.item_count(); ++i) {
        CHECK(a.item(i).type == b.item(i).type);
        CHECK(a.item(i).id == b.item(i).id);
        CHECK(std::equal(a.item(i).ints.begin(), a.item(i).ints.end(), b.item(i).ints.begin(),
                         b.item(i).ints.end()));
    }
    REQUIRE(a.block_count() == b.block_count());
    for (std::size_t i = 0; i < a.block_count(); ++i) {
        const auto left = a.block(static_cast<std::int64_t>(i));
        const auto right = b.block(static_cast<std::int64_t>(i));
        REQUIRE(left.has_value() == right.has_value());
        if (left) {
            CHECK(std::equal(left->bytes().begin(), left->bytes().end(), right->bytes().begin(),
                             right->bytes().end()));
        }
    }
}

bool runs(const std::string& command) {
    // The test compares with the distribution's tools. Their arguments are paths of this test.
    // NOLINTNEXTLINE(concurrency-mt-unsafe): the program has one thread
    return std::system((command + " > /dev/null 2>&1").c_str()) == 0;
}

} // namespace

TEST_CASE("a real map that is read and written has the same items and data") {
    for (const auto& truth : truths()) {
        CAPTURE(truth.label);
        const auto map = Datafile::open(truth.path);
        REQUIRE(map.has_value());
        const auto again = Datafile::parse(rewrite(*map));
        REQUIRE(again.has_value());
        CHECK_FALSE(again->warnings().first_strict().has_value());
        check_same(*map, *again);
    }
}

TEST_CASE("a block that does not inflate survives writing as it is") {
    DatafileWriter writer;
    const std::vector<std::byte> junk(20, std::byte{0xaa});
    writer.add_stored_block(junk, 100);
    const auto file = Datafile::parse(writer.finish());
    REQUIRE(file.has_value());
    const auto again = Datafile::parse(rewrite(*file));
    REQUIRE(again.has_value());
    CHECK(std::equal(junk.begin(), junk.end(), again->stored_block(0).begin()));
    CHECK(again->block_info(0).size == 100);
}

TEST_CASE("DDNet's own tools read what is written") {
    const fs::path tools = "/usr/lib/x86_64-linux-gnu/ddnet";
    if (!fs::exists(tools / "map_resave")) {
        MESSAGE("skipped: ddnet-tools is not installed");
        return;
    }
    const fs::path folder = fs::temp_directory_path() / "twscope-writer-test";
    const fs::path user =
        folder / "home/.local/share/ddnet"; // the only folder to which the tools write
    fs::remove_all(folder);
    fs::create_directories(user);
    MapBuilder builder{4, 3};
    builder.set_game(1, 2, 1).add_layer(Layer::tele, 4, 3).add_layer(Layer::switch_, 4, 3);
    REQUIRE(write_file(folder / "ours.map", builder.build()));
    constexpr std::string_view kPaths = "add_path $USERDIR\nadd_path $CURRENTDIR\n";
    REQUIRE(write_file(folder / "storage.cfg", std::as_bytes(std::span{kPaths})));
    const std::string in_folder = "cd '" + folder.string() + "' && HOME='" +
                                  (folder / "home").string() + "' " + tools.string() + "/";
    CHECK(runs(in_folder + "map_resave ours.map theirs.map"));
    CHECK(runs(in_folder + "map_extract ours.map ."));
    const auto ours = Datafile::open(folder / "ours.map");
    const auto resaved = Datafile::open(user / "theirs.map");
    REQUIRE(ours.has_value());
    REQUIRE(resaved.has_value());
    check_same(*ours, *resaved);
    fs::copy_file(user / "theirs.map",
                  folder / "theirs.map"); // the only folder that this tool reads
    CHECK(runs(in_folder + "map_diff ours.map theirs.map"));
    fs::remove_all(folder);
}

} // namespace tw::map::test
