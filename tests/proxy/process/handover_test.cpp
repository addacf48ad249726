#include "proxy/channel/shared_block.h"
#include "proxy/process/handover.h"
#include "proxy/relay/upstream.h"

#include <cstddef>
#include <tuple>
#include <vector>

#include <doctest/doctest.h>
#include <fcntl.h>
#include <unistd.h>

namespace {

using namespace tw::channel;
using namespace tw::process;
using tw::base::UniqueFd;
using tw::relay::HandoverError;
using Bytes = std::vector<std::byte>;

TakeoverOffer sample_offer() {
    return {.network = own_network(), .servers = 2, .observer = 3};
}

TakeoverServer sample_server() {
    TakeoverServer server;
    server.number = 7;
    server.name = "ctf";
    server.listen.resize(2);
    server.listen[1].port = 8303;
    server.listening_sockets = 4;
    server.server.port = 8304;
    server.host_name = "game.test:8304";
    server.former.resize(1);
    server.mode = tw::relay::ClientAddress::loopback;
    return server;
}

tw::relay::SessionState sample_session(std::uint32_t number) {
    tw::relay::SessionState state;
    state.client.port = 1000;
    state.id = number;
    state.number = number;
    state.has_place = true;
    return state;
}

/// As many descriptors as asked for, of nothing in particular.
std::vector<UniqueFd> some_descriptors(std::size_t count) {
    std::vector<UniqueFd> descriptors;
    for (std::size_t i = 0; i < count; ++i) {
        descriptors.emplace_back(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    }
    return descriptors;
}

/// What a reader makes of it: whether it takes it.
template <typename Read>
bool takes(Read&& read, const Bytes& bytes) {
    try {
        std::ignore = read(bytes);
        return true;
    } catch (const HandoverError&) {
        return false;
    }
}

template <typename Read>
void check_cuts(Read&& read, Bytes bytes) {
    CHECK(takes(read, bytes));
    for (std::size_t size = 0; size < bytes.size(); ++size) {
        CAPTURE(size);
        CHECK_FALSE(takes(read, Bytes(bytes.begin(), bytes.begin() + static_cast<int>(size))));
    }
    bytes.push_back({});
    CHECK_FALSE(takes(read, bytes));
}

TEST_CASE("what the two say is read whole, or not at all") {
    check_cuts(read_offer, written(sample_offer()));
    check_cuts(read_server, written(sample_server()));
    check_cuts(read_selection, written(TakeoverSelection{.servers = {3, 500}}));
    check_cuts(
        read_rest,
        written(TakeoverRest{
            .held_at = 5, .sessions = 2, .numbered_sessions = 7, .relay = Bytes(9, std::byte{1})}));
    check_cuts(read_left, written(TakeoverLeft{.numbered_sessions = 4}));
    CHECK(read_left(written(TakeoverLeft{.numbered_sessions = 4})).numbered_sessions == 4);
    CHECK(read_offer(written(sample_offer())).servers == 2);
    const TakeoverServer server = read_server(written(sample_server()));
    CHECK(server.number == 7);
    CHECK(server.name == "ctf");
    CHECK(server.listen == sample_server().listen);
    const std::vector<tw::relay::ServerIndex> wished{3, 500};
    CHECK(read_selection(written(TakeoverSelection{.servers = wished})).servers == wished);
}

TEST_CASE("a greeting is read in every version, and nothing else is one") {
    Bytes greeting = written(TakeoverHello{.version = 99});
    CHECK(read_hello(greeting).version == 99);
    greeting.resize(greeting.size() + 20); // what a later version may add
    CHECK(read_hello(greeting).version == 99);
    for (std::size_t size = 0; size < greeting.size() - 20; ++size) {
        CHECK_FALSE(
            takes(read_hello, Bytes(greeting.begin(), greeting.begin() + static_cast<int>(size))));
    }
    greeting[6] = std::byte{'X'};
    CHECK_FALSE(takes(read_hello, greeting));
}

TEST_CASE(
    "an offer of no servers, or of more than there can be, is refused, and so is such a wish") {
    TakeoverOffer offer = sample_offer();
    for (const std::uint32_t servers : {0U, unsigned{tw::relay::kMaxServers} + 1, 0xffffffffU}) {
        CAPTURE(servers);
        offer.servers = servers;
        CHECK_FALSE(takes(read_offer, written(offer)));
    }
    CHECK_FALSE(takes(read_selection, written(TakeoverSelection{})));
    CHECK_FALSE(takes(read_selection,
                      written(TakeoverSelection{.servers = std::vector<tw::relay::ServerIndex>(
                                                    tw::relay::kMaxServers + 1)})));
}

TEST_CASE("a server that cannot be is refused") {
    struct Row {
        const char* name;
        void (*change)(TakeoverServer&);
    };

    const Row rows[]{
        {"no address", [](TakeoverServer& server) { server.listen.clear(); }},
        {"more addresses than anyone listens on",
         [](TakeoverServer& server) { server.listen.resize(tw::relay::kMaxListeners + 1); }},
        {"a name too long",
         [](TakeoverServer& server) { server.name = std::string(ServerFacts::kMaxName + 1, 'a'); }},
        {"a name that a terminal obeys",
         [](TakeoverServer& server) { server.name = "ctf\x1b[2J"; }},
        {"a host's name too long",
         [](TakeoverServer& server) {
             server.host_name = std::string(TakeoverServer::kMaxHostName + 1, 'a');
         }},
        {"too many former servers",
         [](TakeoverServer& server) {
             server.former.resize(tw::relay::UpstreamFactory::kMaxFormer + 1);
         }},
        {"no socket", [](TakeoverServer& server) { server.listening_sockets = 0; }},
        {"too many sockets",
         [](TakeoverServer& server) {
             server.listening_sockets = tw::relay::kMaxListeningSockets + 1;
         }},
        {"a mode that there is not",
         [](TakeoverServer& server) { server.mode = static_cast<tw::relay::ClientAddress>(200); }},
        {"one that nobody is in",
         [](TakeoverServer& server) { server.mode = tw::relay::ClientAddress::automatic; }},
    };
    for (const Row& row : rows) {
        CAPTURE(row.name);
        TakeoverServer server = sample_server();
        row.change(server);
        CHECK_FALSE(takes(read_server, written(server)));
    }
}

TEST_CASE("sessions and sockets that do not match in number are refused") {
    SessionBatch batch;
    Bytes session;
    tw::relay::write(session, sample_session(1));
    REQUIRE(batch.add(session, 0));
    session.clear();
    tw::relay::write(session, sample_session(2));
    REQUIRE(batch.add(session, 0));
    for (const std::size_t sockets : {0U, 1U, 2U, 3U, 100U}) {
        CAPTURE(sockets);
        TakeoverLink::Message message{.word = TakeoverMessage::sessions,
                                      .body = {batch.body().begin(), batch.body().end()},
                                      .descriptors = some_descriptors(sockets)};
        if (sockets == 2) {
            CHECK(read_sessions(message).size() == 2);
            message.body.pop_back();
        }
        CHECK_THROWS_AS(std::ignore = read_sessions(message), HandoverError);
    }
}

TEST_CASE("a batch takes what a message can hold, and no more") {
    SessionBatch batch;
    const Bytes small(10);
    for (std::size_t i = 0; i < TakeoverLink::kMaxDescriptors; ++i) {
        REQUIRE(batch.add(small, 0));
    }
    CHECK_FALSE(batch.add(small, 0));
    batch.clear();
    CHECK_FALSE(batch.add(Bytes(TakeoverLink::kMaxBytes), 0));
    CHECK(batch.add(Bytes(TakeoverLink::kMaxBytes / 2), 0));
    CHECK_FALSE(batch.add(Bytes(TakeoverLink::kMaxBytes / 2), 0));
}

} // namespace
