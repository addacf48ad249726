// Tricks on the wire, as scripts: what no peer accepts has no effect. tests/e2e/evasion.mjs plays
// the same on a real server, with a witness.

#include "tests/proxy/inspect/evasion_script.h"

#include <string_view>

#include <doctest/doctest.h>

using namespace tw::test;
using namespace tw::test::evasion;
using tw::snapshot::kNoBase;
using tw::wire::ControlKind;
using tw::wire::ControlSpec;
using tw::wire::Token;

namespace {

struct Row {
    std::string_view name;
    void (*play)(SessionScript& script);
    Lines taken;
    bool refused = true; ///< a finding says that something was not accepted
};

void refuse_compressed_control(SessionScript& script) {
    for (const ControlKind kind : {ControlKind::close, ControlKind::accept}) {
        const Bytes plain_one =
            tw::wire::encode_control({.kind = kind, .token = SessionScript::kToken});
        Bytes payload{plain_one.begin() + tw::wire::kHeaderSize, plain_one.end()};
        Bytes datagram = tw::wire::encode_packet(
            {.chunks = payload, .compression = tw::wire::Compression::always});
        datagram[0] |= std::byte{kControl};
        script.send_datagram(kC2s, datagram);
    }
    script.send(kC2s, real());
}

/// Sequences that are no next one, with and without the resend bit.
void walk_the_ring(SessionScript& script) {
    for (const int by : {-kHalf + 1, -100, -1, 0, 2, 3, 100, kHalf - 1, kHalf}) {
        for (const bool resend : {false, true}) {
            Piece piece = vital(forged());
            piece.resend = resend;
            piece.sequence = static_cast<std::uint16_t>(
                (script.next_sequence(kC2s) - 1 + by + tw::wire::kSequenceModulus) %
                tw::wire::kSequenceModulus);
            script.send_datagram(kC2s, script.pack_deviating(kC2s, {piece}, {}));
        }
    }
    script.send(kC2s, real());
}

const Row kRows[] = {
    {"an ack ahead of all that was sent", [](auto& s) { forge(s, {.ack = 300}); }, {"cl_say"}},
    {"an ack ahead by one", [](auto& s) { forge(s, {.ack = 1}); }, {"cl_say"}},
    {"an ack older than the one before", [](auto& s) { forge(s, {.ack = -1}); }, {"cl_say"}},
    {"an ack of half a window ago", [](auto& s) { forge(s, {.ack = -kHalf}); }, {"cl_say"}},
    {"a server's ack ahead", [](auto& s) { forge_line(s, {.ack = 300}); }, {"rcon_line"}},
    {"a server's old ack", [](auto& s) { forge_line(s, {.ack = -1}); }, {"rcon_line"}},
    {"a wrong token", [](auto& s) { forge(s, {.behind = bytes_of(kOtherToken)}); }, {"cl_say"}},
    {"no token", [](auto& s) { forge(s, {.behind = Bytes{}}); }, {"cl_say"}},
    {"a token of zeros", [](auto& s) { forge(s, {.behind = bytes_of(kNoToken)}); }, {"cl_say"}},
    {"the token that stands for none",
     [](auto& s) { forge(s, {.behind = bytes_of(tw::wire::kTokenUnknown)}); },
     {"cl_say"}},
    {"a server's wrong token",
     [](auto& s) { forge_line(s, {.behind = bytes_of(kOtherToken)}); },
     {"rcon_line"}},
    {"a server without a token",
     [](auto& s) { forge_line(s, {.behind = Bytes{}}); },
     {"rcon_line"}},
    {"no chunks by number, one in fact",
     [](auto& s) { forge(s, {.count = std::uint8_t{0}}); },
     {"cl_say"},
     false}, // before 19.4 it is a packet like others, and only holds nothing
    {"the connless flag on chunks",
     [](auto& s) { forge(s, {.flags = kConnless}); },
     {"cl_say"},
     false},
    {"the compression flag on what is not compressed",
     [](auto& s) { forge(s, {.flags = kCompressed}); },
     {"cl_say"}},
    // Taken, odd as they are: the receiver looks for the token at the end, and then for so many
    // chunks as the header says.
    {"more chunks by number than there are",
     [](auto& s) { forge(s, {.count = std::uint8_t{9}}); },
     {"cl_kill"}},
    {"surplus bytes between chunks and token",
     [](auto& s) {
         Bytes behind{5, std::byte{0x55}};
         const Bytes token = bytes_of(SessionScript::kToken);
         behind.insert(behind.end(), token.begin(), token.end());
         forge(s, {.behind = behind});
     },
     {"cl_kill"},
     false},
    {"fewer chunks by number than there are",
     [](auto& s) {
         s.send_datagram(kC2s, s.pack_deviating(kC2s, {vital(forged()), vital(real())},
                                                {.count = std::uint8_t{1}}));
     },
     {"cl_kill"},
     false},
    {"a resend request with a message",
     [](auto& s) { forge(s, {.flags = kResend}); },
     {"cl_kill"},
     false},
    // Vital order.
    {"overlapping vitals",
     [](auto& s) {
         const auto first = s.next_sequence(kC2s);
         s.send(kC2s, {vital(real()), again(vital(forged()), first), vital(real()),
                       again(vital(forged()), first)});
     },
     {"cl_say", "cl_say"},
     false},
    {"a gap, what is behind it, then both",
     [](auto& s) {
         const auto first = s.next_sequence(kC2s);
         s.send_datagram(
             kC2s, s.pack_deviating(kC2s,
                                    {Piece{.message = forged().bytes(),
                                           .vital = true,
                                           .sequence = static_cast<std::uint16_t>(first + 1)}},
                                    {}));
         s.send(kC2s, {vital(real()), vital(real())});
     },
     {"cl_say", "cl_say"}},
    {"sequences all around the ring", walk_the_ring, {"cl_say"}},
    {"the resend bit on every chunk",
     [](auto& s) {
         for (int i = 0; i < 3; ++i) {
             Piece piece = vital(real());
             piece.resend = true;
             s.send(kC2s, {piece});
         }
     },
     {"cl_say", "cl_say", "cl_say"},
     false},
    {"a game message of a client that is not vital", // DDNet's server ignores it
     [](auto& s) {
         s.send(kC2s, {non_vital(forged()), vital(real())});
     },
     {"cl_say"},
     false},
    // Control packets.
    {"CLOSE without a token", [](auto& s) { send(s, {.kind = ControlKind::close}); }, {"cl_say"}},
    {"CLOSE with a reason and no token",
     [](auto& s) { send(s, {.kind = ControlKind::close, .reason = "forged"}); },
     {"cl_say"}},
    {"CLOSE with another token",
     [](auto& s) { send(s, {.kind = ControlKind::close, .token = kOtherToken, .reason = "x"}); },
     {"cl_say"}},
    {"CLOSE with an ack outside of the window",
     [](auto& s) {
         send(s, {.kind = ControlKind::close, .ack = 700, .token = SessionScript::kToken});
     },
     {"cl_say"}},
    {"compressed control packets", refuse_compressed_control, {"cl_say"}},
    {"ACCEPT with another token",
     [](auto& s) { send(s, {.kind = ControlKind::accept, .token = kOtherToken}); },
     {"cl_say"}},
    {"ACCEPT without a token", [](auto& s) { send(s, {.kind = ControlKind::accept}); }, {"cl_say"}},
    {"CONNECT again and again",
     [](auto& s) {
         for (int i = 0; i < 5; ++i) {
             s.control(kC2s, {.kind = ControlKind::connect, .token = tw::wire::kTokenUnknown});
             s.control(kS2c, {.kind = ControlKind::connectaccept, .token = SessionScript::kToken});
         }
         s.send(kC2s, real());
     },
     {"cl_say"},
     false},
    {"CONNECT, a forged answer and its ACCEPT",
     [](auto& s) {
         // The client sends both: the server never answered with that token.
         s.control(kC2s, {.kind = ControlKind::connectaccept, .token = kOtherToken});
         s.control(kC2s, {.kind = ControlKind::accept, .token = kOtherToken});
         s.send(kC2s, real());
     },
     {"cl_say"}},
    {"CONNECT without the token extension, then a first chunk without a token",
     [](auto& s) {
         s.control(kC2s, {.kind = ControlKind::connect});
         Bytes chunks;
         tw::wire::append_chunk(chunks, true, 1, false, forged().bytes(), tw::wire::Dialect::six);
         s.send_datagram(kC2s, tw::wire::encode_packet({.num_chunks = 1, .chunks = chunks}));
         s.send(kC2s, real());
     },
     {"cl_say"}},
    // Words of a client that make nobody forget.
    {"ENTERGAME again and again",
     [](auto& s) {
         for (int i = 0; i < 5; ++i) {
             s.send(kC2s, message("enter_game"));
         }
         s.send(kC2s, real());
     },
     {"cl_say"},
     false},
    {"a map change and a snapshot from the client",
     [](auto& s) {
         s.send(kC2s, message("map_change").string("forged").number(1).number(100));
         s.send(kC2s, {non_vital(snap_between(8, kNoBase, {}, kForgedItems))});
         s.send(kC2s, real());
     },
     {"cl_say"},
     false},
    {"acknowledged ticks far ahead, far behind and negative",
     [](auto& s) {
         for (const std::int32_t tick : {0x6fffffff, 1, 0, -1, INT32_MIN, INT32_MAX}) {
             s.send(kC2s, {non_vital(message("input").number(tick).number(14).number(0))});
         }
         s.send(kC2s, real());
     },
     {"cl_say"},
     false},
    // 0.7 without a handshake that both sides complete.
    {"0.7 TOKEN and CONNECT in the middle",
     [](auto& s) {
         s.send_datagram(kC2s, seven_control(kSevenToken));
         s.send_datagram(kC2s, seven_control(kSevenConnect, kSevenServer));
         s.send(kC2s, real());
     },
     {"cl_say"},
     false},
    {"a 0.7 CLOSE in the middle",
     [](auto& s) {
         s.send_datagram(kC2s, seven_control(kSevenClose, tw::wire::kTokenUnknown, 0));
         s.send(kC2s, real());
     },
     {"cl_say"},
     false},
    {"a cut 0.7 packet in the middle",
     [](auto& s) {
         s.send_datagram(kC2s, Bytes{std::byte{4}, std::byte{0}, std::byte{0}});
         s.send(kC2s, real());
     },
     {"cl_say"},
     false},
    {"0.7 connless in the middle",
     [](auto& s) {
         Bytes datagram{std::byte{0x21}};
         datagram.resize(23, std::byte{0x55});
         s.send_datagram(kC2s, datagram);
         s.send(kC2s, real());
     },
     {"cl_say"},
     false},
};

} // namespace

