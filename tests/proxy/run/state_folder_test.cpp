#include "proxy/run/state_folder.h"

#include <cstdlib>
#include <fstream>

#include <doctest/doctest.h>
#include <sys/stat.h>

namespace {

namespace fs = std::filesystem;
using tw::run::keep_key;

struct Folder {
    fs::path path;

    Folder() {
        std::string name = (fs::temp_directory_path() / "twscope-state-XXXXXX").string();
        path = ::mkdtemp(name.data());
    }

    ~Folder() { fs::remove_all(path); }

    Folder(const Folder&) = delete;
    Folder& operator=(const Folder&) = delete;
    Folder(Folder&&) = delete;
    Folder& operator=(Folder&&) = delete;
};

mode_t mode_of(const fs::path& path) {
    struct stat info {};

    REQUIRE(::stat(path.c_str(), &info) == 0);
    return info.st_mode & 0777U;
}

} // namespace

TEST_CASE("a key is kept where only its owner can read it, and is the same in the next run") {
    const Folder folder;
    const auto state = folder.path / "made" / "twscope";
    const auto first = keep_key(state, "key");
    CHECK(first.warning.empty());
    CHECK(mode_of(state) == 0700);
    CHECK(mode_of(state / "key") == 0600);
    CHECK(keep_key(state, "key").key == first.key);
    CHECK(keep_key(state, "other").key != first.key);
    CHECK(std::distance(fs::directory_iterator{state}, fs::directory_iterator{}) == 2);
}

TEST_CASE("a key that cannot be kept is made for the run, with a warning") {
    const Folder folder;
    std::ofstream{folder.path / "key"} << "short";
    std::ofstream{folder.path / "file"} << "no folder";
    for (const auto& state : {folder.path, folder.path / "file", fs::path{"/proc/nowhere"}}) {
        CAPTURE(state);
        const auto first = keep_key(state, "key");
        CHECK(first.warning.find("bans") != std::string::npos);
        CHECK(first.warning.find('\n') == std::string::npos);
        CHECK(keep_key(state, "key").key != first.key);
    }
}
