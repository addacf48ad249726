// Covers: proxy/inspect/connection/packet_acceptance.cpp
#include "proxy/inspect/connection/packet_acceptance.h"

#include <string_view>

#include <doctest/doctest.h>

using tw::inspect::receiver_rules;
using tw::inspect::ReceiverProgram;
using tw::inspect::ReceiverRules;
using tw::inspect::TokenBitRule;

TEST_CASE("a receiver has the rules of its version, or of the newest if it is unknown") {
    struct Row {
        std::string_view name;
        ReceiverProgram receiver;
        ReceiverRules rules; ///< compressed control, control with chunks, token bit, 0.7's header
    };

    constexpr auto kIgnored = TokenBitRule::ignores_bit;
    constexpr auto kRefused = TokenBitRule::drops_packet;
    constexpr ReceiverRules kClient{true, true, kRefused, false};
    constexpr ReceiverRules kServer{true, true, kRefused, true};
    const Row rows[] = {
        {"0.6.5", {.has_header_token = true}, {false, false, TokenBitRule::reads_token, false}},
        {"vanilla without a token", {.is_vanilla = true, .is_server = true}, {}},
        {"nothing is known", {}, kClient},
        {"a server of which nothing is known", {.is_server = true}, kServer},
        {"who says what nobody is", {.version = -1}, kClient},
        {"20.1", {.version = 20010, .is_server = true}, kServer},
        {"19.4", {.version = 19040, .is_server = true}, kServer},
        {"19.3", {.version = 19030, .is_server = true}, {true, false, kIgnored, true}},
        {"a client of 16.4", {.version = 16040}, {true, false, kIgnored, false}},
        {"13.2", {.version = 13020, .is_server = true}, {true, false, kRefused, false}},
    };
    for (const Row& row : rows) {
        CAPTURE(row.name);
        CHECK((receiver_rules(row.receiver) == row.rules));
    }
}
