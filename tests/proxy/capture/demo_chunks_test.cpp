// Covers: proxy/capture/demo_reader.cpp
#include "proxy/capture/demo_reader.h"
#include "proxy/wire/huffman.h"
#include "tests/support/demo_bytes.h"

#include <string>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>

using namespace tw;
using capture::DemoChunk;
using capture::DemoChunkReader;
using capture::DemoErrc;
using test::Bytes;
using test::bytes_of;

namespace {

Bytes from_hex(std::string_view hex) {
    Bytes bytes;
    for (std::size_t i = 0; i + 1 < hex.size(); i += 2) {
        bytes.push_back(
            static_cast<std::byte>(std::stoi(std::string{hex.substr(i, 2)}, nullptr, 16)));
    }
    return bytes;
}

/// Lists the chunks as "tick 500 key", "snapshot 17" or "other 2", then the error if there is one: "chunk_cut @3".
std::vector<std::string> describe(const Bytes& bytes, int version) {
    DemoChunkReader chunks{bytes, version, 100};
    std::vector<std::string> lines;
    while (const auto chunk = chunks.next_chunk()) {
        static constexpr std::string_view kNames[] = {"tick", "snapshot", "delta", "message",
                                                      "other"};
        std::string line{kNames[static_cast<std::size_t>(chunk->kind)]};
        if (chunk->kind == DemoChunk::Kind::tick) {
            line += ' ' + std::to_string(chunk->tick) + (chunk->keyframe ? " key" : "");
        } else {
            line += ' ' + std::to_string(chunk->data.size());
        }
        lines.push_back(std::move(line));
    }
    if (chunks.has_failed()) {
        lines.push_back(std::string{capture::demo_error_info(chunks.error().code).name} + " @" +
                        std::to_string(chunks.error().offset - 100));
    }
    return lines;
}

} // namespace

TEST_CASE("ticks and sizes are read in every form that recorders write") {
    struct Row {
        std::string_view name;
        int version;
        std::string_view hex;
        std::vector<std::string> lines;
    };

    const Row rows[] = {
        {"nothing", 6, "", {}},
        {"keyframe", 6, "c0000001f4", {"tick 500 key"}},
        {"old step", 4, "80000001f482", {"tick 500", "tick 502"}},
        {"new step", 6, "80000001f4a2", {"tick 500", "tick 502"}},
        {"longest old step", 3, "8000000001bf", {"tick 1", "tick 64"}},
        {"longest new step", 5, "8000000001bf", {"tick 1", "tick 32"}},
        {"the same tick twice", 6, "8000000001a0", {"tick 1", "tick 1"}},
        {"the same tick, absolute", 4, "80000000018000000001", {"tick 1", "tick 1"}},
        {"a tick in the past", 6, "80000001f48000000001", {"tick 500", "tick 1"}},
        {"largest tick", 6, "806ffffffe", {"tick 1879048190"}},
        {"small chunks", 6, "21aa40610b", {"snapshot 1", "message 0", "delta 1"}},
        {"one byte of size", 6, "5e02aabb", {"message 2"}},
        {"two bytes of size", 6, "5f0200aabb", {"message 2"}},
        {"of no type", 6, "02aabb41cc", {"other 2", "message 1"}},
        {"step before a tick", 6, "a2", {"tick_before_first @0"}},
        {"old step before a tick",
         4,
         "40"
         "82",
         {"message 0", "tick_before_first @1"}},
        {"tick too large", 6, "806fffffff", {"tick_out_of_range @0"}},
        {"negative tick", 6, "80ffffffff", {"tick_out_of_range @0"}},
        {"step past the largest", 6, "806ffffffea1", {"tick 1879048190", "tick_out_of_range @5"}},
        {"cut tick", 6, "80000001", {"chunk_cut @0"}},
        {"cut size", 6, "5e", {"chunk_cut @0"}},
        {"cut sizes", 6, "5f01", {"chunk_cut @0"}},
        {"cut chunk", 6, "42aa", {"chunk_cut @0"}},
        {"cut long chunk",
         6,
         "40"
         "5fffffaa",
         {"message 0", "chunk_cut @1"}},
    };
    for (const Row& row : rows) {
        CAPTURE(row.name);
        CHECK(describe(from_hex(row.hex), row.version) == row.lines);
    }
}

TEST_CASE("an error is permanent") {
    const Bytes bytes = bytes_of({0xa2, 0x40});
    DemoChunkReader chunks{bytes, 6, 0};
    CHECK_FALSE(chunks.next_chunk().has_value());
    CHECK_FALSE(chunks.next_chunk().has_value());
    CHECK(chunks.error() == capture::DemoError{DemoErrc::tick_before_first, 0});
}

TEST_CASE("payloads decode as the reference says") {
    struct Row {
        std::string_view name;
        std::string_view hex;
        std::vector<std::int32_t> ints;
    };

    const Row rows[] = {
        {"snapshot",
         "31d425c200c0f587bfab016b93c4a4cd8a1b",
         {56, 2, 0, 36, 393216, 0, 0, 0, 0, 20, 0, 0, 0, 262151, 528, 400, 0, 0}},
        {"delta", "6c885d0d587b049698b4597103", {1, 1, 0, 262151, 4, 8, 560, 400, 0, 0}},
        {"message", "485200d0e8588e8a1b", {1749024774, 105}},
    };
    capture::DemoChunkDecoder payload;
    for (const Row& row : rows) {
        CAPTURE(row.name);
        const Bytes bytes = from_hex(row.hex);
        DemoChunkReader chunks{bytes, 6, 0};
        const auto chunk = chunks.next_chunk();
        REQUIRE(chunk.has_value());
        const auto ints = payload.decode_ints(*chunk);
        REQUIRE(ints.has_value());
        CHECK(std::vector<std::int32_t>{ints->begin(), ints->end()} == row.ints);
        if (chunk->kind == DemoChunk::Kind::message) {
            const auto message = payload.decode_message(*chunk);
            REQUIRE(message.has_value());
            CHECK(Bytes{message->begin(), message->end()} == from_hex("0600406869000000"));
        }
    }
}

TEST_CASE("payloads that no demo player can decompress are errors") {
    const auto chunk_of = [](const Bytes& data) {
        return DemoChunk{.kind = DemoChunk::Kind::snapshot, .offset = 9, .data = data};
    };
    const auto packed = [](const Bytes& bytes) {
        return wire::huffman_compress(bytes, wire::HuffmanEnding::without_zero_byte);
    };
    capture::DemoChunkDecoder payload;
    const Bytes nothing;
    const Bytes half = bytes_of({1});
    const Bytes large = packed(Bytes(65537));
    const Bytes largest = packed(Bytes(65536, std::byte{0x80}));
    const Bytes many = packed(Bytes(16385));
    const Bytes cut = packed(bytes_of({0x80}));
    const auto none = payload.decode_ints(chunk_of(nothing)); // an empty chunk is not decompressed
    REQUIRE(none.has_value());
    CHECK(none->empty());
    CHECK(payload.decode_ints(chunk_of(half)).error().code == DemoErrc::payload_undecodable);
    CHECK(payload.decompress_varints(chunk_of(large)).error().code == DemoErrc::payload_too_long);
    CHECK(payload.decompress_varints(chunk_of(largest)).has_value());
    CHECK(payload.decode_ints(chunk_of(many)).error().code == DemoErrc::payload_too_long);
    CHECK(payload.decode_ints(chunk_of(cut)).error() ==
          capture::DemoError{DemoErrc::payload_ints_cut, 9});
    CHECK(payload.decode_message(chunk_of(cut)).error().code == DemoErrc::payload_ints_cut);
}
