// Covers: proxy/wire/packet.cpp
#include "proxy/wire/packet.h"
#include "tests/proxy/wire/fields_text.h"

#include <random>
#include <string>
#include <string_view>

#include <doctest/doctest.h>

namespace tw::wire {

using test::Bytes;

TEST_CASE("the dialect of a datagram follows from its content or its session") {
    for (const auto& row : test::seven_vectors("recognise")) {
        const std::string known = test::text_at(row.as_object(), "known", "none");
        CAPTURE(std::string{row.at("note").as_string()});
        const Bytes datagram = test::hex_at(row, "bytes");
        PacketScratch scratch;
        const auto packet = decode_packet(datagram,
                                          known == "0.7"   ? Protocol::seven
                                          : known == "0.6" ? Protocol::six
                                                           : Protocol::unknown,
                                          scratch);
        // A truncated packet is rejected in its own protocol: 0.7 sets the control bit, and 0.6 never does.
        const bool seven =
            packet ? packet->dialect == Dialect::seven : packet.error().offset >= kSevenHeaderSize;
        CHECK((seven ? "0.7" : "0.6") == test::text_at(row.as_object(), "protocol"));
    }
}

TEST_CASE("odd packets of 0.7 are read or refused with a name") {
    struct Row {
        std::string_view name;
        std::string_view hex;
        WireErrc error;
        PacketKind kind;
        std::size_t payload;
    };
    using enum PacketKind;
    const Row rows[] = {
        {"control without a kind", "040000ffffffff", WireErrc::control_empty, control, 0},
        {"shorter than the header", "040000ffffff", WireErrc::too_short, control, 0},
        {"nothing", "", WireErrc::too_short, control, 0},
        {"connless shorter than its header", "2101020304050607", WireErrc::too_short, control, 0},
        {"connless, header alone", "210102030405060708", WireErrc::none, connless, 0},
        {"compressed control", "140000a1b2c3d48a1b", WireErrc::control_empty, control, 0},
        {"no chunk, no resend", "000000a1b2c3d4", WireErrc::none, chunks, 0},
        {"reserved bit", "800000a1b2c3d4", WireErrc::none, chunks, 0},
        {"a chunk longer than the payload", "000001a1b2c3d40005aa", WireErrc::none, chunks, 3},
        {"compressed and cut", "100001a1b2c3d448", WireErrc::huffman_truncated, chunks, 0},
    };
    for (const Row& row : rows) {
        CAPTURE(row.name);
        const Bytes datagram = test::from_hex(row.hex);
        PacketScratch scratch;
        const auto packet = decode_seven_packet(datagram, scratch);
        CHECK((packet ? WireErrc::none : packet.error().code) == row.error);
        if (packet) {
            CHECK(packet->kind == row.kind);
            CHECK(packet->payload.size() == row.payload);
        } else {
            CHECK(packet.error().offset <= datagram.size());
        }
    }
    for (const auto& row : test::seven_vectors("packets_odd")) {
        const Bytes whole = test::hex_at(row, "bytes");
        for (std::size_t size = 0; size <= whole.size(); ++size) {
            PacketScratch scratch;
            const auto packet = decode_seven_packet(test::prefix(whole, size), scratch);
            CHECK((packet || packet.error().offset <= size));
        }
    }
}

TEST_CASE("a packet of 0.7 decompresses to what a datagram can hold, and to no more") {
    for (const std::size_t size : {kSevenMaxPayloadSize, kSevenMaxPayloadSize + 1}) {
        CAPTURE(size);
        const Bytes zeros(size);
        PacketSpec spec{.num_chunks = 1,
                        .chunks = zeros,
                        .header_token = Token{1, 2, 3, 4},
                        .compression = Compression::always,
                        .dialect = Dialect::seven};
        PacketScratch scratch;
        const Bytes datagram = encode_packet(spec);
        const auto packet = decode_packet(datagram, Protocol::seven, scratch);
        CHECK(packet.has_value() == (size == kSevenMaxPayloadSize));
        if (!packet) {
            CHECK(packet.error().code == WireErrc::huffman_overflow);
        }
    }
}

TEST_CASE("TKEN in place of a token is not a token") {
    const Bytes repeated = test::from_hex("04000001020304"
                                          "01"
                                          "544b454e");
    PacketScratch scratch;
    const auto packet = decode_packet(repeated, Protocol::unknown, scratch).value();
    const Control control = decode_control(packet, std::nullopt);
    CHECK(control.kind == ControlKind::connect);
    CHECK(control.has_token_magic);
    CHECK_FALSE(control.token);
}

TEST_CASE("a 0.7 header is decoded without the payload") {
    const Bytes whole = test::from_hex("140001a1b2c3d4");
    for (std::size_t size = 0; size < whole.size(); ++size) {
        CHECK_FALSE(decode_seven_header(test::prefix(whole, size)));
    }
    const auto packet = decode_seven_header(whole).value();
    CHECK(packet.kind == PacketKind::control);
    CHECK(packet.payload.empty());
    CHECK(decode_seven_control(packet).kind == ControlKind::unknown);
    CHECK_FALSE(decode_seven_header(test::from_hex("210102030405060708")));
}

TEST_CASE("encoded 0.7 packets are decoded as 0.7") {
    std::mt19937 random{7};
    for (int round = 0; round < 200; ++round) {
        Bytes chunks;
        const Bytes body(random() % 600, static_cast<std::byte>(random()));
        const auto sequence = static_cast<std::uint16_t>(random() % kSequenceModulus);
        append_chunk(chunks, true, sequence, false, body, Dialect::seven);
        const PacketSpec spec{.ack = static_cast<std::uint16_t>(random() % kSequenceModulus),
                              .resend = random() % 2 == 0,
                              .num_chunks = 1,
                              .chunks = chunks,
                              .header_token = Token{9, 8, 7, static_cast<std::uint8_t>(random())},
                              .compression = Compression::if_shorter,
                              .dialect = Dialect::seven};
        const Bytes datagram = encode_packet(spec);
        PacketScratch scratch;
        CHECK(may_be_seven_chunks(datagram, scratch));
        const auto packet = decode_packet(datagram, Protocol::seven, scratch).value();
        CHECK(packet.ack == spec.ack);
        CHECK(packet.resend == spec.resend);
        CHECK(packet.header_token == spec.header_token);
        ChunkReader reader{packet.payload, packet.num_chunks, Dialect::seven};
        const auto chunk = reader.next().value();
        CHECK(chunk.sequence == sequence);
        CHECK(test::to_hex(chunk.payload) == test::to_hex(body));
    }
    const Bytes close = encode_control(
        {.kind = ControlKind::close, .ack = 5, .reason = "bye", .seven_token = Token{1, 2, 3, 4}});
    CHECK(test::to_hex(close) == "0405000102030404"
                                 "62796500");
    const Bytes request = encode_control({.kind = ControlKind::token,
                                          .token = Token{0xA, 0xB, 0xC, 0xD},
                                          .seven_token = kTokenUnknown});
    CHECK(test::to_hex(request) == "040000ffffffff050a0b0c0d");
}

TEST_CASE("chunks of 0.7 end where their packet ends") {
    PacketScratch scratch;
    const auto fits = [&](std::string_view hex) {
        return may_be_seven_chunks(test::from_hex(hex), scratch);
    };
    CHECK(fits("00000201020304"
               "0002aabb"
               "400101cc"));
    CHECK_FALSE(fits("00000201020304"
                     "0002aabb"
                     "400101"));
    CHECK_FALSE(fits("00000101020304"
                     "0002aabbcc"));
    CHECK_FALSE(fits("00000101020304"
                     "00"));
    CHECK_FALSE(fits("00000001020304"));
    CHECK_FALSE(fits("040001010203040002aabb")); // a control packet
    CHECK_FALSE(fits("210001010203040002aabb"));
    CHECK_FALSE(fits(""));
}

TEST_CASE("only handshake packets of 0.6 with a valid size are recognised") {
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
        {"KEEPALIVE with a token", "10000000a1b2c3d4", 0, false},
        {"with the bit of 0.7", "14000001544b454effffffff", 0, false},
        {"with a number of chunks", "10000101", 0, false},
        {"with the flag of a resend", "50000001", 0, false},
        {"a header alone", "100000", 0, false},
    };
    for (const Row& row : rows) {
        CAPTURE(row.name);
        Bytes datagram = test::from_hex(row.hex);
        datagram.resize(datagram.size() + row.padding);
        CHECK(is_six_handshake(datagram) == row.known);
    }
}

