#include "proxy/wire/client_trust.h"
#include "proxy/wire/packet.h"
#include "snapshot/cursor.h"
#include "tests/support/hex.h"

#include <array>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

namespace {

using namespace tw::wire;

using tw::test::Bytes;

constexpr Token kToken{0xad, 0x70, 0x60, 0x4e};
constexpr Token kOther{0xad, 0x70, 0x60, 0x4f};
constexpr Token kClient{1, 2, 3, 4};
constexpr std::int32_t kSecret = 0x6b8b4567;
constexpr auto kC2s = Direction::c2s;
constexpr auto kS2c = Direction::s2c;

struct Datagram {
    Direction direction;
    Bytes bytes;
};

Bytes control_packet(ControlKind kind, std::optional<Token> token = std::nullopt) {
    return encode_control({.kind = kind, .token = token});
}

/// A packet that contains one system message of ints.
struct SystemMessage {
    std::int32_t id = 0;
    std::vector<std::int32_t> ints{};
};

Bytes system_packet(const std::vector<SystemMessage>& messages,
                    std::optional<Token> token = std::nullopt,
                    std::optional<Token> header = std::nullopt,
                    Compression compression = Compression::if_shorter) {
    Bytes all;
    for (const SystemMessage& each : messages) {
        Bytes message;
        tw::snapshot::encode_varint(each.id << 1 | 1, message);
        for (const std::int32_t value : each.ints) {
            tw::snapshot::encode_varint(value, message);
        }
        append_chunk(all, false, 0, false, message, Dialect::six);
    }
    return encode_packet({.num_chunks = static_cast<std::uint8_t>(messages.size()),
                          .chunks = all,
                          .token = token,
                          .header_token = header,
                          .compression = compression});
}

Bytes input_packet(std::int32_t tick) {
    return system_packet({{16, {tick, tick, 0}}});
}

Bytes session_prelude() {
    return system_packet(
        {{2, {}}, {4, {}}, {6, {kSecret - 1, kSecret}}, {6, {kSecret, kSecret + 1}}});
}

template <typename... Parts>
Bytes join_parts(const Parts&... parts) {
    Bytes all;
    const auto append = [&all](std::span<const std::byte> part) {
        all.insert(all.end(), part.begin(), part.end());
    };
    (append(std::as_bytes(std::span{parts})), ...);
    return all;
}

Bytes seven_packet(std::uint8_t first, const Token& token, const Bytes& payload) {
    return join_parts(std::array<std::uint8_t, 3>{first}, token, payload);
}

Bytes seven_control_packet(std::uint8_t kind, const Token& to, const Token& own) {
    Bytes payload = join_parts(std::array{kind}, own);
    constexpr std::uint8_t kTokenKind = 5;
    constexpr std::size_t kPadded =
        512; // padding of a client's request, so that the answer is shorter
    if (kind == kTokenKind && to == kTokenUnknown) {
        payload.resize(kPadded);
    }
    return seven_packet(0x04, to, payload);
}

/// Returns a CONNECTACCEPT of 0.6.5: the client's token in the header, the server's after the kind.
Bytes vanilla_accept() {
    return seven_packet(0x18, kClient, join_parts(std::array<std::uint8_t, 1>{2}, kToken));
}

Bytes info_request() {
    return encode_connless(tw::test::from_hex("ffffffff6769653307"));
}

struct Row {
    std::string_view name;
    std::vector<Datagram> said;
    Trust trust;
};

const Datagram kConnect{kC2s, control_packet(ControlKind::connect, kTokenUnknown)};
const Datagram kOldConnect{kC2s, control_packet(ControlKind::connect)};
const Datagram kGranted{kS2c, control_packet(ControlKind::connectaccept, kToken)};
const Datagram kAccepted{kS2c, control_packet(ControlKind::connectaccept)};

Trust trust_after(const std::vector<Datagram>& said) {
    ClientTrustState state;
    for (const Datagram& each : said) {
        static_cast<void>(judge_datagram(state, each.direction, each.bytes));
    }
    return state.trust;
}

void check_trust(const std::vector<Row>& rows) {
    for (const Row& row : rows) {
        CAPTURE(row.name);
        CHECK(trust_after(row.said) == row.trust);
    }
}

} // namespace

