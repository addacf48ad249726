// Covers: proxy/base/files.cpp
#include "proxy/base/files.h"
#include "tests/support/program.h"

#include <fstream>
#include <string>
#include <system_error>
#include <thread>

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace tw::base;
using namespace tw::process;
using tw::test::TemporaryFolder;

TEST_CASE("a small file is read whole or not at all") {
    const TemporaryFolder folder;
    const std::string file = folder.file("settings");
    const std::string text = "listen = 8303\n";
    std::ofstream{file} << text;
    CHECK(read_small_file(file, text.size()) == text);
    CHECK(read_small_file(file, text.size() - 1).error() == std::errc::file_too_large);
    CHECK(read_small_file("/dev/null", 1) == std::string{});
    CHECK(read_small_file("/dev/zero", 4096).error() == std::errc::file_too_large);
    CHECK(read_small_file(folder.file("missing"), 1).error() ==
          std::errc::no_such_file_or_directory);
    CHECK(read_small_file(folder.path(), 1).error() == std::errc::is_a_directory);
}

TEST_CASE("a pipe is read until its writer closes it; a stalled writer is an error") {
    const TemporaryFolder folder;
    const std::string pipe = folder.file("pipe");
    REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
    CHECK(read_small_file(pipe, 64).error() ==
          std::errc::no_message_available); // the pipe has no writer

    // Opened for reading and writing, so that open() does not block.
    const int writer = ::open(pipe.c_str(), O_RDWR | O_CLOEXEC);
    REQUIRE(writer >= 0);
    CHECK(read_small_file(pipe, 64).error() == std::errc::no_message_available);
    // A pipe's content is lost when no process has it open.
    const int reader = ::open(pipe.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    REQUIRE(reader >= 0);
    std::thread closes{[writer] {
        CHECK(::write(writer, "quiet = true\n", 13) == 13);
        ::close(writer);
    }};
    CHECK(read_small_file(pipe, 64).value_or("") == "quiet = true\n");
    closes.join();
    ::close(reader);
}
