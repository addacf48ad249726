// Covers: proxy/inspect/connection/server_program.cpp
#include "proxy/inspect/connection/server_program.h"
#include "proxy/wire/packet.h"
#include "snapshot/snapshot.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>

using namespace tw;
using inspect::ServerProgram;

namespace {

void extended(ServerProgram& server, std::string_view name) {
    for (const wire::MessageSpec& spec : wire::message_table()) {
        if (spec.name == name) {
            server.on_uuid_message(spec);
            return;
        }
    }
    FAIL("no such message");
}

/// A snapshot with one object of so many ints, and what says which type number it has.
void object(ServerProgram& server, std::string_view name, std::size_t ints) {
    const auto table = snapshot::object_table();
    const auto spec =
        std::ranges::find_if(table, [name](const auto& each) { return each.name == name; });
    REQUIRE(spec != table.end());
    constexpr std::uint16_t kType = 0x7fff;
    std::array<std::int32_t, 4> words{};
    for (std::size_t i = 0; i < spec->uuid.size(); ++i) {
        auto& word = words[i / 4];
        word = static_cast<std::int32_t>(static_cast<std::uint32_t>(word) << 8U | spec->uuid[i]);
    }
    snapshot::Snapshot items;
    items.append({0, kType}, words);
    items.append({kType, 0}, std::vector<std::int32_t>(ints));
    record::TypeNames types;
    types.learn_types(items.view());
    server.on_snapshot(items.view(), types);
}

struct Row {
    std::string_view name;
    void (*play)(ServerProgram& server);
    std::optional<std::int32_t> version;
    bool vanilla = false;
};

const Row kRows[] = {
    {"nothing", [](auto&) {}, std::nullopt},
    {"DDNet 16.4 greets", [](auto& s) { s.on_chat("DDraceNetwork Mod. Version: 0.6.4, 16.4"); },
     16040},
    {"DDNet 20.1.1 greets", [](auto& s) { s.on_chat("DDraceNetwork Mod. Version: 0.6, 20.1.1"); },
     20011},
    {"a line of chat like it", [](auto& s) { s.on_chat("my Mod. Version: 0.6.4, 16.4"); },
     std::nullopt},
    {"a server info", [](auto& s) { s.on_info("0.6.4, 19.1"); }, 19010},
    {"a version with more behind it", [](auto& s) { s.on_info("0.6.4, 18.9-dev"); }, 18090},
    {"a version in words", [](auto& s) { s.on_info("0.6.4, newest"); }, std::nullopt},
    {"a version beyond all numbers", [](auto& s) { s.on_info("0.6.4, 99999999999.1"); },
     std::nullopt},
    {"DDNet's server info to 0.7", [](auto& s) { s.on_info("0.7\u21940.6, 20.1.1"); }, 20011},
    {"Teeworlds 0.7's server info", [](auto& s) { s.on_info("0.7.5"); }, std::nullopt, true},
    {"an arrow to nowhere", [](auto& s) { s.on_info("0.7\u2194"); }, std::nullopt},
    {"arrows without an end", [](auto& s) { s.on_info("0.7\u21940.7\u21940.7\u2194x"); },
     std::nullopt},
    {"vanilla's server info", [](auto& s) { s.on_info("0.6.5"); }, std::nullopt, true},
    {"a map without capabilities", [](auto& s) { s.on_map_change(); }, std::nullopt, true},
    {"a map behind capabilities",
     [](auto& s) {
         extended(s, "capabilities");
         s.on_map_change();
     },
     std::nullopt},
    {"a mod that counts its own versions",
     [](auto& s) {
         extended(s, "reconnect");
         s.on_info("0.6.4, 12.1");
     },
     std::nullopt},
    {"ten ints of a character", [](auto& s) { object(s, "ddnet_character", 10); }, 18999},
    {"nine ints of a character", [](auto& s) { object(s, "ddnet_character", 9); }, 16019},
    {"eleven ints of a character", [](auto& s) { object(s, "ddnet_character", 11); }, std::nullopt},
    {"a mod of an older server that says it is new",
     [](auto& s) {
         object(s, "ddnet_character", 10);
         s.on_info("0.6.4, 25.0");
     },
     18999},
    {"a mod of a newer server that says it is old",
     [](auto& s) {
         object(s, "ddnet_player", 4);
         s.on_info("0.6.4, 16.4");
     },
     std::nullopt},
    {"a new connection still knows what was said",
     [](auto& s) {
         s.on_info("0.6.4, 16.4");
         s.forget_evidence();
     },
     16040},
};

} // namespace

