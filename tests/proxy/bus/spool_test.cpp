// Covers: proxy/bus/spool_folder.cpp, proxy/bus/backlog.cpp
#include "proxy/bus/backlog.h"
#include "proxy/bus/link.h"
#include "proxy/bus/spool_folder.h"
#include "proxy/bus/subjects.h"
#include "tests/proxy/sink/faulty_disk.h"
#include "tests/support/full_disk.h"

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>

#include <doctest/doctest.h>
#include <unistd.h>

using namespace tw::bus;
namespace fs = std::filesystem;

namespace {

constexpr std::uint64_t kLimit = SpoolFolder::kLeastBytes;

class Folder {
  public:
    Folder() : path{fs::temp_directory_path() / ("twscope-spool-" + make_run_id())} {}

    ~Folder() { fs::remove_all(path); }

    Folder(const Folder&) = delete;
    Folder& operator=(const Folder&) = delete;
    Folder(Folder&&) = delete;
    Folder& operator=(Folder&&) = delete;

    [[nodiscard]] std::size_t files() const {
        return static_cast<std::size_t>(
            std::distance(fs::directory_iterator{path}, fs::directory_iterator{}));
    }

    fs::path path;
};

/// A line of so many bytes that says its number.
std::string line(std::uint64_t number, std::size_t size = 1000) {
    std::string text = std::to_string(number) + ' ';
    text.resize(size - 1, '.');
    return text + '\n';
}

void append(Spool& spool, std::uint64_t from, std::uint64_t to) {
    for (std::uint64_t number = from; number <= to; ++number) {
        REQUIRE(spool.append(line(number)));
    }
}

/// Reads from a line on to the end; returns the first and how many, each of which has to say its number.
struct Reading {
    std::uint64_t first = 0;
    std::uint64_t count = 0;
};

Reading read_all(Spool& spool, std::uint64_t from) {
    Reading reading;
    RecordLines lines;
    std::uint64_t next = from;
    while (spool.read_lines(next, lines)) {
        std::uint64_t number = lines.first;
        for (std::size_t at = 0; at < lines.text.size(); at = lines.text.find('\n', at) + 1) {
            REQUIRE(std::stoull(lines.text.substr(at, 20)) == number);
            if (number >= from) {
                reading.first = reading.count == 0 ? number : reading.first;
                ++reading.count;
            }
            ++number;
        }
        next = number;
    }
    return reading;
}

} // namespace

