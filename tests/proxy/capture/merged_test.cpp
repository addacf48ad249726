// Covers: proxy/capture/frame_reader.cpp
#include "proxy/capture/frame_reader.h"
#include "proxy/wire/packet.h"
#include "tests/support/captured_traffic.h"

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

using namespace tw;
using Bytes = std::vector<std::byte>;

namespace {

constexpr wire::Token kToken{0xad, 0x70, 0x60, 0x4e};
constexpr wire::Token kOther{9, 9, 9, 9};

enum class Form : std::uint8_t { plain, token, seven };

/// Returns a packet with one chunk of this size.
Bytes packet(std::size_t size, Form form = Form::token, bool compressed = false,
             wire::Token token = kToken, std::uint16_t ack = 5) {
    const auto dialect = form == Form::seven ? wire::Dialect::seven : wire::Dialect::six;
    Bytes message(size);
    for (std::size_t i = 0; i < size; ++i) {
        message[i] = static_cast<std::byte>(i % 3);
    }
    Bytes chunks;
    wire::append_chunk(chunks, true, 7, false, message, dialect);
    return wire::encode_packet(
        {.ack = ack,
         .num_chunks = 1,
         .chunks = chunks,
         .token = form == Form::token ? std::optional{token} : std::nullopt,
         .header_token = form == Form::seven ? std::optional{token} : std::nullopt,
         .compression = compressed ? wire::Compression::always : wire::Compression::never,
         .dialect = dialect});
}

Bytes joined(const std::vector<Bytes>& parts) {
    Bytes all;
    for (const Bytes& part : parts) {
        all.insert(all.end(), part.begin(), part.end());
    }
    return all;
}

std::size_t merged_size(const Bytes& payload) {
    wire::PacketScratch scratch;
    return capture::find_merged_size(payload, scratch).value_or(0);
}

} // namespace

TEST_CASE("merged datagrams are recognised by their content, and nothing else is taken for them") {
    struct Row {
        std::string_view name;
        std::vector<Bytes> parts;
        bool merged;
    };

    const Bytes one = packet(30);
    Bytes odd = one;
    odd.insert(odd.end(), {std::byte{1}, std::byte{2}, std::byte{3}, std::byte{4}, std::byte{5}});
    const Row rows[] = {
        {"two of one size", {one, one}, true},
        {"the last one is shorter", {one, one, packet(20)}, true},
        {"too many bytes for one datagram", {packet(900), packet(700)}, true},
        {"without tokens", {packet(30, Form::plain), packet(30, Form::plain)}, true},
        {"compressed", {packet(60, Form::token, true), packet(60, Form::token, true)}, true},
        {"compressed, then not", {packet(99, Form::token, true), packet(9)}, true},
        {"of 0.7",
         {packet(30, Form::seven), packet(30, Form::seven), packet(9, Form::seven)},
         true},
        {"of 0.7, compressed",
         {packet(60, Form::seven, true), packet(60, Form::seven, true)},
         true},
        {"the acknowledgement goes on", {one, packet(30, Form::token, false, kToken, 8)}, true},
        {"one alone", {one}, false},
        {"one alone, compressed", {packet(60, Form::token, true)}, false},
        {"the last one is longer", {one, packet(31)}, false},
        {"one in the middle is shorter", {one, packet(20), one}, false},
        {"another token", {one, packet(30, Form::token, false, kOther)}, false},
        {"an acknowledgement far off", {one, packet(30, Form::token, false, kToken, 500)}, false},
        {"the second is cut", {one, Bytes{one.begin(), one.end() - 1}}, false},
        {"bytes behind the second", {one, odd}, false},
        {"a token more", {one, Bytes{one.end() - 4, one.end()}}, false},
        {"more than a frame holds", std::vector<Bytes>(capture::kMaxMerged + 1, packet(1)), false},
    };
    for (const Row& row : rows) {
        CAPTURE(row.name);
        CHECK(merged_size(joined(row.parts)) == (row.merged ? row.parts.front().size() : 0));
    }
}

TEST_CASE("no single datagram of a capture is split, and two merged ones are split correctly") {
    for (const std::string_view name :
         {"seven-map-change", "token-map-change", "token-high-bandwidth", "tokenless-map-change"}) {
        CAPTURE(name);
        std::map<std::pair<std::uint64_t, wire::Direction>, Bytes> before;
        std::size_t pairs = 0;
        std::size_t found = 0;
        for (const test::TrafficDatagram& datagram :
             test::read_traffic("../golden/" + std::string{name} + ".pcap")) {
            CHECK(merged_size(datagram.bytes) == 0);
            Bytes& last = before[{datagram.session, datagram.direction}];
            if (!last.empty() && last.size() >= datagram.bytes.size()) {
                const std::size_t size = merged_size(joined({last, datagram.bytes}));
                CHECK((size == 0 || size == last.size()));
                ++pairs;
                found += size != 0 ? 1 : 0;
            }
            last = datagram.bytes;
        }
        CHECK(found * 100 >= pairs * 90); // control packets show no boundary
    }
}
