// Covers: proxy/capture/frame_reader.cpp
#include "proxy/capture/capture_file.h"
#include "proxy/capture/pcapng.h"
#include "tests/support/capture.h"
#include "tests/support/capture_writer.h"
#include "tests/support/hex.h"
#include "tests/support/test_data.h"

#include <algorithm>
#include <initializer_list>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

using namespace tw::capture;
using namespace tw::test;

namespace {

constexpr std::uint32_t kEthernet = 1;
constexpr std::uint32_t kNull = 0;
constexpr std::uint32_t kLoop = 108;
constexpr std::uint32_t kRaw = 101;
constexpr std::uint32_t kIpv4 = 228;
constexpr std::uint32_t kIpv6 = 229;
constexpr std::uint32_t kCooked = 113;
constexpr std::uint32_t kCooked2 = 276;

const FrameBytes kPayload{std::byte{1}, std::byte{2}, std::byte{3}};

/// The contents of a capture.
struct CaptureContent {
    std::vector<std::string> datagrams; ///< "10.0.0.1:1000 10.0.0.2:8303 010203"
    std::vector<std::int64_t> times;
    std::vector<std::string> cut; ///< "10.0.0.1:1000 10.0.0.2:8303"
    CaptureCounts counts;
};

/// Returns the contents of a capture. Errors: CaptureError.
CaptureContent read_content(std::span<const std::byte> bytes) {
    const TemporaryFile file{bytes};
    CaptureContent content;
    CaptureFile capture{file.path()};
    tw::capture::CapturedDatagram datagram;
    while (capture.read_datagram(datagram)) {
        const std::string ends = to_string(datagram.source) + ' ' + to_string(datagram.destination);
        if (datagram.is_truncated) {
            content.cut.push_back(ends);
            continue;
        }
        content.datagrams.push_back(ends + ' ' + to_hex(datagram.payload));
        content.times.push_back(datagram.time);
    }
    content.counts = capture.counts();
    return content;
}

FrameBytes ethernet_frame(const FrameBytes& packet, std::uint32_t type,
                          const std::vector<std::uint32_t>& tags = {}) {
    CaptureBytes frame;
    frame.zeros(12);
    for (const std::uint32_t tag : tags) {
        frame.be16(tag).be16(5);
    }
    return frame.be16(type).raw(packet).bytes();
}

FrameBytes prefix_zeros(std::size_t zeros, const FrameBytes& packet) {
    return CaptureBytes{}.zeros(zeros).raw(packet).bytes();
}

FrameBytes cooked_frame(std::uint32_t type, const FrameBytes& packet) {
    return CaptureBytes{}.zeros(14).be16(type).raw(packet).bytes();
}

FrameBytes cooked2_frame(std::uint32_t type, const FrameBytes& packet) {
    return CaptureBytes{}.be16(type).zeros(18).raw(packet).bytes();
}

/// Returns a fragment of a UDP segment over IPv6 in an Ethernet frame. `offset`: a multiple of 8.
FrameBytes ipv6_fragment(const FrameBytes& bytes, std::uint32_t offset, bool more,
                         std::uint32_t protocol = 17) {
    FrameBytes packet = ipv6_packet(CaptureBytes{}
                                        .u8(protocol)
                                        .u8(0)
                                        .be16(offset | (more ? 1U : 0U))
                                        .be32(0x12345678)
                                        .raw(bytes)
                                        .bytes());
    packet[6] = std::byte{44};
    return ethernet_frame(packet, 0x86dd);
}

/// Returns a fragment of a UDP segment over IPv4 in an Ethernet frame.
FrameBytes ipv4_fragment(const FrameBytes& bytes, std::uint32_t offset, bool more) {
    return ethernet_frame(ipv4_packet(bytes, 0, offset / 8 | (more ? 0x2000U : 0U)), 0x0800);
}

/// Returns the bytes without the last one.
FrameBytes without_last_byte(FrameBytes frame) {
    frame.pop_back();
    return frame;
}

const std::string kOverFour = "10.0.0.1:1000 10.0.0.2:8303 010203";
const std::string kOverSix = "[fd00::1]:1000 [fd00::2]:8303 010203";

} // namespace

