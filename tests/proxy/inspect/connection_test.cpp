// Covers: proxy/inspect/connection/connection.cpp
#include "proxy/inspect/connection/connection.h"

#include <optional>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>

using tw::inspect::AckWindow;
using tw::inspect::ConnectionStart;

TEST_CASE("a receiver accepts acknowledgements from the newest accepted one to its newest chunk") {
    struct Row {
        std::string_view name;
        std::uint16_t sent;
        std::uint16_t before; ///< the newest acknowledgement before
        std::uint16_t ack;
        bool taken;
    };

    const Row rows[] = {
        {"what was sent", 5, 2, 5, true},     {"again", 5, 2, 2, true},
        {"less than before", 5, 2, 1, false}, {"more than was sent", 5, 2, 6, false},
        {"far ahead", 5, 2, 500, false},      {"half a turn behind", 5, 2, 700, false},
    };
    for (const Row& row : rows) {
        CAPTURE(row.name);
        AckWindow window;
        window.reset(ConnectionStart::seen);
        for (std::uint16_t sequence = 1; sequence <= row.sent; ++sequence) {
            window.on_chunk_sent(sequence);
        }
        REQUIRE(window.accept_ack(row.before));
        CHECK(window.accept_ack(row.ack) == row.taken);
    }
}

TEST_CASE("the range of accepted acknowledgements wraps around") {
    AckWindow window;
    window.reset(ConnectionStart::missed);
    window.on_chunk_sent(1023);
    REQUIRE(window.accept_ack(1022)); // joined midway, so the first ack is accepted
    window.on_chunk_sent(0);
    window.on_chunk_sent(1);
    CHECK(window.accept_ack(1));
    CHECK_FALSE(window.accept_ack(1023));
    CHECK_FALSE(window.accept_ack(2));
    CHECK(window.accept_ack_above_range(2));
    CHECK_FALSE(window.accept_ack_above_range(1));
    CHECK_FALSE(window.accept_ack_above_range(301));
}

TEST_CASE("several acknowledgements in a row that are slightly too high move the range") {
    constexpr int kBelieved = 8;
    for (const bool contradicted : {false, true}) {
        CAPTURE(contradicted);
        AckWindow window;
        window.reset(ConnectionStart::seen);
        for (int i = 0; i < kBelieved; ++i) {
            CHECK(window.accept_ack_above_range(10));
            if (contradicted && i == kBelieved / 2) {
                CHECK(window.accept_ack(0));
            }
        }
        CHECK(window.accept_ack(10) != contradicted);
        CHECK(window.accept_ack_above_range(20) !=
              contradicted); // too far for a window that ends at 0
    }
}

TEST_CASE("without a known range every acknowledgement is accepted") {
    AckWindow window;
    window.reset(ConnectionStart::missed);
    CHECK_FALSE(window.accept_ack_above_range(900));
    CHECK(window.accept_ack(900));
    CHECK(window.accept_ack(17));
}

using tw::inspect::VitalChunkOrder;
using tw::wire::VitalClass;

namespace {

struct ChunkStep {
    std::uint16_t sequence = 0;
    bool resend = false;
    VitalClass expected_class = VitalClass::next;
};

constexpr auto kNext = VitalClass::next;
constexpr auto kOld = VitalClass::old;
constexpr auto kGap = VitalClass::gap;

} // namespace

TEST_CASE("vital chunks are accepted once and in order, as by the receiver") {
    struct Row {
        std::string_view name;
        bool synced;
        std::vector<ChunkStep> steps;
    };

    const Row rows[] = {
        {"from the start, in order", true, {{1, false, kNext}, {2, false, kNext}}},
        {"twice", true, {{1, false, kNext}, {1, false, kOld}, {1, true, kOld}}},
        {"one is missing and comes again",
         true,
         {{1, false, kNext}, {3, false, kGap}, {2, true, kNext}, {3, true, kNext}}},
        {"from the start, the first is missing", true, {{2, false, kGap}, {1, true, kNext}}},
        {"over the end of the sequence",
         false,
         {{1022, false, kNext}, {1023, false, kNext}, {0, false, kNext}, {1, false, kNext}}},
        {"joined midway: what is new sets the place",
         false,
         {{700, false, kNext}, {701, true, kNext}}},
        {"joined midway: what is resent does not", false, {{699, true, kOld}, {700, false, kNext}}},
    };
    for (const Row& row : rows) {
        CAPTURE(row.name);
        VitalChunkOrder order;
        order.reset(row.synced ? ConnectionStart::seen : ConnectionStart::missed);
        for (const ChunkStep& step : row.steps) {
            CAPTURE(step.sequence);
            CHECK(order.classify_chunk(step.sequence, step.resend) == step.expected_class);
        }
    }
}

