// Covers: proxy/sink/pcapng.cpp
#include "proxy/sink/pcapng.h"

#include <functional>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>

using namespace tw;
using sink::FrameEndpoint;
using sink::SessionState;

namespace {

using Bytes = std::vector<std::byte>;

const Bytes kState(77, std::byte{5});

Bytes block_of(std::string_view client, std::string_view server, const Bytes& bytes) {
    Bytes block;
    sink::put_session_state({.client = *sink::parse_endpoint(client),
                             .server = *sink::parse_endpoint(server),
                             .bytes = bytes},
                            block);
    return block;
}

/// Between its lengths.
Bytes body_of(const Bytes& block) {
    return {block.begin() + 8, block.end() - 4};
}

void check_same(const FrameEndpoint& endpoint, std::string_view text) {
    const FrameEndpoint wanted = *sink::parse_endpoint(text);
    CHECK(endpoint.is_v6 == wanted.is_v6);
    CHECK((endpoint.address == wanted.address));
    CHECK(endpoint.port == wanted.port);
}

} // namespace

TEST_CASE("what a capture says of a session is read as it was written") {
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
        const Bytes block = block_of(row.client, row.server, bytes);
        const auto head =
            sink::PcapngBlock::read({reinterpret_cast<const char*>(block.data()), block.size()});
        REQUIRE(head);
        CHECK(head->type == sink::kStateBlock);
        CHECK(head->size == block.size());
        const Bytes body = body_of(block);
        const auto read = sink::read_session_state(body);
        REQUIRE(read);
        check_same(read->client, row.client);
        check_same(read->server, row.server);
        CHECK((Bytes{read->bytes.begin(), read->bytes.end()} == bytes));
    }
}

TEST_CASE("what is cut, of another version or somebody else's says nothing of a session") {
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
        Bytes body = body_of(block_of("127.0.0.1:1", "127.0.0.1:2", kState));
        row.spoil(body);
        CHECK(sink::read_session_state(body).has_value() == row.good);
    }
    const Bytes body = body_of(block_of("127.0.0.1:1", "127.0.0.1:2", kState));
    for (std::size_t size = 0; size < 50 + kState.size(); ++size) {
        CAPTURE(size);
        CHECK_FALSE(sink::read_session_state(std::span{body}.first(size)));
    }
    CHECK(block_of("127.0.0.1:1", "127.0.0.1:2", Bytes(sink::kMaxStateBytes + 1)).empty());
}
