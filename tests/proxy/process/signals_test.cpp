// Covers: proxy/process/signals.cpp
#include "proxy/process/signals.h"

#include <array>
#include <csignal>
#include <cstddef>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

namespace {

using tw::process::SignalReceiver;

/// Restores the signal mask at the end of a test.
class SignalMaskRestorer {
  public:
    SignalMaskRestorer() { ::pthread_sigmask(SIG_SETMASK, nullptr, &before_); }

    ~SignalMaskRestorer() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

    SignalMaskRestorer(const SignalMaskRestorer&) = delete;
    SignalMaskRestorer& operator=(const SignalMaskRestorer&) = delete;

  private:
    sigset_t before_{};
};

TEST_CASE("signals are received in order, also those sent before set_handler()") {
    const SignalMaskRestorer mask;
    boost::asio::io_context io{1};
    SignalReceiver signals{io, {SIGUSR1, SIGUSR2}};
    std::vector<int> taken;
    ::kill(::getpid(), SIGUSR2);
    signals.set_handler([&](int signal) {
        taken.push_back(signal);
        if (taken.size() == 1) {
            ::kill(::getpid(), SIGUSR1);
        } else {
            io.stop();
        }
    });
    io.run();
    CHECK(taken == std::vector{SIGUSR2, SIGUSR1});
}

TEST_CASE("an ignored signal is still received") {
    const SignalMaskRestorer mask;
    const auto before = std::signal(SIGUSR1, SIG_IGN);
    boost::asio::io_context io{1};
    SignalReceiver signals{io, {SIGUSR1}};
    ::kill(::getpid(), SIGUSR1);
    int taken = 0;
    signals.set_handler([&](int signal) {
        taken = signal;
        io.stop();
    });
    io.run();
    CHECK(taken == SIGUSR1);
    std::signal(SIGUSR1, before);
}

// Clang's sanitizer checks objects through a pipe, which needs descriptors.
#if defined(__has_feature)
constexpr bool kNeedsDescriptors = __has_feature(undefined_behavior_sanitizer);
#else
constexpr bool kNeedsDescriptors = false;
#endif

TEST_CASE("an error is thrown if no descriptor is left" * doctest::skip(kNeedsDescriptors)) {
    const SignalMaskRestorer mask;
    boost::asio::io_context io{1};
    rlimit limit{};
    ::getrlimit(RLIMIT_NOFILE, &limit);
    const rlimit none{.rlim_cur = 0, .rlim_max = limit.rlim_max};
    ::setrlimit(RLIMIT_NOFILE, &none);
    CHECK_THROWS_AS((SignalReceiver{io, {SIGUSR1}}), std::runtime_error);
    ::setrlimit(RLIMIT_NOFILE, &limit);
}

} // namespace

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
    notify_service_ready();
    std::array<char, 100> heard{};
    const ssize_t length = ::recv(manager, heard.data(), heard.size(), 0);
    REQUIRE(length > 0);
    CHECK(std::string{heard.data(), static_cast<std::size_t>(length)} ==
          fmt::format("READY=1\nMAINPID={}", ::getpid()));
    ::close(manager);
    notify_service_ready(); // the service manager is gone
    const std::string longest(sizeof address.sun_path, 'x');
    ::setenv("NOTIFY_SOCKET", longest.c_str(), 1); // NOLINT(concurrency-mt-unsafe): one thread
    notify_service_ready();                        // sanitizers detect writes outside the address
    ::unsetenv("NOTIFY_SOCKET");                   // NOLINT(concurrency-mt-unsafe): one thread
    notify_service_ready();
}

} // namespace
