#include "proxy/capture/capture_file.h"
#include "proxy/capture/pcapng.h"
#include "tests/support/capture_writer.h"

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>

using namespace tw;
using capture::make_udp_frame;
using capture::parse_endpoint;
using capture::PcapngEncoder;
using Bytes = std::vector<std::byte>;

namespace {

Bytes make_payload(std::size_t size) {
    Bytes bytes(size);
    for (std::size_t i = 0; i < size; ++i) {
        bytes[i] = static_cast<std::byte>(i * 7);
    }
    return bytes;
}

/// Returns the internet checksum's sum of the bytes; 0xffff if they contain a correct checksum.
std::uint32_t fold_checksum(std::span<const std::byte> bytes, std::uint32_t sum = 0) {
    for (std::size_t i = 0; i < bytes.size(); ++i) {
        sum += std::to_integer<std::uint32_t>(bytes[i]) << (i % 2 == 0 ? 8U : 0U);
        sum = (sum & 0xffffU) + (sum >> 16U);
    }
    return sum;
}

} // namespace

TEST_CASE("endpoints are parsed in the form that records have") {
    for (const std::string_view text :
         {"", "127.0.0.1", ":1", "127.0.0.1:", "127.0.0.1:x", "127.0.0.1:65536", "127.0.0.1:1x",
          "::1:5", "[::1:5", "[]:5", "client-01020304:5", "name:5", "256.0.0.1:5"}) {
        CAPTURE(text);
        CHECK_FALSE(parse_endpoint(text).has_value());
    }
    const auto four = parse_endpoint("127.0.0.1:8303");
    REQUIRE(four.has_value());
    CHECK(to_string(*four) == "127.0.0.1:8303");
    const auto six = parse_endpoint("[fd00::2]:65535");
    REQUIRE(six.has_value());
    CHECK(to_string(*six) == "[fd00::2]:65535");
}

TEST_CASE("a long comment is truncated between characters") {
    for (const std::size_t before : {1020U, 1021U, 1022U, 1023U, 1024U}) {
        CAPTURE(before);
        const std::string text = std::string(before, 'a') + "\xf0\x9f\x98\x80" + "b";
        std::vector<std::byte> out;
        PcapngEncoder{}.append_section("", out, text);
        const std::size_t kept = before == 1020 ? 1024 : before;
        const std::string_view bytes{reinterpret_cast<const char*>(out.data()), out.size()};
        CHECK(bytes.find(text.substr(0, kept)) != std::string_view::npos);
        CHECK(bytes.find('b') == std::string_view::npos);
        CHECK((bytes.find('\xf0') != std::string_view::npos) == (before == 1020));
    }
}

