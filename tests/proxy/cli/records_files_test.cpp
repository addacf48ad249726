#include "proxy/cli/records_files.h"
#include "tests/support/program.h"

#include <doctest/doctest.h>

using namespace tw;
using namespace tw::test;

namespace {

void append_to_file(const std::string& path, const std::string& text) {
    const std::string before = std::filesystem::exists(path) ? read_text(path) : std::string{};
    write_text(path, before + text);
}

/// Returns the lines that following the folder gives. The steps happen one by one, each when all data
/// has been read.
std::vector<std::string> follow_folder(const TemporaryFolder& folder,
                                       std::vector<std::function<void()>> steps) {
    std::vector<std::string> lines;
    cli::RecordsFiles files{{folder.path()}};
    std::size_t at = 0;
    int idle = 0;
    const auto next_step = [&] {
        if (at < steps.size()) {
            steps[at++]();
        } else {
            ++idle;
        }
    };
    const auto add_line = [&lines](std::string_view line) {
        return !lines.emplace_back(line).empty();
    };
    files.follow_files({.on_line = add_line, .on_pause = next_step}, [&idle] { return idle > 1; });
    return lines;
}

} // namespace

TEST_CASE(
    "following continues with the same recording when the file is moved, removed or replaced") {
    const TemporaryFolder folder;
    const auto segment = [&folder](const std::string& name, int number) {
        return folder.file(name + "-20261121T161530Z-000" + std::to_string(number) + ".jsonl");
    };
    const std::string first = segment("game", 1);
    const std::string second = segment("game", 2);
    const std::string third = segment("game", 3);
    write_text(first, "one\n");
    write_text(second, "two\n");
    using Lines = std::vector<std::string>;

    SUBCASE("the file is removed, and an older one is not read again") {
        CHECK(follow_folder(folder, {[&] { std::filesystem::remove(second); },
                                     [&] { write_text(third, "three\n"); }}) ==
              Lines{"one", "two", "three"});
    }
    SUBCASE("the file is moved and grows under its new name") {
        const std::string moved = folder.file("moved");
        CHECK(follow_folder(folder, {[&] { std::filesystem::rename(second, moved); },
                                     [&] { append_to_file(moved, "more\n"); }}) ==
              Lines{"one", "two", "more"});
    }
    SUBCASE("another recording begins, with a name that sorts before or after it") {
        CHECK(follow_folder(folder, {[&] { write_text(segment("zeta", 1), "other\n"); },
                                     [&] { write_text(segment("alpha", 7), "other\n"); },
                                     [&] { append_to_file(second, "more\n"); },
                                     [&] { write_text(third, "three\n"); },
                                     [&] { append_to_file(segment("zeta", 1), "other\n"); }}) ==
              Lines{"one", "two", "more", "three"});
    }
}

TEST_CASE("following a collector's files continues from hour to hour") {
    const TemporaryFolder folder;
    const std::string first = folder.write("2026-11-22T18Z.jsonl.zst", "one\n");
    CHECK(follow_folder(folder, {[&] { std::filesystem::remove(first); },
                                 [&] { folder.write("2026-11-22T20Z.jsonl.zst", "two\n"); }}) ==
          std::vector<std::string>{"one", "two"});
}