TEST_CASE("datagrams are found after every kind of link and IP header") {
    struct Row {
        std::string name;
        std::uint32_t link;
        FrameBytes frame;
        std::string datagram;
    };

    const FrameBytes four = ipv4_packet(udp_segment(kPayload));
    const FrameBytes six = ipv6_packet(udp_segment(kPayload));
    const Row rows[] = {
        {"Ethernet, IPv4", kEthernet, ethernet_frame(four, 0x0800), kOverFour},
        {"Ethernet, IPv6", kEthernet, ethernet_frame(six, 0x86dd), kOverSix},
        {"802.1Q", kEthernet, ethernet_frame(four, 0x0800, {0x8100}), kOverFour},
        {"802.1ad in 802.1Q", kEthernet, ethernet_frame(six, 0x86dd, {0x88a8, 0x8100}), kOverSix},
        {"802.1Q in 0x9100", kEthernet, ethernet_frame(four, 0x0800, {0x9100, 0x8100}), kOverFour},
        {"0x9200", kEthernet, ethernet_frame(six, 0x86dd, {0x9200}), kOverSix},
        {"padding behind a short frame", kEthernet,
         CaptureBytes{}.raw(ethernet_frame(four, 0x0800)).zeros(17).bytes(), kOverFour},
        {"BSD loopback", kNull, prefix_zeros(4, four), kOverFour},
        {"OpenBSD loopback", kLoop, prefix_zeros(4, six), kOverSix},
        {"raw IP, four", kRaw, four, kOverFour},
        {"raw IP, six", kRaw, six, kOverSix},
        {"raw IPv4", kIpv4, four, kOverFour},
        {"raw IPv6", kIpv6, six, kOverSix},
        {"Linux cooked", kCooked, cooked_frame(0x0800, four), kOverFour},
        {"Linux cooked 2", kCooked2, cooked2_frame(0x86dd, six), kOverSix},
        {"IPv4 options", kRaw, ipv4_packet(udp_segment(kPayload), 40), kOverFour},
        {"do not fragment", kRaw, ipv4_packet(udp_segment(kPayload), 0, 0x4000), kOverFour},
        {"IPv6 extension headers", kRaw, ipv6_packet(udp_segment(kPayload), {0, 60, 43}), kOverSix},
        {"an empty datagram", kRaw, ipv4_packet(udp_segment({})), "10.0.0.1:1000 10.0.0.2:8303 "},
        {"a fragment that is a complete datagram", kEthernet,
         ipv6_fragment(udp_segment(kPayload), 0, false), kOverSix},
    };
    for (const Row& row : rows) {
        CAPTURE(row.name);
        const auto content = read_content(pcap_file({.link = row.link}, {{.bytes = row.frame}}));
        CHECK(content.datagrams == std::vector{row.datagram});
        CHECK(content.counts.datagrams == 1);
        CHECK(content.counts.incomplete_fragments == 0);
        CHECK_FALSE(content.counts.ended_early);
    }
}

