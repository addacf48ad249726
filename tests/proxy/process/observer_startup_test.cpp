// Covers: proxy/process/observer_process.cpp
#include "proxy/process/observer_process.h"

#include <string>

#include <doctest/doctest.h>

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
    CHECK(relay.send(ControlMessage::report));
    CHECK(await_startup(observer) == said);
    const auto later = observer.receive();
    REQUIRE(later);
    CHECK(later->kind == ControlMessage::report);
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
        CHECK(heard->kind == ControlMessage::token);
        CHECK(token_from_message(heard->text) == token);
    }
    CHECK(token_from_message("no line's end") == PageToken{.value = "no line's end", .file = ""});
}
