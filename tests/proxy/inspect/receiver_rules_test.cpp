// Covers: proxy/inspect/connection/packet_acceptance.cpp
#include "proxy/inspect/connection/packet_acceptance.h"

#include <string_view>

#include <doctest/doctest.h>

using tw::inspect::receiver_rules;
using tw::inspect::ReceiverProgram;
using tw::inspect::ReceiverRules;
using tw::inspect::TokenBit;

TEST_CASE(
    "what a receiver refuses is that of its version, and of today's where that is not known") {
    struct Row {
        std::string_view name;
        ReceiverProgram receiver;
        std::string_view program;
        bool compressed_control;
        bool control_with_chunks;
        TokenBit token_bit;
        bool seven_header;
    };

    const Row rows[] = {
        {"0.6.5", {.header_token = true}, "vanilla 0.6.5", true, true, TokenBit::token, false},
        {"a vanilla server without a token",
         {.vanilla = true, .server = true},
         "vanilla 0.6",
         true,
         true,
         TokenBit::refused,
         false},
        {"nothing is known", {}, "DDNet since 19.4", false, false, TokenBit::refused, false},
        {"a server of which nothing is known",
         {.server = true},
         "DDNet since 19.4",
         false,
         false,
         TokenBit::refused,
         true},
        {"who says what nobody is",
         {.version = -1},
         "DDNet since 19.4",
         false,
         false,
         TokenBit::refused,
         false},
        {"20.1",
         {.version = 20010, .server = true},
         "DDNet since 19.4",
         false,
         false,
         TokenBit::refused,
         true},
        {"19.4",
         {.version = 19040, .server = true},
         "DDNet since 19.4",
         false,
         false,
         TokenBit::refused,
         true},
        {"19.3",
         {.version = 19030, .server = true},
         "DDNet 14.0 to 19.3",
         false,
         true,
         TokenBit::ignored,
         true},
        {"a client of 16.4",
         {.version = 16040},
         "DDNet 14.0 to 19.3",
         false,
         true,
         TokenBit::ignored,
         false},
        {"13.2",
         {.version = 13020, .server = true},
         "DDNet 11 to 13",
         false,
         true,
         TokenBit::refused,
         false},
    };
    for (const Row& row : rows) {
        CAPTURE(row.name);
        const ReceiverRules& rules = receiver_rules(row.receiver);
        CHECK(rules.program == row.program);
        CHECK(rules.refuses_compressed_control != row.compressed_control);
        CHECK(rules.refuses_control_with_chunks != row.control_with_chunks);
        CHECK(rules.token_bit == row.token_bit);
        CHECK(rules.reads_seven_header == row.seven_header);
    }
}