TEST_CASE("chunk headers read as the reference reads them") {
    for (const Dialect dialect : {Dialect::six, Dialect::seven}) {
        const bool six = dialect == Dialect::six;
        for (const auto& row :
             six ? test::vectors("chunk_headers") : test::seven_vectors("chunk_headers")) {
            CAPTURE(std::string{row.at("bytes").as_string()});
            const auto size = row.at("size").to_number<std::size_t>();
            Bytes wire = test::hex_at(row, "bytes");
            const std::size_t header_size = wire.size();
            wire.resize(wire.size() + size, std::byte{0x2A});
            ChunkReader reader{wire, 1, dialect};
            const auto chunk = reader.next().value();
            CHECK(chunk.vital == row.at("vital").as_bool());
            CHECK(chunk.resend == row.at("resend").as_bool());
            CHECK(chunk.header_size == header_size);
            CHECK(chunk.payload.size() == size);
            CHECK(chunk.sequence == (chunk.vital ? row.at("seq").to_number<int>() : 0));
            CHECK(reader.rest().empty());
            CHECK_FALSE(reader.next());
            CHECK_FALSE(reader.error());
            if (!row.as_object().contains(six ? "noncanonical" : "note")) {
                Bytes again;
                append_chunk(again, chunk.vital, chunk.sequence, chunk.resend, chunk.payload,
                             dialect);
                CHECK(again == wire);
            }
        }
    }
}

