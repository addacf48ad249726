// Covers: proxy/base/descriptors.cpp
#include "proxy/base/descriptors.h"

#include <cstddef>
#include <system_error>
#include <utility>

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

using tw::base::SharedMemory;
using tw::base::UniqueFd;

namespace {

UniqueFd copy_of(const SharedMemory& memory) {
    return UniqueFd{::fcntl(memory.descriptor(), F_DUPFD_CLOEXEC, 0)};
}

} // namespace

TEST_CASE("both sides see the same bytes, zero at first") {
    const SharedMemory one = SharedMemory::create(8192);
    const SharedMemory other = SharedMemory::attach(copy_of(one));
    CHECK(one.bytes().size() == 8192);
    REQUIRE(other.bytes().size() == 8192);
    CHECK(other.bytes()[8191] == std::byte{0});
    one.bytes()[8191] = std::byte{7};
    CHECK(other.bytes()[8191] == std::byte{7});
}

TEST_CASE("nobody changes its size") {
    const SharedMemory memory = SharedMemory::create(8192);
    for (const off_t size : {off_t{0}, off_t{4096}, off_t{16384}}) {
        CHECK(::ftruncate(memory.descriptor(), size) != 0);
    }
    CHECK(::fcntl(memory.descriptor(), F_ADD_SEALS, F_SEAL_WRITE) != 0);
}

TEST_CASE("a soft limit of file sizes, which is meant for records, does not count") {
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

TEST_CASE("it moves, and what is no such memory is refused") {
    SharedMemory first = SharedMemory::create(4096);
    const SharedMemory second = std::move(first);
    second.bytes()[0] = std::byte{1};
    CHECK_THROWS_AS(static_cast<void>(SharedMemory::attach(UniqueFd{})), std::system_error);
    CHECK_THROWS_AS(
        static_cast<void>(SharedMemory::attach(UniqueFd{::memfd_create("x", MFD_CLOEXEC)})),
        std::system_error);
    CHECK_THROWS_AS(
        static_cast<void>(SharedMemory::attach(UniqueFd{::open("/dev/zero", O_RDWR | O_CLOEXEC)})),
        std::system_error);
    CHECK_THROWS_AS(static_cast<void>(SharedMemory::create(0)), std::system_error);
}
