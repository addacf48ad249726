#include "proxy/bus/collected_files.h"
#include "proxy/bus/subjects.h"
#include "tests/proxy/sink/faulty_disk.h"

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <system_error>

#include <doctest/doctest.h>

using namespace tw::bus;
namespace fs = std::filesystem;

namespace {

class Folder {
  public:
    Folder() : path{fs::temp_directory_path() / ("twscope-collect-" + make_run_id())} {}

    ~Folder() { fs::remove_all(path); }

    Folder(const Folder&) = delete;
    Folder& operator=(const Folder&) = delete;
    Folder(Folder&&) = delete;
    Folder& operator=(Folder&&) = delete;

    [[nodiscard]] std::string text(const std::string& name) const {
        std::ifstream file{path / name};
        return {std::istreambuf_iterator<char>{file}, {}};
    }

    fs::path path;
};

} // namespace

TEST_CASE("batches are appended to their files") {
    const Folder folder;
    CollectedFiles files{folder.path};
    CHECK(files.unfinished().empty());
    CHECK(files.append("first", {{"a/x", "1\n"}, {"b/x", "2\n"}}) == 0);
    CHECK(files.unfinished() == "first");
    files.keep();
    CHECK(files.unfinished().empty());
    CHECK(files.append("second", {{"a/x", "3\n"}}) == 0);
    files.keep();
    CHECK(folder.text("a/x") == "1\n3\n");
    CHECK(folder.text("b/x") == "2\n");
}

TEST_CASE("a batch that does not count leaves nothing behind") {
    const Folder folder;
    CollectedFiles files{folder.path};
    CHECK(files.append("first", {{"a/x", "1\n"}}) == 0);
    files.keep();
    CHECK(files.append("second", {{"a/x", "2\n"}, {"b/x", "3\n"}}) == 0);
    CHECK(files.take_back() == 0);
    CHECK(folder.text("a/x") == "1\n");
    CHECK_FALSE(fs::exists(folder.path / "b/x"));
    CHECK(files.take_back() == 0); // there is nothing more
}

TEST_CASE("what cannot be taken back stays unfinished, also for the next process") {
    const Folder folder;
    tw::test::FaultyDisk disk;
    {
        CollectedFiles files{folder.path, disk};
        CHECK(files.append("first", {{"a", "1\n"}}) == 0);
        files.keep();
        CHECK(files.append("second", {{"a", "2\n"}, {"b", "3\n"}}) == 0);
        disk.truncates = false;
        CHECK(files.take_back() == EIO);
        CHECK(files.unfinished() == "second");
        disk.truncates = true;
        disk.open_error = EMFILE;
        CHECK(files.take_back() == EMFILE);
        CHECK(files.unfinished() == "second");
    }
    disk.open_error = 0;
    CollectedFiles files{folder.path, disk};
    CHECK(files.unfinished() == "second");
    CHECK(files.take_back() == 0);
    CHECK(files.unfinished().empty());
    CHECK(folder.text("a") == "1\n");
    CHECK_FALSE(fs::exists(folder.path / "b"));
}

TEST_CASE("a batch that is written in part and cannot be taken back is unfinished") {
    const Folder folder;
    tw::test::FaultyDisk disk;
    CollectedFiles files{folder.path, disk};
    CHECK(files.append("first", {{"a", "1234\n"}}) == 0);
    files.keep();
    disk.room = 2;
    disk.truncates = false;
    CHECK(files.append("second", {{"a", "5678\n"}}) == ENOSPC);
    CHECK(files.unfinished() == "second");
    disk.truncates = true;
    CHECK(files.take_back() == 0);
    CHECK(folder.text("a") == "1234\n");
}

TEST_CASE("who comes behind a process that was killed finds what it did not finish") {
    const Folder folder;
    {
        CollectedFiles files{folder.path};
        CHECK(files.append("first", {{"a b/x", "1\n"}}) == 0);
        files.keep();
        CHECK(files.append("second", {{"a b/x", "2\n"}, {"b/x", "3\n"}}) == 0);
    }
    {
        CollectedFiles files{folder.path};
        CHECK(files.unfinished() == "second");
        SUBCASE("and takes it back") {
            CHECK(files.take_back() == 0);
            CHECK(folder.text("a b/x") == "1\n");
            CHECK_FALSE(fs::exists(folder.path / "b/x"));
        }
        SUBCASE("and keeps it") {
            files.keep();
            CHECK(folder.text("a b/x") == "1\n2\n");
            CHECK(folder.text("b/x") == "3\n");
        }
    }
    const CollectedFiles again{folder.path};
    CHECK(again.unfinished().empty());
}

TEST_CASE("a journal that was cut short tells of nothing: nothing was appended behind it") {
    const Folder folder;
    {
        CollectedFiles files{folder.path};
        CHECK(files.append("first", {{"x", "1\n"}}) == 0);
        files.keep();
        CHECK(files.append("second", {{"x", "2\n"}}) == 0);
    }
    const auto journal = folder.path / ".collect-journal";
    const auto size = fs::file_size(journal);
    for (std::uintmax_t cut = 0; cut < size; ++cut) {
        CAPTURE(cut);
        fs::resize_file(journal, size - 1 - cut);
        const CollectedFiles files{folder.path};
        CHECK(files.unfinished().empty());
    }
    CHECK(folder.text("x") == "1\n2\n");
}

TEST_CASE("a folder has one collector at a time") {
    const Folder folder;
    const CollectedFiles files{folder.path};
    CHECK_THROWS_AS(CollectedFiles{folder.path}, std::system_error);
}

TEST_CASE("a full disk takes a batch whole or not at all") {
    const Folder folder;
    tw::test::FaultyDisk disk;
    CollectedFiles files{folder.path, disk};
    CHECK(files.append("first", {{"a", "1234\n"}}) == 0);
    files.keep();
    disk.room = 7;
    CHECK(files.append("second", {{"a", "5678\n"}, {"b", "9012\n"}}) == ENOSPC);
    CHECK(files.unfinished().empty());
    CHECK(folder.text("a") == "1234\n");
    CHECK_FALSE(fs::exists(folder.path / "b"));
    disk.room = UINT64_MAX;
    disk.interrupted = 1;
    disk.at_once = 2;
    CHECK(files.append("third", {{"a", "5678\n"}}) == 0);
    CHECK(folder.text("a") == "1234\n5678\n");
}
