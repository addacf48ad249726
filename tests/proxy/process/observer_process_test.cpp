#include "proxy/process/observer_process.h"

#include <algorithm>
#include <array>
#include <csignal>
#include <cstddef>
#include <fstream>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fcntl.h>
#include <unistd.h>

using namespace std::chrono_literals;
using tw::process::describe;
using tw::process::ProcessExit;

namespace {

/// The arguments that make a child of this test program run one test case.
std::vector<std::string> test_case_command(const std::string& test_case) {
    return {"tw_run_test", "--no-skip", "--test-case=" + test_case};
}

} // namespace

// The test cases that run in the children below.
TEST_CASE("child: says what it was handed" * doctest::skip()) {
    const int link = tw::process::ObserverProcess::kLinkDescriptor;
    const int memory = tw::process::ObserverProcess::kMemoryDescriptor;
    std::byte word{};
    REQUIRE(::read(memory, &word, 1) == 1);
    REQUIRE(::write(link, &word, 1) == 1);
    REQUIRE(::fcntl(memory + 1, F_GETFD) == -1); // no further descriptor
}

TEST_CASE("child: fails" * doctest::skip()) {
    FAIL("as it should");
}

TEST_CASE("child: stays" * doctest::skip()) {
    ::pause();
}

TEST_CASE("a child gets its two descriptors under fixed numbers, and its end is noticed") {
    std::array<int, 2> from{};
    std::array<int, 2> to{};
    REQUIRE(::pipe2(from.data(), O_CLOEXEC) == 0);
    REQUIRE(::pipe2(to.data(), O_CLOEXEC) == 0);
    REQUIRE(::write(to[1], "!", 1) == 1);
    {
        tw::process::ObserverProcess child{test_case_command("child: says*"), from[1], to[0]};
        const auto ending = child.wait(30s);
        REQUIRE(ending);
        CHECK(describe(*ending) == "exit code 0");
        CHECK(child.wait(0ms));
    }
    char word = 0;
    REQUIRE(::read(from[0], &word, 1) == 1);
    CHECK(word == '!');
    for (const int end : {from[0], from[1], to[0], to[1]}) {
        ::close(end);
    }
}

TEST_CASE("the exit code of a child is known, and a child that does not end is killed") {
    const int any = STDERR_FILENO;
    tw::process::ObserverProcess failing{test_case_command("child: fails"), any, any};
    CHECK(failing.wait(30s).value_or(ProcessExit{}).code == 1);
    tw::process::ObserverProcess staying{test_case_command("child: stays"), any, any};
    CHECK_FALSE(staying.wait(0ms));
    staying.kill();
    CHECK(staying.wait(30s).value_or(ProcessExit{}).signal == SIGKILL);
    const tw::process::ObserverProcess left{test_case_command("child: stays"), any, any};
    CHECK(left.id() > 0); // the destructor of `left` kills this child
}

TEST_CASE("the end of a process is described by exit code or signal name") {
    CHECK(describe(ProcessExit{.code = 3}) == "exit code 3");
    CHECK(describe(ProcessExit{.signal = SIGSEGV}) == "signal 11 (Segmentation fault)");
}

TEST_CASE("when memory runs out, the system kills the child first") {
    const auto oom_score_of = [](const std::string& process) {
        int value = -1;
        std::ifstream{"/proc/" + process + "/oom_score_adj"} >> value;
        return value;
    };
    std::array<int, 2> ends{};
    REQUIRE(::pipe2(ends.data(), O_CLOEXEC) == 0);
    tw::process::ObserverProcess child{test_case_command("child: stays"), ends[0], ends[1]};
    CHECK(oom_score_of(std::to_string(child.id())) == std::min(oom_score_of("self") + 500, 1000));
    child.kill();
    CHECK(child.wait(30s));
    ::close(ends[0]);
    ::close(ends[1]);
}

using namespace tw::channel;
using namespace tw::process;

TEST_CASE("an observer reads the whole start message, and later messages stay queued") {
    auto [relay, observer] = ProcessLink::create_pair();
    const ObserverStartup said{
        .flags = {{.name = "pseudonyms", .values = {std::string(100'000, 's')}},
                  {.name = "listen", .values = {"127.0.0.1:8303", "[::1]:8303"}},
                  {.name = "quiet", .values = {}}},
        .log_level = "debug",
        .token = {.value = "correct-horse-battery", .file = "/a b/http.token"}};
    CHECK(send_startup(relay, said));
    CHECK(relay.send(ControlMessage::write_summaries));
    CHECK(await_startup(observer) == said);
    const auto later = observer.receive();
    REQUIRE(later);
    CHECK(later->kind == ControlMessage::write_summaries);
}

TEST_CASE("if the relay ends during the start message, there is no start message") {
    auto ends = ProcessLink::create_pair();
    { const ProcessLink relay = std::move(ends.first); }
    CHECK_FALSE(await_startup(ends.second));
    CHECK_FALSE(send_startup(ends.second, {}));
}

TEST_CASE("a token is received as it was sent") {
    auto [relay, observer] = ProcessLink::create_pair();
    for (const PageToken& token :
         {PageToken{.value = "", .file = ""}, PageToken{.value = "correct-horse", .file = ""},
          PageToken{.value = "correct-horse", .file = "/a\nb"}}) {
        CHECK(send_token(relay, token));
        const auto heard = observer.receive();
        REQUIRE(heard);
        CHECK(heard->kind == ControlMessage::page_token);
        CHECK(token_from_message(heard->text) == token);
    }
    CHECK(token_from_message("no line's end") == PageToken{.value = "no line's end", .file = ""});
}
