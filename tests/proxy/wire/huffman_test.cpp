
#include "proxy/wire/huffman.h"
#include "proxy/wire/packet.h"
#include "tests/proxy/wire/fields_text.h"

#include <algorithm>
#include <array>
#include <random>
#include <span>

#include <doctest/doctest.h>

namespace tw::wire {

using test::Bytes;

namespace {

Bytes compress(const Bytes& plain) {
    return huffman_compress(plain, HuffmanEnding::without_zero_byte);
}

/// Decompresses into a buffer of exactly `limit` bytes.
Result<Bytes> decompress(const Bytes& in, std::size_t limit) {
    Bytes out(limit);
    const auto size = huffman_decompress(in, out);
    if (!size) {
        return tl::unexpected{size.error()};
    }
    out.resize(*size);
    return out;
}

/// Returns random bytes of one of three kinds: uniform, mostly zeros, or all the same.
Bytes random_bytes(std::mt19937& random, std::size_t size) {
    std::uniform_int_distribution<int> any{0, 255};
    const int zeros_of_256 = any(random);
    Bytes out(size);
    for (std::byte& byte : out) {
        byte = any(random) < zeros_of_256 ? std::byte{0} : static_cast<std::byte>(any(random));
    }
    return out;
}

} // namespace

TEST_CASE("huffman compresses as the reference does, with both endings") {
    for (const auto& row : test::vectors("huffman")) {
        CAPTURE(std::string{row.at("note").as_string()});
        const Bytes plain = test::hex_at(row, "plain");
        const Bytes compressed = test::hex_at(row, "compressed");
        const bool differs = row.as_object().contains("compressed_old_writers");
        const Bytes old = differs ? test::hex_at(row, "compressed_old_writers") : compressed;
        CHECK(test::to_hex(compress(plain)) == test::to_hex(compressed));
        CHECK(test::to_hex(huffman_compress(plain, HuffmanEnding::with_zero_byte)) ==
              test::to_hex(old));
        CHECK(huffman_compressed_size(plain) == compressed.size());
        CHECK(decompress(compressed, plain.size()) == plain);
        CHECK(decompress(old, plain.size()) == plain);
    }
}

TEST_CASE("huffman decompresses what the reference does and refuses what it refuses") {
    for (const auto& row : test::vectors("huffman_decode")) {
        CAPTURE(std::string{row.at("compressed").as_string()});
        const auto out = decompress(test::hex_at(row, "compressed"), kMaxPayloadSize);
        if (row.at("plain").is_null()) {
            REQUIRE_FALSE(out);
            CHECK(out.error().code == WireErrc::huffman_truncated);
        } else {
            REQUIRE(out);
            CHECK(test::to_hex(*out) == row.at("plain").as_string());
        }
    }
}

TEST_CASE("every symbol and pair of symbols is decompressed correctly") {
    for (int first = 0; first < 256; ++first) {
        const Bytes one{static_cast<std::byte>(first)};
        REQUIRE(decompress(compress(one), 1) == one);
        for (int second = 0; second < 256; ++second) {
            const Bytes two{static_cast<std::byte>(first), static_cast<std::byte>(second)};
            REQUIRE(decompress(compress(two), 2) == two);
        }
    }
}

TEST_CASE("random bytes are decompressed correctly whatever follows the end symbol") {
    std::mt19937 random{1};
    for (int round = 0; round < 4000; ++round) {
        const Bytes plain = random_bytes(random, random() % (kMaxPayloadSize + 1));
        Bytes compressed = compress(plain);
        REQUIRE(decompress(compressed, kMaxPayloadSize) == plain);
        const Bytes surplus = random_bytes(random, random() % 20);
        compressed.insert(compressed.end(), surplus.begin(), surplus.end());
        REQUIRE(decompress(compressed, plain.size()) == plain);
    }
}

TEST_CASE("compressed data cut at any byte is truncated") {
    std::mt19937 random{2};
    for (int round = 0; round < 200; ++round) {
        const Bytes plain = random_bytes(random, random() % 200);
        const Bytes compressed = compress(plain);
        for (std::size_t size = 0; size < compressed.size(); ++size) {
            const auto out = decompress(test::prefix(compressed, size), plain.size());
            REQUIRE_FALSE(out);
            REQUIRE(out.error() == WireError{WireErrc::huffman_truncated, size});
        }
    }
}

TEST_CASE("output of exactly the limit is fine, one byte more is an overflow") {
    std::mt19937 random{3};
    for (int round = 0; round < 200; ++round) {
        const Bytes plain = random_bytes(random, 1 + random() % 150);
        const Bytes compressed = compress(plain);
        for (std::size_t limit = 0; limit < plain.size(); ++limit) {
            const auto out = decompress(compressed, limit);
            REQUIRE_FALSE(out);
            REQUIRE(out.error().code == WireErrc::huffman_overflow);
            REQUIRE(out.error().offset <= compressed.size());
        }
        REQUIRE(decompress(compressed, plain.size()) == plain);
    }
}

TEST_CASE("a datagram full of the shortest code overflows instead of growing") {
    const Bytes ones(kMaxDatagramSize, std::byte{0xFF});
    const auto out = decompress(ones, kMaxPayloadSize);
    REQUIRE_FALSE(out);
    // Each symbol takes one bit, so output byte 1397 begins in this input byte.
    CHECK(out.error() == WireError{WireErrc::huffman_overflow, kMaxPayloadSize / 8 + 1});
}

TEST_CASE("nothing is written after the limit") {
    std::mt19937 random{4};
    for (int round = 0; round < 500; ++round) {
        const Bytes in = random_bytes(random, random() % 300);
        Bytes out(400, std::byte{0xA5});
        const std::size_t limit = random() % 380;
        const auto size = huffman_decompress(in, std::span{out}.first(limit));
        REQUIRE((!size || *size <= limit));
        for (std::size_t i = limit; i < out.size(); ++i) {
            REQUIRE(out[i] == std::byte{0xA5});
        }
    }
}

TEST_CASE("two payloads together decompress like each alone") {
    std::mt19937 random{5};
    const auto payload = [&] {
        const Bytes plain = random_bytes(random, random() % (kMaxPayloadSize + 1));
        Bytes in = compress(plain);
        if (const auto kind = random() % 4; kind == 0) {
            in.resize(random() % (in.size() + 1));
        } else if (kind == 1) {
            in = random_bytes(random, random() % 300);
        }
        return in;
    };
    std::size_t refused = 0;
    for (int round = 0; round < 4000; ++round) {
        const std::array<Bytes, 2> in{payload(), payload()};
        std::array<Bytes, 2> out;
        std::array<std::size_t, 2> limits{};
        for (std::size_t i = 0; i < 2; ++i) {
            limits[i] = random() % 3 == 0 ? random() % kMaxPayloadSize : kMaxPayloadSize;
            out[i].assign(limits[i] + 40, std::byte{0xA5});
        }
        const auto sizes = huffman_decompress({in[0], std::span{out[0]}.first(limits[0])},
                                              {in[1], std::span{out[1]}.first(limits[1])});
        for (std::size_t i = 0; i < 2; ++i) {
            const auto alone = decompress(in[i], limits[i]);
            REQUIRE(alone.has_value() == sizes[i].has_value());
            REQUIRE(std::all_of(out[i].begin() + static_cast<std::ptrdiff_t>(limits[i]),
                                out[i].end(),
                                [](std::byte each) { return each == std::byte{0xA5}; }));
            if (alone) {
                out[i].resize(*sizes[i]);
                REQUIRE(out[i] == *alone);
            } else {
                REQUIRE(sizes[i].error() == alone.error());
                ++refused;
            }
        }
    }
    CHECK(refused > 100);
}

} // namespace tw::wire
