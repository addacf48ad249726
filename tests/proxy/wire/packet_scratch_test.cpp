// Covers: proxy/wire/packet.cpp
#include "proxy/wire/huffman.h"
#include "proxy/wire/packet.h"
#include "tests/proxy/wire/vectors.h"

#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

#include <doctest/doctest.h>

namespace tw::wire {

namespace {

using test::Bytes;

constexpr std::byte kSix{0x80};   ///< first byte of a compressed 0.6 packet
constexpr std::byte kSeven{0x10}; ///< first byte of a compressed 0.7 packet

Bytes packet_of(std::byte first, std::size_t header, const Bytes& plain) {
    Bytes datagram(header);
    datagram[0] = first;
    datagram[2] = std::byte{1};
    const Bytes packed = huffman_compress(plain, HuffmanEnding::without_zero_byte);
    datagram.insert(datagram.end(), packed.begin(), packed.end());
    return datagram;
}

Bytes text(std::size_t size, std::uint8_t seed) {
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

TEST_CASE("a payload that was decompressed ahead is that of its datagram") {
    const std::vector<Bytes> plain{text(900, 1), text(300, 2), text(1390, 3), text(20, 4),
                                   text(700, 5)};
    std::vector<Bytes> datagrams;
    datagrams.reserve(plain.size());
    for (const Bytes& each : plain) {
        datagrams.push_back(packet_of(kSix, kHeaderSize, each));
    }
    PacketScratch scratch;
    for (std::size_t i = 0; i < datagrams.size(); ++i) {
        const bool last = i + 1 == datagrams.size();
        scratch.begin(datagrams[i],
                      last ? std::span<const std::byte>{} : std::span{datagrams[i + 1]});
        const auto packet = decode_packet(datagrams[i], Protocol::six, scratch);
        REQUIRE(packet);
        CHECK(payload_of(*packet) == plain[i]);
        const auto again = decode_packet(datagrams[i], Protocol::six, scratch);
        REQUIRE(again);
        CHECK(payload_of(*again) == plain[i]);
    }
}

TEST_CASE("what is said to come next, and does not, leaves no trace") {
    const Bytes first = packet_of(kSix, kHeaderSize, text(500, 1));
    const Bytes other = packet_of(kSix, kHeaderSize, text(500, 3));
    Bytes place = packet_of(kSix, kHeaderSize, text(500, 2));
    PacketScratch scratch;
    scratch.begin(first, place);
    REQUIRE(decode_packet(first, Protocol::six, scratch));
    SUBCASE("another one comes, then other bytes at its place") {
        scratch.begin(other, {});
        const auto packet = decode_packet(other, Protocol::six, scratch);
        REQUIRE(packet);
        CHECK(payload_of(*packet) == text(500, 3));
        place = packet_of(kSix, kHeaderSize, text(500, 4));
        scratch.begin(place, {});
        const auto late = decode_packet(place, Protocol::six, scratch);
        REQUIRE(late);
        CHECK(payload_of(*late) == text(500, 4));
    }
    SUBCASE("nobody decodes it, and the one behind it has one ahead, too") {
        scratch.begin(place, other);
        scratch.begin(other, first);
        const auto packet = decode_packet(other, Protocol::six, scratch);
        REQUIRE(packet);
        CHECK(payload_of(*packet) == text(500, 3));
    }
}

TEST_CASE("of two dialects and damaged ones each has what it has alone") {
    std::mt19937 random{6};
    std::vector<Bytes> datagrams;
    for (int i = 0; i < 3000; ++i) {
        const bool six = random() % 2 == 0;
        Bytes datagram = packet_of(six ? kSix : kSeven, six ? kHeaderSize : kSevenHeaderSize,
                                   text(random() % 1390, static_cast<std::uint8_t>(random())));
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
        ahead.begin(datagrams[i], datagrams[i + 1]);
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