TEST_CASE("frames contain their datagrams with correct checksums") {
    struct Row {
        std::string_view from;
        std::string_view to;
        std::string_view shown_from;
        std::string_view shown_to;
    };

    const Row rows[] = {
        {"10.0.0.1:5", "127.0.0.1:8303", "10.0.0.1:5", "127.0.0.1:8303"},
        {"[fd00::1]:5", "[::1]:8303", "[fd00::1]:5", "[::1]:8303"},
        {"[fd00::1]:5", "127.0.0.1:8303", "[fd00::1]:5", "[::ffff:127.0.0.1]:8303"},
    };
    for (const Row& row : rows) {
        for (const std::size_t size : {0U, 1U, 2U, 1399U, 1400U, 65'507U}) {
            CAPTURE(row.from);
            CAPTURE(size);
            const Bytes payload = make_payload(size);
            Bytes frame;
            make_udp_frame(*parse_endpoint(row.from), *parse_endpoint(row.to), payload, frame);
            const bool is_v6 = row.from.front() == '[';
            const std::size_t udp = 14 + (is_v6 ? 40 : 20);
            CHECK((is_v6 || fold_checksum(std::span{frame}.subspan(14, 20)) == 0xffff));
            const std::size_t addresses = is_v6 ? 32 : 8;
            const auto length = static_cast<std::uint32_t>(frame.size() - udp);
            CHECK(fold_checksum(std::span{frame}.subspan(udp - addresses), 17 + length) == 0xffff);

            Bytes file;
            const PcapngEncoder encoder;
            encoder.append_section("test", file);
            encoder.append_interface({.name = "one", .description = "first"}, file);
            encoder.append_interface({.name = "two"}, file);
            const std::vector<std::string> comments{"hello", "", std::string(5000, 'x')};
            encoder.append_packet({.interface = 1,
                                   .time = 1'700'000'000'123'456'789,
                                   .frame = frame,
                                   .direction = capture::PcapngPacket::Direction::outbound,
                                   .comments = comments},
                                  file);
            encoder.append_statistics(0, 1, comments, file);
            CHECK(file.size() % 4 == 0);
            const test::TemporaryFile on_disk{file};
            capture::CaptureFile capture{on_disk.path()};
            capture::CapturedDatagram datagram;
            REQUIRE(capture.read_datagram(datagram));
            CHECK(datagram.time == 1'700'000'000'123'456'789);
            CHECK(to_string(datagram.source) == row.shown_from);
            CHECK(to_string(datagram.destination) == row.shown_to);
            CHECK(Bytes{datagram.payload.begin(), datagram.payload.end()} == payload);
            CHECK_FALSE(capture.read_datagram(datagram));
            CHECK_FALSE(capture.counts().ended_early);
        }
    }
}

namespace {

const Bytes kState(77, std::byte{5});

Bytes session_state_block(std::string_view client, std::string_view server, const Bytes& bytes) {
    Bytes block;
    capture::append_session_state({.client = *capture::parse_endpoint(client),
                                   .server = *capture::parse_endpoint(server),
                                   .bytes = bytes},
                                  block);
    return block;
}

/// Returns the bytes of a block between its two length fields.
Bytes block_body(const Bytes& block) {
    return {block.begin() + 8, block.end() - 4};
}

} // namespace

TEST_CASE("a session state is read as it was written") {
    struct Row {
        std::string_view client;
        std::string_view server;
        std::size_t size;
    };

    for (const Row& row :
         {Row{"127.0.0.1:50000", "127.0.0.1:8303", 0}, Row{"[2001:db8::1]:1", "[::1]:65535", 3},
          Row{"10.0.0.1:9", "[::2]:8", 5000}}) {
        CAPTURE(row.client);
        const Bytes bytes(row.size, std::byte{7});
        const Bytes block = session_state_block(row.client, row.server, bytes);
        const auto head =
            capture::PcapngBlock::read({reinterpret_cast<const char*>(block.data()), block.size()});
        REQUIRE(head);
        CHECK(head->type == capture::kSessionStateBlock);
        CHECK(head->size == block.size());
        const Bytes body = block_body(block);
        const auto read = capture::read_session_state(body);
        REQUIRE(read);
        CHECK(to_string(read->client) == row.client);
        CHECK(to_string(read->server) == row.server);
        CHECK((read->bytes == bytes));
    }
}

TEST_CASE("truncated, unknown or foreign blocks contain no session state") {
    struct Row {
        const char* name;
        std::function<void(Bytes&)> spoil;
        bool good;
    };

    const Row rows[] = {
        {"as it was", [](Bytes&) {}, true},
        {"another program's", [](Bytes& body) { body[0] = std::byte{'T'}; }, false},
        {"another version", [](Bytes& body) { body[7] = std::byte{2}; }, false},
        {"more than there is", [](Bytes& body) { body[8] = std::byte{200}; }, false},
        {"more than any", [](Bytes& body) { body[11] = std::byte{0xff}; }, false},
        {"no family", [](Bytes& body) { body[12] = std::byte{5}; }, false},
        {"no family of the server", [](Bytes& body) { body[31] = std::byte{0}; }, false},
        {"padded more than needed", [](Bytes& body) { body.resize(body.size() + 100); }, true},
    };
    for (const Row& row : rows) {
        CAPTURE(row.name);
        Bytes body = block_body(session_state_block("127.0.0.1:1", "127.0.0.1:2", kState));
        row.spoil(body);
        CHECK(capture::read_session_state(body).has_value() == row.good);
    }
    const Bytes body = block_body(session_state_block("127.0.0.1:1", "127.0.0.1:2", kState));
    for (std::size_t size = 0; size < 50 + kState.size(); ++size) {
        CAPTURE(size);
        CHECK_FALSE(capture::read_session_state(std::span{body}.first(size)));
    }
    CHECK(session_state_block("127.0.0.1:1", "127.0.0.1:2", Bytes(capture::kMaxStateBytes + 1))
              .empty());
}