TEST_CASE("a server's version is what it says, unless what it sends shows another") {
    for (const Row& row : kRows) {
        CAPTURE(row.name);
        ServerProgram server;
        row.play(server);
        CHECK(server.version() == row.version);
        CHECK(server.is_vanilla() == row.vanilla);
    }
}

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

SevenConnectionChange feed(SevenHandshake& handshake, const Step& step) {
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
            established += feed(handshake, step) == SevenConnectionChange::established ? 1 : 0;
        }
        CHECK(established == row.established);
        CHECK(handshake.is_accepted_by_ddnet() == row.ddnet);
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
        REQUIRE(feed(handshake, step) == SevenConnectionChange::none);
    }
    REQUIRE(feed(handshake, kAccept) == SevenConnectionChange::established);
    CHECK(feed(handshake, {kC2s, ControlKind::connect, kServer, kOther}) ==
          SevenConnectionChange::none);
    CHECK(feed(handshake, {kS2c, ControlKind::accept, kOther}) ==
          SevenConnectionChange::established);
    CHECK(handshake.token_fits(kS2c, packet_to(kOther)));
}

TEST_CASE("two packets that agree are a connection joined midway, its other token is learned") {
    SevenHandshake handshake;
    CHECK(handshake.on_seven_packet(kS2c, kClient) == SevenConnectionChange::none);
    CHECK(handshake.on_seven_packet(kS2c, kOther) == SevenConnectionChange::none);
    CHECK(handshake.on_seven_packet(kS2c, kOther) == SevenConnectionChange::midway);
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
    CHECK(feed(handshake, kAccept) == SevenConnectionChange::established);
}

TEST_CASE("what only a client says is no connection, unless no server can be heard") {
    SevenHandshake handshake;
    CHECK(handshake.on_seven_packet(kC2s, kServer) == SevenConnectionChange::none);
    CHECK(handshake.infer_from_client() == SevenConnectionChange::none);
    for (int i = 0; i < 300; ++i) {
        REQUIRE(handshake.on_seven_packet(kC2s, kServer) == SevenConnectionChange::none);
    }
    CHECK(handshake.on_seven_packet(kS2c, kClient) == SevenConnectionChange::none);
    CHECK(handshake.infer_from_client() == SevenConnectionChange::midway);
}

TEST_CASE("strangers replace a connection when both sides agree on them, not before") {
    SevenHandshake handshake;
    for (const Step& step : {kAsk, kAnswer, kConnect, kAccept}) {
        static_cast<void>(feed(handshake, step));
    }
    constexpr Token kNewClient{9, 9, 9, 9};
    for (int i = 0; i < 100; ++i) { // a client alone can say what it likes
        CHECK(handshake.on_foreign_token(kC2s, kOther) == SevenConnectionChange::none);
    }
    CHECK(handshake.on_foreign_token(kS2c, kNewClient) == SevenConnectionChange::none);
    CHECK(handshake.token_fits(kC2s, packet_to(kServer)));
    CHECK(handshake.on_foreign_token(kS2c, kNewClient) == SevenConnectionChange::midway);
    CHECK(handshake.token_fits(kC2s, packet_to(kOther)));
    CHECK(handshake.token_fits(kS2c, packet_to(kNewClient)));
}

TEST_CASE("a CLOSE before there is a connection has to be about the attempt") {
    SevenHandshake handshake;
    CHECK_FALSE(handshake.ends_handshake_attempt(kS2c, packet_to(kClient)));
    CHECK(handshake.ends_handshake_attempt(kC2s, packet_to(wire::kTokenUnknown)));
    static_cast<void>(feed(handshake, kAsk));
    static_cast<void>(feed(handshake, kAnswer));
    CHECK(handshake.ends_handshake_attempt(kS2c, packet_to(kClient)));
    CHECK_FALSE(handshake.ends_handshake_attempt(kS2c, packet_to(kOther)));
    CHECK(handshake.ends_handshake_attempt(kC2s, packet_to(kServer)));
    CHECK_FALSE(handshake.ends_handshake_attempt(kC2s, packet_to(kOther)));
    handshake.reset();
    CHECK_FALSE(handshake.ends_handshake_attempt(kS2c, packet_to(kClient)));
}

} // namespace tw::inspect