TEST_CASE("a client that returns the server's secret is verified") {
    check_trust({
        {"DDNet's token in the ACCEPT",
         {kConnect, kGranted, {kC2s, control_packet(ControlKind::accept, kToken)}},
         Trust::verified},
        {"in chunks, when the ACCEPT was lost",
         {kConnect, kGranted, {kC2s, system_packet({{1, {1, 2}}}, kToken)}},
         Trust::verified},
        {"in compressed chunks",
         {kConnect,
          kGranted,
          {kC2s, system_packet({{1, {0, 0, 0, 0}}}, kToken, {}, Compression::always)}},
         Trust::verified},
        {"the header token of 0.6.5",
         {kOldConnect, {kS2c, vanilla_accept()}, {kC2s, system_packet({{1, {}}}, {}, kToken)}},
         Trust::verified},
        {"the token of 0.7 in the CONNECT",
         {{kC2s, seven_control_packet(5, kTokenUnknown, kClient)},
          {kS2c, seven_control_packet(5, kClient, kToken)},
          {kC2s, seven_control_packet(1, kToken, kClient)}},
         Trust::verified},
        {"the token of 0.7 in chunks",
         {{kC2s, seven_control_packet(5, kTokenUnknown, kClient)},
          {kS2c, seven_control_packet(5, kClient, kToken)},
          {kC2s, seven_packet(0x00, kToken, {std::byte{0}, std::byte{0}})}},
         Trust::verified},
        {"a tick of the prelude in the INPUT",
         {kOldConnect, kAccepted, {kS2c, session_prelude()}, {kC2s, input_packet(kSecret)}},
         Trust::verified},
        {"after other messages and a second prelude",
         {kOldConnect,
          kAccepted,
          {kS2c, session_prelude()},
          {kC2s, system_packet({{14, {}}})},
          {kS2c, session_prelude()},
          {kC2s, system_packet({{15, {}}, {16, {kSecret - 1, 0, 0}}})}},
         Trust::verified},
        {"nothing takes it away again",
         {kConnect,
          kGranted,
          {kC2s, control_packet(ControlKind::accept, kToken)},
          kConnect,
          {kC2s, {}}},
         Trust::verified},
    });
}

TEST_CASE("packets with forgeable content verify nothing") {
    check_trust({
        {"a CONNECT", {kConnect}, Trust::unverified},
        {"a CONNECT with the token in it",
         {kConnect, kGranted, {kC2s, control_packet(ControlKind::connect, kToken)}},
         Trust::unverified},
        {"an ACCEPT with another token",
         {kConnect, kGranted, {kC2s, control_packet(ControlKind::accept, kOther)}},
         Trust::unverified},
        {"an ACCEPT before the server told anything",
         {kConnect, {kC2s, control_packet(ControlKind::accept, kToken)}, kGranted},
         Trust::unverified},
        {"a CLOSE with the token",
         {kConnect, kGranted, {kC2s, control_packet(ControlKind::close, kToken)}},
         Trust::unverified},
        {"the token that means none",
         {kConnect,
          {kS2c, control_packet(ControlKind::connectaccept, kTokenUnsupported)},
          {kC2s, control_packet(ControlKind::accept, kTokenUnsupported)}},
         Trust::unverified},
        {"the token that means unknown",
         {kConnect,
          {kS2c, control_packet(ControlKind::connectaccept, kTokenUnknown)},
          {kC2s, control_packet(ControlKind::accept, kTokenUnknown)}},
         Trust::unverified},
        {"the client's own token of 0.6.5",
         {kOldConnect, {kS2c, vanilla_accept()}, {kC2s, system_packet({{1, {}}}, {}, kClient)}},
         Trust::unverified},
        {"the client's own token of 0.7",
         {{kC2s, seven_control_packet(5, kTokenUnknown, kClient)},
          {kS2c, seven_control_packet(5, kClient, kToken)},
          {kC2s, seven_control_packet(1, kClient, kClient)}},
         Trust::unverified},
        {"another tick than the prelude's",
         {kOldConnect, kAccepted, {kS2c, session_prelude()}, {kC2s, input_packet(kSecret + 1)}},
         Trust::unverified},
        {"tick 0, where the prelude had fewer than it may",
         {kOldConnect, kAccepted, {kS2c, session_prelude()}, {kC2s, input_packet(0)}},
         Trust::unverified},
        {"the prelude's ticks in another message",
         {kOldConnect,
          kAccepted,
          {kS2c, session_prelude()},
          {kC2s, system_packet({{22, {kSecret}}})}},
         Trust::unverified},
        {"an info request", {{kC2s, info_request()}}, Trust::connless},
        {"an info request that is answered",
         {{kC2s, info_request()}, {kS2c, info_request()}},
         Trust::connless},
        {"a CONNECT behind an info request", {{kC2s, info_request()}, kConnect}, Trust::unverified},
        {"chunks of nobody's connection", {{kC2s, input_packet(1)}}, Trust::unknown},
        {"an ACCEPT out of nowhere",
         {{kC2s, control_packet(ControlKind::accept, kToken)}},
         Trust::unknown},
        {"connless rubbish", {{kC2s, Bytes(40, std::byte{0x20})}}, Trust::unknown},
        {"nothing at all", {{kC2s, {}}}, Trust::unknown},
        {"a TOKEN of 0.7 that no server answers, as it is too short",
         {{kC2s, seven_packet(0x04, kTokenUnknown, Bytes(5, std::byte{5}))}},
         Trust::unknown},
        {"a CONNECT of 0.7 with a token that nobody told",
         {{kC2s, seven_control_packet(1, kToken, kClient)}},
         Trust::unknown},
        {"more than any receiver takes", {{kC2s, Bytes(1401)}}, Trust::unknown},
    });
}

