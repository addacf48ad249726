// Covers: proxy/cli/publish_flags.cpp
#include "proxy/cli/publish_flags.h"
#include "proxy/cli/settings.h"
#include "tests/support/program.h"

#include <doctest/doctest.h>

using tw::cli::BusAccessFlags;
namespace fs = std::filesystem;

namespace {

bool contains_path(const std::vector<fs::path>& paths, const fs::path& path) {
    return std::find(paths.begin(), paths.end(), path) != paths.end();
}

} // namespace

TEST_CASE("a file that is renewed by renaming stays readable through its folder, unless that is a "
          "shared one") {
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
        const BusAccessFlags flags{.given = {.credentials = row.file}, .old_urls = {"nats://x"}};
        CHECK(contains_path(flags.readable_files(), row.file));
        CHECK(contains_path(flags.readable_files(), row.folder) == row.readable);
    }
    CHECK(BusAccessFlags{.given = {.credentials = "/nowhere/a.creds"}}
              .readable_files()
              .empty()); // files without a bus are not used
}

TEST_CASE("the target of a symbolic link can be renewed, too") {
    const tw::test::TemporaryFolder temporary;
    const fs::path folder = fs::canonical(temporary.path());
    fs::create_directories(folder / "live");
    fs::create_directories(folder / "archive");
    tw::test::write_text(folder / "archive" / "client1.pem", "of the first year");
    fs::create_symlink("../archive/client1.pem", folder / "live" / "client.pem");
    const BusAccessFlags flags{.given = {.certificate = folder / "live" / "client.pem"},
                               .old_urls = {"nats://x"}};
    CHECK(contains_path(flags.readable_files(), folder / "live"));
    CHECK(contains_path(flags.readable_files(), folder / "archive"));
    CHECK_FALSE(contains_path(flags.readable_files(), folder));
}

TEST_CASE("one URL contains the servers of a bus and the stream") {
    using Urls = std::vector<std::string>;

    struct Row {
        const char* url;
        Urls urls;
        const char* stream;
    };

    const Row rows[] = {
        {"nats://127.0.0.1:4222", {"nats://127.0.0.1:4222"}, "twscope"},
        {"nats://127.0.0.1:4222/", {"nats://127.0.0.1:4222"}, "twscope"},
        {"tls://bus.example.org/games", {"tls://bus.example.org"}, "games"},
        {"nats://a:1,b:2/games", {"nats://a:1", "nats://b:2"}, "games"},
        {"nats://user:pa/ss@a:1,[::1]:2/g",
         {"nats://user:pa/ss@a:1", "nats://user:pa/ss@[::1]:2"},
         "g"},
    };
    for (const Row& row : rows) {
        CAPTURE(row.url);
        const BusAccessFlags flags{.url = row.url};
        CHECK(flags.is_enabled());
        CHECK(flags.bus_access().urls == row.urls);
        CHECK(flags.stream_name() == row.stream);
    }
    for (const char* const url :
         {"127.0.0.1:4222", "nats://", "nats:///games", "http://a:1", "tls://a ,b", "nats://a,,b",
          "nats://a,", "nats://,a", "nats://user:secret@", "nats://a/b/c", "nats://a/b.c",
          "nats://a/b?c=d"}) {
        CAPTURE(url);
        try {
            const BusAccessFlags flags{.url = url};
            static_cast<void>(flags.bus_access());
            CHECK_MESSAGE(false, "no error");
        } catch (const tw::cli::UsageError& error) {
            CHECK(std::string_view{error.what()}.starts_with("--bus"));
            CHECK(std::string_view{error.what()}.find("secret") == std::string_view::npos);
        }
    }
}

TEST_CASE(
    "flags of earlier versions have the same effect, but cannot be combined with the new ones") {
    const BusAccessFlags old{.old_urls = {"nats://a:1", "nats://b:2"}, .old_stream = "games"};
    CHECK(old.bus_access().urls == std::vector<std::string>{"nats://a:1", "nats://b:2"});
    CHECK(old.stream_name() == "games");
    CHECK_THROWS_AS(
        static_cast<void>(
            BusAccessFlags{.url = "nats://a:1", .old_urls = {"nats://a:1"}}.bus_access()),
        tw::cli::UsageError);
}
