// Covers: proxy/cli/log.cpp
#include "proxy/cli/log.h"

#include <array>
#include <csignal>
#include <cstdlib>

#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

namespace {

using tw::cli::in_background;

/// What in_background returns, in a process of its own: where its work ends with it, too.
int code_of(const std::function<int(const std::function<void()>&)>& work) {
    const pid_t child = ::fork();
    if (child == 0) {
        ::_exit(in_background([&](const auto& started) -> int { ::_exit(work(started)); }));
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST_CASE("work that ends before it has started gives its exit code") {
    CHECK(code_of([](const auto&) { return 4; }) == 4);
    CHECK(code_of([](const auto&) { return 0; }) == 0);
    CHECK(code_of([](const auto&) {
              std::raise(SIGKILL);
              return 0;
          }) == 128 + SIGKILL);
}

TEST_CASE("work that has started goes on when its caller has returned") {
    std::array<int, 2> pipe{};
    REQUIRE(::pipe(pipe.data()) == 0);
    std::array<int, 2> back{};
    REQUIRE(::pipe(back.data()) == 0);
    char byte = 0;
    CHECK(code_of([&](const auto& started) {
              started();
              char word = 0;
              // Until the test has seen that its caller returned.
              const bool told = ::read(pipe[0], &word, 1) == 1 && ::write(back[1], &word, 1) == 1;
              return told ? 7 : 8;
          }) == 0);
    REQUIRE(::write(pipe[1], "x", 1) == 1);
    CHECK(::read(back[0], &byte, 1) == 1);
    CHECK(byte == 'x');
    for (const int end : {pipe[0], pipe[1], back[0], back[1]}) {
        ::close(end);
    }
}

} // namespace