TEST_CASE("a client that plays without a secret is unverified until it returns one") {
    const Datagram ready{kS2c, system_packet({{4, {}}})};
    check_trust({
        {"a tokenless handshake that is not answered with chunks",
         {kOldConnect, kAccepted, {kC2s, control_packet(ControlKind::accept)}},
         Trust::unverified},
        {"a tokenless handshake",
         {kOldConnect, kAccepted, {kC2s, input_packet(1)}, ready},
         Trust::unverified_player},
        {"a connection joined midway", {{kC2s, input_packet(1)}, ready}, Trust::unverified_player},
        {"a tick of the game, acknowledged",
         {kOldConnect,
          kAccepted,
          ready,
          {kS2c, system_packet({{6, {9, 10}}})},
          {kC2s, input_packet(9)}},
         Trust::unverified_player},
        {"a tick before any handshake, acknowledged",
         {{kS2c, system_packet({{6, {9, 10}}})}, {kC2s, input_packet(9)}},
         Trust::unverified_player},
        {"the prelude's tick after the server went on",
         {kOldConnect, kAccepted, {kS2c, session_prelude()}, ready, {kC2s, input_packet(kSecret)}},
         Trust::player},
    });
}

TEST_CASE("a verified client is a player once the server sends it game data") {
    const Datagram accept{kC2s, control_packet(ControlKind::accept, kToken)};
    const Datagram keepalive{kS2c, control_packet(ControlKind::keepalive, kToken)};
    const Datagram seven_accept{kC2s, seven_packet(0x00, kToken, {std::byte{0}, std::byte{0}})};
    const std::vector<Datagram> seven_begun{{kC2s, seven_control_packet(5, kTokenUnknown, kClient)},
                                            {kS2c, seven_control_packet(5, kClient, kToken)},
                                            {kC2s, seven_control_packet(1, kToken, kClient)}};
    const auto with = [](std::vector<Datagram> said, const std::vector<Datagram>& more) {
        said.insert(said.end(), more.begin(), more.end());
        return said;
    };
    check_trust({
        {"the map",
         {kConnect, kGranted, accept, {kS2c, system_packet({{2, {}}}, kToken)}},
         Trust::player},
        {"a keepalive of the client proves no play",
         {kConnect, kGranted, {kC2s, control_packet(ControlKind::keepalive, kToken)}},
         Trust::verified},
        {"one of the server neither", {kConnect, kGranted, accept, keepalive}, Trust::verified},
        {"nor does its refusal",
         {kConnect, kGranted, accept, {kS2c, control_packet(ControlKind::close, kToken)}},
         Trust::verified},
        {"nor does a packet without chunks",
         {kConnect, kGranted, accept, {kS2c, system_packet({}, kToken)}},
         Trust::verified},
        {"nor does the info that it asks for",
         {kConnect, kGranted, accept, {kS2c, info_request()}},
         Trust::verified},
        {"a prelude that is repeated",
         {kOldConnect,
          kAccepted,
          {kS2c, session_prelude()},
          {kC2s, input_packet(kSecret)},
          {kS2c, session_prelude()}},
         Trust::verified},
        {"the map behind a prelude",
         {kOldConnect,
          kAccepted,
          {kS2c, session_prelude()},
          {kC2s, input_packet(kSecret)},
          {kS2c, system_packet({{2, {}}})}},
         Trust::player},
        {"chunks of 0.7",
         with(seven_begun, {{kS2c, seven_packet(0x00, kClient, Bytes(3, std::byte{1}))}}),
         Trust::verified},
    });
    ClientTrustState state;
    for (const Datagram& each : with(seven_begun, {seven_accept})) {
        static_cast<void>(judge_datagram(state, each.direction, each.bytes));
    }
    Bytes map = seven_packet(0x00, kClient, Bytes(3, std::byte{1}));
    map[2] = std::byte{1}; // the packet now has one chunk
    CHECK(judge_datagram(state, kS2c, map).trust == Trust::player);
}