TEST_CASE("the receiver's acknowledgement ends the wait for an unseen chunk") {
    VitalChunkOrder order;
    order.reset(ConnectionStart::seen);
    CHECK(order.classify_chunk(1, false) == kNext);
    CHECK(order.classify_chunk(5, false) == kGap);
    REQUIRE(order.has_gap());
    CHECK_FALSE(order.on_ack(1)); // acknowledges nothing new
    CHECK(order.has_gap());
    CHECK_FALSE(order.on_ack(0)); // an older packet
    CHECK(order.has_gap());
    CHECK(order.on_ack(5));
    CHECK_FALSE(order.has_gap());
    CHECK(order.classify_chunk(5, true) == kOld);
    CHECK(order.classify_chunk(6, false) == kNext);
}

TEST_CASE("chunks after an unseen chunk count as accepted once that one is acknowledged") {
    struct Row {
        std::string_view name;
        std::vector<std::uint16_t> dropped; ///< sequences after 1, in order of arrival
        std::uint16_t ack;
        bool waiting;
        std::uint16_t next;
    };

    const Row rows[] = {
        {"acknowledged as far as the missing one", {3}, 2, false, 4},
        {"several came meanwhile", {3, 4, 5}, 2, false, 6},
        {"one of them twice", {3, 4, 3, 4}, 2, false, 5},
        {"acknowledged beyond those that came", {3}, 4, false, 5},
        {"another one is missing", {3, 5}, 2, true, 3},
        {"both of them acknowledged", {3, 5}, 4, false, 6},
    };
    for (const Row& row : rows) {
        CAPTURE(row.name);
        VitalChunkOrder order;
        order.reset(ConnectionStart::seen);
        REQUIRE(order.classify_chunk(1, false) == kNext);
        for (const std::uint16_t sequence : row.dropped) {
            REQUIRE(order.classify_chunk(sequence, false) == kGap);
        }
        CHECK(order.on_ack(row.ack));
        CHECK(order.has_gap() == row.waiting);
        CHECK(order.classify_chunk(row.next, false) == kNext);
    }
}

TEST_CASE("an acknowledgement changes nothing if no chunk is missing") {
    VitalChunkOrder order;
    order.reset(ConnectionStart::seen);
    CHECK(order.classify_chunk(1, false) == kNext);
    CHECK_FALSE(order.on_ack(9));
    CHECK(order.classify_chunk(2, false) == kNext);
}

TEST_CASE("an undecided chunk counts as accepted if its receiver acknowledges it") {
    for (const bool taken : {true, false}) {
        CAPTURE(taken);
        VitalChunkOrder order;
        order.reset(ConnectionStart::seen);
        REQUIRE(order.classify_chunk(1, false) == kNext);
        order.on_undecided_chunk(1); // received before
        CHECK_FALSE(order.has_gap());
        order.on_undecided_chunk(2);
        CHECK(order.on_ack(2) == true);
        CHECK(order.classify_chunk(3, false) == kNext);
        order.on_undecided_chunk(4);
        CHECK_FALSE(order.on_ack(3));
        CHECK(order.classify_chunk(taken ? 4 : 5, false) == (taken ? kNext : kGap));
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

struct HandshakeStep {
    Direction direction;
    ControlKind kind;
    Token to;
    std::optional<Token> own{};
};

const HandshakeStep kAsk{kC2s, ControlKind::token, wire::kTokenUnknown, kClient};
const HandshakeStep kAnswer{kS2c, ControlKind::token, kClient, kServer};
const HandshakeStep kConnect{kC2s, ControlKind::connect, kServer, kClient};
const HandshakeStep kToOther{kC2s, ControlKind::connect, kOther, kClient};
const HandshakeStep kAccept{kS2c, ControlKind::accept, kClient};

ConnectionChange pass_packet(SevenHandshake& handshake, const HandshakeStep& step) {
    const auto datagram =
        wire::encode_control({.kind = step.kind, .token = step.own, .seven_token = step.to});
    wire::PacketScratch scratch;
    const auto packet = wire::decode_packet(datagram, wire::Protocol::unknown, scratch).value();
    return handshake.on_control(step.direction, packet, wire::decode_control(packet, std::nullopt));
}

wire::Packet packet_with_token(const Token& token) {
    wire::Packet packet;
    packet.dialect = wire::Dialect::seven;
    packet.header_token = token;
    return packet;
}

} // namespace

TEST_CASE("a 0.7 connection begins when the handshake is complete") {
    struct Row {
        std::string_view name;
        std::vector<HandshakeStep> steps;
        int established;
        bool ddnet = false;
    };

    const HandshakeStep other_answer{kS2c, ControlKind::token, kClient, kOther};
    const HandshakeStep accept_again{kS2c, ControlKind::accept, kClient, kServer};
    const HandshakeStep accept_reversed{kS2c, ControlKind::accept, kClient, kReversed};
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
        for (const HandshakeStep& step : row.steps) {
            established += pass_packet(handshake, step) == ConnectionChange::established ? 1 : 0;
        }
        CHECK(established == row.established);
        CHECK(handshake.is_accepted_by_ddnet() == row.ddnet);
        if (established != 0) {
            CHECK(handshake.has_expected_token(kC2s, packet_with_token(kServer)));
            CHECK(handshake.has_expected_token(kS2c, packet_with_token(kClient)));
            CHECK_FALSE(handshake.has_expected_token(kC2s, packet_with_token(kClient)));
            CHECK_FALSE(handshake.has_expected_token(kS2c, packet_with_token(kOther)));
        }
    }
}

