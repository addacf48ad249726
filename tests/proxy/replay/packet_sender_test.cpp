// Covers: proxy/replay/replay_client.cpp
#include "proxy/replay/replay_client.h"
#include "proxy/wire/packet.h"

#include <vector>

#include <doctest/doctest.h>

using namespace tw;

namespace {

constexpr record::Timestamp kSecond = 1'000'000'000;
constexpr wire::Token kToken{1, 2, 3, 4};

struct Sent {
    std::uint16_t sequence;
    bool vital;
    bool resend;
    std::size_t size;

    friend bool operator==(const Sent&, const Sent&) = default;
};

struct Read {
    std::size_t packets = 0;
    std::size_t controls = 0;
    bool asks = false;
    std::uint16_t ack = 0;
    std::vector<Sent> chunks;
};

/// Returns what a receiver reads from the packets to send.
Read read(replay::PacketSender& outbox) {
    Read read;
    for (const auto& datagram : outbox.take_packets()) {
        CHECK(datagram.size() <= wire::kMaxDatagramSize);
        wire::PacketScratch scratch;
        const auto packet = wire::decode_packet(datagram, wire::Protocol::six, scratch);
        REQUIRE(packet);
        ++read.packets;
        read.asks = read.asks || packet->resend;
        read.ack = packet->ack;
        if (packet->kind == wire::PacketKind::control) {
            ++read.controls;
            continue;
        }
        wire::ChunkReader chunks{packet->payload, packet->num_chunks, wire::Dialect::six};
        while (const auto chunk = chunks.next()) {
            read.chunks.push_back(
                {chunk->sequence, chunk->vital, chunk->resend, chunk->payload.size()});
        }
        CHECK(chunks.rest().size() == wire::kTokenSize);
    }
    return read;
}

const std::vector<std::byte> kMessage(10, std::byte{7});

} // namespace

TEST_CASE("vital messages are numbered from 1 and sent again until they are acknowledged") {
    replay::PacketSender outbox{wire::Dialect::six};
    outbox.set_token(kToken);
    record::Timestamp now = 5 * kSecond;
    for (int i = 0; i < 3; ++i) {
        CHECK(outbox.add_vital_message(kMessage, now));
    }
    outbox.add_nonvital_message(kMessage);
    outbox.flush(now);
    CHECK(read(outbox).chunks == std::vector<Sent>{{1, true, false, 10},
                                                   {2, true, false, 10},
                                                   {3, true, false, 10},
                                                   {0, false, false, 10}});
    now += kSecond;
    outbox.on_ack(1);
    outbox.on_time(now); // resends only the oldest chunk
    outbox.flush(now);
    CHECK(read(outbox).chunks == std::vector<Sent>{{2, true, true, 10}});
    outbox.on_resend_request(now);
    outbox.on_resend_request(now); // a second request at the same time is ignored
    outbox.flush(now);
    CHECK(read(outbox).chunks == std::vector<Sent>{{2, true, true, 10}, {3, true, true, 10}});
    CHECK(outbox.resent_count() == 3);
    CHECK(outbox.waiting_since() == 5 * kSecond);
    outbox.on_ack(900); // acknowledges a chunk that was not sent
    CHECK(outbox.waiting_since());
    outbox.on_ack(3);
    CHECK_FALSE(outbox.waiting_since());
}

TEST_CASE("at most half of the sequences may be unacknowledged") {
    replay::PacketSender outbox{wire::Dialect::six};
    outbox.set_token(kToken);
    int taken = 0;
    while (taken < 2000 && outbox.add_vital_message(kMessage, kSecond)) {
        ++taken;
    }
    CHECK(taken == 511);
    outbox.flush(kSecond);
    CHECK(read(outbox).chunks.size() == 511);
    // The sequence numbers wrap around.
    for (int round = 0; round < 3; ++round) {
        outbox.on_ack(static_cast<std::uint16_t>((511 * (round + 1)) % wire::kSequenceModulus));
        CHECK_FALSE(outbox.waiting_since());
        for (int i = 0; i < 511; ++i) {
            CHECK(outbox.add_vital_message(kMessage, kSecond));
        }
        outbox.flush(kSecond);
        CHECK(read(outbox).chunks.back().sequence == (511 * (round + 2)) % wire::kSequenceModulus);
    }
}

TEST_CASE("packets stay below the size limit, acknowledge, and request a resend once") {
    replay::PacketSender outbox{wire::Dialect::six};
    outbox.set_token(kToken);
    const std::vector<std::byte> large(1000, std::byte{1});
    for (int i = 0; i < 5; ++i) {
        outbox.add_nonvital_message(large);
    }
    for (int i = 0; i < 300; ++i) {
        outbox.add_nonvital_message({});
    }
    outbox.set_acknowledged_sequence(77);
    outbox.request_resend();
    outbox.flush(kSecond);
    const Read first = read(outbox);
    CHECK(first.chunks.size() == 305);
    CHECK(first.packets >= 6);
    CHECK(first.ack == 77);
    CHECK(first.asks);
    outbox.add_nonvital_message(kMessage);
    outbox.flush(kSecond);
    CHECK_FALSE(read(outbox).asks);
    outbox.request_resend(); // with nothing else to send
    outbox.flush(kSecond);
    const Read asked = read(outbox);
    CHECK(asked.asks);
    CHECK(asked.packets == 1);
}

TEST_CASE("after a second without packets, a keepalive is sent") {
    replay::PacketSender outbox{wire::Dialect::six};
    outbox.add_nonvital_message(kMessage);
    outbox.flush(kSecond);
    CHECK(outbox.take_packets().size() == 1);
    outbox.on_time(kSecond + kSecond / 2);
    outbox.flush(kSecond + kSecond / 2);
    CHECK(outbox.take_packets().empty());
    outbox.on_time(2 * kSecond);
    outbox.flush(2 * kSecond);
    CHECK(read(outbox).controls == 1);
}