TEST_CASE(
    "chunks and keepalives of the server, but no other datagrams, show that the client plays") {
    struct ServerDatagramRow {
        std::string_view name;
        Bytes bytes;
        bool shows_player;
    };

    const ServerDatagramRow rows[]{
        {"a snapshot", system_packet({{7, {1, 2}}}, kToken), true},
        {"compressed", system_packet({{7, {1, 2}}}, kToken, {}, Compression::always), true},
        {"a keepalive", control_packet(ControlKind::keepalive, kToken), true},
        {"a close", control_packet(ControlKind::close, kToken), false},
        {"server info", info_request(), false},
        {"no chunks", system_packet({}, kToken), false},
        {"nothing", {}, false},
    };
    for (const ServerDatagramRow& row : rows) {
        CAPTURE(row.name);
        ClientTrustState state{.trust = Trust::player, .token = kToken};
        CHECK(judge_datagram(state, kS2c, row.bytes).shows_player == row.shows_player);
        state.trust = Trust::unverified_player;
        CHECK(judge_datagram(state, kS2c, row.bytes).shows_player == row.shows_player);
    }
}

TEST_CASE("only datagrams that servers answer count as answered") {
    struct RequestRow {
        std::string_view name;
        Trust before;
        Bytes bytes;
        bool is_answered;
    };

    const auto request = [](std::string_view magic, std::size_t behind) {
        Bytes payload(4, std::byte{0xff});
        for (const char each : magic) {
            payload.push_back(static_cast<std::byte>(each));
        }
        payload.resize(payload.size() + behind);
        return encode_connless(payload);
    };
    const RequestRow rows[]{
        {"an info request", Trust::connless, request("gie3", 1), true},
        {"one without its token: 14 bytes", Trust::connless, request("gie3", 0), false},
        {"one with more behind it", Trust::connless, request("gie3", 2), false},
        {"one for 64 players, which not all servers know", Trust::connless, request("fstd", 1),
         false},
        {"a request that is not known: 14 bytes", Trust::connless, request("abcd", 0), false},
        {"a challenge, which is answered elsewhere", Trust::connless, request("chal", 20), false},
        {"a CONNECT", Trust::connless, kConnect.bytes, true},
        {"an ACCEPT out of nowhere", Trust::connless, control_packet(ControlKind::accept, kToken),
         false},
        {"garbage", Trust::connless, Bytes(14, std::byte{1}), false},
        {"garbage behind a CONNECT", Trust::unverified, Bytes(14, std::byte{1}), false},
        {"an input of a player", Trust::player, input_packet(1), true},
        {"an input where the server plays", Trust::unverified_player, input_packet(1), true},
    };
    for (const RequestRow& row : rows) {
        CAPTURE(row.name);
        ClientTrustState state{.trust = row.before};
        CHECK(judge_datagram(state, kC2s, row.bytes).is_answered == row.is_answered);
    }
}

TEST_CASE("a truncated secret verifies nothing") {
    const std::vector<std::pair<std::vector<Datagram>, Bytes>> rows{
        {{kConnect, kGranted}, control_packet(ControlKind::accept, kToken)},
        {{kConnect, kGranted}, system_packet({{1, {1, 2}}}, kToken)},
        {{{kC2s, seven_control_packet(5, kTokenUnknown, kClient)},
          {kS2c, seven_control_packet(5, kClient, kToken)}},
         seven_control_packet(1, kToken, {})},
        {{kOldConnect, kAccepted, {kS2c, session_prelude()}}, system_packet({{16, {kSecret}}})}};
    for (std::size_t row = 0; row < rows.size(); ++row) {
        CAPTURE(row);
        const auto& [before, proof] = rows[row];
        const bool is_seven = row == 2;
        // In 0.7, the bytes after the kind are not examined.
        const std::size_t end = is_seven ? 7 : proof.size();
        for (std::size_t size = 0; size < end; ++size) {
            CAPTURE(size);
            auto said = before;
            said.push_back({kC2s, {proof.begin(), proof.begin() + static_cast<long>(size)}});
            CHECK(trust_after(said) == Trust::unverified);
        }
        auto said = before;
        said.push_back({kC2s, proof});
        CHECK(trust_after(said) == Trust::verified);
    }
}
