// Covers: proxy/base/descriptors.cpp, proxy/base/endpoint.cpp, proxy/base/files.cpp
// Covers: proxy/base/clock.cpp, proxy/base/keyed_hash.cpp, proxy/base/log.cpp
#include "proxy/base/clock.h"
#include "proxy/base/descriptors.h"
#include "proxy/base/endpoint.h"
#include "proxy/base/files.h"
#include "proxy/base/keyed_hash.h"
#include "proxy/base/log.h"
#include "tests/proxy/relay/udp_peers.h"
#include "tests/support/program.h"

#include <cstddef>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include <doctest/doctest.h>
#include <fcntl.h>
#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

namespace {

using namespace tw::base;
using boost::asio::ip::make_address;
using tw::relay::test::duplicate_descriptor;
using tw::relay::test::Udp;
using tw::test::TemporaryFolder;

TEST_CASE("an endpoint stores and prints the address from which it was made") {
    struct Row {
        std::string address;
        std::uint16_t port;
        std::string text;
        bool loopback;
    };

    const Row rows[] = {
        {"127.0.0.1", 8303, "127.0.0.1:8303", true},
        {"127.64.3.2", 1, "127.64.3.2:1", true},
        {"192.0.2.255", 65535, "192.0.2.255:65535", false},
        {"0.0.0.0", 0, "0.0.0.0:0", false},
        {"::1", 8303, "[::1]:8303", true},
        {"::", 8303, "[::]:8303", false},
        {"2001:db8::1", 53, "[2001:db8::1]:53", false},
        {"fe80::1%1", 53, "[fe80::1%1]:53", false},
        {"::ffff:192.0.2.1", 53, "192.0.2.1:53", false},
    };
    for (const auto& row : rows) {
        CAPTURE(row.address);
        const Udp::endpoint from{make_address(row.address), row.port};
        const Endpoint endpoint = endpoint_from(from.data());
        CHECK(to_string(endpoint) == row.text);
        CHECK(is_loopback(endpoint) == row.loopback);
        CHECK(endpoint == endpoint_from(from.data()));
    }
}

TEST_CASE("an address of another family gives an empty endpoint") {
    sockaddr other{};
    other.sa_family = AF_UNIX;
    CHECK(endpoint_from(&other) == Endpoint{});
}

TEST_CASE("a UTC time is written in any format of strftime") {
    struct Row {
        std::int64_t seconds;
        const char* format;
        std::string text;
    };

    const Row rows[] = {
        {0, kRecordTimeFormat, "1970-01-01T00:00:00"},
        {-1, kRecordTimeFormat, "1969-12-31T23:59:59"},
        {1'763'741'730, kFileNameTimeFormat, "20251121T161530Z"},
        {253'402'300'799, kRecordTimeFormat, "9999-12-31T23:59:59"},
        {1'763'741'730, "%H:%M", "16:15"},
        {0, "text {} UTC%z, 100%%", "text {} UTC+0000, 100%"},
        {INT64_MAX, kRecordTimeFormat, ""}, // a year that does not fit
    };
    for (const auto& row : rows) {
        CAPTURE(row.seconds);
        CHECK(format_utc(row.seconds, row.format) == row.text);
    }
}

TEST_CASE("a log line has its level and values; lower levels are hidden") {
    std::ostringstream written;
    const auto before = spdlog::default_logger();
    auto logger = std::make_shared<spdlog::logger>(
        "test", std::make_shared<spdlog::sinks::ostream_sink_mt>(written));
    logger->set_pattern("%l %v");
    spdlog::set_default_logger(logger);
    tw::log::info("{} of {}", 1, "two");
    tw::log::debug("hidden {}", 3);
    tw::log::set_level("debug");
    tw::log::debug("{{shown}} {}", 4);
    tw::log::set_level("error");
    tw::log::warn("hidden");
    tw::log::error("{}", "a text with {}");
    spdlog::set_default_logger(before);
    CHECK(written.str() == "info 1 of two\ndebug {shown} 4\nerror a text with {}\n");
}

TEST_CASE("SipHash-2-4 gives the hashes that its authors published") {
    SipKey key{};
    for (std::size_t i = 0; i < key.size(); ++i) {
        key[i] = static_cast<std::byte>(i);
    }
    const SipHash hash{key};
    std::vector<std::byte> bytes;
    CHECK(hash(bytes) == 0x726fdb47dd0e0e31U); // the hash of no bytes, then of 00 01 … 0e
    for (std::size_t i = 0; i < 15; ++i) {
        bytes.push_back(static_cast<std::byte>(i));
    }
    CHECK(hash(bytes) == 0xa129ca6149be45e5U);
    CHECK(hash(bytes) == 0xa129ca6149be45e5U);
}

TEST_CASE("both processes see the same shared memory, which is zeroed at first") {
    const SharedMemory one = SharedMemory::create(8192);
    const SharedMemory other = SharedMemory::attach(duplicate_descriptor(one.descriptor()));
    CHECK(one.bytes().size() == 8192);
    REQUIRE(other.bytes().size() == 8192);
    CHECK(other.bytes()[8191] == std::byte{0});
    one.bytes()[8191] = std::byte{7};
    CHECK(other.bytes()[8191] == std::byte{7});
}

TEST_CASE("the size of shared memory cannot be changed") {
    const SharedMemory memory = SharedMemory::create(8192);
    for (const off_t size : {off_t{0}, off_t{4096}, off_t{16384}}) {
        CHECK(::ftruncate(memory.descriptor(), size) != 0);
    }
    CHECK(::fcntl(memory.descriptor(), F_ADD_SEALS, F_SEAL_WRITE) != 0);
}

TEST_CASE("shared memory may exceed the soft limit of file sizes") {
    rlimit before{};
    REQUIRE(::getrlimit(RLIMIT_FSIZE, &before) == 0);
    const rlimit low{.rlim_cur = 4096, .rlim_max = before.rlim_max};
    REQUIRE(::setrlimit(RLIMIT_FSIZE, &low) == 0);
    CHECK(SharedMemory::create(8192).bytes().size() == 8192);
    rlimit now{};
    ::getrlimit(RLIMIT_FSIZE, &now);
    CHECK(now.rlim_cur == low.rlim_cur);
    REQUIRE(::setrlimit(RLIMIT_FSIZE, &before) == 0);
}

TEST_CASE("a descriptor that is not sealed shared memory is rejected") {
    CHECK_THROWS_AS(static_cast<void>(SharedMemory::attach(UniqueFd{})), std::system_error);
    CHECK_THROWS_AS(
        static_cast<void>(SharedMemory::attach(UniqueFd{::memfd_create("x", MFD_CLOEXEC)})),
        std::system_error);
    CHECK_THROWS_AS(
        static_cast<void>(SharedMemory::attach(UniqueFd{::open("/dev/zero", O_RDWR | O_CLOEXEC)})),
        std::system_error);
    CHECK_THROWS_AS(static_cast<void>(SharedMemory::create(0)), std::system_error);
}

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

} // namespace
