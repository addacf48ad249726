// Covers: proxy/inspect/connection/server_program.cpp
#include "proxy/inspect/connection/server_program.h"
#include "proxy/wire/packet.h"

#include <string_view>
#include <vector>

#include <doctest/doctest.h>

namespace tw::inspect {
namespace {

using wire::ControlKind;
using wire::Direction;
using wire::Token;

constexpr Token kClient{0x11, 0x22, 0x33, 0x44};
constexpr Token kServer{0x55, 0x66, 0x77, 0x88};
constexpr Token kReversed{0x88, 0x77, 0x66, 0x55};
constexpr Token kOther{1, 2, 3, 4};
constexpr auto kC2s = Direction::c2s;
constexpr auto kS2c = Direction::s2c;

struct Step {
    Direction direction;
    ControlKind kind;
    Token to;
    std::optional<Token> own{};
};

const Step kAsk{kC2s, ControlKind::token, wire::kTokenUnknown, kClient};
const Step kAnswer{kS2c, ControlKind::token, kClient, kServer};
const Step kConnect{kC2s, ControlKind::connect, kServer, kClient};
const Step kToOther{kC2s, ControlKind::connect, kOther, kClient};
const Step kAccept{kS2c, ControlKind::accept, kClient};

SevenChange feed(SevenHandshake& handshake, const Step& step) {
    const auto datagram =
        wire::encode_control({.kind = step.kind, .token = step.own, .seven_token = step.to});
    wire::PacketScratch scratch;
    const auto packet = wire::decode_packet(datagram, wire::Protocol::unknown, scratch);
    REQUIRE(packet);
    return handshake.on_control(step.direction, *packet,
                                wire::decode_control(*packet, std::nullopt));
}

wire::Packet packet_to(const Token& token) {
    wire::Packet packet;
    packet.dialect = wire::Dialect::seven;
    packet.header_token = token;
    return packet;
}

} // namespace

TEST_CASE("a connection of 0.7 begins when both sides have shaken hands") {
    struct Row {
        std::string_view name;
        std::vector<Step> steps;
        int established;
        bool ddnet = false;
    };

    const Step other_answer{kS2c, ControlKind::token, kClient, kOther};
    const Step accept_again{kS2c, ControlKind::accept, kClient, kServer};
    const Step accept_reversed{kS2c, ControlKind::accept, kClient, kReversed};
    const Row rows[] = {
        {"in order", {kAsk, kAnswer, kConnect, kAccept}, 1},
        {"accepted twice", {kAsk, kAnswer, kConnect, kAccept, kAccept}, 1},
        {"asked again before the answer came",
         {kAsk, kAnswer, kAsk, kConnect, kAnswer, kAccept},
         1},
        {"the server's token changes meanwhile",
         {kAsk, kAnswer, kAsk, other_answer, kConnect, kAccept},
         1},
        {"both repeat themselves", {kAsk, kAnswer, kConnect, kAccept, kConnect, kAccept}, 1},
        {"connects anew",
         {kAsk, kAnswer, kConnect, kAccept, kAsk, other_answer, kToOther, kAccept, kAsk, kAnswer,
          kConnect, kAccept},
         3},
        {"DDNet 16.4", {kAsk, kAnswer, kConnect, accept_again}, 1, true},
        {"DDNet 20.1.1", {kAsk, kAnswer, kConnect, accept_reversed}, 1, true},
        {"no CONNECT", {kAsk, kAnswer, kAccept}, 0},
        {"no answer", {kAsk, kConnect, kAccept}, 0},
        {"announcements alone", {kAsk, kAnswer, kAsk, kAnswer}, 0},
        {"a CONNECT for another token", {kAsk, kAnswer, kToOther, kAccept}, 0},
        {"accepted for another client",
         {kAsk, kAnswer, kConnect, {kS2c, ControlKind::accept, kOther}},
         0},
        {"the client's own ACCEPT",
         {kAsk, kAnswer, kConnect, {kC2s, ControlKind::accept, kClient}},
         0},
        {"another client token after the answer",
         {kAsk,
          kAnswer,
          {kC2s, ControlKind::token, wire::kTokenUnknown, kOther},
          kConnect,
          kAccept},
         0},
    };
    for (const Row& row : rows) {
        CAPTURE(row.name);
        SevenHandshake handshake;
        int established = 0;
        for (const Step& step : row.steps) {
            established += feed(handshake, step) == SevenChange::established ? 1 : 0;
        }
        CHECK(established == row.established);
        CHECK(handshake.accepted_by_ddnet() == row.ddnet);
        if (established != 0) {
            CHECK(handshake.token_fits(kC2s, packet_to(kServer)));
            CHECK(handshake.token_fits(kS2c, packet_to(kClient)));
            CHECK_FALSE(handshake.token_fits(kC2s, packet_to(kClient)));
            CHECK_FALSE(handshake.token_fits(kS2c, packet_to(kOther)));
        }
    }
}

TEST_CASE("a client that comes again is known by its CONNECT, where its TOKEN passed unseen") {
    SevenHandshake handshake;
    for (const Step& step : {kAsk, kAnswer, kConnect}) {
        REQUIRE(feed(handshake, step) == SevenChange::none);
    }
    REQUIRE(feed(handshake, kAccept) == SevenChange::established);
    CHECK(feed(handshake, {kC2s, ControlKind::connect, kServer, kOther}) == SevenChange::none);
    CHECK(feed(handshake, {kS2c, ControlKind::accept, kOther}) == SevenChange::established);
    CHECK(handshake.token_fits(kS2c, packet_to(kOther)));
}

TEST_CASE("two packets that agree are a connection joined midway, its other token is learned") {
    SevenHandshake handshake;
    CHECK(handshake.on_seven_packet(kS2c, kClient) == SevenChange::none);
    CHECK(handshake.on_seven_packet(kS2c, kOther) == SevenChange::none);
    CHECK(handshake.on_seven_packet(kS2c, kOther) == SevenChange::midway);
    CHECK(handshake.token_fits(kS2c, packet_to(kOther)));
    CHECK(handshake.token_fits(kC2s, packet_to(kServer)));
    CHECK_FALSE(handshake.token_fits(kC2s, packet_to(kOther)));
}

TEST_CASE("the same handshake begins another connection when the one before has begun to talk") {
    SevenHandshake handshake;
    for (const Step& step : {kAsk, kAnswer, kConnect, kAccept}) {
        static_cast<void>(feed(handshake, step));
    }
    static_cast<void>(feed(handshake, kConnect));
    handshake.end_handshake();
    CHECK(feed(handshake, kAccept) == SevenChange::established);
}

TEST_CASE("what only a client says is no connection, unless no server can be heard") {
    SevenHandshake handshake;
    CHECK(handshake.on_seven_packet(kC2s, kServer) == SevenChange::none);
    CHECK(handshake.infer_from_client() == SevenChange::none);
    for (int i = 0; i < 300; ++i) {
        REQUIRE(handshake.on_seven_packet(kC2s, kServer) == SevenChange::none);
    }
    CHECK(handshake.on_seven_packet(kS2c, kClient) == SevenChange::none);
    CHECK(handshake.infer_from_client() == SevenChange::midway);
}

TEST_CASE("strangers replace a connection when both sides agree on them, not before") {
    SevenHandshake handshake;
    for (const Step& step : {kAsk, kAnswer, kConnect, kAccept}) {
        static_cast<void>(feed(handshake, step));
    }
    constexpr Token kNewClient{9, 9, 9, 9};
    for (int i = 0; i < 100; ++i) { // a client alone can say what it likes
        CHECK(handshake.on_foreign_token(kC2s, kOther) == SevenChange::none);
    }
    CHECK(handshake.on_foreign_token(kS2c, kNewClient) == SevenChange::none);
    CHECK(handshake.token_fits(kC2s, packet_to(kServer)));
    CHECK(handshake.on_foreign_token(kS2c, kNewClient) == SevenChange::midway);
    CHECK(handshake.token_fits(kC2s, packet_to(kOther)));
    CHECK(handshake.token_fits(kS2c, packet_to(kNewClient)));
}

TEST_CASE("a CLOSE before there is a connection has to be about the attempt") {
    SevenHandshake handshake;
    CHECK_FALSE(handshake.ends_attempt(kS2c, packet_to(kClient)));
    CHECK(handshake.ends_attempt(kC2s, packet_to(wire::kTokenUnknown)));
    static_cast<void>(feed(handshake, kAsk));
    static_cast<void>(feed(handshake, kAnswer));
    CHECK(handshake.ends_attempt(kS2c, packet_to(kClient)));
    CHECK_FALSE(handshake.ends_attempt(kS2c, packet_to(kOther)));
    CHECK(handshake.ends_attempt(kC2s, packet_to(kServer)));
    CHECK_FALSE(handshake.ends_attempt(kC2s, packet_to(kOther)));
    handshake.reset();
    CHECK_FALSE(handshake.ends_attempt(kS2c, packet_to(kClient)));
}

} // namespace tw::inspect
