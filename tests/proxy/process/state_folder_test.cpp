#include "proxy/process/state_folder.h"
#include "tests/support/program.h"

#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include <doctest/doctest.h>
#include <sys/stat.h>

namespace {

namespace fs = std::filesystem;
using tw::process::read_or_create_key;
using tw::test::TemporaryFolder;

mode_t permission_bits_of(const fs::path& path) {
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
    CHECK(permission_bits_of(state) == 0700);
    CHECK(permission_bits_of(state / "key") == 0600);
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

using namespace tw::process;
using tw::test::TemporaryFolder;

TEST_CASE("a valid token is long enough, and fits into a header and an address") {
    struct Row {
        std::string_view name;
        std::string text;
        bool good;
    };

    const Row rows[] = {
        {"letters, digits and marks", "abcXYZ0189-._~+/==", true},
        {"the shortest", std::string(16, 'a'), true},
        {"too short", std::string(15, 'a'), false},
        {"the longest", std::string(256, 'a'), true},
        {"too long", std::string(257, 'a'), false},
        {"nothing", "", false},
        {"a blank", "correct horse battery", false},
        {"the end of a header", "correct-horse\r\nbattery", false},
        {"a quote", "correct-horse-\"battery", false},
        {"no ASCII", "correct-horse-b\xc3\xa4ttery", false},
        {"a NUL", std::string(16, '\0'), false},
    };
    const TemporaryFolder folder;
    const std::string file = folder.file("token");
    for (const Row& row : rows) {
        CAPTURE(row.name);
        CHECK(is_valid_token(row.text) == row.good);
        for (const std::string_view end : {"", "\n", "\r\n", "\nand a line that is none of it\n"}) {
            std::ofstream{file, std::ios::binary} << row.text << end;
            const auto read = read_token(file);
            const bool cut = row.text.find('\n') != std::string::npos; // only the first line counts
            CHECK((read && read->value == row.text) == (row.good && !cut));
            if (!read) {
                CHECK(read.error().find(file + ": its first line is not a token") == 0);
            }
        }
    }
}

TEST_CASE("a missing token file, or one without a token, is reported in one line") {
    const TemporaryFolder folder;
    for (const std::string& file : {folder.file("missing"), folder.path()}) {
        const auto read = read_token(file);
        REQUIRE_FALSE(read);
        CHECK(read.error().find(file) == 0);
        CHECK(read.error().find('\n') == std::string::npos);
    }
}

TEST_CASE("a token is created once, readable by its owner only, and reused by the next run") {
    const TemporaryFolder folder;
    const PageToken token = read_or_create_token(folder.path());
    CHECK(is_valid_token(token.value));
    CHECK(token.file == folder.file("http.token"));
    CHECK(read_or_create_token(folder.path()) == token);
    CHECK(read_token(token.file) == token);

    struct stat info {};

    REQUIRE(::stat(token.file.c_str(), &info) == 0);
    CHECK((info.st_mode & 0777U) == 0600);
}

TEST_CASE("a token that cannot be stored is for this run only, and the file is not changed") {
    const TemporaryFolder folder;
    std::ofstream{folder.file("http.token")} << "short\n";
    for (const std::string& state : {folder.path(), folder.file("http.token/below")}) {
        const PageToken token = read_or_create_token(state);
        CHECK(is_valid_token(token.value));
        CHECK(token.file.empty());
        CHECK(read_or_create_token(state).value != token.value);
    }
    CHECK(tw::test::read_text(folder.file("http.token")) == "short\n");
}

TEST_CASE("a log that programs read contains the token's file, not the token") {
    const PageToken kept{.value = "correct-horse-battery", .file = "/var/lib/twscope/http.token"};
    CHECK(kept.shell_text_for_log(true) == "correct-horse-battery");
    CHECK(kept.shell_text_for_log(false) == "$(cat /var/lib/twscope/http.token)");
    const std::string here = std::filesystem::current_path().string();
    CHECK(tw::test::contains(PageToken{.value = "x", .file = "t"}.shell_text_for_log(false),
                             here + "/t"));
    CHECK(PageToken{.value = "x", .file = "/a b/t"}.shell_text_for_log(false) == "$(cat '/a b/t')");
    CHECK(
        PageToken{.value = "correct-horse-battery", .file = ""}.shell_text_for_log(false).empty());
}
