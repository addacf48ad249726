#include "proxy/relay/upstream.h"
#include "proxy/run/handover.h"

#include <cstddef>
#include <tuple>
#include <vector>

#include <doctest/doctest.h>
#include <fcntl.h>
#include <unistd.h>

namespace {

using namespace tw::run;
using tw::relay::HandoverError;
using tw::relay::UniqueFd;
using Bytes = std::vector<std::byte>;

TakeoverOffer sample_offer() {
    TakeoverOffer offer;
    offer.network = own_network();
    offer.listen.resize(2);
    offer.listen[1].port = 8303;
    offer.listening_sockets = 4;
    offer.server.port = 8304;
    offer.server_name = "game.test:8304";
    offer.former.resize(1);
    offer.mode = tw::relay::ClientAddress::loopback;
    offer.observer = 3;
    return offer;
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
    check_cuts(
        read_rest,
        written(TakeoverRest{
            .held_at = 5, .sessions = 2, .numbered_sessions = 7, .relay = Bytes(9, std::byte{1})}));
    check_cuts(read_left, written(TakeoverLeft{.numbered_sessions = 4}));
    CHECK(read_left(written(TakeoverLeft{.numbered_sessions = 4})).numbered_sessions == 4);
    CHECK(read_offer(written(sample_offer())).listen == sample_offer().listen);
}

TEST_CASE("a greeting is read in every version, and nothing else is one") {
    Bytes greeting = written(TakeoverGreeting{.version = 99});
    CHECK(read_greeting(greeting).version == 99);
    greeting.resize(greeting.size() + 20); // what a later version may add
    CHECK(read_greeting(greeting).version == 99);
    for (std::size_t size = 0; size < greeting.size() - 20; ++size) {
        CHECK_FALSE(takes(read_greeting,
                          Bytes(greeting.begin(), greeting.begin() + static_cast<int>(size))));
    }
    greeting[6] = std::byte{'X'};
    CHECK_FALSE(takes(read_greeting, greeting));
}

TEST_CASE("an offer that cannot be is refused") {
    struct Row {
        const char* name;
        void (*change)(TakeoverOffer&);
    };

    const Row rows[]{
        {"no address", [](TakeoverOffer& offer) { offer.listen.clear(); }},
        {"more addresses than anyone listens on",
         [](TakeoverOffer& offer) { offer.listen.resize(tw::relay::kMaxListeners + 1); }},
        {"a name too long",
         [](TakeoverOffer& offer) {
             offer.server_name = std::string(TakeoverOffer::kMaxName + 1, 'a');
         }},
        {"too many former servers",
         [](TakeoverOffer& offer) {
             offer.former.resize(tw::relay::UpstreamFactory::kMaxFormer + 1);
         }},
        {"no socket", [](TakeoverOffer& offer) { offer.listening_sockets = 0; }},
        {"too many sockets",
         [](TakeoverOffer& offer) {
             offer.listening_sockets = tw::relay::kMaxListeningSockets + 1;
         }},
        {"a mode that there is not",
         [](TakeoverOffer& offer) { offer.mode = static_cast<tw::relay::ClientAddress>(200); }},
        {"one that nobody is in",
         [](TakeoverOffer& offer) { offer.mode = tw::relay::ClientAddress::automatic; }},
    };
    for (const Row& row : rows) {
        CAPTURE(row.name);
        TakeoverOffer offer = sample_offer();
        row.change(offer);
        CHECK_FALSE(takes(read_offer, written(offer)));
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
        TakeoverLink::Message message{.word = TakeoverWord::sessions,
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
