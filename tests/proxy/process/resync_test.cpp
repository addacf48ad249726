// Covers: proxy/pipeline/resync.cpp
#include "proxy/pipeline/resync.h"
#include "proxy/wire/bodies.h"
#include "proxy/wire/message.h"
#include "proxy/wire/packet.h"
#include "tests/support/captured_traffic.h"
#include "tests/support/time.h"

#include <array>
#include <string>
#include <vector>

#include <doctest/doctest.h>

namespace {

using namespace tw;
using pipeline::ResyncLimiter;
using pipeline::ResyncRequester;

using test::kSecond;

/// Returns the chunks of a packet as one text, without the ticks that inputs acknowledge; those are
/// added to `acked`.
std::string chunks_without_acks(std::span<const std::byte> datagram,
                                std::vector<std::int32_t>& acked) {
    wire::PacketScratch scratch;
    const auto packet = wire::decode_packet(datagram, wire::Protocol::six, scratch);
    REQUIRE(packet);
    std::string text = std::to_string(packet->ack) + (packet->resend ? "R" : "");
    wire::ChunkReader chunks{packet->payload, packet->num_chunks, wire::Dialect::six};
    const auto add = [&](std::span<const std::byte> bytes) {
        text.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    };
    while (const auto chunk = chunks.next()) {
        text += chunk->vital ? "V" + std::to_string(chunk->sequence) : "C";
        const auto head = wire::decode_message_header(chunk->payload, wire::Dialect::six);
        if (head && head->spec != nullptr && head->spec->id == wire::MessageId::input) {
            const auto input = wire::decode_input(head->body);
            REQUIRE(input);
            acked.push_back(input->ack_tick);
            std::size_t used = 0;
            while ((head->body[used++] & std::byte{0x80}) != std::byte{0}) {
            }
            add(head->body.subspan(used));
        } else {
            add(chunk->payload);
        }
    }
    add(chunks.rest());
    return text;
}

struct RewriteCounts {
    std::size_t rewritten_packets = 0;
    std::size_t inputs = 0;
    std::size_t full_snapshots = 0;
};

/// Rewrites the acknowledgements in all packets of a capture, and checks that nothing else changes.
RewriteCounts rewrite_capture(const std::string& capture) {
    const relay::ResyncFunctions resync = pipeline::make_snapshot_resync_functions();
    RewriteCounts counts;
    for (const auto& datagram : tw::test::read_traffic(capture)) {
        if (datagram.direction == wire::Direction::s2c) {
            counts.full_snapshots += resync.find_full_snapshot(datagram.bytes) ? 1U : 0U;
            continue;
        }
        std::array<std::byte, wire::kMaxDatagramSize> out{};
        const std::size_t size = resync.rewrite_acknowledgement(
            datagram.bytes, relay::ResyncFunctions::kNoSnapshot, out);
        if (size == 0) {
            continue;
        }
        ++counts.rewritten_packets;
        std::vector<std::int32_t> before;
        std::vector<std::int32_t> after;
        const std::string rest = chunks_without_acks(datagram.bytes, before);
        CHECK(chunks_without_acks(std::span{out}.first(size), after) == rest);
        counts.inputs += before.size();
        REQUIRE_FALSE(before.empty());
        before.back() = -1;
        CHECK(before == after);
    }
    return counts;
}

TEST_CASE(
    "in packets of real clients, only the snapshot tick that an input acknowledges is rewritten") {
    for (const char* const capture :
         {"bench-4.pcap.gz", "ddnet-20.1.1-race.pcap.gz", "vanilla-0.6.5-ctf.pcap.gz"}) {
        CAPTURE(capture);
        const RewriteCounts counts = rewrite_capture(capture);
        CHECK(counts.rewritten_packets > 100);
        CHECK(counts.inputs >= counts.rewritten_packets);
        CHECK(counts.full_snapshots > 0);
    }
}

TEST_CASE("packets of 0.7 are not rewritten, although their chunks look like those of 0.6") {
    CHECK(rewrite_capture("teeworlds-0.7.5.pcap.gz").rewritten_packets == 0);
}

TEST_CASE("a resync of an undecodable session is requested at once, and again after five seconds") {
    std::vector<std::uint32_t> requested;
    bool can_send = true;
    ResyncRequester requester{[&](std::uint32_t session) {
        requested.push_back(session);
        return can_send;
    }};
    using Sessions = std::vector<std::uint32_t>;
    requester.on_server_datagram(1, 0, false);
    CHECK(requested.empty());
    requester.on_server_datagram(1, kSecond, true);
    requester.on_server_datagram(1, 2 * kSecond, true);
    requester.on_server_datagram(2, 2 * kSecond, true);
    CHECK(requested == Sessions{1, 2});
    requester.on_server_datagram(1, 6 * kSecond,
                                 true); // the relay may measure the five seconds a little later
    CHECK(requested == Sessions{1, 2});
    requester.on_server_datagram(1, 6 * kSecond + kSecond / 5, true);
    CHECK(requested == Sessions{1, 2, 1});
    // A request that could not be sent is repeated. After forget_session() a session is new.
    can_send = false;
    requester.on_server_datagram(3, 7 * kSecond, true);
    requester.on_server_datagram(3, 7 * kSecond + 1, true);
    CHECK(requested == Sessions{1, 2, 1, 3, 3});
    requester.forget_session(2);
    requester.on_server_datagram(2, 7 * kSecond, true);
    CHECK(requested.back() == 2);
}

TEST_CASE("resync requests of a misbehaving observer are limited per second, and invalid ones are "
          "rejected") {
    ResyncLimiter limiter;
    for (const char* const request : {"", "0", "-1", "x", "1x", " 1", "4294967296", "1 "}) {
        CAPTURE(request);
        CHECK_FALSE(limiter.accept_request(request));
    }
    CHECK(limiter.accept_request("4294967295") == 4294967295U);
    unsigned granted = 1;
    while (limiter.accept_request("7")) {
        ++granted;
    }
    CHECK(granted == ResyncLimiter::kMaxPerSecond);
    limiter.refill();
    CHECK(limiter.accept_request("7") == 7U);
}

} // namespace
