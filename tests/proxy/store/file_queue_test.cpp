#include "proxy/store/file_queue.h"
#include "tests/support/demo_bytes.h"
#include "tests/support/full_disk.h"
#include "tests/support/program.h"

#include <string>
#include <thread>
#include <tuple>

#include <doctest/doctest.h>

using namespace tw;
using store::FileQueue;
using test::bytes_of;

namespace {

test::Bytes make_bytes(std::string_view letters) {
    const auto raw = std::as_bytes(std::span{letters});
    return {raw.begin(), raw.end()};
}

} // namespace

TEST_CASE("bytes are appended in order, and overwritten bytes replace earlier ones") {
    const test::TemporaryFolder folder;
    FileQueue files;
    const auto one = files.create(folder.file("one"), make_bytes("abc"));
    const auto two = files.create(folder.file("two"), make_bytes("x"));
    REQUIRE(one.has_value());
    REQUIRE(two.has_value());
    CHECK(files.append(*one, make_bytes("def")));
    CHECK(files.append(*two, make_bytes("yz")));
    files.overwrite_bytes(*one, 1, make_bytes("BC"));
    files.close(*one);
    CHECK(files.append(*one, make_bytes("lost"))); // the file is closed, so the data is ignored
    files.finish_writing();
    CHECK(test::read_text(folder.file("one")) == "aBCdef");
    CHECK(test::read_text(folder.file("two")) == "xyz");
    CHECK(files.num_created_files() == 2);
    CHECK(files.num_lost_blocks() == 0);
    CHECK(files.take_written_path() == folder.file("one"));
    CHECK_FALSE(files.take_written_path()); // the other file was not closed
}

TEST_CASE("an existing file is not changed") {
    const test::TemporaryFolder folder;
    {
        FileQueue files;
        for (int i = 0; i < 3; ++i) {
            CHECK(files.create(folder.file("a.demo"), make_bytes("x")).has_value());
        }
    }
    const auto made = folder.files();
    REQUIRE(made.size() == 3);
    CHECK(made[0].filename() == "a-2.demo");
    CHECK(made[1].filename() == "a-3.demo");
    CHECK(made[2].filename() == "a.demo");
}

TEST_CASE("data that cannot be written is counted, and reported once for each file") {
    const test::TemporaryFolder folder;
    FileQueue files;
    const auto nowhere = files.create(folder.file("no/where"), make_bytes("x"));
    REQUIRE(nowhere.has_value());
    std::ignore = files.append(*nowhere, make_bytes("y"));
    files.finish_writing();
    CHECK(files.num_lost_blocks() == 2);
    CHECK(files.take_error_text().value_or("").ends_with("where: No such file or directory"));
    CHECK_FALSE(files.take_error_text().has_value());
    CHECK(files.num_created_files() == 0);
}

TEST_CASE("after a full disk, a file contains complete blocks and can only be overwritten") {
    const test::TemporaryFolder folder;
    FileQueue files;
    const auto file = files.create(folder.file("a"), make_bytes("head"));
    REQUIRE(file.has_value());
    CHECK(files.append(*file, test::Bytes(60, std::byte{'x'})));
    {
        const test::FullDisk disk{100};
        CHECK(files.append(*file, test::Bytes(60, std::byte{'y'})));
        CHECK(files.create(folder.file("none"), test::Bytes(200)).has_value());
        while (files.num_lost_blocks() < 2) {
            std::this_thread::yield();
        }
    }
    CHECK_FALSE(files.append(*file, make_bytes("later")));
    files.overwrite_bytes(*file, 1, make_bytes("EA"));
    files.close(*file);
    files.finish_writing();
    CHECK(test::read_text(folder.file("a")) == "hEAd" + std::string(60, 'x'));
    CHECK(folder.files().size() == 1);
    CHECK(files.num_lost_blocks() == 3);
    CHECK(files.num_created_files() == 1);
}

TEST_CASE("a full queue refuses data, or waits for room if its policy says so") {
    const test::TemporaryFolder folder;
    FileQueue waiting{FileQueue::FullQueuePolicy::wait, 100};
    const auto file = waiting.create(folder.file("all"), make_bytes("x"));
    REQUIRE(file.has_value());
    for (int i = 0; i < 1000; ++i) {
        CHECK(waiting.append(*file, test::Bytes(60)));
    }
    waiting.finish_writing();
    CHECK(waiting.num_lost_blocks() == 0);
    CHECK(test::read_text(folder.file("all")).size() == 60'001);

    // A block is refused while a large block is written, unless this thread was delayed meanwhile.
    FileQueue refusing{FileQueue::FullQueuePolicy::refuse, 100};
    const auto large = refusing.create(folder.file("large"), make_bytes("x"));
    REQUIRE(large.has_value());
    bool refused = false;
    for (int i = 0; i < 100 && !refused; ++i) {
        std::ignore = refusing.append(*large, test::Bytes(1 << 24));
        refused = !refusing.append(*large, test::Bytes(101));
    }
    CHECK(refused);
    CHECK(refusing.num_lost_blocks() != 0);
}
