#include "proxy/bus/collected_files.h"
#include "tests/proxy/store/faulty_disk.h"
#include "tests/support/program.h"

#include <cerrno>
#include <filesystem>
#include <system_error>

#include <doctest/doctest.h>

using namespace tw::bus;
using tw::test::read_text;
using tw::test::TemporaryFolder;
namespace fs = std::filesystem;

namespace {

/// Appends a batch with one text and confirms it.
void append_and_confirm(CollectedFiles& files, const std::string& name, const std::string& text) {
    CHECK(files.append_batch("first", {{name, text}}) == 0);
    files.confirm_batch();
}

} // namespace

TEST_CASE("batches are appended to their files") {
    const TemporaryFolder folder;
    CollectedFiles files{folder.path()};
    CHECK(files.unconfirmed_batch().empty());
    CHECK(files.append_batch("first", {{"a/x", "1\n"}, {"b/x", "2\n"}}) == 0);
    CHECK(files.unconfirmed_batch() == "first");
    files.confirm_batch();
    CHECK(files.unconfirmed_batch().empty());
    CHECK(files.append_batch("second", {{"a/x", "3\n"}}) == 0);
    files.confirm_batch();
    CHECK(read_text(folder.file("a/x")) == "1\n3\n");
    CHECK(read_text(folder.file("b/x")) == "2\n");
}

TEST_CASE("a batch that is rolled back leaves nothing in the files") {
    const TemporaryFolder folder;
    CollectedFiles files{folder.path()};
    append_and_confirm(files, "a/x", "1\n");
    CHECK(files.append_batch("second", {{"a/x", "2\n"}, {"b/x", "3\n"}}) == 0);
    CHECK(files.roll_back_batch() == 0);
    CHECK(read_text(folder.file("a/x")) == "1\n");
    CHECK_FALSE(fs::exists(folder.file("b/x")));
    CHECK(files.roll_back_batch() == 0); // nothing is left to roll back
}

TEST_CASE("a batch that cannot be rolled back stays unconfirmed, also for the next process") {
    const TemporaryFolder folder;
    tw::test::FaultyDisk disk;
    {
        CollectedFiles files{folder.path(), disk};
        append_and_confirm(files, "a", "1\n");
        CHECK(files.append_batch("second", {{"a", "2\n"}, {"b", "3\n"}}) == 0);
        disk.can_truncate = false;
        CHECK(files.roll_back_batch() == EIO);
        CHECK(files.unconfirmed_batch() == "second");
        disk.can_truncate = true;
        disk.open_error = EMFILE;
        CHECK(files.roll_back_batch() == EMFILE);
        CHECK(files.unconfirmed_batch() == "second");
    }
    disk.open_error = 0;
    CollectedFiles files{folder.path(), disk};
    CHECK(files.unconfirmed_batch() == "second");
    CHECK(files.roll_back_batch() == 0);
    CHECK(files.unconfirmed_batch().empty());
    CHECK(read_text(folder.file("a")) == "1\n");
    CHECK_FALSE(fs::exists(folder.file("b")));
}

TEST_CASE("a batch that is partly written and cannot be rolled back is unconfirmed") {
    const TemporaryFolder folder;
    tw::test::FaultyDisk disk;
    CollectedFiles files{folder.path(), disk};
    append_and_confirm(files, "a", "1234\n");
    disk.room = 2;
    disk.can_truncate = false;
    CHECK(files.append_batch("second", {{"a", "5678\n"}}) == ENOSPC);
    CHECK(files.unconfirmed_batch() == "second");
    disk.can_truncate = true;
    CHECK(files.roll_back_batch() == 0);
    CHECK(read_text(folder.file("a")) == "1234\n");
}

TEST_CASE("the process after a killed one finds the unconfirmed batch") {
    const TemporaryFolder folder;
    {
        CollectedFiles files{folder.path()};
        append_and_confirm(files, "a b/x", "1\n");
        CHECK(files.append_batch("second", {{"a b/x", "2\n"}, {"b/x", "3\n"}}) == 0);
    }
    {
        CollectedFiles files{folder.path()};
        CHECK(files.unconfirmed_batch() == "second");
        SUBCASE("and rolls it back") {
            CHECK(files.roll_back_batch() == 0);
            CHECK(read_text(folder.file("a b/x")) == "1\n");
            CHECK_FALSE(fs::exists(folder.file("b/x")));
        }
        SUBCASE("and confirms it") {
            files.confirm_batch();
            CHECK(read_text(folder.file("a b/x")) == "1\n2\n");
            CHECK(read_text(folder.file("b/x")) == "3\n");
        }
    }
    const CollectedFiles again{folder.path()};
    CHECK(again.unconfirmed_batch().empty());
}

TEST_CASE("after an incomplete journal, no batch is unconfirmed") {
    const TemporaryFolder folder;
    {
        CollectedFiles files{folder.path()};
        append_and_confirm(files, "x", "1\n");
        CHECK(files.append_batch("second", {{"x", "2\n"}}) == 0);
    }
    const auto journal = folder.file(".collect-journal");
    const auto size = fs::file_size(journal);
    for (std::uintmax_t cut = 0; cut < size; ++cut) {
        CAPTURE(cut);
        fs::resize_file(journal, size - 1 - cut);
        const CollectedFiles files{folder.path()};
        CHECK(files.unconfirmed_batch().empty());
    }
    CHECK(read_text(folder.file("x")) == "1\n2\n");
}

TEST_CASE("only one collector at a time can use a folder") {
    const TemporaryFolder folder;
    const CollectedFiles files{folder.path()};
    CHECK_THROWS_AS(CollectedFiles{folder.path()}, std::system_error);
}

TEST_CASE("on a full disk, a batch is written completely or not at all") {
    const TemporaryFolder folder;
    tw::test::FaultyDisk disk;
    CollectedFiles files{folder.path(), disk};
    append_and_confirm(files, "a", "1234\n");
    disk.room = 7;
    CHECK(files.append_batch("second", {{"a", "5678\n"}, {"b", "9012\n"}}) == ENOSPC);
    CHECK(files.unconfirmed_batch().empty());
    CHECK(read_text(folder.file("a")) == "1234\n");
    CHECK_FALSE(fs::exists(folder.file("b")));
    disk.room = UINT64_MAX;
    disk.interrupted_writes = 1;
    disk.max_write_bytes = 2;
    CHECK(files.append_batch("third", {{"a", "5678\n"}}) == 0);
    CHECK(read_text(folder.file("a")) == "1234\n5678\n");
}
