#include "proxy/relay/gate.h"

#include <doctest/doctest.h>

namespace {

using namespace tw::relay;

/// Places in the tables are chance; here they are the same in every run.
const KeyedHash kHash{1};

Endpoint client(std::uint32_t address, std::uint16_t port = 1000) {
    Endpoint endpoint;
    for (std::size_t i = 0; i < 4; ++i) {
        endpoint.address[i] = static_cast<std::byte>(address >> (24U - 8U * i));
    }
    endpoint.port = port;
    return endpoint;
}

std::vector<std::byte> saying(std::uint8_t what) {
    return std::vector<std::byte>(12, std::byte{what});
}

/// Lets strangers in until there is a crowd.
void fill(Gate& gate, std::uint32_t who, std::uint32_t now) {
    for (std::uint32_t i = 0; i < 100'000; ++i) {
        static_cast<void>(gate.may_enter(client(0x0a000000 + who * 4096 + i), Standing::unproven,
                                         saying(1), now));
    }
}

void fill(Gate& gate, std::uint32_t now) {
    fill(gate, now, now);
}

constexpr std::uint32_t kStart = 10'000; ///< in ms

TEST_CASE("one address has so many datagrams a second, and takes nothing from others") {
    const AdmissionLimits limits;
    Gate gate{limits, AdmissionPools{1024, 1}, kHash};
    std::uint32_t passed = 0;
    for (std::uint32_t i = 0; i < 100'000; ++i) { // from any port, for a second
        passed +=
            gate.may_knock(client(1, static_cast<std::uint16_t>(i)), kStart + i / 100) ? 1U : 0U;
    }
    CHECK(passed <= 2 * limits.strangers_rate);
    CHECK(passed > limits.strangers_rate);
    CHECK(gate.may_knock(client(2), kStart + 1000));
    CHECK(gate.may_knock(client(1), kStart + 3000));
}

TEST_CASE("an IPv6 /64 is one address") {
    Gate gate{AdmissionLimits{}, AdmissionPools{1024, 1}, kHash};
    Endpoint v6;
    v6.v6 = true;
    std::uint32_t passed = 0;
    for (std::uint32_t i = 0; i < 10'000; ++i) {
        v6.address[8 + i % 8] = static_cast<std::byte>(i);
        passed += gate.may_knock(v6, kStart) ? 1U : 0U;
    }
    CHECK(passed == AdmissionLimits{}.strangers_rate);
    v6.address[7] = std::byte{1};
    CHECK(gate.may_knock(v6, kStart));
}

TEST_CASE("without a crowd everyone gets in at once") {
    Gate gate{AdmissionLimits{}, AdmissionPools{1024, 1}, kHash};
    for (std::uint32_t i = 0; i < 100; ++i) {
        CHECK(gate.may_enter(client(i), Standing::unproven, saying(1), kStart));
        CHECK(gate.may_enter(client(i, 2), Standing::stray, saying(2), kStart + 1000));
    }
}

TEST_CASE("in a crowd only who repeats itself as a waiting client does gets in") {
    struct Row {
        std::string_view name;
        std::uint32_t after;
        std::uint8_t says;
        Standing standing;
        bool enters;
    };

    const Row rows[] = {
        {"as a client does", 500, 7, Standing::unproven, true},
        {"too early", 300, 7, Standing::unproven, false},
        {"too late", 900, 7, Standing::unproven, false},
        {"with something else", 500, 8, Standing::unproven, false},
        {"with what begins nothing", 500, 7, Standing::stray, false},
    };
    for (const Row& row : rows) {
        CAPTURE(row.name);
        Gate gate{AdmissionLimits{}, AdmissionPools{1024, 1}, kHash};
        fill(gate, kStart);
        CHECK_FALSE(gate.may_enter(client(1), Standing::unproven, saying(7), kStart));
        fill(gate, kStart + row.after);
        CHECK(gate.may_enter(client(1), row.standing, saying(row.says), kStart + row.after) ==
              row.enters);
    }
}

TEST_CASE("where many repeat themselves, who has done so longest stands out") {
    Gate gate{AdmissionLimits{}, AdmissionPools{1024, 1}, kHash};
    std::uint32_t now = kStart;
    bool entered = false;
    fill(gate, now);
    int tries = 0;
    for (; tries < 6 && !entered; ++tries, now += 500) {
        // Twice the same strangers, then others: they repeat themselves once.
        fill(gate, kStart + (now - kStart) / 1000 * 1000, now);
        entered = gate.may_enter(client(1), Standing::unproven, saying(7), now);
    }
    CHECK(entered);
    CHECK(tries <= 4); // within two seconds
}

TEST_CASE("who was let in and proved nothing is not let into a crowd again, who did is") {
    for (const bool proves : {false, true}) {
        CAPTURE(proves);
        Gate gate{AdmissionLimits{}, AdmissionPools{1024, 1}, kHash};
        REQUIRE(gate.may_enter(client(1), Standing::unproven, saying(7), kStart));
        if (proves) {
            gate.forgive(client(1));
        }
        fill(gate, kStart + 4000);
        static_cast<void>(gate.may_enter(client(1), Standing::unproven, saying(7), kStart + 4000));
        fill(gate, kStart + 4500);
        CHECK(gate.may_enter(client(1), Standing::unproven, saying(7), kStart + 4500) == proves);
    }
}

TEST_CASE("strangers get in at a rate that leaves each the time of a round trip") {
    const AdmissionLimits limits;
    const AdmissionPools pools{1024, 1};
    Gate gate{limits, pools, kHash};
    std::size_t entered = 0;
    for (std::uint32_t ms = 0; ms < 10'000; ++ms) {
        for (std::uint32_t i = 0; i < 100; ++i) {
            entered +=
                gate.may_enter(client(ms * 100 + i), Standing::unproven, saying(1), kStart + ms)
                    ? 1U
                    : 0U;
        }
    }
    const std::size_t rounds = 10'000 / static_cast<std::size_t>(limits.least_time.count());
    CHECK(entered <= pools.unproven * (rounds + 1));
    CHECK(entered >= pools.unproven * (rounds - 1));
}

} // namespace
