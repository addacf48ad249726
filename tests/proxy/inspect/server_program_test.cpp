// Covers: proxy/inspect/connection/server_program.cpp, proxy/inspect/connection/packet_acceptance.cpp
#include "proxy/inspect/connection/packet_acceptance.h"
#include "proxy/inspect/connection/server_program.h"
#include "snapshot/snapshot.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>

using namespace tw;
using inspect::ReceiverRules;
using inspect::ServerProgram;
using inspect::TokenBitRule;

namespace {

void receive_uuid_message(ServerProgram& server, std::string_view name) {
    for (const wire::MessageSpec& spec : wire::message_table()) {
        if (spec.name == name) {
            server.on_uuid_message(spec);
            return;
        }
    }
    FAIL("no such message");
}

/// Passes a snapshot with an object of this size and the descriptor of its type.
void receive_object(ServerProgram& server, std::string_view name, std::size_t ints) {
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
    record::ItemTypes types;
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
    {"DDNet 16.4 greets",
     [](auto& s) { s.on_server_chat("DDraceNetwork Mod. Version: 0.6.4, 16.4"); }, 16040},
    {"DDNet 20.1.1 greets",
     [](auto& s) { s.on_server_chat("DDraceNetwork Mod. Version: 0.6, 20.1.1"); }, 20011},
    {"a line of chat like it", [](auto& s) { s.on_server_chat("my Mod. Version: 0.6.4, 16.4"); },
     std::nullopt},
    {"a server info", [](auto& s) { s.on_server_info("0.6.4, 19.1"); }, 19010},
    {"a version with more behind it", [](auto& s) { s.on_server_info("0.6.4, 18.9-dev"); }, 18090},
    {"a version in words", [](auto& s) { s.on_server_info("0.6.4, newest"); }, std::nullopt},
    {"a version beyond all numbers", [](auto& s) { s.on_server_info("0.6.4, 99999999999.1"); },
     std::nullopt},
    {"DDNet's server info to 0.7", [](auto& s) { s.on_server_info("0.7\u21940.6, 20.1.1"); },
     20011},
    {"Teeworlds 0.7's server info", [](auto& s) { s.on_server_info("0.7.5"); }, std::nullopt, true},
    {"an arrow to nowhere", [](auto& s) { s.on_server_info("0.7\u2194"); }, std::nullopt},
    {"arrows without an end", [](auto& s) { s.on_server_info("0.7\u21940.7\u21940.7\u2194x"); },
     std::nullopt},
    {"vanilla's server info", [](auto& s) { s.on_server_info("0.6.5"); }, std::nullopt, true},
    {"a map without capabilities", [](auto& s) { s.on_map_change(); }, std::nullopt, true},
    {"a map behind capabilities",
     [](auto& s) {
         receive_uuid_message(s, "capabilities");
         s.on_map_change();
     },
     std::nullopt},
    {"a mod that counts its own versions",
     [](auto& s) {
         receive_uuid_message(s, "reconnect");
         s.on_server_info("0.6.4, 12.1");
     },
     std::nullopt},
    {"ten ints of a character", [](auto& s) { receive_object(s, "ddnet_character", 10); }, 18999},
    {"nine ints of a character", [](auto& s) { receive_object(s, "ddnet_character", 9); }, 16019},
    {"eleven ints of a character", [](auto& s) { receive_object(s, "ddnet_character", 11); },
     std::nullopt},
    {"a mod of an older server that says it is new",
     [](auto& s) {
         receive_object(s, "ddnet_character", 10);
         s.on_server_info("0.6.4, 25.0");
     },
     18999},
    {"a mod of a newer server that says it is old",
     [](auto& s) {
         receive_object(s, "ddnet_player", 4);
         s.on_server_info("0.6.4, 16.4");
     },
     std::nullopt},
    {"a new connection still knows what was said",
     [](auto& s) {
         s.on_server_info("0.6.4, 16.4");
         s.forget_evidence();
     },
     16040},
};

} // namespace

TEST_CASE("a server's version is the announced one unless its messages show another") {
    for (const Row& row : kRows) {
        CAPTURE(row.name);
        ServerProgram server;
        row.play(server);
        CHECK(server.version() == row.version);
        CHECK(server.is_vanilla() == row.vanilla);
    }
}

TEST_CASE("a receiver has the rules of its version, or of the newest if it is unknown") {
    struct ReceiverRow {
        std::string_view name;
        inspect::ReceiverProgram receiver;
        ReceiverRules rules; ///< compressed control, control with chunks, token bit, 0.7's header
    };

    constexpr auto kIgnored = TokenBitRule::ignores_bit;
    constexpr auto kRefused = TokenBitRule::drops_packet;
    constexpr ReceiverRules kClient{true, true, kRefused, false};
    constexpr ReceiverRules kServer{true, true, kRefused, true};
    const ReceiverRow rows[] = {
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
    for (const ReceiverRow& row : rows) {
        CAPTURE(row.name);
        CHECK((inspect::receiver_rules(row.receiver) == row.rules));
    }
}
