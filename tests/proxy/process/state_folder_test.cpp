#include "proxy/process/state_folder.h"
#include "tests/support/program.h"

#include <fstream>

#include <doctest/doctest.h>
#include <sys/stat.h>

namespace {

namespace fs = std::filesystem;
using tw::process::read_or_create_file;
using tw::process::read_or_create_key;
using tw::test::TemporaryFolder;

mode_t mode_of(const fs::path& path) {
    struct stat info {};

    REQUIRE(::stat(path.c_str(), &info) == 0);
    return info.st_mode & 0777U;
}

} // namespace

TEST_CASE("a key is stored readable by its owner only, and reused by the next run") {
    const TemporaryFolder folder;
    const auto state = fs::path{folder.file("made/twscope")};
    const auto first = read_or_create_key(state, "key");
    CHECK(first.warning.empty());
    CHECK(mode_of(state) == 0700);
    CHECK(mode_of(state / "key") == 0600);
    CHECK(read_or_create_key(state, "key").key == first.key);
    CHECK(read_or_create_key(state, "other").key != first.key);
    CHECK(std::distance(fs::directory_iterator{state}, fs::directory_iterator{}) == 2);
}

TEST_CASE("a key that cannot be stored is for this run only, with a warning") {
    const TemporaryFolder folder;
    std::ofstream{folder.file("key")} << "short";
    std::ofstream{folder.file("file")} << "no folder";
    for (const auto& state :
         {fs::path{folder.path()}, fs::path{folder.file("file")}, fs::path{"/proc/nowhere"}}) {
        CAPTURE(state);
        const auto first = read_or_create_key(state, "key");
        CHECK(first.warning.find("bans") != std::string::npos);
        CHECK(first.warning.find('\n') == std::string::npos);
        CHECK(read_or_create_key(state, "key").key != first.key);
    }
}

TEST_CASE("an existing file is not changed, whether its content is valid or not") {
    const TemporaryFolder folder;
    const auto is_ours = [](std::string_view content) { return content.starts_with("ours"); };
    const auto first = read_or_create_file(folder.path(), "file", "ours, and new", is_ours);
    CHECK(first.content == "ours, and new");
    CHECK(first.problem.empty());
    const auto again = read_or_create_file(folder.path(), "file", "ours, and newer", is_ours);
    CHECK(again.content == first.content);
    std::ofstream{folder.file("file")} << "another's";
    const auto other = read_or_create_file(folder.path(), "file", "ours, and newest", is_ours);
    CHECK(other.content == "ours, and newest");
    CHECK(other.problem == folder.file("file") + ": its contents are invalid");
    std::ifstream in{folder.file("file")};
    std::string left;
    std::getline(in, left);
    CHECK(left == "another's");
}

TEST_CASE("random_bytes() returns the requested number of bytes, different each time") {
    CHECK(tw::process::random_bytes(0).empty());
    CHECK(tw::process::random_bytes(33).size() == 33);
    CHECK(tw::process::random_bytes(16) != tw::process::random_bytes(16));
}