TEST_CASE("sequences are classified by the half window") {
    for (const auto& row : test::vectors("sequence")) {
        const auto last = row.at("ack").to_number<std::uint16_t>();
        const auto sequence = row.at("seq").to_number<std::uint16_t>();
        const std::string_view name{row.at("class").as_string()};
        CAPTURE(last);
        CAPTURE(sequence);
        const VitalClass wanted = name == "next"  ? VitalClass::next
                                  : name == "old" ? VitalClass::old
                                                  : VitalClass::gap;
        CHECK(classify_sequence(last, sequence) == wanted);
    }
    for (std::uint16_t last = 0; last < kSequenceModulus; ++last) {
        int counts[3] = {};
        for (std::uint16_t sequence = 0; sequence < kSequenceModulus; ++sequence) {
            ++counts[static_cast<int>(classify_sequence(last, sequence))];
        }
        REQUIRE(counts[static_cast<int>(VitalClass::next)] == 1);
        REQUIRE(counts[static_cast<int>(VitalClass::old)] == 513);
        REQUIRE(counts[static_cast<int>(VitalClass::gap)] == 510);
    }
}

TEST_CASE("random chunks are decoded, and the bytes after them are the rest") {
    std::mt19937 random{1};
    for (int round = 0; round < 500; ++round) {
        struct Sent {
            bool vital;
            bool resend;
            std::uint16_t sequence;
            Bytes payload;
        };

        std::vector<Sent> sent(random() % 12);
        Bytes wire;
        for (Sent& chunk : sent) {
            chunk.vital = random() % 2 == 0;
            chunk.resend = random() % 2 == 0;
            chunk.sequence =
                static_cast<std::uint16_t>(chunk.vital ? random() % kSequenceModulus : 0);
            chunk.payload.resize(random() % 100, static_cast<std::byte>(random()));
            append_chunk(wire, chunk.vital, chunk.sequence, chunk.resend, chunk.payload,
                         Dialect::six);
        }
        const std::size_t rest = random() % 6;
        wire.resize(wire.size() + rest, std::byte{0x77});
        ChunkReader reader{wire, static_cast<std::uint8_t>(sent.size()), Dialect::six};
        for (const Sent& wanted : sent) {
            const auto got = reader.next().value();
            REQUIRE(got.vital == wanted.vital);
            REQUIRE(got.resend == wanted.resend);
            REQUIRE(got.sequence == wanted.sequence);
            REQUIRE(Bytes(got.payload.begin(), got.payload.end()) == wanted.payload);
        }
        REQUIRE_FALSE(reader.next());
        REQUIRE_FALSE(reader.error());
        REQUIRE(reader.rest().size() == rest);
    }
}

TEST_CASE("a payload cut at any byte keeps the chunks before the cut") {
    Bytes wire;
    std::vector<std::size_t> ends{0};
    append_chunk(wire, true, 700, false, Bytes(20, std::byte{1}), Dialect::six);
    ends.push_back(wire.size());
    append_chunk(wire, false, 0, false, Bytes(3, std::byte{2}), Dialect::six);
    ends.push_back(wire.size());
    append_chunk(wire, true, 701, true, {}, Dialect::six);
    ends.push_back(wire.size());
    for (std::size_t size = 0; size < wire.size(); ++size) {
        CAPTURE(size);
        const Bytes cut = test::prefix(wire, size);
        ChunkReader reader{cut, 3, Dialect::six};
        std::size_t read = 0;
        while (reader.next()) {
            ++read;
        }
        REQUIRE(read < 3);
        CHECK(ends[read] <= size);
        CHECK(ends[read + 1] > size);
        REQUIRE(reader.error());
        CHECK(*reader.error() == WireError{WireErrc::chunk_truncated, ends[read]});
        CHECK(reader.rest().size() == size - ends[read]);
        CHECK_FALSE(reader.next());
    }
}

TEST_CASE("wrong chunk counts and sizes stop the reader") {
    struct Row {
        std::string_view name;
        std::string_view wire;
        std::uint8_t num_chunks;
        std::size_t chunks;
        bool error;
    };

    const Row rows[] = {
        {"no chunks announced", "0000", 0, 0, false},
        {"255 announced, none there", "", 255, 0, true},
        {"255 empty ones announced, two there", "00000000", 255, 2, true},
        {"vital header of two bytes", "4000", 1, 0, true},
        {"size one past the end", "0002aa", 1, 0, true},
        {"largest size, nothing there", "3f0f", 1, 0, true},
        {"token read as a chunk that is not there", "0000a1b2c3d4", 2, 1, true},
        {"one byte left", "00010aff", 2, 1, true},
    };
    for (const Row& row : rows) {
        CAPTURE(row.name);
        const Bytes wire = test::from_hex(row.wire);
        ChunkReader reader{wire, row.num_chunks, Dialect::six};
        std::size_t chunks = 0;
        while (reader.next()) {
            ++chunks;
        }
        CHECK(chunks == row.chunks);
        CHECK(reader.error().has_value() == row.error);
    }
}

} // namespace tw::wire
