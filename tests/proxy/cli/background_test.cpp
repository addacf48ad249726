// Covers: proxy/cli/log.cpp
#include "proxy/cli/log.h"

#include <array>
#include <csignal>

#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

namespace {

using tw::cli::run_in_background;

/// Returns the result of run_in_background(), called in a child process.
int run_in_child_process(const std::function<int(const std::function<void()>&)>& work) {
    const pid_t child = ::fork();
    if (child == 0) {
        ::_exit(run_in_background([&](const auto& started) -> int { ::_exit(work(started)); }));
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST_CASE("run_in_background returns the exit code of work that ends without calling `started`") {
    CHECK(run_in_child_process([](const auto&) { return 4; }) == 4);
    CHECK(run_in_child_process([](const auto&) { return 0; }) == 0);
    CHECK(run_in_child_process([](const auto&) {
              std::raise(SIGKILL);
              return 0;
          }) == 128 + SIGKILL);
}

TEST_CASE("work that has called `started` continues after its caller ended") {
    std::array<int, 2> pipe{};
    REQUIRE(::pipe(pipe.data()) == 0);
    std::array<int, 2> back{};
    REQUIRE(::pipe(back.data()) == 0);
    char byte = 0;
    CHECK(run_in_child_process([&](const auto& started) {
              started();
              char word = 0;
              // Waits until the test has seen that the caller returned.
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
