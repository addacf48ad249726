#include "proxy/sink/file_output.h"
#include "tests/support/full_disk.h"
#include "tests/support/program.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace tw::sink;
using namespace tw::test;

TEST_CASE("a file holds what was written, in order, and nothing of what it held before") {
    const TemporaryFolder folder;
    const std::string path = folder.file("records.jsonl");
    write_text(path, "a longer text of an earlier run\n");
    {
        FileOutput file{path};
        CHECK(file.path() == path);
        file.write("one\n");
        file.write("");
        file.write("two\nthree\n");
        CHECK_FALSE(file.failed());
        CHECK(file.error() == 0);
        CHECK(file.lost() == 0);
    }
    CHECK(read_text(path) == "one\ntwo\nthree\n");
}

TEST_CASE("- is standard output, which stays open") {
    const TemporaryFolder folder;
    const std::string path = folder.file("out");
    const int before = ::dup(STDOUT_FILENO);
    const int redirected = ::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    ::dup2(redirected, STDOUT_FILENO);
    { FileOutput{"-"}.write("one\n"); }
    const bool open = ::fcntl(STDOUT_FILENO, F_GETFD) != -1;
    ::dup2(before, STDOUT_FILENO);
    ::close(before);
    ::close(redirected);
    CHECK(open);
    CHECK(read_text(path) == "one\n");
}

TEST_CASE("what cannot be opened says why") {
    const TemporaryFolder folder;
    write_text(folder.file("plain"), "");

    struct Row {
        std::string path;
        int error;
    };

    const Row rows[] = {
        {"", ENOENT},
        {folder.path(), EISDIR},
        {folder.file("no/such/folder"), ENOENT},
        {folder.file("plain/file"), ENOTDIR},
        {folder.file(std::string(300, 'x')), ENAMETOOLONG},
    };
    for (const Row& row : rows) {
        CAPTURE(row.path);
        int error = 0;
        try {
            const FileOutput file{row.path};
        } catch (const std::system_error& failure) {
            error = failure.code().value();
        }
        CHECK(error == row.error);
    }
}

TEST_CASE(
    "a pipe's reader is waited for, but not for ever, and not at all when it is opened again") {
    const TemporaryFolder folder;
    const std::string path = folder.file("pipe");
    REQUIRE(::mkfifo(path.c_str(), 0600) == 0);
    try {
        const FileOutput unread{path, record_lines(), std::chrono::milliseconds{30}};
        FAIL("it was opened");
    } catch (const std::system_error& error) {
        CHECK(error.code() == std::errc::timed_out);
    }
    const int reader = ::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    {
        FileOutput file{path, capture_units()};
        file.write("text\n");
        std::array<char, 4096> text{};
        const ssize_t read = ::read(reader, text.data(), text.size());
        const std::string wanted = capture_units().file_header() + "text\n";
        CHECK((std::string{text.data(), static_cast<std::size_t>(read)} == wanted));
    }
    ::close(reader);
}

TEST_CASE("a full disk ends the writing for good, and the lines are counted") {
    FileOutput file{"/dev/full"};
    CHECK_FALSE(file.failed());
    file.write("one\ntwo\n");
    CHECK(file.failed());
    CHECK(file.error() == ENOSPC);
    CHECK(file.lost() == 2);
    file.write("three\n");
    file.write("the rest of a line");
    CHECK(file.error() == ENOSPC);
    CHECK(file.lost() == 3);
}

TEST_CASE("a block that fits in part counts as lost") {
    const TemporaryFolder folder;
    const std::string path = folder.file("records.jsonl");
    constexpr rlim_t kLimit = 4096;
    {
        FileOutput file{path};
        const FullDisk disk{kLimit};
        file.write(std::string(kLimit - 2, 'a') + '\n');
        CHECK(file.lost() == 0);
        file.write("b\nc\n");
        CHECK(file.error() == EFBIG);
        // Of the first line one byte fitted: it is as lost as the second.
        CHECK(file.lost() == 2);
    }
    CHECK(std::filesystem::file_size(path) == kLimit);
}

TEST_CASE(
    "a reader that stalls is given up once there is a stop_waiting, and its lines are counted") {
    std::array<int, 2> ends{};
    REQUIRE(::pipe(ends.data()) == 0);
    FileOutput file{"/proc/self/fd/" + std::to_string(ends[1])};
    file.stop_waiting();
    constexpr int kLines = 4000;
    std::string lines;
    for (int i = 0; i < kLines; ++i) {
        lines += std::string(99, 'a') + '\n';
    }
    file.write(lines);
    CHECK(file.error() == ETIMEDOUT);
    std::string taken(1U << 20U, '\0');
    taken.resize(static_cast<std::size_t>(::read(ends[0], taken.data(), taken.size())));
    const auto whole = static_cast<std::uint64_t>(std::ranges::count(taken, '\n'));
    CHECK(whole > 0);
    CHECK(file.lost() + whole == kLines);
    ::close(ends[0]);
    ::close(ends[1]);
}