TEST_CASE("frames without a complete UDP datagram are counted by kind") {
    FrameBytes long_extension = ipv6_packet(udp_segment(kPayload), {0});
    long_extension[41] = std::byte{0xFF}; // its length, which reaches past the frame

    struct Row {
        std::string name;
        FrameBytes frame;
        std::uint64_t other, fragments, cut;
    };

    const Row rows[] = {
        {"ARP", ethernet_frame(FrameBytes(28), 0x0806), 1, 0, 0},
        {"three tags",
         ethernet_frame(ipv4_packet(udp_segment(kPayload)), 0x0800, {0x8100, 0x8100, 0x8100}), 1, 0,
         0},
        {"TCP", ethernet_frame(ipv4_packet(FrameBytes(20), 0, 0, 6), 0x0800), 1, 0, 0},
        {"IP version 5", ethernet_frame(FrameBytes(40, std::byte{0x50}), 0x0800), 1, 0, 0},
        {"an IPv4 header of 4 bytes", ethernet_frame(FrameBytes(40, std::byte{0x41}), 0x0800), 1, 0,
         0},
        {"nothing behind Ethernet", ethernet_frame({}, 0x0800), 1, 0, 0},
        {"no frame at all", {}, 1, 0, 0},
        {"a UDP length below its header",
         ethernet_frame(ipv4_packet(udp_segment(kPayload, 7)), 0x0800), 1, 0, 0},
        {"the first fragment",
         ethernet_frame(ipv4_packet(udp_segment(kPayload), 0, 0x2000), 0x0800), 0, 1, 0},
        {"the last fragment", ethernet_frame(ipv4_packet(udp_segment(kPayload), 0, 100), 0x0800), 0,
         1, 0},
        {"an IPv6 fragment", ipv6_fragment(udp_segment(kPayload), 0, true), 0, 1, 0},
        {"an IPv6 fragment of no UDP", ipv6_fragment(udp_segment(kPayload), 0, true, 6), 1, 0, 0},
        {"an IPv4 fragment cut off",
         ethernet_frame(without_last_byte(ipv4_packet(udp_segment(kPayload), 0, 0x2000)), 0x0800),
         0, 0, 1},
        {"an IPv6 fragment cut off",
         without_last_byte(ipv6_fragment(udp_segment(kPayload), 0, true)), 0, 0, 1},
        {"an IPv6 header that nobody knows",
         ethernet_frame(ipv6_packet(udp_segment(kPayload), {99}), 0x86dd), 1, 0, 0},
        {"an IPv6 extension that is too long", ethernet_frame(long_extension, 0x86dd), 1, 0, 0},
        {"recorded too short", ethernet_frame(ipv4_packet(udp_segment(kPayload, 500)), 0x0800), 0,
         0, 1},
    };
    for (const Row& row : rows) {
        CAPTURE(row.name);
        const auto content = read_content(pcap_file({.link = kEthernet}, {{.bytes = row.frame}}));
        CHECK(content.datagrams.empty());
        CHECK(content.cut.empty());
        CHECK(content.counts.frames == 1);
        CHECK(content.counts.other_frames == row.other);
        CHECK(content.counts.incomplete_fragments == row.fragments);
        CHECK(content.counts.truncated == row.cut);
    }
}

TEST_CASE("merged datagrams are split, unless a correct checksum shows a single datagram") {
    // Two packets with DDNet's token, each with one chunk of three bytes.
    FrameBytes one;
    for (const int byte :
         {0x00, 0x05, 0x01, 0x00, 0x03, 0x11, 0x22, 0x33, 0xad, 0x70, 0x60, 0x4e}) {
        one.push_back(static_cast<std::byte>(byte));
    }
    FrameBytes two = one;
    two.insert(two.end(), one.begin(), one.end());
    // The checksums were calculated by tshark, for IPv4 from 10.0.0.1:1000 to 10.0.0.2:8303.
    constexpr std::uint32_t kOfAll = 0x5f44;

    struct Row {
        std::string name;
        std::uint32_t other; ///< checksum of a datagram before it; 0 if there is none
        std::uint32_t checksum;
        bool split;
    };

    const Row rows[] = {
        {"right for all of it", 0, kOfAll, false},
        {"right for all of it, as those of others", 0x1234, kOfAll, false},
        {"of the first one, or of the pseudo header", 0x1234, 0x1c30, true},
        {"none, as all of them", 0, 0, true},
        {"none, where others have one", 0x1234, 0, false},
    };
    for (const Row& row : rows) {
        CAPTURE(row.name);
        const auto content = read_content(
            pcap_file({.link = kRaw}, {{.bytes = ipv4_packet(udp_segment(kPayload, {}, row.other))},
                                       {.bytes = ipv4_packet(udp_segment(two, {}, row.checksum))},
                                       {.bytes = ipv4_packet(udp_segment(kPayload))}}));
        const std::string ends = "10.0.0.1:1000 10.0.0.2:8303 ";
        CHECK(content.datagrams ==
              (row.split ? std::vector{kOverFour, ends + to_hex(one), ends + to_hex(one), kOverFour}
                         : std::vector{kOverFour, ends + to_hex(two), kOverFour}));
        CHECK(content.counts.merged_frames == (row.split ? 1 : 0));
        CHECK(content.counts.datagrams == content.datagrams.size());
    }
}

