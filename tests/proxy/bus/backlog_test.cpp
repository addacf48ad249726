// Covers: proxy/bus/backlog.cpp, proxy/bus/spool_folder.cpp

#include "proxy/bus/backlog.h"
#include "proxy/bus/link.h"
#include "proxy/bus/spool_folder.h"
#include "proxy/bus/subjects.h"
#include "tests/proxy/store/faulty_disk.h"
#include "tests/support/full_disk.h"
#include "tests/support/program.h"

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <doctest/doctest.h>

using namespace tw::bus;
using tw::test::TemporaryFolder;
namespace fs = std::filesystem;

namespace {

constexpr std::uint64_t kLimit = SpoolFolder::kMinSpoolBytes;

/// Returns a line of `size` bytes that contains its number.
std::string make_line(std::uint64_t number, std::size_t size = 1000) {
    std::string text = std::to_string(number) + ' ';
    text.resize(size - 1, '.');
    return text + '\n';
}

void append_numbered_lines(Backlog& backlog, std::uint64_t from, std::uint64_t to) {
    for (std::uint64_t number = from; number <= to; ++number) {
        REQUIRE(backlog.has_room());
        backlog.append_lines(make_line(number));
    }
}

std::unique_ptr<Backlog> take_over_earlier_spool(SpoolFolder& folder, const std::string& own = "") {
    auto left = Backlog::take_over_other_spool(folder, own, kDefaultStream);
    REQUIRE(left != nullptr);
    return left;
}

/// The number of the first line that was read, and the number of lines.
struct FoundLines {
    std::uint64_t first = 0;
    std::uint64_t count = 0;
};

FoundLines read_lines_from(Backlog& backlog, std::uint64_t from) {
    FoundLines reading;
    NumberedLine found;
    for (std::uint64_t next = from; backlog.find_line(next, found); next = found.number + 1) {
        REQUIRE(std::stoull(std::string{found.text.substr(0, 20)}) == found.number);
        reading.first = reading.count == 0 ? found.number : reading.first;
        ++reading.count;
    }
    return reading;
}

/// Returns the text of a line; empty if there is none.
std::string find_line_text(Backlog& backlog, std::uint64_t number) {
    NumberedLine found;
    return backlog.find_line(number, found) && found.number == number ? std::string{found.text}
                                                                      : "";
}

/// A run's spool in a new folder.
struct SpoolFixture {
    const TemporaryFolder where;
    SpoolFolder folder{where.path(), kLimit};
    Backlog spool{folder, make_run_id(), "one", kDefaultStream};
};

/// A folder in which an earlier run has left unpublished lines.
struct EarlierSpoolFixture {
    /// Writes lines with the numbers 1 to `to`. The lines up to number `settled` are settled.
    void write_unpublished_lines(std::uint64_t to, std::uint64_t settled = 0) const {
        SpoolFolder folder{where.path(), kLimit};
        Backlog spool{folder, run, "one", kDefaultStream};
        append_numbered_lines(spool, 1, to);
        if (settled != 0) {
            spool.settle_lines(settled, 4711);
        }
    }

    /// Writes a file of the run, or adds to it.
    void write_spool_file(std::uint64_t first, const std::string& text,
                          std::ios::openmode mode = std::ios::out) const {
        std::ofstream{where.file(spool_file_name(run, first)), mode} << text;
    }

    const TemporaryFolder where;
    const std::string run = make_run_id();
    SpoolFolder folder{where.path(), kLimit};
};

std::uint64_t count_spool_bytes(const SpoolFolder& folder) {
    std::uint64_t bytes = 0;
    for (const auto& found : folder.list_files()) {
        bytes += found.bytes;
    }
    return bytes;
}

} // namespace

