// Covers: proxy/relay/counters.cpp, proxy/channel/shared_run_memory.cpp
#include "proxy/channel/shared_run_memory.h"
#include "tests/proxy/relay/udp_peers.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

using namespace tw;
using base::UniqueFd;
using channel::SharedRunMemory;
using relay::test::duplicate_descriptor;

TEST_CASE("the observer reads the data that the relay writes into the shared memory") {
    const SharedRunMemory relay_side{2, relay::Ring::kMinBytes};
    relay_side.data().facts.servers[0].addresses[0].port = 8304;
    relay_side.data().observer_memory.counters[1].sessions_opened.add(3);
    const SharedRunMemory observer_side{duplicate_descriptor(relay_side.descriptor())};
    CHECK(observer_side.num_threads() == 2);
    CHECK(observer_side.data().facts.servers[0].address().port == 8304);
    CHECK(relay::totals(observer_side.data().observer_memory).sessions_opened == 3);
    for (unsigned thread = 0; thread < 2; ++thread) {
        CAPTURE(thread);
        relay::Ring in{relay_side.ring_memory(thread)};
        relay::Ring out{observer_side.ring_memory(thread)};
        CHECK(in.capacity() == relay::Ring::kMinBytes);
        relay::RelayEvent event;
        event.session = 10 + thread;
        REQUIRE(in.try_push(event));
        in.commit_events();
        std::vector<std::uint32_t> sessions;
        CHECK(out.consume_events(
                  [&](const relay::RelayEvent& seen) { sessions.push_back(seen.session); }) == 1);
        CHECK(sessions == std::vector<std::uint32_t>{10 + thread});
        CHECK(in.bytes_consumed() == out.bytes_consumed());
        CHECK(in.num_unconsumed_bytes() == 0);
    }
}

TEST_CASE("the shared memory cannot be truncated, and other memory is rejected") {
    const SharedRunMemory shared{1, relay::Ring::kMinBytes};
    CHECK(::ftruncate(shared.descriptor(), 0) != 0);
    CHECK_THROWS_AS(SharedRunMemory{UniqueFd{::open("/dev/null", O_RDWR | O_CLOEXEC)}},
                    std::system_error);
    CHECK_THROWS_AS(SharedRunMemory{UniqueFd{}}, std::system_error);
    CHECK_THROWS_AS(SharedRunMemory{UniqueFd{::memfd_create("unsealed", MFD_CLOEXEC)}},
                    std::system_error);
    const auto small = base::SharedMemory::create(4096);
    CHECK_THROWS_AS(SharedRunMemory{duplicate_descriptor(small.descriptor())}, std::runtime_error);
    const auto zeroed = base::SharedMemory::create(std::size_t{1} << 20U);
    CHECK_THROWS_AS(SharedRunMemory{duplicate_descriptor(zeroed.descriptor())}, std::runtime_error);
}

TEST_CASE("a misbehaving consumer cannot make the producer write outside the ring") {
    const SharedRunMemory shared{1, relay::Ring::kMinBytes};
    const auto memory = shared.ring_memory(0);
    relay::Ring ring{memory};
    // The consumer's position, set to several extreme values.
    for (const int mad : {0xff, 0x7f, 0x01, 0x00}) {
        CAPTURE(mad);
        std::memset(memory.data(), mad, 4096);
        const std::vector<std::byte> bytes(1000);
        for (int i = 0; i < 2000; ++i) {
            relay::RelayEvent event;
            event.bytes = bytes;
            static_cast<void>(ring.try_push(event)); // sanitizers detect writes outside the ring
            ring.commit_events();
        }
        CHECK(ring.capacity() == relay::Ring::kMinBytes);
    }
}

TEST_CASE("the facts show each server and its current address") {
    auto block = std::make_unique<channel::SharedProcessData>();
    channel::RelayFacts& facts = block->facts;
    CHECK(facts.added_servers().empty());
    for (const std::size_t i : {0U, 1U}) {
        channel::ServerFacts& server = facts.servers[i];
        std::ranges::copy(std::string_view{i == 0 ? "ctf" : "race"}, server.name.begin());
        server.addresses[0].port = static_cast<std::uint16_t>(8304 + i);
    }
    facts.num_servers = 2;
    CHECK(facts.added_servers().size() == 2);
    CHECK(facts.servers[1].name_view() == "race");
    CHECK(facts.server_address(1) == "0.0.0.0:8305");
    CHECK(facts.server_name_and_address(0) == "ctf (0.0.0.0:8304)");
    for (const std::uint16_t port : std::initializer_list<std::uint16_t>{1, 2, 3}) {
        facts.servers[1].set_address({.port = port});
        CHECK(facts.server_address(1) == "0.0.0.0:" + std::to_string(port));
    }
    CHECK(facts.server_address(0) == "0.0.0.0:8304");
    CHECK(facts.servers[0].listen_endpoints().empty());
    facts.servers[0].listen[0].port = 8303;
    facts.servers[0].num_listen_endpoints = 1;
    REQUIRE(facts.servers[0].listen_endpoints().size() == 1);
    CHECK(facts.servers[0].listen_endpoints()[0].port == 8303);
    facts.num_servers = 1'000'000; // a misbehaving relay
    CHECK(facts.added_servers().size() == relay::kMaxServers);
    facts.servers[0].name.fill('x');
    CHECK(facts.servers[0].name_view().size() == channel::ServerFacts::kMaxNameBytes);
}

TEST_CASE("counters add up over threads and servers") {
    const auto observation = std::make_unique<relay::ObserverSharedMemory>();
    observation->num_added_servers = 1;
    observation->counters_of(1, 3).sessions_opened.add(2);
    CHECK(relay::totals_of(*observation, 0).sessions_opened == 0);
    CHECK(relay::totals_of(*observation, 1).sessions_opened == 2);
    observation->counters[0].sessions_opened.add(3);
    observation->counters[63].sessions_closed.add(2);
    CHECK(relay::totals(*observation).sessions_opened == 5);
    CHECK(channel::num_open_sessions(relay::totals(*observation)) == 3);
    observation->counters[63].sessions_closed.add(9); // counted between two readings
    CHECK(channel::num_open_sessions(relay::totals(*observation)) == 0);
}