TEST_CASE("fragments are reassembled in any order, with other frames in between") {
    FrameBytes payload(20);
    for (std::size_t i = 0; i < payload.size(); ++i) {
        payload[i] = static_cast<std::byte>(i);
    }
    const FrameBytes segment = udp_segment(payload); // the segment has 28 bytes
    const auto part = [&](std::size_t begin, std::size_t size) {
        return FrameBytes{segment.begin() + static_cast<std::ptrdiff_t>(begin),
                          segment.begin() + static_cast<std::ptrdiff_t>(begin + size)};
    };
    const FrameBytes padded =
        CaptureBytes{}.raw(ipv4_fragment(part(24, 4), 24, false)).zeros(17).bytes();
    const auto content = read_content(pcap_file(
        {.link = kEthernet}, {{.seconds = 1, .bytes = padded},
                              {.seconds = 2, .bytes = ipv6_fragment(part(0, 16), 0, true)},
                              {.seconds = 3, .bytes = ipv4_fragment(part(0, 8), 0, true)},
                              {.seconds = 4, .bytes = ipv6_fragment(part(16, 12), 16, false)},
                              {.seconds = 5, .bytes = ipv4_fragment(part(8, 16), 8, true)},
                              {.seconds = 6, .bytes = ipv6_fragment(part(0, 16), 0, true)},
                              {.seconds = 7, .bytes = ipv6_fragment(part(0, 8), 0, true)}}));
    CHECK(content.datagrams ==
          std::vector<std::string>{"[fd00::1]:1000 [fd00::2]:8303 " + to_hex(payload),
                                   "10.0.0.1:1000 10.0.0.2:8303 " + to_hex(payload)});
    CHECK(content.times == std::vector<std::int64_t>{4'000'000'000, 5'000'000'000});
    CHECK(content.counts.repeated_fragments == 1);
    CHECK(content.counts.incomplete_fragments == 1); // the first fragment of another datagram
    CHECK(content.counts.frames == 7);
}

