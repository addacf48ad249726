// Covers: proxy/cli/publish_flags.cpp
#include "proxy/cli/publish_flags.h"

#include <algorithm>
#include <filesystem>
#include <fstream>

#include <doctest/doctest.h>
#include <unistd.h>

using tw::cli::BusAccessFlags;
namespace fs = std::filesystem;

namespace {

bool has(const std::vector<fs::path>& paths, const fs::path& path) {
    return std::find(paths.begin(), paths.end(), path) != paths.end();
}

} // namespace

TEST_CASE(
    "what is renewed by renaming stays readable: its folder is, unless much else stands there") {
    struct Row {
        const char* file;
        const char* folder;
        bool readable;
    };

    const Row rows[] = {{"/etc/twscope/nowhere.creds", "/etc/twscope", true},
                        {"/nowhere/client.pem", "/nowhere", true},
                        {"/home/nobody-here/keys/a.pem", "/home/nobody-here/keys", true},
                        {"/home/nobody-here/a.pem", "/home/nobody-here", false},
                        {"/etc/a.pem", "/etc", false},
                        {"/etc/../a.pem", "/", false},
                        {"/srv/a.pem", "/srv", false}};
    for (const Row& row : rows) {
        CAPTURE(row.file);
        const BusAccessFlags flags{.urls = {"nats://x"}, .credentials = row.file};
        CHECK(has(flags.files(), row.file));
        CHECK(has(flags.files(), row.folder) == row.readable);
    }
    CHECK(BusAccessFlags{.credentials = "/nowhere/a.creds"}.files().empty()); // no bus
}

TEST_CASE("what a link leads to may be renewed, too") {
    const fs::path folder =
        fs::canonical(fs::temp_directory_path()) / ("twscope-links-" + std::to_string(::getpid()));
    fs::create_directories(folder / "live");
    fs::create_directories(folder / "archive");
    std::ofstream{folder / "archive" / "client1.pem"} << "of the first year";
    fs::create_symlink("../archive/client1.pem", folder / "live" / "client.pem");
    const BusAccessFlags flags{.urls = {"nats://x"}, .certificate = folder / "live" / "client.pem"};
    CHECK(has(flags.files(), folder / "live"));
    CHECK(has(flags.files(), folder / "archive"));
    CHECK_FALSE(has(flags.files(), folder));
    fs::remove_all(folder);
}