TEST_CASE("a reader that left costs lines and no signal") {
    const auto handler = std::signal(SIGPIPE, SIG_IGN);
    std::array<int, 2> ends{};
    REQUIRE(::pipe(ends.data()) == 0);
    FileOutput file{"/proc/self/fd/" + std::to_string(ends[1])};
    ::close(ends[0]);
    file.write("one\ntwo\n");
    CHECK(file.error() == EPIPE);
    CHECK(file.lost() == 2);
    ::close(ends[1]);
    std::signal(SIGPIPE, handler);
}

TEST_CASE("a file that is changed for another ends with a whole line, and so does the next begin") {
    struct Row {
        const char* name;
        std::vector<std::string> before;
        std::vector<std::string> after;
        std::string first;
        std::string second;
    };

    const Row rows[] = {
        {"between lines", {"one\n"}, {"two\n"}, "one\n", "two\n"},
        {"within a line", {"one\ntw"}, {"o\nthree\n", "four\n"}, "one\ntwo\n", "three\nfour\n"},
        {"within a long line", {"o"}, {"n", "e", "\n", "two\n"}, "one\n", "two\n"},
        {"with a line's end to come", {"one"}, {"\ntwo\n"}, "one\n", "two\n"},
        {"before anything", {}, {"one\n"}, "", "one\n"},
        {"and nothing more", {"one\n"}, {""}, "one\n", "what was there\n"},
    };
    for (const Row& row : rows) {
        CAPTURE(row.name);
        const TemporaryFolder folder;
        FileOutput file{folder.file("first")};
        for (const std::string& block : row.before) {
            file.write(block);
        }
        const bool whole = row.after.front().empty();
        std::filesystem::rename(folder.file("first"), folder.file("moved"));
        write_text(folder.file("first"), whole ? "what was there\n" : "");
        file.request_reopening();
        for (const std::string& block : row.after) {
            file.write(block);
        }
        CHECK(read_text(folder.file("moved")) == row.first);
        CHECK(read_text(folder.file("first")) == row.second);
    }
}

TEST_CASE("after a failure it goes on in another file, and what was lost stays counted") {
    const TemporaryFolder folder;
    const std::string path = folder.file("records");
    std::filesystem::create_symlink("/dev/full", path);
    FileOutput file{path};
    file.write("one\ntwo\nthr");
    CHECK(file.failed());
    file.write("ee\n");
    file.write("four\nfi");
    CHECK(file.lost() == 4);
    std::filesystem::remove(path);
    file.request_reopening();
    file.write("ve\nsix\n");
    CHECK_FALSE(file.failed());
    CHECK(file.lost() == 5);
    CHECK(read_text(path) == "six\n");
}

TEST_CASE("a path that cannot be opened again is reported, and the open file goes on") {
    const TemporaryFolder folder;
    std::filesystem::create_directory(folder.file("there"));
    FileOutput file{folder.file("there/records")};
    file.write("one\n");
    std::filesystem::rename(folder.file("there"), folder.file("elsewhere"));
    file.request_reopening();
    file.write("two\n");
    CHECK(file.take_reopening_error() == ENOENT);
    CHECK(file.take_reopening_error() == 0);
    CHECK(read_text(folder.file("elsewhere/records")) == "one\ntwo\n");
    file.request_reopening();
    file.on_time({}); // also without new data
    CHECK(file.take_reopening_error() == ENOENT);
}

TEST_CASE("who empties the file while it is open finds what comes at its beginning") {
    const TemporaryFolder folder;
    FileOutput file{folder.file("records")};
    file.write("one\n");
    std::filesystem::resize_file(folder.file("records"), 0);
    file.write("two\n");
    CHECK(read_text(folder.file("records")) == "two\n");
}

TEST_CASE("a capture that goes on in another pipe has its head there, and whole blocks in both") {
    const TemporaryFolder folder;
    const std::string head = capture_units().file_header();
    // A section's head is a block, and of many bytes that look like a line's end.
    const std::string block{"\x06\0\0\0\x14\0\0\0a\nb\n\n\n\nc\x14\0\0\0", 20};
    const std::string path = folder.file("pipe");
    std::array<int, 2> readers{};
    const auto make_pipe = [&path] {
        REQUIRE(::mkfifo(path.c_str(), 0600) == 0);
        return ::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    };
    readers[0] = make_pipe();
    {
        FileOutput file{path, capture_units()};
        file.write(block);
        std::filesystem::remove(path);
        readers[1] = make_pipe();
        file.request_reopening();
        file.write(block + block);
    }
    const auto read_all = [](int reader) {
        std::array<char, 4096> text{};
        const ssize_t read = ::read(reader, text.data(), text.size());
        ::close(reader);
        return std::string{text.data(), static_cast<std::size_t>(std::max<ssize_t>(read, 0))};
    };
    const std::string first = read_all(readers[0]);
    const std::string second = read_all(readers[1]);
    CHECK((first == head + block));
    CHECK((second == head + block + block));
}