TEST_CASE("times are converted to nanoseconds from every file format and byte order") {
    struct Row {
        std::string name;
        FrameBytes file;
        std::int64_t time;
    };

    const FrameBytes frame = ipv4_packet(udp_segment(kPayload));
    constexpr std::int64_t kSecond = 1'700'000'000;
    constexpr std::uint64_t kMicros = 1'700'000'000'000'123;
    constexpr std::uint64_t kNanos = 1'700'000'000'000'000'123;
    const auto classic = [&](bool big_endian, bool nanoseconds) {
        return pcap_file({.big_endian = big_endian, .nanoseconds = nanoseconds, .link = kRaw},
                         {{.fraction = 123, .bytes = frame}});
    };
    const Row rows[] = {
        {"pcap, microseconds", classic(false, false), kSecond * 1'000'000'000 + 123'000},
        {"pcap, nanoseconds", classic(false, true), kSecond * 1'000'000'000 + 123},
        {"pcap, big-endian", classic(true, false), kSecond * 1'000'000'000 + 123'000},
        {"pcap, big-endian nanoseconds", classic(true, true), kSecond * 1'000'000'000 + 123},
        {"pcapng, microseconds", pcapng_file(false, kRaw, 6, {{kMicros, frame}}),
         kSecond * 1'000'000'000 + 123'000},
        {"pcapng, nanoseconds", pcapng_file(false, kRaw, 9, {{kNanos, frame}}),
         kSecond * 1'000'000'000 + 123},
        {"pcapng, big-endian", pcapng_file(true, kRaw, 6, {{kMicros, frame}}),
         kSecond * 1'000'000'000 + 123'000},
    };
    for (const Row& row : rows) {
        CAPTURE(row.name);
        const auto content = read_content(row.file);
        CHECK(content.datagrams == std::vector{kOverFour});
        CHECK(content.times == std::vector{row.time});
    }
}

TEST_CASE("impossible times are limited to a range that inspection can handle") {
    for (const std::uint32_t resolution : {0U, 3U, 6U, 9U}) {
        for (const std::uint64_t time : {UINT64_MAX, UINT64_MAX / 2, std::uint64_t{1} << 62U}) {
            CAPTURE(resolution);
            CAPTURE(time);
            const auto content = read_content(
                pcapng_file(false, kRaw, resolution, {{time, ipv4_packet(udp_segment(kPayload))}}));
            for (const std::int64_t seen : content.times) {
                CHECK(seen >= 0);
                CHECK(seen <= INT64_MAX - 100'000'000'000);
            }
        }
    }
}

TEST_CASE("a capture cut at any byte gives the datagrams before the cut, or is rejected") {
    const FrameBytes frame = ethernet_frame(ipv4_packet(udp_segment(kPayload)), 0x0800);
    const FrameBytes files[] = {
        pcap_file({.link = kEthernet}, {{.bytes = frame}, {.bytes = frame}, {.bytes = frame}}),
        pcapng_file(false, kEthernet, 6, {{1, frame}, {2, frame}, {3, frame}}),
    };
    for (const FrameBytes& file : files) {
        std::size_t most = 0;
        for (std::size_t size = 0; size <= file.size(); ++size) {
            try {
                const auto content = read_content(std::span{file}.first(size));
                CHECK(content.datagrams.size() >= most);
                most = content.datagrams.size();
                CHECK(content.datagrams == std::vector<std::string>(most, kOverFour));
            } catch (const CaptureError&) {
                CHECK(most == 0);
            }
        }
        CHECK(most == 3);
    }
}

TEST_CASE("a truncated capture is distinguished from an unreadable one") {
    const FrameBytes frame = ethernet_frame(ipv4_packet(udp_segment(kPayload)), 0x0800);
    const FrameBytes first = pcapng_file(false, kEthernet, 6, {{1, frame}});
    const auto with = [&first](const FrameBytes& more) {
        return CaptureBytes{}.raw(first).raw(more).bytes();
    };
    const FrameBytes twice = with(first);
    const FrameBytes size = with(CaptureBytes{}.u32(6).u32(33).zeros(33).bytes());
    const FrameBytes order = with(CaptureBytes{}.u32(0x0a0d0d0a).u32(28).zeros(20).bytes());
    const FrameBytes interface = with(CaptureBytes{}.u32(6).u32(32).u32(1).zeros(20).bytes());
    const FrameBytes packet =
        with(CaptureBytes{}.u32(6).u32(32).zeros(12).u32(1).u32(1).zeros(4).bytes());

    struct Row {
        const char* name;
        std::span<const std::byte> bytes;
        bool ended_early;
        std::string error; ///< empty if the capture is readable
    };

    const Row rows[] = {
        {"whole", first, false, ""},
        {"cut", std::span{twice}.first(first.size() + 20), true, ""},
        {"block size", size, false, "the size of a block is invalid"},
        {"byte order", order, false, "the byte order of a section is invalid"},
        {"interface", interface, false, "a packet's interface is not described"},
        {"packet size", packet, false, "a packet is larger than its block"},
    };
    for (const Row& row : rows) {
        CAPTURE(row.name);
        const TemporaryFile file{row.bytes};
        CaptureFile capture{file.path()};
        tw::capture::CapturedDatagram datagram;
        CHECK(capture.read_datagram(datagram));
        CHECK_FALSE(capture.read_datagram(datagram));
        CHECK_FALSE(capture.read_datagram(datagram));
        CHECK(capture.counts().ended_early == row.ended_early);
        CHECK(capture.read_error() == row.error);
    }
}

TEST_CASE(
    "interfaces of different link types and lengths, and sections of both byte orders, are read") {
    const FrameBytes packet = ipv4_packet(udp_segment(kPayload));
    const FrameBytes section =
        pcapng_file(false, kEthernet, 6, {{1, ethernet_frame(packet, 0x0800)}, {2, FrameBytes(3)}});
    const auto size = static_cast<std::uint32_t>(packet.size());
    const auto block = size + 32;
    REQUIRE(size % 4 != 0);
    const auto more = [&](std::uint32_t link) {
        CaptureBytes bytes;
        bytes.u32(1).u32(20).u16(link).u16(0).u32(77).u32(20); // appends interface 1
        const std::uint32_t padding = 4 - size % 4;
        bytes.u32(6).u32(block + padding).u32(1).u32(0).u32(3).u32(size).u32(size);
        bytes.raw(packet).zeros(padding).u32(block + padding);
        return bytes.bytes();
    };
    const FrameBytes swapped = pcapng_file(true, kRaw, 9, {{4000, packet}});
    const auto content = read_content(CaptureBytes{}
                                          .raw(section)
                                          .raw(more(kRaw))
                                          .raw(swapped)
                                          .raw(section)
                                          .raw(more(105)) // 105: 802.11, whose frames are not read
                                          .bytes());
    CHECK(content.times == std::vector<std::int64_t>{1000, 3000, 4000, 1000});
    CHECK(content.datagrams == std::vector<std::string>(4, kOverFour));
    CHECK(content.counts.frames == 7);
    CHECK(content.counts.other_frames == 3);
}

TEST_CASE("a capture compressed with gzip is read like the uncompressed one") {
    const std::string path = test_data("captures/bench-4.pcap.gz");
    const auto wanted = tw::test::read_capture(path);
    REQUIRE(wanted.size() > 1000);
    CaptureFile capture{path};
    tw::capture::CapturedDatagram datagram;
    for (const auto& each : wanted) {
        REQUIRE(capture.read_datagram(datagram));
        CHECK(datagram.time / 1000 == each.time_us);
        CHECK(std::ranges::equal(datagram.payload, each.payload));
    }
    CHECK_FALSE(capture.read_datagram(datagram));
}

TEST_CASE("frames cut at any byte give no datagram and are counted as cut") {
    struct Row {
        FrameBytes frame;
        std::string ends;
    };

    const Row rows[] = {{ethernet_frame(ipv4_packet(udp_segment(kPayload), 12), 0x0800, {0x8100}),
                         "10.0.0.1:1000 10.0.0.2:8303"},
                        {ethernet_frame(ipv6_packet(udp_segment(kPayload), {0, 60}), 0x86dd),
                         "[fd00::1]:1000 [fd00::2]:8303"}};
    for (const auto& [frame, ends] : rows) {
        for (std::size_t size = 0; size < frame.size(); ++size) {
            CAPTURE(size);
            FrameBytes cut{frame.begin(), frame.begin() + static_cast<std::ptrdiff_t>(size)};
            const auto content = read_content(
                pcap_file({.link = kEthernet},
                          {{.bytes = std::move(cut),
                            .original_size = static_cast<std::uint32_t>(frame.size())}}));
            CHECK(content.datagrams.empty());
            CHECK(content.counts.truncated == 1);
            // After its headers, the endpoints are known.
            const bool has_headers = size >= frame.size() - kPayload.size();
            CHECK(content.cut == std::vector<std::string>(has_headers ? 1 : 0, ends));
        }
    }
}

TEST_CASE("a cut frame that is not UDP is not counted as cut") {
    const FrameBytes frames[] = {ethernet_frame(FrameBytes(28), 0x0806),
                                 ethernet_frame(ipv4_packet(FrameBytes(20), 0, 0, 6), 0x0800),
                                 ethernet_frame(ipv6_packet(udp_segment(kPayload), {99}), 0x86dd)};
    for (const FrameBytes& frame : frames) {
        const auto content = read_content(pcap_file(
            {.link = kEthernet},
            {{.bytes = frame, .original_size = static_cast<std::uint32_t>(frame.size()) + 1}}));
        CHECK(content.counts.other_frames == 1);
        CHECK(content.counts.truncated == 0);
    }
}

TEST_CASE("a file that is not a capture is rejected with its name and a reason") {
    struct Row {
        std::string name;
        FrameBytes file;
    };

    const Row rows[] = {
        {"empty", {}},
        {"text", FrameBytes(100, std::byte{'x'})},
        {"a link that carries no IP", pcap_file({.link = 105}, {})}, // 105: 802.11
        {"a link that nobody knows", pcap_file({.link = 60000}, {})},
    };
    for (const Row& row : rows) {
        CAPTURE(row.name);
        const TemporaryFile file{row.file};
        std::string message;
        try {
            const CaptureFile capture{file.path()};
        } catch (const CaptureError& error) {
            message = error.what();
        }
        CHECK(message.starts_with(file.path() + ": "));
    }
    CHECK_THROWS_AS(CaptureFile{"/nowhere/at/all"}, CaptureError);
}

using namespace tw;

namespace {

/// Returns a capture as twscope writes it. Each character of `content` stands for a block: P for a
/// packet, S for the start of a section, a small letter for a state with this text, and another
/// character for the next of `blocks`, which have a type and a size.
Bytes make_capture(std::string_view content,
                   std::initializer_list<std::pair<std::uint32_t, std::size_t>> blocks = {}) {
    static const auto client = *capture::parse_endpoint("127.0.0.1:50000");
    static const auto server = *capture::parse_endpoint("127.0.0.1:8303");
    Bytes bytes = capture::CaptureEncoder::encode_start();
    const auto* block = blocks.begin();
    for (const char each : content) {
        if (each == 'P') {
            Bytes frame;
            capture::make_udp_frame(client, server, Bytes(10, std::byte{1}), frame);
            capture::PcapngEncoder{}.append_packet({.frame = frame}, bytes);
        } else if (each == 'S') {
            std::ranges::copy(capture::CaptureEncoder::encode_start(), std::back_inserter(bytes));
        } else if (each >= 'a' && each <= 'z') {
            capture::append_session_state(
                {.client = client, .server = server, .bytes = {static_cast<std::byte>(each)}},
                bytes);
        } else {
            capture::PcapngEncoder{}.append_block(block->first,
                                                  Bytes(block->second, std::byte{0x6b}), bytes);
            ++block;
        }
    }
    return bytes;
}

/// Returns the states before the packets of a capture; "-" for a packet without a state. Checks
/// that a state has the endpoints of its packet.
std::string read_states(std::span<const std::byte> bytes) {
    const test::TemporaryFile file{bytes};
    capture::CaptureFile capture{file.path()};
    capture::CapturedDatagram datagram;
    std::string text;
    while (capture.read_datagram(datagram)) {
        if (datagram.state == nullptr) {
            text += '-';
            continue;
        }
        CHECK(datagram.state->client == datagram.source);
        CHECK(datagram.state->server == datagram.destination);
        for (const std::byte byte : datagram.state->bytes) {
            text += static_cast<char>(byte);
        }
    }
    return text;
}

} // namespace

TEST_CASE("a state belongs to the packet after it") {
    struct Row {
        const char* name;
        Bytes bytes;
        std::string states;
    };

    constexpr auto kState = capture::kSessionStateBlock;
    Bytes broken = make_capture("PaPbP");
    broken[make_capture("P").size() + 4] = std::byte{3}; // an invalid block length
    const Row rows[] = {
        {"at the beginning", make_capture("aPP"), "a-"},
        {"in the middle", make_capture("PPcP"), "--c"},
        {"two in a row: the last", make_capture("abP"), "b"},
        {"before each", make_capture("aPbP"), "ab"},
        {"at the end", make_capture("Pb"), "-"},
        {"behind another section", make_capture("PSbP"), "-b"},
        {"among blocks of others", make_capture(".a.P", {{5, 64}, {0x8000beef, 3}}), "a"},
        {"of the type, and another's", make_capture(".PbP", {{kState, 100}}), "-b"},
        {"of the type, and empty", make_capture(".PbP", {{kState, 0}}), "-b"},
        {"of the type, and too large", make_capture(".PbP", {{kState, 5'000'000}}), "-b"},
        {"behind a broken block", broken, "-"},
    };
    for (const Row& row : rows) {
        CAPTURE(row.name);
        CHECK(read_states(row.bytes) == row.states);
    }
}

TEST_CASE("a capture cut at any byte gives the complete states") {
    const Bytes bytes = make_capture("aPbP");
    for (std::size_t size = make_capture("").size(); size < bytes.size(); ++size) {
        CAPTURE(size);
        const std::string states = read_states(std::span{bytes}.first(size));
        CHECK((states.empty() || states == "a"));
    }
}

TEST_CASE("states are found behind a section in the other byte order, too") {
    const auto frame = test::FrameBytes(60, std::byte{0});
    Bytes bytes = test::pcapng_file(true, 1, 9, {{1, frame}, {2, frame}});
    const Bytes more = make_capture("cP");
    bytes.insert(bytes.end(), more.begin(), more.end());
    CHECK(read_states(bytes) == "c");
}
