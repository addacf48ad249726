// Covers: proxy/process/signals.cpp
#include "proxy/process/signals.h"

#include <array>
#include <cstddef>
#include <cstdlib>
#include <string>

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

namespace {

using namespace tw::process;

TEST_CASE("a service manager gets the process id and that the service is ready") {
    const std::string name = fmt::format("@twscope-notice-{}", ::getpid());
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    name.copy(address.sun_path, name.size());
    address.sun_path[0] = '\0';
    const int manager = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    REQUIRE(::bind(manager, reinterpret_cast<const sockaddr*>(&address),
                   static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size())) == 0);
    ::setenv("NOTIFY_SOCKET", name.c_str(), 1); // NOLINT(concurrency-mt-unsafe): one thread
    notify_ready();
    std::array<char, 100> heard{};
    const ssize_t length = ::recv(manager, heard.data(), heard.size(), 0);
    REQUIRE(length > 0);
    CHECK(std::string{heard.data(), static_cast<std::size_t>(length)} ==
          fmt::format("READY=1\nMAINPID={}", ::getpid()));
    ::close(manager);
    CHECK_FALSE(notify_service("READY=1")); // the service manager is gone
    const std::string longest(sizeof address.sun_path, 'x');
    ::setenv("NOTIFY_SOCKET", longest.c_str(), 1); // NOLINT(concurrency-mt-unsafe): one thread
    CHECK_FALSE(notify_service("READY=1"));
    ::unsetenv("NOTIFY_SOCKET"); // NOLINT(concurrency-mt-unsafe): one thread
    CHECK_FALSE(notify_service("READY=1"));
}

} // namespace