TEST_CASE_FIXTURE(SpoolFixture, "appended lines can be read from any line on, over many files") {
    CHECK(spool.server_name() == "one");
    append_numbered_lines(spool, 1, 500);
    CHECK(where.files().size() > 5);
    CHECK(count_spool_bytes(folder) == 500'000);
    for (const std::uint64_t from : {1U, 2U, 65U, 66U, 67U, 499U, 500U, 3U}) {
        CAPTURE(from);
        const FoundLines reading = read_lines_from(spool, from);
        CHECK(reading.first == from);
        CHECK(reading.count == 501 - from);
    }
    CHECK(read_lines_from(spool, 501).count == 0);
}

TEST_CASE("a line may be longer than the reading buffer") {
    const TemporaryFolder where;
    SpoolFolder folder{where.path(), std::uint64_t{64} << 20U};
    Backlog spool{folder, make_run_id(), "one", kDefaultStream};
    spool.append_lines(make_line(1, 3'000'000));
    spool.append_lines(make_line(2));
    CHECK(read_lines_from(spool, 1).count == 2);
}

TEST_CASE("settled lines are removed, and with the last line all files") {
    const TemporaryFolder where;
    {
        SpoolFolder folder{where.path(), kLimit};
        Backlog spool{folder, make_run_id(), "one", kDefaultStream};
        append_numbered_lines(spool, 1, 500);
        const std::size_t before = where.files().size();
        spool.settle_lines(400, 9000);
        CHECK(where.files().size() < before / 2);
        CHECK(count_spool_bytes(folder) < 200'000);
        const FoundLines reading = read_lines_from(spool, 401);
        CHECK(reading.count == 100);
        CHECK(spool.count_waiting_lines().bytes >= 100'000);
        spool.settle_lines(500, 9100);
        CHECK(spool.count_waiting_lines().bytes == 0); // no line waits, although a file exists
    }
    CHECK(where.files().size() == 0);
}

TEST_CASE_FIXTURE(EarlierSpoolFixture,
                  "the next run finds an earlier run's lines under their numbers") {
    write_unpublished_lines(300, 100);
    const Backlog own{folder, make_run_id(), "two", kDefaultStream};
    {
        const auto left = take_over_earlier_spool(folder, own.run_id());
        CHECK(left->run_id() == run);
        CHECK(left->server_name() == "one");
        CHECK(left->status().last_settled_line == 100);
        CHECK(left->status().settled_sequence == 4711);
        CHECK(left->status().last_line == 300);
        const FoundLines reading = read_lines_from(*left, 101);
        CHECK(reading.first == 101);
        CHECK(reading.count == 200);
        CHECK(Backlog::take_over_other_spool(folder, own.run_id(), kDefaultStream) ==
              nullptr); // it has an owner now
        left->settle_lines(300, 5000);
    }
    CHECK(Backlog::take_over_other_spool(folder, own.run_id(), kDefaultStream) == nullptr);
    CHECK(count_spool_bytes(folder) == 0);
}

TEST_CASE("count_waiting_lines() counts leftover lines, but not settled or dropped ones") {
    const TemporaryFolder where;
    {
        SpoolFolder folder{where.path(), kLimit};
        Backlog spool{folder, make_run_id(), "one", kDefaultStream};
        append_numbered_lines(spool, 1, 300);
        spool.settle_lines(100, 4711);
        CHECK(spool.count_waiting_lines().lines == 200);
        append_numbered_lines(spool, 301, 3000);
        CHECK(spool.count_waiting_lines().lines == 3000 - folder.dropped_lines() - 100);
    }
    SpoolFolder folder{where.path(), 4 * kLimit};
    const std::uint64_t left = folder.count_unpublished_lines("", kDefaultStream).lines;
    CHECK(left > 500);
    CHECK(folder.count_unpublished_lines("", kDefaultStream).lines == left);
    Backlog spool{folder, make_run_id(), "two", kDefaultStream};
    append_numbered_lines(spool, 1, 7);
    CHECK(spool.count_waiting_lines().lines == left + 7);
    const Backlog other{folder, make_run_id(), "two", "another"};
    SpoolFolder again{where.path(), kLimit};
    // all lines are for the first stream
    CHECK(again.count_unpublished_lines("", "another").lines == 0);
}

TEST_CASE_FIXTURE(EarlierSpoolFixture, "lines for another stream stay where they are") {
    write_unpublished_lines(3);
    folder.report_unpublished_files("another");
    CHECK(Backlog::take_over_other_spool(folder, "", "another") == nullptr);
    CHECK(count_spool_bytes(folder) == 3000);
    CHECK(take_over_earlier_spool(folder)->status().last_line == 3);
}

TEST_CASE_FIXTURE(EarlierSpoolFixture, "damaged or missing lines of an earlier run are counted") {
    write_unpublished_lines(1);
    write_spool_file(1, make_line(1) + make_line(2) + make_line(3));
    write_spool_file(10, std::string(300, '\0'));
    write_spool_file(20, make_line(20) + make_line(21) + "{");
    const auto left = take_over_earlier_spool(folder);
    CHECK(read_lines_from(*left, 4).first == 20);
    CHECK(read_lines_from(*left, 1).count == 5);
    CHECK(folder.missing_lines() == 16);
    CHECK(folder.dropped_lines() == 0);
}

TEST_CASE_FIXTURE(
    SpoolFixture,
    "a removed folder accepts no more lines, and its waiting lines are counted as lost") {
    append_numbered_lines(spool, 1, 10);
    std::filesystem::remove_all(where.path());
    append_numbered_lines(spool, 11, 12); // not visible to the other process yet
    CHECK(read_lines_from(spool, 3).count == 0);
    CHECK(folder.missing_lines() == 10);
    CHECK(spool.count_waiting_lines().lines == 0);
    append_numbered_lines(spool, 13, 14);
    CHECK(spool.status().error == ENOENT);
    CHECK(spool.status().last_line == 12);
    CHECK(spool.status().lost_lines == 12);
}

TEST_CASE_FIXTURE(SpoolFixture, "the spool of a running process is not taken over") {
    append_numbered_lines(spool, 1, 10);
    SpoolFolder other{where.path(), kLimit};
    CHECK(count_spool_bytes(other) == 0);
    CHECK(Backlog::take_over_other_spool(other, "", kDefaultStream) == nullptr);
    CHECK(read_lines_from(spool, 1).count == 10);
}

TEST_CASE_FIXTURE(EarlierSpoolFixture, "an incomplete last line is ignored") {
    write_unpublished_lines(3);
    write_spool_file(1, "4 cut sho", std::ios::app);
    const auto left = take_over_earlier_spool(folder);
    CHECK(left->status().last_line == 3);
    CHECK(read_lines_from(*left, 1).count == 3);
}

TEST_CASE_FIXTURE(EarlierSpoolFixture,
                  "an invalid state file stays where it is, and its lines are not published") {
    std::ofstream{where.file(spool_state_file_name(run))} << "rubbish";
    write_spool_file(1, "1 line\n");
    std::ofstream{where.file("notes.txt")} << "of somebody";
    std::ofstream{where.file(spool_file_name(make_run_id(), 1))} << "1 without a state\n";
    folder.report_unpublished_files(kDefaultStream);
    CHECK(count_spool_bytes(folder) == 25); // the folder may drop it
    CHECK(Backlog::take_over_other_spool(folder, "", kDefaultStream) == nullptr);
    CHECK(where.files().size() == 4);
}

TEST_CASE_FIXTURE(SpoolFixture,
                  "a full spool drops and counts its oldest lines, no more than necessary") {
    append_numbered_lines(spool, 1, 3000);
    CHECK(count_spool_bytes(folder) <= kLimit);
    CHECK(count_spool_bytes(folder) > kLimit - kLimit / 8);
    const FoundLines reading = read_lines_from(spool, 1);
    CHECK(reading.first == folder.dropped_lines() + 1);
    CHECK(reading.count == 3000 - folder.dropped_lines());
    CHECK(spool.status().error == 0);
}

TEST_CASE_FIXTURE(SpoolFixture, "dropped lines that are settled do not count as lost") {
    append_numbered_lines(spool, 1, 1000);
    spool.settle_lines(1000, 1);
    append_numbered_lines(spool, 1001, 1900);
    CHECK(folder.dropped_lines() == 0);
}

TEST_CASE_FIXTURE(EarlierSpoolFixture, "lines of ended runs are dropped first") {
    write_unpublished_lines(900, 10);
    CHECK(count_spool_bytes(folder) == 900'000);
    Backlog spool{folder, make_run_id(), "one", kDefaultStream};
    append_numbered_lines(spool, 1, 500);
    CHECK(count_spool_bytes(folder) <= kLimit);
    const FoundLines own = read_lines_from(spool, 1);
    CHECK(own.count == 500);
    const auto left = take_over_earlier_spool(folder, spool.run_id());
    const FoundLines reading = read_lines_from(*left, 11);
    CHECK(reading.count == 900 - 10 - folder.dropped_lines());
    CHECK(reading.first == 11 + folder.dropped_lines());
}

TEST_CASE_FIXTURE(EarlierSpoolFixture,
                  "lines of an ended run that are being published are not dropped") {
    write_unpublished_lines(500);
    Backlog spool{folder, make_run_id(), "one", kDefaultStream};
    {
        const auto left = take_over_earlier_spool(folder, spool.run_id());
        append_numbered_lines(spool, 1, 800);
        CHECK(read_lines_from(*left, 1).count == 500);
        CHECK(read_lines_from(spool, 1).first == 1 + folder.dropped_lines());
        CHECK(spool.status().last_dropped_line == folder.dropped_lines());
        CHECK(count_spool_bytes(folder) <= kLimit);
    }
    const std::uint64_t before = spool.status().last_dropped_line;
    append_numbered_lines(spool, 801, 900);
    CHECK(spool.status().last_dropped_line == before); // the other run's lines are older
    CHECK(folder.dropped_lines() > before);
    CHECK(folder.missing_lines() == 0);
}

TEST_CASE_FIXTURE(SpoolFixture,
                  "lines in a file that somebody removed are missing, and later lines are read") {
    append_numbered_lines(spool, 1, 200);
    const auto files = folder.list_files();
    REQUIRE(files.size() > 2);
    const std::uint64_t gone = files[2].first - files[1].first;
    fs::remove(where.file(spool_file_name(spool.run_id(), files[1].first)));
    CHECK(read_lines_from(spool, 1).count == 200 - gone);
    CHECK(read_lines_from(spool, 1).count == 200 - gone);
    CHECK(folder.missing_lines() == gone);
    CHECK(spool.status().lost_lines == gone);
}

TEST_CASE_FIXTURE(EarlierSpoolFixture,
                  "files that another process published no longer count for the folder's size") {
    write_unpublished_lines(900);
    Backlog spool{folder, make_run_id(), "one", kDefaultStream};
    append_numbered_lines(spool, 1, 100);
    CHECK(count_spool_bytes(folder) == 1'000'000);
    {
        SpoolFolder theirs{where.path(), kLimit};
        const auto left = take_over_earlier_spool(theirs);
        left->settle_lines(900, 1);
    }
    append_numbered_lines(spool, 101, 1000);
    CHECK(folder.dropped_lines() == 0);
    CHECK(count_spool_bytes(folder) == 1'000'000);
    CHECK(read_lines_from(spool, 1).count == 1000);
}

TEST_CASE_FIXTURE(SpoolFixture,
                  "lines dropped while being read are lost, and reading continues after them") {
    append_numbered_lines(spool, 1, 900);
    CHECK(find_line_text(spool, 1).starts_with("1 "));
    append_numbered_lines(spool, 901, 1800);
    const FoundLines reading = read_lines_from(spool, 67);
    CHECK(reading.first == folder.dropped_lines() + 1);
    CHECK(reading.count == 1800 - folder.dropped_lines());
}

TEST_CASE(
    "a spool on a full disk accepts nothing, keeps its lines, and continues once there is room") {
    const TemporaryFolder where;
    tw::test::FaultyDisk disk;
    SpoolFolder folder{where.path(), kLimit, disk};
    Backlog spool{folder, make_run_id(), "one", kDefaultStream};
    append_numbered_lines(spool, 1, 10);
    disk.room = 500;
    spool.append_lines(make_line(11));
    CHECK(spool.status().error == ENOSPC);
    CHECK_FALSE(spool.has_room());
    CHECK(spool.status().last_line == 10);
    CHECK(spool.count_waiting_lines().lines == 11);
    CHECK(spool.status().unsaved_lines == 1);
    spool.retry_writing();
    CHECK_FALSE(spool.has_room());
    disk.can_truncate = false; // partly written data stays in the file and is ignored
    spool.retry_writing();
    CHECK_FALSE(spool.has_room());
    disk.can_truncate = true;
    disk.room = UINT64_MAX;
    disk.interrupted_writes = 1;
    spool.retry_writing();
    CHECK(spool.status().unsaved_lines == 0);
    append_numbered_lines(spool, 12, 20);
    CHECK(spool.status().error == 0);
    CHECK(read_lines_from(spool, 1).count == 20);
}

TEST_CASE("a spool created on a full disk accepts nothing at first, and its later lines are found "
          "by the next run") {
    const TemporaryFolder where;
    const std::string run = make_run_id();
    {
        SpoolFolder folder{where.path(), kLimit};
        const tw::test::FullDisk full;
        const Backlog none{folder, make_run_id(), "one", kDefaultStream};
        CHECK(none.status().error == EFBIG);
    }
    CHECK(where.files().size() == 0);
    {
        SpoolFolder folder{where.path(), kLimit};
        auto full = std::make_optional<tw::test::FullDisk>();
        Backlog spool{folder, run, "one", kDefaultStream};
        spool.append_lines(make_line(1));
        CHECK_FALSE(spool.has_room());
        CHECK(spool.status().error == EFBIG);
        CHECK(spool.status().last_line == 0);
        full.reset();
        spool.retry_writing();
        append_numbered_lines(spool, 2, 10);
        CHECK(spool.status().error == 0);
    }
    SpoolFolder folder{where.path(), kLimit};
    const auto left = take_over_earlier_spool(folder);
    CHECK(left->run_id() == run);
    CHECK(left->server_name() == "one");
    CHECK(read_lines_from(*left, 1).count == 10);
}

TEST_CASE("a spool whose folder cannot be created is an error") {
    CHECK_THROWS_AS((SpoolFolder{"/nowhere/at/all", kLimit}), std::system_error);
}

TEST_CASE("lines in memory are numbered from 1 and can be read from any number on") {
    Backlog backlog{"run", "server"};
    CHECK(find_line_text(backlog, 1).empty());
    backlog.append_lines("a\nb\n");
    backlog.append_lines("");
    backlog.append_lines("c\n");
    CHECK(backlog.status().last_line == 3);
    CHECK(find_line_text(backlog, 3) == "c");
    CHECK(find_line_text(backlog, 1) == "a");
    CHECK(find_line_text(backlog, 2) == "b");
    CHECK(find_line_text(backlog, 4).empty());
    backlog.append_lines("d\n");
    CHECK(find_line_text(backlog, 4) == "d");
}

TEST_CASE("settled lines in memory are removed in whole blocks") {
    constexpr std::size_t kLine = 300'000; // one block
    Backlog backlog{"run", "server"};
    CHECK_FALSE(backlog.status().settled_sequence);
    append_numbered_lines(backlog, 1, 1);
    backlog.append_lines(make_line(2, kLine));
    append_numbered_lines(backlog, 3, 3);
    backlog.settle_lines(1, 7);
    CHECK(backlog.status().settled_sequence == 7);
    CHECK(backlog.count_waiting_lines().lines == 2);
    CHECK(backlog.count_waiting_lines().bytes == 1000 + kLine + 1000);
    backlog.settle_lines(2, 8);
    CHECK(backlog.count_waiting_lines().bytes == 1000);
    CHECK(find_line_text(backlog, 3).starts_with("3 "));
    backlog.settle_lines(3, 9);
    CHECK(backlog.count_waiting_lines().bytes == 0);
    CHECK(backlog.status().last_settled_line == 3);
    append_numbered_lines(backlog, 4, 4);
    CHECK(find_line_text(backlog, 4).starts_with("4 "));
}

TEST_CASE("memory is limited; settling lines makes room") {
    Backlog backlog{"run", "server", 8};
    CHECK(backlog.has_room());
    backlog.append_lines("abcdefg\n");
    CHECK_FALSE(backlog.has_room());
    CHECK(backlog.status().unsaved_lines == 1);
    backlog.settle_lines(1, 1);
    CHECK(backlog.has_room());
    CHECK(backlog.status().unsaved_lines == 0);
}

namespace {

constexpr std::string_view kRun = "019ab000-1111-7222-8333-444455556666";

} // namespace

TEST_CASE("reading a state reverses writing it, and its length never changes") {
    const SpoolState states[] = {
        {.settled = 0, .sequence = {}, .server = "one", .stream = "games"},
        {.settled = UINT64_MAX, .sequence = UINT64_MAX, .server = "one", .stream = "games"},
        {.settled = 7, .sequence = 0, .server = "two", .stream = "plays"}};
    for (const SpoolState& state : states) {
        const std::string text = spool_state_text(state);
        CAPTURE(text);
        CHECK(text.size() == spool_state_text(states[0]).size());
        CHECK(parse_spool_state(text) == state);
    }
}

TEST_CASE("waiting lines belong to the stream in the state, or to any stream if it names none") {
    const auto old =
        parse_spool_state("settled=00000000000000000001 place=-------------------- server=one\n");
    REQUIRE(old);
    CHECK(old->belongs_to_stream("games"));
    const auto named = parse_spool_state(
        "settled=00000000000000000001 place=-------------------- server=one stream=games\n");
    REQUIRE(named);
    CHECK(named->server == "one");
    CHECK(named->belongs_to_stream("games"));
    CHECK_FALSE(named->belongs_to_stream("plays"));
}

TEST_CASE("an invalid or incomplete state is rejected") {
    const std::string whole =
        spool_state_text({.settled = 1, .sequence = 2, .server = "one", .stream = "games"});
    for (std::size_t size = 0; size < whole.size(); ++size) {
        CAPTURE(size);
        CHECK_FALSE(parse_spool_state(whole.substr(0, size)));
    }
    const std::string none = " place=-------------------- server=a";
    for (const std::string& text :
         {"settled=99999999999999999999" + none + "\n",
          "settled=00000000000000000001" + none + ".*\n",
          "settled=00000000000000000001" + none + " stream=b c\n", whole + "more\n"}) {
        CAPTURE(text);
        CHECK_FALSE(parse_spool_state(text));
    }
}

TEST_CASE("the name of a spool file contains run and first line; other names are rejected") {
    const std::string name = spool_file_name(kRun, 12);
    CHECK(name == "019ab000-1111-7222-8333-444455556666-00000000000000000012.jsonl");
    CHECK(parse_spool_file_name(name) == SpoolFile{.run = std::string{kRun}, .first = 12});
    CHECK(parse_state_file_name(spool_state_file_name(kRun)) == kRun);
    for (const std::string_view other :
         {"", "game.jsonl", "019ab000-1111-7222-8333-444455556666.jsonl",
          "019ab000-1111-7222-8333-444455556666-0000000000000000001x.jsonl",
          "019ab000-1111-7222-8333-444455556666-00000000000000000000.jsonl",
          "019ab000-1111-7222-8333-444455556666-00000000000000000012.jsonl.zst",
          "../ab000-1111-7222-8333-444455556666-00000000000000000012.jsonl"}) {
        CAPTURE(other);
        CHECK_FALSE(parse_spool_file_name(other));
        CHECK_FALSE(parse_state_file_name(other));
    }
}
