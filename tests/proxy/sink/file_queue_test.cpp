#include "proxy/sink/file_queue.h"
#include "tests/support/demo_bytes.h"
#include "tests/support/full_disk.h"

#include <array>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <tuple>

#include <doctest/doctest.h>
#include <fcntl.h>
#include <unistd.h>

using namespace tw;
using sink::FileQueue;
using test::bytes_of;

namespace {

std::string content(const std::filesystem::path& path) {
    std::ifstream file{path, std::ios::binary};
    return {std::istreambuf_iterator<char>{file}, {}};
}

test::Bytes text(std::string_view letters) {
    const auto raw = std::as_bytes(std::span{letters});
    return {raw.begin(), raw.end()};
}

} // namespace

TEST_CASE("what is appended stands in the file in order, what is patched over it") {
    const test::FilledFolder folder;
    FileQueue files;
    const auto one = files.create(folder.path() / "one", text("abc"));
    const auto two = files.create(folder.path() / "two", text("x"));
    REQUIRE(one.has_value());
    REQUIRE(two.has_value());
    CHECK(files.append(*one, text("def")));
    CHECK(files.append(*two, text("yz")));
    files.patch(*one, 1, text("BC"));
    files.close(*one);
    CHECK(files.append(*one, text("lost"))); // nobody has it open any more
    files.finish();
    CHECK(content(folder.path() / "one") == "aBCdef");
    CHECK(content(folder.path() / "two") == "xyz");
    CHECK(files.created() == 2);
    CHECK(files.lost() == 0);
}

TEST_CASE("a file that is there is left alone") {
    const test::FilledFolder folder;
    {
        FileQueue files;
        for (int i = 0; i < 3; ++i) {
            CHECK(files.create(folder.path() / "a.demo", text("x")).has_value());
        }
    }
    const auto made = folder.files();
    REQUIRE(made.size() == 3);
    CHECK(made[0].filename() == "a-2.demo");
    CHECK(made[1].filename() == "a-3.demo");
    CHECK(made[2].filename() == "a.demo");
}

TEST_CASE("what cannot be written is counted, and reported once a file") {
    const test::FilledFolder folder;
    FileQueue files;
    const auto nowhere = files.create(folder.path() / "no" / "where", text("x"));
    REQUIRE(nowhere.has_value());
    std::ignore = files.append(*nowhere, text("y"));
    const FileQueue::File full = files.adopt(::open("/dev/full", O_WRONLY), "/dev/full");
    CHECK(files.append(full, text("z")));
    std::ignore = files.append(full, text("z"));
    files.finish();
    CHECK(files.lost() == 4);
    CHECK(files.take_complaint().value_or("").ends_with("where: No such file or directory"));
    CHECK(files.take_complaint() == "/dev/full: No space left on device");
    CHECK_FALSE(files.take_complaint().has_value());
    CHECK(files.created() == 0);
}

TEST_CASE("a file that a full disk cut short is whole up to there, takes patches, and no more") {
    const test::FilledFolder folder;
    FileQueue files;
    const auto file = files.create(folder.path() / "a", text("head"));
    REQUIRE(file.has_value());
    CHECK(files.append(*file, test::Bytes(60, std::byte{'x'})));
    {
        const test::FullDisk disk{100};
        CHECK(files.append(*file, test::Bytes(60, std::byte{'y'})));
        CHECK(files.create(folder.path() / "none", test::Bytes(200)).has_value());
        while (files.lost() < 2) {
            std::this_thread::yield();
        }
    }
    CHECK_FALSE(files.append(*file, text("later")));
    files.patch(*file, 1, text("EA"));
    files.close(*file);
    files.finish();
    CHECK(content(folder.path() / "a") == "hEAd" + std::string(60, 'x'));
    CHECK(folder.files().size() == 1);
    CHECK(files.lost() == 3);
    CHECK(files.created() == 1);
}

TEST_CASE("a queue that is full refuses, or waits where it is asked to") {
    const test::FilledFolder folder;
    FileQueue waiting{FileQueue::Full::wait, 100};
    const auto file = waiting.create(folder.path() / "all", text("x"));
    REQUIRE(file.has_value());
    for (int i = 0; i < 1000; ++i) {
        CHECK(waiting.append(*file, test::Bytes(60)));
    }
    waiting.finish();
    CHECK(waiting.lost() == 0);
    CHECK(content(folder.path() / "all").size() == 60'001);

    // Whoever reads a pipe stalls; the next block after the one at hand does not fit.
    std::array<int, 2> ends{};
    REQUIRE(::pipe2(ends.data(), O_CLOEXEC) == 0);
    FileQueue refusing{FileQueue::Full::refuse, 100};
    const FileQueue::File stalled = refusing.adopt(ends[1], "pipe");
    CHECK(refusing.append(stalled, test::Bytes(1 << 20)));
    CHECK_FALSE(refusing.append(stalled, test::Bytes(101)));
    CHECK_FALSE(refusing.create(folder.path() / "none", test::Bytes(101)).has_value());
    CHECK(refusing.lost() == 2);
    test::Bytes read(1 << 20);
    std::size_t got = 0;
    while (got < read.size()) {
        got += static_cast<std::size_t>(::read(ends[0], read.data(), read.size() - got));
    }
    ::close(ends[0]);
}
