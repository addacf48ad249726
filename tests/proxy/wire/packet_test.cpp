#include "proxy/wire/connless.h"
#include "proxy/wire/huffman.h"
#include "proxy/wire/message.h"
#include "proxy/wire/packet.h"
#include "tests/proxy/wire/fields_text.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>

namespace tw::wire {

using test::Bytes;

namespace {

constexpr Token kPacketToken{0xA1, 0xB2, 0xC3, 0xD4};

template <typename... T>
Bytes make_bytes(T... values) {
    return {static_cast<std::byte>(values)...};
}

/// Decodes a datagram, which must be valid. `datagram` and `scratch` must outlive the result.
Packet decode_valid_packet(const Bytes& datagram, PacketScratch& scratch,
                           Protocol known = Protocol::six) {
    return decode_packet(datagram, known, scratch).value();
}

std::string token_hex(const std::optional<Token>& token) {
    return token ? test::to_hex(std::as_bytes(std::span{*token})) : "none";
}

void check_control(const Packet& packet, const boost::json::object& row) {
    REQUIRE(packet.kind == PacketKind::control);
    const Control control = decode_control(packet, std::nullopt);
    REQUIRE(control.kind != ControlKind::unknown);
    CHECK(control_name(control.kind) == test::text_at(row, "msg"));
    const std::string_view token = packet.dialect == Dialect::six        ? "token"
                                   : control.kind == ControlKind::accept ? "surplus"
                                                                         : "own_token";
    CHECK(token_hex(control.token) == test::text_at(row, token, "none"));
    CHECK_FALSE(control.vanilla_token);
    if (row.contains("reason")) {
        CHECK(control.reason == test::text_at(row, "reason"));
    }
}

void check_chunks(const Packet& packet, const boost::json::object& row) {
    REQUIRE(packet.kind == PacketKind::chunks);
    ChunkReader reader{packet.payload, packet.num_chunks, packet.dialect};
    for (const auto& wanted : row.at("chunks").as_array()) {
        const auto chunk = reader.next().value();
        CHECK(chunk.vital == wanted.at("vital").as_bool());
        CHECK(chunk.resend == wanted.at("resend").as_bool());
        CHECK(chunk.sequence == (chunk.vital ? wanted.at("seq").to_number<int>() : 0));
        if (packet.dialect == Dialect::six) {
            CHECK(test::to_hex(chunk.payload) == wanted.at("data").as_string());
        } else {
            CHECK(chunk.payload.size() == wanted.at("size").to_number<std::size_t>());
            const auto head = decode_message_header(chunk.payload, Dialect::seven).value();
            REQUIRE(head.spec != nullptr);
            CHECK(head.spec->name == std::string_view{wanted.at("name").as_string()});
        }
    }
    CHECK_FALSE(reader.next());
    CHECK_FALSE(reader.error());
    CHECK((reader.rest().empty() ? "none" : test::to_hex(reader.rest())) ==
          (packet.dialect == Dialect::six ? test::text_at(row, "token", "none") : "none"));
}

void check_packet(const boost::json::object& row, Dialect dialect, Protocol known) {
    CAPTURE(test::text_at(row, "note"));
    const Bytes datagram = test::hex_at(row, "bytes");
    CAPTURE(test::to_hex(datagram).substr(0, 40));
    PacketScratch scratch;
    const Packet packet = decode_valid_packet(datagram, scratch, known);
    CHECK(packet.dialect == dialect);
    CHECK(token_hex(packet.header_token) ==
          (dialect == Dialect::seven ? test::text_at(row, "token", "none") : "none"));
    const std::string kind = test::text_at(row, "kind");
    if (kind == "connless") {
        CHECK(packet.kind == PacketKind::connless);
        CHECK(find_connless(packet.payload, dialect) != nullptr);
        return;
    }
    CHECK(packet.compressed == row.at("compressed").as_bool());
    CHECK(packet.resend == row.at("resend").as_bool());
    CHECK(packet.ack == row.at("ack").to_number<int>());
    CHECK(packet.num_chunks == row.at("num_chunks").to_number<int>());
    if (row.contains("body")) {
        CHECK(test::to_hex(packet.payload) == test::text_at(row, "body"));
    }
    if (kind == "control") {
        check_control(packet, row);
    } else {
        check_chunks(packet, row);
    }
}

} // namespace

TEST_CASE("packets, and those of whole sessions, decode as the reference decodes them") {
    for (const std::string_view group : {"packets", "session_token"}) {
        for (const auto& row : test::vectors(group)) {
            check_packet(row.as_object(), Dialect::six, Protocol::six);
            check_packet(row.as_object(), Dialect::six, Protocol::unknown);
        }
    }
    for (const std::string_view group : {"packets", "session"}) {
        for (const auto& row : test::seven_vectors(group)) {
            check_packet(row.as_object(), Dialect::seven, Protocol::seven);
        }
    }
}

TEST_CASE("unusual packets are decoded like receivers do, or give an error") {
    struct Row {
        std::string_view wire;
        WireErrc error;
        PacketKind kind;
        std::string_view payload;
    };
    using enum PacketKind;
    const Row rows[] = {
        {"90050000", WireErrc::huffman_truncated, control, ""},
        {"08050100010000", WireErrc::none, chunks, ""},
        {"080501000100", WireErrc::too_short, chunks, ""},
        {"000500", WireErrc::none, chunks, ""},
        {"1005", WireErrc::too_short, control, ""},
        {"", WireErrc::too_short, control, ""},
        {"100500", WireErrc::control_empty, control, ""},
        {"9005008a1b", WireErrc::control_empty, control, ""},
        {"10050100", WireErrc::none, control, "00"},
        {"ffffffffff", WireErrc::too_short, connless, ""},
        {"ffffffffffff", WireErrc::none, connless, ""},
        {"ffffffffffff2a", WireErrc::none, connless, "2a"},
        {"786500000000", WireErrc::none, connless, ""},
        {"210102030405060708", WireErrc::none, connless,
         ""}, // this and the following rows are of 0.7
        {"040000ffffffff0501020304", WireErrc::none, control, "0501020304"},
        {"04000000", WireErrc::too_short, control, ""},
    };
    for (const Row& row : rows) {
        CAPTURE(row.wire);
        const Bytes datagram = test::from_hex(row.wire);
        PacketScratch scratch;
        const auto packet = decode_packet(datagram, Protocol::unknown, scratch);
        if (row.error != WireErrc::none) {
            REQUIRE_FALSE(packet);
            CHECK(packet.error().code == row.error);
            CHECK(packet.error().offset <= datagram.size());
        } else {
            REQUIRE(packet);
            CHECK(packet->kind == row.kind);
            CHECK(test::to_hex(packet->payload) == row.payload);
        }
    }
}

TEST_CASE("every datagram of the odd vectors decodes or is refused with a name") {
    for (const auto& row : test::vectors("packets_odd")) {
        CAPTURE(std::string{row.at("note").as_string()});
        const Bytes datagram = test::hex_at(row, "bytes");
        PacketScratch scratch;
        const auto packet = decode_packet(datagram, Protocol::unknown, scratch);
        const std::string_view verdict{row.at("ddnet_20").as_string()};
        if (verdict != "REJECT") {
            REQUIRE(packet);
            const bool seven = verdict.find("sixup=1") != std::string_view::npos;
            CHECK((packet->dialect == Dialect::seven) == seven);
        } else if (!packet) {
            CHECK(error_info(packet.error().code).name != "none");
        }
    }
}

TEST_CASE("0.6 and 0.7 packets are distinguished by the session's protocol") {
    struct Row {
        std::string_view wire;
        std::string_view unknown;
        std::string_view six;
        std::string_view seven;
    };

    static constexpr std::string_view kSeven = "0.7";
    static constexpr std::string_view kChunks = "chunks";
    static constexpr std::string_view kControl = "control";
    static constexpr std::string_view kConnless = "connless";
    // A packet that is valid in 0.6 may be truncated in 0.7.
    const auto read_as = [](const Bytes& datagram, Protocol known) {
        PacketScratch scratch;
        const auto packet = decode_packet(datagram, known, scratch);
        return !packet || packet->dialect == Dialect::seven ? kSeven
               : packet->kind == PacketKind::chunks         ? kChunks
               : packet->kind == PacketKind::control        ? kControl
                                                            : kConnless;
    };
    const Row rows[] = {
        {"040000ffffffff05", kSeven, kSeven, kSeven},   // a token request starts a 0.7 session
        {"000001a1b2c3d4", kChunks, kChunks, kSeven},   // uncompressed chunks look the same in both
        {"100001a1b2c3d4", kControl, kControl, kSeven}, // 0.7: compressed chunks
        {"4000018a1b", kChunks, kChunks, kSeven},
        {"210102030405060708", kSeven, kSeven, kSeven}, // connless is recognised by itself
        {"ffffffffffffffffffff67696533", kConnless, kConnless, kConnless},
        {"786500000000ffffffff67696533", kConnless, kConnless, kConnless},
    };
    for (const Row& row : rows) {
        CAPTURE(row.wire);
        const Bytes datagram = test::from_hex(row.wire);
        CHECK(read_as(datagram, Protocol::unknown) == row.unknown);
        CHECK(read_as(datagram, Protocol::six) == row.six);
        CHECK(read_as(datagram, Protocol::seven) == row.seven);
    }
}

TEST_CASE("the header's token bit can be ignored") {
    PacketScratch scratch;
    const Bytes datagram = make_bytes(0x08, 7, 1, 0x00, 0x01, 0x2d, 0xa1, 0xb2, 0xc3, 0xd4);
    const auto with_token = decode_packet(datagram, Protocol::six, scratch).value();
    CHECK(with_token.header_token);
    CHECK(with_token.payload.size() == 3);
    const auto without =
        decode_packet(datagram, Protocol::six, scratch, HeaderTokenBit::ignored).value();
    CHECK_FALSE(without.header_token);
    CHECK(without.payload.size() == 7);
    CHECK(without.num_chunks == 1);
    CHECK(has_ambiguous_bits(datagram));
    CHECK_FALSE(has_ambiguous_bits(make_bytes(0x10, 0, 0)));
    CHECK_FALSE(has_ambiguous_bits(make_bytes(0xff, 0xff)));
}

TEST_CASE("a control packet under 0.7's header is read by its seven bytes") {
    // In 0.7, resend and compression have other bits. The acknowledgement is stored as in 0.6.
    const Bytes datagram = make_bytes(0x04 | 0x08 | 0x10 | 2, 7, 1, 9, 9, 9, 9, 0x04, 0x55);
    const auto packet = decode_control_with_seven_header(datagram).value();
    CHECK(packet.kind == PacketKind::control);
    CHECK(packet.seven_header);
    CHECK(packet.resend);
    CHECK(packet.compressed);
    CHECK(packet.ack == 0x207);
    CHECK(packet.num_chunks == 1);
    CHECK(packet.payload.size() == 2);
    const Bytes none[] = {make_bytes(0x04, 0, 0, 9, 9, 9, 9), // no byte with the kind
                          make_bytes(0x00, 0, 0, 9, 9, 9, 9, 4),
                          make_bytes(0x24, 0, 0, 9, 9, 9, 9, 4),
                          Bytes(1401, std::byte{4}),
                          {}};
    for (const Bytes& each : none) {
        CAPTURE(each.size());
        CHECK_FALSE(decode_control_with_seven_header(each));
    }
}

TEST_CASE("an extended connless header gives its four bytes") {
    const Bytes payload = test::from_hex("ffffffff6769653305");
    PacketScratch scratch;
    const Bytes plain = encode_connless(payload);
    CHECK(decode_valid_packet(plain, scratch).connless_extra.empty());
    CHECK(decode_valid_packet(plain, scratch).payload.size() == payload.size());
    const Bytes extended = encode_connless(payload, kPacketToken);
    CHECK(test::to_hex(decode_valid_packet(extended, scratch).connless_extra) == "a1b2c3d4");
    CHECK(decode_valid_packet(extended, scratch).payload.size() == payload.size());
}

TEST_CASE("datagrams up to 1400 bytes are read, larger ones are refused") {
    PacketScratch scratch;
    Bytes datagram(kMaxDatagramSize);
    CHECK(decode_valid_packet(datagram, scratch).payload.size() == kMaxPayloadSize);
    datagram.push_back(std::byte{0});
    const auto packet = decode_packet(datagram, Protocol::six, scratch);
    REQUIRE_FALSE(packet);
    CHECK(packet.error() == WireError{WireErrc::too_long, kMaxDatagramSize});
}

TEST_CASE("a compressed payload may hold 1397 bytes and not one more") {
    PacketScratch scratch;
    Bytes zeros(kMaxPayloadSize);
    const PacketSpec fits{.chunks = zeros, .compression = Compression::always};
    CHECK(decode_valid_packet(encode_packet(fits), scratch).payload.size() == kMaxPayloadSize);
    zeros.push_back(std::byte{0});
    const PacketSpec over{.chunks = zeros, .compression = Compression::always};
    const auto packet = decode_packet(encode_packet(over), Protocol::six, scratch);
    REQUIRE_FALSE(packet);
    CHECK(packet.error().code == WireErrc::huffman_overflow);
    CHECK(packet.error().offset > kHeaderSize);
}

TEST_CASE("a control packet that is compressed is read all the same") {
    const Bytes plain = encode_control({.kind = ControlKind::close, .reason = "stop"});
    const Bytes body(plain.begin() + kHeaderSize, plain.end());
    Bytes datagram(plain.begin(), plain.begin() + kHeaderSize);
    datagram[0] |= std::byte{0x80};
    const Bytes compressed = huffman_compress(body, HuffmanEnding::with_zero_byte);
    datagram.insert(datagram.end(), compressed.begin(), compressed.end());
    PacketScratch scratch;
    const Packet packet = decode_valid_packet(datagram, scratch);
    CHECK(packet.compressed);
    CHECK(decode_control(packet, std::nullopt).reason == "stop");
}

TEST_CASE("the reason and the token of a CLOSE are distinguished") {
    struct Row {
        std::string_view name;
        std::string_view data;
        std::optional<Token> known;
        std::string_view token;
        std::string_view reason;
    };

    constexpr Token kAbc{'a', 'b', 'c', 0};
    const Row rows[] = {
        {"nothing", "", {}, "none", ""},
        {"token alone", "a1b2c3d4", {}, "a1b2c3d4", ""},
        {"token alone, known", "a1b2c3d4", kPacketToken, "a1b2c3d4", ""},
        {"three letters with NUL", "61626300", {}, "none", "abc"},
        {"three letters that are the known token", "61626300", kAbc, "61626300", ""},
        {"one letter of three bytes", "e282ac00", {}, "none", "\xE2\x82\xAC"},
        {"ends in NUL, not UTF-8", "a1b2c300", {}, "a1b2c300", ""},
        {"surrogate, not UTF-8", "eda08000", {}, "eda08000", ""},
        {"reason", "73746f7000", {}, "none", "stop"},
        {"reason and token", "73746f7000a1b2c3d4", {}, "a1b2c3d4", "stop"},
        {"reason and token with NUL bytes", "73746f700000000000", {}, "00000000", "stop"},
        {"reason and another token than known", "7300ffffffff", kPacketToken, "ffffffff", "s"},
        {"empty reason and token", "00a1b2c3d4", {}, "a1b2c3d4", ""},
        {"banned: no token though one is known", "62616e6e656400", kPacketToken, "none", "banned"},
        {"NUL missing", "62616e6e6564", {}, "none", "banned"},
        {"NUL missing, token known", "62616e6e6564a1b2c3d4", kPacketToken, "a1b2c3d4", "banned"},
        {"surplus behind the NUL", "620061", {}, "none", "b"},
    };
    for (const Row& row : rows) {
        CAPTURE(row.name);
        Bytes datagram = test::from_hex("10000004");
        const Bytes data = test::from_hex(row.data);
        datagram.insert(datagram.end(), data.begin(), data.end());
        PacketScratch scratch;
        const Control control = decode_control(decode_valid_packet(datagram, scratch), row.known);
        CHECK(control.kind == ControlKind::close);
        CHECK(token_hex(control.token) == row.token);
        CHECK(control.reason == row.reason);
    }
}

TEST_CASE("control packets of other lengths show no token") {
    struct Row {
        std::string_view name;
        std::string_view wire;
        ControlKind kind;
        bool magic;
        std::string_view token;
    };
    using enum ControlKind;
    const Row rows[] = {
        {"tokenless connect", "10000001", connect, false, "none"},
        {"tokenless connectaccept", "10000002", connectaccept, false, "none"},
        {"tokenless accept", "10000003", accept, false, "none"},
        {"magic without token", "10000001544b454e", connect, true, "none"},
        {"magic with half a token", "10000002544b454ea1b2", connectaccept, true, "none"},
        {"half a magic", "10000001544b45", connect, false, "none"},
        {"keepalive with three bytes", "10000000a1b2c3", keepalive, false, "none"},
        {"accept with five bytes", "10000003a1b2c3d4e5", accept, false, "none"},
        {"connect with four stray bytes", "10000001a1b2c3d4", connect, false, "none"},
        {"0.7's token kind", "10000005a1b2c3d4", unknown, false, "none"},
        {"kind 255", "100000ff", unknown, false, "none"},
    };
    for (const Row& row : rows) {
        CAPTURE(row.name);
        const Bytes datagram = test::from_hex(row.wire);
        PacketScratch scratch;
        const Control control =
            decode_control(decode_valid_packet(datagram, scratch), std::nullopt);
        CHECK(control.kind == row.kind);
        CHECK(control.raw_kind == std::to_integer<int>(datagram[kHeaderSize]));
        CHECK(control.has_token_magic == row.magic);
        CHECK(token_hex(control.token) == row.token);
    }
}

TEST_CASE("the handshake of vanilla 0.6.5 shows its tokens") {
    PacketScratch scratch;
    Bytes datagram = test::from_hex("10000001");
    datagram.resize(kHeaderSize + 1 + 512);
    const Bytes client = test::from_hex("0a0b0c0d");
    std::ranges::copy(client, datagram.begin() + kHeaderSize + 1 + 4);
    const Control request = decode_control(decode_valid_packet(datagram, scratch), std::nullopt);
    CHECK(request.kind == ControlKind::connect);
    CHECK(request.vanilla_token);
    CHECK(token_hex(request.token) == "0a0b0c0d");
    datagram.pop_back(); // one byte less than in 0.6.5
    CHECK_FALSE(decode_control(decode_valid_packet(datagram, scratch), std::nullopt).token);

    const Bytes answer = test::from_hex("180000"
                                        "0a0b0c0d"
                                        "02"
                                        "a1b2c3d4");
    const Packet packet = decode_valid_packet(answer, scratch);
    CHECK(token_hex(packet.header_token) == "0a0b0c0d");
    const Control accepted = decode_control(packet, std::nullopt);
    CHECK(accepted.kind == ControlKind::connectaccept);
    CHECK(accepted.vanilla_token);
    CHECK(token_hex(accepted.token) == "a1b2c3d4");

    const Bytes close = test::from_hex("180000"
                                       "a1b2c3d4"
                                       "04"
                                       "6162636400");
    const Control closed = decode_control(decode_valid_packet(close, scratch), kPacketToken);
    CHECK(closed.reason == "abcd");
    CHECK_FALSE(closed.token);
}

TEST_CASE("random packets are decoded as encoded, and truncated ones cause no harm") {
    std::mt19937 random{1};
    for (int round = 0; round < 300; ++round) {
        Bytes chunks;
        const auto num_chunks = static_cast<std::uint8_t>(random() % 6);
        for (int i = 0; i < num_chunks; ++i) {
            const Bytes payload(random() % 60, static_cast<std::byte>(random() % 3));
            append_chunk(chunks, random() % 2 == 0, random() % kSequenceModulus, false, payload,
                         Dialect::six);
        }
        PacketSpec spec{.ack = static_cast<std::uint16_t>(random() % kSequenceModulus),
                        .resend = random() % 2 == 0,
                        .num_chunks = num_chunks,
                        .chunks = chunks};
        if (random() % 2 == 0) {
            spec.token = kPacketToken;
        }
        if (random() % 4 == 0) {
            spec.header_token = kPacketToken;
        }
        spec.compression = static_cast<Compression>(random() % 3);
        const Bytes datagram = encode_packet(spec);
        PacketScratch scratch;
        const Packet packet = decode_valid_packet(datagram, scratch);
        REQUIRE(packet.ack == spec.ack);
        REQUIRE(packet.resend == spec.resend);
        REQUIRE(packet.num_chunks == num_chunks);
        REQUIRE(packet.header_token == spec.header_token);
        REQUIRE(packet.payload.size() == chunks.size() + (spec.token ? kTokenSize : 0));
        REQUIRE(std::equal(chunks.begin(), chunks.end(), packet.payload.begin()));
        for (std::size_t size = 0; size < datagram.size(); ++size) {
            const Bytes cut = test::prefix(datagram, size);
            const auto part = decode_packet(cut, Protocol::six, scratch);
            const std::size_t header = kHeaderSize + (spec.header_token ? kTokenSize : 0);
            REQUIRE(part.has_value() == (size >= header && !packet.compressed));
        }
    }
}

TEST_CASE("every error has its row in the table") {
    const auto& table = kErrorTable;
    for (std::size_t i = 0; i < table.size(); ++i) {
        CHECK(static_cast<std::size_t>(table[i].code) == i);
        CHECK_FALSE(table[i].name.empty());
        CHECK(table[i].sentence.back() == '.');
        CHECK(&error_info(table[i].code) == &table[i]);
    }
    CHECK(table.back().code == WireErrc::message_id_invalid);
}

namespace {

constexpr std::byte kSix{0x80};   ///< first byte of a compressed 0.6 packet
constexpr std::byte kSeven{0x10}; ///< first byte of a compressed 0.7 packet

Bytes compressed_packet(std::byte first, std::size_t header, const Bytes& plain) {
    Bytes datagram(header);
    datagram[0] = first;
    datagram[2] = std::byte{1};
    const Bytes packed = huffman_compress(plain, HuffmanEnding::without_zero_byte);
    datagram.insert(datagram.end(), packed.begin(), packed.end());
    return datagram;
}

Bytes compressible_bytes(std::size_t size, std::uint8_t seed) {
    Bytes plain(size);
    for (std::size_t i = 0; i < size; ++i) {
        plain[i] = static_cast<std::byte>(i % 7 == 0 ? seed + i : 0);
    }
    return plain;
}

Bytes payload_of(const Packet& packet) {
    return {packet.payload.begin(), packet.payload.end()};
}

} // namespace

TEST_CASE("a payload that was decompressed in advance belongs to its datagram") {
    const std::vector<Bytes> plain{compressible_bytes(900, 1), compressible_bytes(300, 2),
                                   compressible_bytes(1390, 3), compressible_bytes(20, 4),
                                   compressible_bytes(700, 5)};
    std::vector<Bytes> datagrams;
    datagrams.reserve(plain.size());
    for (const Bytes& each : plain) {
        datagrams.push_back(compressed_packet(kSix, kHeaderSize, each));
    }
    PacketScratch scratch;
    for (std::size_t i = 0; i < datagrams.size(); ++i) {
        const bool last = i + 1 == datagrams.size();
        scratch.begin_datagram(datagrams[i],
                               last ? std::span<const std::byte>{} : std::span{datagrams[i + 1]});
        const auto packet = decode_packet(datagrams[i], Protocol::six, scratch).value();
        CHECK(payload_of(packet) == plain[i]);
        const auto again = decode_packet(datagrams[i], Protocol::six, scratch).value();
        CHECK(payload_of(again) == plain[i]);
    }
}

TEST_CASE("a wrongly announced datagram has no effect") {
    const Bytes first = compressed_packet(kSix, kHeaderSize, compressible_bytes(500, 1));
    const Bytes other = compressed_packet(kSix, kHeaderSize, compressible_bytes(500, 3));
    Bytes place = compressed_packet(kSix, kHeaderSize, compressible_bytes(500, 2));
    PacketScratch scratch;
    scratch.begin_datagram(first, place);
    REQUIRE(decode_packet(first, Protocol::six, scratch));
    SUBCASE("another one comes, then other bytes at its place") {
        scratch.begin_datagram(other, {});
        const auto packet = decode_packet(other, Protocol::six, scratch).value();
        CHECK(payload_of(packet) == compressible_bytes(500, 3));
        place = compressed_packet(kSix, kHeaderSize, compressible_bytes(500, 4));
        scratch.begin_datagram(place, {});
        const auto late = decode_packet(place, Protocol::six, scratch).value();
        CHECK(payload_of(late) == compressible_bytes(500, 4));
    }
    SUBCASE("nobody decodes it, and the one behind it has one ahead, too") {
        scratch.begin_datagram(place, other);
        scratch.begin_datagram(other, first);
        const auto packet = decode_packet(other, Protocol::six, scratch).value();
        CHECK(payload_of(packet) == compressible_bytes(500, 3));
    }
}

TEST_CASE("payloads decompressed together are independent of each other") {
    std::mt19937 random{6};
    std::vector<Bytes> datagrams;
    for (int i = 0; i < 3000; ++i) {
        const bool six = random() % 2 == 0;
        Bytes datagram = compressed_packet(
            six ? kSix : kSeven, six ? kHeaderSize : kSevenHeaderSize,
            compressible_bytes(random() % 1390, static_cast<std::uint8_t>(random())));
        if (random() % 3 == 0) {
            datagram.resize(random() % (datagram.size() + 1));
        }
        if (random() % 3 == 0 && !datagram.empty()) {
            datagram[random() % datagram.size()] ^= static_cast<std::byte>(1U << random() % 8);
        }
        datagrams.push_back(std::move(datagram));
    }
    PacketScratch ahead;
    std::size_t failed = 0;
    for (std::size_t i = 0; i + 1 < datagrams.size(); ++i) {
        const auto known = random() % 2 == 0 ? Protocol::six : Protocol::seven;
        ahead.begin_datagram(datagrams[i], datagrams[i + 1]);
        const auto packet = decode_packet(datagrams[i], known, ahead);
        PacketScratch scratch;
        const auto alone = decode_packet(datagrams[i], known, scratch);
        REQUIRE(packet.has_value() == alone.has_value());
        if (!packet) {
            REQUIRE(packet.error() == alone.error());
            ++failed;
            continue;
        }
        REQUIRE(payload_of(*packet) == payload_of(*alone));
        REQUIRE(packet->dialect == alone->dialect);
    }
    CHECK(failed > 100);
}

} // namespace tw::wire