TEST_CASE("a trick inside a connection forges nothing, hides nothing and makes nobody forget") {
    for (const Row& row : kRows) {
        CAPTURE(row.name);
        auto script = playing();
        row.play(script);
        CHECK(text_of(taken(script)) == text_of(row.taken));
        CHECK((!row.refused || refused(script) > 0));
        // The server goes on from what the client has.
        script.snap(12, 10, kItems);
        CHECK(text_of(script.log().lines({"snapshot"})) == text_of(Lines{"snapshot 12<-10 ok 2"}));
        CHECK(text_of(script.log().lines({"session"})) == "");
        CHECK(script.log().lines({"map"}).empty());
    }
}

TEST_CASE("a snapshot in a packet that the client drops is none, and hides none of that tick") {
    const Deviations rows[] = {
        {.ack = 300}, {.ack = -1}, {.behind = bytes_of(kOtherToken)}, {.behind = Bytes{}}};
    for (const Deviations& odd : rows) {
        CAPTURE(odd.ack.value_or(0));
        auto script = playing();
        const Bytes forged_snap = snap_between(12, kNoBase, {}, kForgedItems);
        script.send_datagram(kS2c, script.pack_deviating(kS2c, {non_vital(forged_snap)}, odd));
        script.snap(12, 10, kItems);
        script.snap(14, 12, kItems);
        CHECK(text_of(script.log().lines({"snapshot"})) ==
              text_of(Lines{"snapshot 12<-10 ok 2", "snapshot 14<-12 ok 2"}));
        CHECK(refused(script) > 0);
    }
}
