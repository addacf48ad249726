// Covers: proxy/inspect/connection/packet_acceptance.cpp
#include "proxy/inspect/connection/packet_acceptance.h"

#include <string_view>

#include <doctest/doctest.h>

using tw::inspect::receiver_rules;
using tw::inspect::ReceiverProgram;
using tw::inspect::ReceiverRules;
using tw::inspect::TokenBitRule;

TEST_CASE("a receiver refuses what its version refuses, or today's if that is not known") {
    struct Row {
        std::string_view name;
        ReceiverProgram receiver;
        ReceiverRules rules; ///< compressed control, control with chunks, token bit, 0.7's header
    };

    constexpr auto kIgnored = TokenBitRule::ignored;
    constexpr auto kRefused = TokenBitRule::refused;
    constexpr ReceiverRules kClient{true, true, kRefused, false};
    constexpr ReceiverRules kServer{true, true, kRefused, true};
    const Row rows[] = {
        {"0.6.5", {.header_token = true}, {false, false, TokenBitRule::token, false}},
        {"vanilla without a token", {.vanilla = true, .server = true}, {}},
        {"nothing is known", {}, kClient},
        {"a server of which nothing is known", {.server = true}, kServer},
        {"who says what nobody is", {.version = -1}, kClient},
        {"20.1", {.version = 20010, .server = true}, kServer},
        {"19.4", {.version = 19040, .server = true}, kServer},
        {"19.3", {.version = 19030, .server = true}, {true, false, kIgnored, true}},
        {"a client of 16.4", {.version = 16040}, {true, false, kIgnored, false}},
        {"13.2", {.version = 13020, .server = true}, {true, false, kRefused, false}},
    };
    for (const Row& row : rows) {
        CAPTURE(row.name);
        CHECK((receiver_rules(row.receiver) == row.rules));
    }
}
