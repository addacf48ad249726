// Covers: proxy/wire/packet.cpp
#include "proxy/wire/packet.h"
#include "tests/proxy/wire/vectors.h"

#include <random>
#include <string_view>

#include <doctest/doctest.h>

namespace tw::wire {

using test::Bytes;

TEST_CASE("chunk headers read as the reference reads them") {
    for (const auto& row : test::vectors("chunk_headers")) {
        CAPTURE(std::string{row.at("bytes").as_string()});
        const auto size = row.at("size").to_number<std::size_t>();
        Bytes wire = test::hex_at(row, "bytes");
        const std::size_t header_size = wire.size();
        wire.resize(wire.size() + size, std::byte{0x2A});
        ChunkReader reader{wire, 1, Dialect::six};
        const auto chunk = reader.next();
        REQUIRE(chunk);
        CHECK(chunk->vital == row.at("vital").as_bool());
        CHECK(chunk->resend == row.at("resend").as_bool());
        CHECK(chunk->header_size == header_size);
        CHECK(chunk->payload.size() == size);
        CHECK(chunk->sequence == (chunk->vital ? row.at("seq").to_number<int>() : 0));
        CHECK(reader.rest().empty());
        CHECK_FALSE(reader.next());
        CHECK_FALSE(reader.error());
        if (!row.as_object().contains("noncanonical")) {
            Bytes again;
            append_chunk(again, chunk->vital, chunk->sequence, chunk->resend, chunk->payload,
                         Dialect::six);
            CHECK(again == wire);
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

TEST_CASE("random chunks survive, and what stands behind them is the rest") {
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
            const auto got = reader.next();
            REQUIRE(got);
            REQUIRE(got->vital == wanted.vital);
            REQUIRE(got->resend == wanted.resend);
            REQUIRE(got->sequence == wanted.sequence);
            REQUIRE(Bytes(got->payload.begin(), got->payload.end()) == wanted.payload);
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

TEST_CASE("hostile chunk counts and sizes end the walk") {
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