TEST_CASE("a CONNECT shows a reconnecting client whose TOKEN was not seen") {
    SevenHandshake handshake;
    for (const HandshakeStep& step : {kAsk, kAnswer, kConnect}) {
        REQUIRE(pass_packet(handshake, step) == ConnectionChange::none);
    }
    REQUIRE(pass_packet(handshake, kAccept) == ConnectionChange::established);
    CHECK(pass_packet(handshake, {kC2s, ControlKind::connect, kServer, kOther}) ==
          ConnectionChange::none);
    CHECK(pass_packet(handshake, {kS2c, ControlKind::accept, kOther}) ==
          ConnectionChange::established);
    CHECK(handshake.has_expected_token(kS2c, packet_with_token(kOther)));
}

TEST_CASE("two packets with the same token show a running connection") {
    SevenHandshake handshake;
    CHECK(handshake.on_seven_packet(kS2c, kClient) == ConnectionChange::none);
    CHECK(handshake.on_seven_packet(kS2c, kOther) == ConnectionChange::none);
    CHECK(handshake.on_seven_packet(kS2c, kOther) == ConnectionChange::joined_midway);
    CHECK(handshake.has_expected_token(kS2c, packet_with_token(kOther)));
    CHECK(handshake.has_expected_token(kC2s, packet_with_token(kServer)));
    CHECK_FALSE(handshake.has_expected_token(kC2s, packet_with_token(kOther)));
}

TEST_CASE("the same handshake begins a new connection after chunks of the previous one") {
    SevenHandshake handshake;
    for (const HandshakeStep& step : {kAsk, kAnswer, kConnect, kAccept}) {
        static_cast<void>(pass_packet(handshake, step));
    }
    static_cast<void>(pass_packet(handshake, kConnect));
    handshake.allow_next_handshake();
    CHECK(pass_packet(handshake, kAccept) == ConnectionChange::established);
}

TEST_CASE("the client's packets show a connection only if the server is not recorded") {
    SevenHandshake handshake;
    CHECK(handshake.on_seven_packet(kC2s, kServer) == ConnectionChange::none);
    CHECK(handshake.infer_connection_from_client() == ConnectionChange::none);
    for (int i = 0; i < 300; ++i) {
        REQUIRE(handshake.on_seven_packet(kC2s, kServer) == ConnectionChange::none);
    }
    CHECK(handshake.on_seven_packet(kS2c, kClient) == ConnectionChange::none);
    CHECK(handshake.infer_connection_from_client() == ConnectionChange::joined_midway);
}

TEST_CASE("foreign tokens begin a new connection only if both sides use them") {
    SevenHandshake handshake;
    for (const HandshakeStep& step : {kAsk, kAnswer, kConnect, kAccept}) {
        static_cast<void>(pass_packet(handshake, step));
    }
    constexpr Token kNewClient{9, 9, 9, 9};
    for (int i = 0; i < 100; ++i) { // packets of only the client prove nothing
        CHECK(handshake.on_foreign_token(kC2s, kOther) == ConnectionChange::none);
    }
    CHECK(handshake.on_foreign_token(kS2c, kNewClient) == ConnectionChange::none);
    CHECK(handshake.has_expected_token(kC2s, packet_with_token(kServer)));
    CHECK(handshake.on_foreign_token(kS2c, kNewClient) == ConnectionChange::joined_midway);
    CHECK(handshake.has_expected_token(kC2s, packet_with_token(kOther)));
    CHECK(handshake.has_expected_token(kS2c, packet_with_token(kNewClient)));
}

TEST_CASE("a CLOSE before the connection must belong to the handshake") {
    SevenHandshake handshake;
    CHECK_FALSE(handshake.ends_handshake_attempt(kS2c, packet_with_token(kClient)));
    CHECK(handshake.ends_handshake_attempt(kC2s, packet_with_token(wire::kTokenUnknown)));
    static_cast<void>(pass_packet(handshake, kAsk));
    static_cast<void>(pass_packet(handshake, kAnswer));
    CHECK(handshake.ends_handshake_attempt(kS2c, packet_with_token(kClient)));
    CHECK_FALSE(handshake.ends_handshake_attempt(kS2c, packet_with_token(kOther)));
    CHECK(handshake.ends_handshake_attempt(kC2s, packet_with_token(kServer)));
    CHECK_FALSE(handshake.ends_handshake_attempt(kC2s, packet_with_token(kOther)));
    handshake.reset();
    CHECK_FALSE(handshake.ends_handshake_attempt(kS2c, packet_with_token(kClient)));
}

} // namespace tw::inspect