TEST_CASE("what is appended is read from any line on, over many files") {
    const Folder place;
    SpoolFolder folder{place.path, kLimit};
    Spool spool{folder, make_run_id(), "one", kStream};
    CHECK(spool.server() == "one");
    append(spool, 1, 500);
    CHECK(place.files() > 5);
    CHECK(folder.bytes() == 500'000);
    for (const std::uint64_t from : {1U, 2U, 65U, 66U, 67U, 499U, 500U, 3U}) {
        CAPTURE(from);
        const Reading reading = read_all(spool, from);
        CHECK(reading.first == from);
        CHECK(reading.count == 501 - from);
    }
    RecordLines lines;
    CHECK_FALSE(spool.read_lines(501, lines));
}

TEST_CASE("one line may be longer than what is read at once") {
    const Folder place;
    SpoolFolder folder{place.path, std::uint64_t{64} << 20U};
    Spool spool{folder, make_run_id(), "one", kStream};
    REQUIRE(spool.append(line(1, 3'000'000)));
    REQUIRE(spool.append(line(2)));
    const Reading reading = read_all(spool, 1);
    CHECK(reading.count == 2);
}

TEST_CASE("what is settled goes, and with the last line all of it") {
    const Folder place;
    {
        SpoolFolder folder{place.path, kLimit};
        Spool spool{folder, make_run_id(), "one", kStream};
        append(spool, 1, 500);
        const std::size_t before = place.files();
        spool.settle(400, 9000);
        CHECK(place.files() < before / 2);
        CHECK(folder.bytes() < 200'000);
        const Reading reading = read_all(spool, 401);
        CHECK(reading.count == 100);
        CHECK(spool.bytes() >= 100'000);
        spool.settle(500, 9100);
        CHECK(spool.bytes() == 0); // of what waits, though a file is there
    }
    CHECK(place.files() == 0);
}

TEST_CASE("what a run left is there for the next one, under its former numbers") {
    const Folder place;
    const std::string run = make_run_id();
    {
        SpoolFolder folder{place.path, kLimit};
        Spool spool{folder, run, "one", kStream};
        append(spool, 1, 300);
        spool.settle(100, 4711);
    }
    SpoolFolder folder{place.path, kLimit};
    const Spool own{folder, make_run_id(), "two", kStream};
    {
        const auto left = Spool::next_leftover(folder, own.run(), kStream);
        REQUIRE(left != nullptr);
        CHECK(left->run() == run);
        CHECK(left->server() == "one");
        CHECK(left->settled() == 100);
        CHECK(left->place() == 4711);
        CHECK(left->last_line() == 300);
        const Reading reading = read_all(*left, 101);
        CHECK(reading.first == 101);
        CHECK(reading.count == 200);
        CHECK(Spool::next_leftover(folder, own.run(), kStream) == nullptr); // it is somebody's now
        left->settle(300, 5000);
    }
    CHECK(Spool::next_leftover(folder, own.run(), kStream) == nullptr);
    CHECK(folder.bytes() == 0);
}

TEST_CASE("what waits is counted without what was settled or gave way, and with what runs left") {
    const Folder place;
    {
        SpoolFolder folder{place.path, kLimit};
        Spool spool{folder, make_run_id(), "one", kStream};
        append(spool, 1, 300);
        spool.settle(100, 4711);
        CHECK(spool.waiting_lines() == 200);
        append(spool, 301, 3000);
        CHECK(spool.waiting_lines() == 3000 - folder.lost() - 100);
    }
    SpoolFolder folder{place.path, 4 * kLimit};
    const std::uint64_t left = folder.waiting("", kStream);
    CHECK(left > 500);
    CHECK(folder.waiting("", kStream) == left);
    Spool spool{folder, make_run_id(), "two", kStream};
    append(spool, 1, 7);
    CHECK(spool.waiting_lines() == left + 7);
    const Spool other{folder, make_run_id(), "two", "another"};
    SpoolFolder again{place.path, kLimit};
    CHECK(again.waiting("", "another") == 0); // all is for the first stream
}

TEST_CASE("what waits for another stream is left where it is") {
    const Folder place;
    {
        SpoolFolder folder{place.path, kLimit};
        Spool spool{folder, make_run_id(), "one", kStream};
        append(spool, 1, 3);
    }
    SpoolFolder folder{place.path, kLimit};
    folder.report_unpublished("another");
    CHECK(Spool::next_leftover(folder, "", "another") == nullptr);
    CHECK(folder.bytes() == 3000);
    const auto left = Spool::next_leftover(folder, "", kStream);
    REQUIRE(left != nullptr);
    CHECK(left->last_line() == 3);
}

TEST_CASE("lines that are damaged or gone in the middle of what a run left are counted") {
    const Folder place;
    const std::string run = make_run_id();
    {
        SpoolFolder folder{place.path, kLimit};
        Spool spool{folder, run, "one", kStream};
        append(spool, 1, 1);
    }
    const auto put = [&](std::uint64_t first, const std::string& text) {
        std::ofstream{place.path / spool_file_name(run, first)} << text;
    };
    put(1, line(1) + line(2) + line(3));
    put(10, std::string(300, '\0'));
    put(20, line(20) + line(21) + "{");
    SpoolFolder folder{place.path, kLimit};
    const auto left = Spool::next_leftover(folder, "", kStream);
    REQUIRE(left != nullptr);
    CHECK(folder.damaged() == 16);
    CHECK(folder.lost() == 0);
    CHECK(read_all(*left, 4).first == 20);
}

TEST_CASE("bytes behind the last whole line are told apart") {
    const Folder place;
    const std::string path = (place.path / "file").string();

    struct Row {
        std::string_view text;
        std::uint64_t lines;
        std::uint64_t torn;
    };

    std::filesystem::create_directory(place.path);
    const std::string longer = std::string(300'000, 'x') + '\n' + std::string(300'000, 'y');
    const Row rows[] = {
        {"", 0, 0}, {"one\n", 1, 0}, {"one\ntwo\nth", 2, 2}, {"half", 0, 4}, {longer, 1, 300'000}};
    for (const Row& row : rows) {
        CAPTURE(row.lines);
        std::ofstream{path} << row.text;
        const auto contents = SpoolFolder::count_contents(path);
        CHECK(contents.lines == row.lines);
        CHECK(contents.torn == row.torn);
    }
}

TEST_CASE("a folder that is taken away takes nothing more, and what waited in it is counted") {
    const Folder place;
    SpoolFolder folder{place.path, kLimit};
    Spool spool{folder, make_run_id(), "one", kStream};
    append(spool, 1, 10);
    std::filesystem::remove_all(place.path);
    append(spool, 11, 12); // nobody sees that yet
    CHECK(read_all(spool, 3).count == 0);
    CHECK(folder.damaged() == 10);
    CHECK_FALSE(spool.append(line(13)));
    CHECK(spool.error() == ENOENT);
    CHECK(spool.last_line() == 12);
}

TEST_CASE("a run whose process lives is left alone") {
    const Folder place;
    SpoolFolder folder{place.path, kLimit};
    Spool alive{folder, make_run_id(), "one", kStream};
    append(alive, 1, 10);
    SpoolFolder other{place.path, kLimit};
    CHECK(other.bytes() == 0);
    CHECK(Spool::next_leftover(other, "", kStream) == nullptr);
    const Reading reading = read_all(alive, 1);
    CHECK(reading.count == 10);
}

TEST_CASE("a line that was cut short by the end of the process is none") {
    const Folder place;
    const std::string run = make_run_id();
    {
        SpoolFolder folder{place.path, kLimit};
        Spool spool{folder, run, "one", kStream};
        append(spool, 1, 3);
    }
    std::ofstream{place.path / spool_file_name(run, 1), std::ios::app} << "4 cut sho";
    SpoolFolder folder{place.path, kLimit};
    const auto left = Spool::next_leftover(folder, "", kStream);
    REQUIRE(left != nullptr);
    CHECK(left->last_line() == 3);
    const Reading reading = read_all(*left, 1);
    CHECK(reading.count == 3);
}

TEST_CASE("what is no state is left where it is, and takes nothing") {
    const Folder place;
    fs::create_directory(place.path);
    const std::string run = make_run_id();
    std::ofstream{place.path / spool_state_name(run)} << "rubbish";
    std::ofstream{place.path / spool_file_name(run, 1)} << "1 line\n";
    std::ofstream{place.path / "notes.txt"} << "of somebody";
    std::ofstream{place.path / spool_file_name(make_run_id(), 1)} << "1 without a state\n";
    SpoolFolder folder{place.path, kLimit};
    folder.report_unpublished(kStream);
    CHECK(folder.bytes() == 25); // it may have to make room
    CHECK(Spool::next_leftover(folder, "", kStream) == nullptr);
    CHECK(place.files() == 4);
}

TEST_CASE("a full spool gives up the oldest lines, counted, and never more than it has to") {
    const Folder place;
    SpoolFolder folder{place.path, kLimit};
    Spool spool{folder, make_run_id(), "one", kStream};
    append(spool, 1, 3000);
    CHECK(folder.bytes() <= kLimit);
    CHECK(folder.bytes() > kLimit - kLimit / 8);
    const Reading reading = read_all(spool, 1);
    CHECK(reading.first == spool.dropped_lines() + 1);
    CHECK(reading.count == 3000 - spool.dropped_lines());
    CHECK(spool.error() == 0);
}

TEST_CASE("what is settled is not lost when it has to make room") {
    const Folder place;
    SpoolFolder folder{place.path, kLimit};
    Spool spool{folder, make_run_id(), "one", kStream};
    append(spool, 1, 1000);
    spool.settle(1000, 1);
    append(spool, 1001, 1900);
    CHECK(spool.dropped_lines() == 0);
}

TEST_CASE("the first to make room are runs that are over") {
    const Folder place;
    {
        SpoolFolder folder{place.path, kLimit};
        Spool spool{folder, make_run_id(), "one", kStream};
        append(spool, 1, 900);
        spool.settle(10, 1);
    }
    SpoolFolder folder{place.path, kLimit};
    CHECK(folder.bytes() == 900'000);
    Spool spool{folder, make_run_id(), "one", kStream};
    append(spool, 1, 500);
    CHECK(folder.bytes() <= kLimit);
    const Reading own = read_all(spool, 1);
    CHECK(own.count == 500);
    const auto left = Spool::next_leftover(folder, spool.run(), kStream);
    REQUIRE(left != nullptr);
    const Reading reading = read_all(*left, 11);
    CHECK(reading.count == 900 - 10 - folder.lost());
    CHECK(reading.first == 11 + folder.lost());
}

TEST_CASE("what another process published of a shared folder takes no room any more") {
    const Folder place;
    {
        SpoolFolder folder{place.path, kLimit};
        Spool spool{folder, make_run_id(), "one", kStream};
        append(spool, 1, 900);
    }
    SpoolFolder ours{place.path, kLimit};
    Spool spool{ours, make_run_id(), "one", kStream};
    append(spool, 1, 100);
    CHECK(ours.bytes() == 1'000'000);
    {
        SpoolFolder theirs{place.path, kLimit};
        const auto left = Spool::next_leftover(theirs, "", kStream);
        REQUIRE(left != nullptr);
        left->settle(900, 1);
    }
    append(spool, 101, 1000);
    CHECK(spool.dropped_lines() == 0);
    CHECK(ours.bytes() == 1'000'000);
    const Reading reading = read_all(spool, 1);
    CHECK(reading.count == 1000);
}

TEST_CASE("lines that make room while they are read are lost, and the next ones are read") {
    const Folder place;
    SpoolFolder folder{place.path, kLimit};
    Spool spool{folder, make_run_id(), "one", kStream};
    append(spool, 1, 900);
    RecordLines lines;
    REQUIRE(spool.read_lines(1, lines));
    append(spool, 901, 1800);
    const Reading reading = read_all(spool, 67);
    CHECK(reading.first == spool.dropped_lines() + 1);
    CHECK(reading.count == 1800 - spool.dropped_lines());
}

TEST_CASE("a disk that is full takes nothing, keeps what it has, and goes on when there is room") {
    const Folder place;
    tw::test::FaultyDisk disk;
    SpoolFolder folder{place.path, kLimit, disk};
    Spool spool{folder, make_run_id(), "one", kStream};
    append(spool, 1, 10);
    disk.room = 500;
    CHECK_FALSE(spool.append(line(11)));
    CHECK(spool.error() == ENOSPC);
    CHECK_FALSE(spool.has_room());
    CHECK(spool.last_line() == 10);
    spool.retry();
    CHECK_FALSE(spool.append(line(11)));
    disk.truncates = false; // what was written in part stays, and does not count
    CHECK_FALSE(spool.append(line(11)));
    disk.truncates = true;
    disk.room = UINT64_MAX;
    disk.interrupted = 1;
    append(spool, 11, 20);
    CHECK(spool.error() == 0);
    const Reading reading = read_all(spool, 1);
    CHECK(reading.count == 20);
}

TEST_CASE(
    "a run that begins on a full disk takes nothing, and later leaves what the next one finds") {
    const Folder place;
    const std::string run = make_run_id();
    {
        SpoolFolder folder{place.path, kLimit};
        const tw::test::FullDisk full;
        const Spool none{folder, make_run_id(), "one", kStream};
        CHECK(none.error() == EFBIG);
    }
    CHECK(place.files() == 0);
    {
        SpoolFolder folder{place.path, kLimit};
        auto full = std::make_optional<tw::test::FullDisk>();
        Spool spool{folder, run, "one", kStream};
        CHECK_FALSE(spool.has_room());
        spool.retry();
        CHECK_FALSE(spool.append(line(1)));
        CHECK(spool.error() == EFBIG);
        CHECK(spool.last_line() == 0);
        full.reset();
        append(spool, 1, 10);
        CHECK(spool.error() == 0);
    }
    SpoolFolder folder{place.path, kLimit};
    const auto left = Spool::next_leftover(folder, "", kStream);
    REQUIRE(left != nullptr);
    CHECK(left->run() == run);
    CHECK(left->server() == "one");
    const Reading reading = read_all(*left, 1);
    CHECK(reading.count == 10);
}

TEST_CASE("a spool in a folder that cannot be made says so") {
    CHECK_THROWS_AS((SpoolFolder{"/nowhere/at/all", kLimit}), std::system_error);
}
