#include "proxy/wire/huffman.h"
#include "proxy/wire/seven.h"

#include <string_view>
#include <vector>

#include <doctest/doctest.h>

using namespace tw::wire;

namespace {

using Bytes = std::vector<std::byte>;

Bytes from_hex(std::string_view hex) {
    const auto digit = [](char c) { return c <= '9' ? c - '0' : c - 'a' + 10; };
    Bytes bytes;
    for (std::size_t i = 0; i + 1 < hex.size(); i += 2) {
        bytes.push_back(static_cast<std::byte>(digit(hex[i]) * 16 + digit(hex[i + 1])));
    }
    return bytes;
}

} // namespace

TEST_CASE("the control packets of 0.7 say who announces what") {
    const auto token = decode_seven(from_hex("040000ffffffff0501020304"));
    REQUIRE(token);
    CHECK(token->control);
    CHECK(token->kind == SevenControl::token);
    CHECK(token->token == kTokenUnknown);
    CHECK(token->own_token == Token{1, 2, 3, 4});

    const auto repeated = decode_seven(from_hex("04000001020304"
                                                "01"
                                                "544b454e"));
    REQUIRE(repeated);
    CHECK(repeated->kind == SevenControl::connect);
    CHECK_FALSE(repeated->own_token); // DDNet's client writes "TKEN" there

    const Bytes bytes = from_hex("04050001020304"
                                 "04"
                                 "627965"
                                 "00");
    const auto close = decode_seven(bytes);
    REQUIRE(close);
    CHECK(close->kind == SevenControl::close);
    CHECK(close->ack == 5);
    CHECK(close->reason == "bye");
}

TEST_CASE("what is cut or connless is no packet of a 0.7 connection") {
    const Bytes whole = from_hex("040000ffffffff0501020304");
    for (std::size_t size = 0; size < 7; ++size) {
        CHECK_FALSE(decode_seven(std::span{whole}.first(size)));
    }
    const auto no_kind = decode_seven(std::span{whole}.first(7));
    REQUIRE(no_kind);
    CHECK(no_kind->kind == SevenControl::unknown);
    CHECK_FALSE(decode_seven(from_hex("210102030405060708")));
}

TEST_CASE("chunks of 0.7 end where their packet ends") {
    PacketScratch scratch;
    const auto fits = [&](const Bytes& datagram) {
        const auto packet = decode_seven(datagram);
        return packet && fits_seven(*packet, scratch);
    };
    CHECK(fits(from_hex("00000201020304"
                        "0002aabb"
                        "400101cc")));
    CHECK_FALSE(fits(from_hex("00000201020304"
                              "0002aabb"
                              "400101")));
    CHECK_FALSE(fits(from_hex("00000101020304"
                              "0002aabbcc")));
    CHECK_FALSE(fits(from_hex("00000001020304")));
    Bytes compressed = from_hex("10000101020304");
    const auto coded = huffman_compress(from_hex("0002aabb"), HuffmanEnding::without_zero_byte);
    compressed.insert(compressed.end(), coded.begin(), coded.end());
    CHECK(fits(compressed));
    compressed.resize(compressed.size() - 2);
    CHECK_FALSE(fits(compressed));
}

TEST_CASE("a handshake of 0.6 is known among the packets of 0.7") {
    CHECK(is_six_handshake(from_hex("10000001544b454effffffff")));
    CHECK(is_six_handshake(from_hex("10000002544b454ea1b2c3d4")));
    CHECK(is_six_handshake(from_hex("10000003a1b2c3d4")));
    CHECK(is_six_handshake(from_hex("10000001")));
    CHECK_FALSE(is_six_handshake(from_hex("10000000a1b2c3d4"))); // KEEPALIVE
    CHECK_FALSE(is_six_handshake(from_hex("10000101020304")));   // has chunks
    CHECK_FALSE(is_six_handshake(from_hex("14000001544b454effffffff")));
    CHECK_FALSE(is_six_handshake(from_hex("100000")));
}

TEST_CASE("only a handshake packet of 0.6 in one of its sizes is known as one") {
    struct Row {
        std::string_view name;
        std::string_view hex;
        std::size_t padding;
        bool known;
    };

    const Row rows[] = {
        {"CONNECT alone", "10000001", 0, true},
        {"CONNECT of 0.6.5", "10000001", 512, true},
        {"one byte short of it", "10000001", 511, false},
        {"CONNECT with a token", "10000001544b454e01020304", 0, true},
        {"CONNECT with what is no token", "100000010102030405060708", 0, false},
        {"CONNECTACCEPT alone", "10000002", 0, true},
        {"CONNECTACCEPT with a token", "10000002544b454e01020304", 0, true},
        {"CONNECTACCEPT with a byte more", "10000002", 1, false},
        {"ACCEPT with a token", "1000000301020304", 0, true},
        {"ACCEPT without", "10000003", 0, false},
        {"KEEPALIVE", "10000000", 0, false},
        {"with a number of chunks", "10000101", 0, false},
        {"with the flag of a resend", "50000001", 0, false},
        {"a header alone", "100000", 0, false},
    };
    for (const Row& row : rows) {
        CAPTURE(row.name);
        Bytes datagram = from_hex(row.hex);
        datagram.resize(datagram.size() + row.padding);
        CHECK(is_six_handshake(datagram) == row.known);
    }
}

TEST_CASE("what has no chunks, or the half of one, is not laid out as 0.7 lays it out") {
    PacketScratch scratch;
    const Bytes half = from_hex("00");
    CHECK_FALSE(fits_seven({.control = true, .num_chunks = 1, .payload = {}}, scratch));
    CHECK_FALSE(fits_seven({.num_chunks = 0, .payload = half}, scratch));
    CHECK_FALSE(fits_seven({.num_chunks = 1, .payload = half}, scratch));
}
