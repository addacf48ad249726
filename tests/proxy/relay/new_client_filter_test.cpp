#include "proxy/relay/new_client_filter.h"
#include "tests/proxy/relay/udp_peers.h"

#include <string_view>
#include <vector>

#include <doctest/doctest.h>

namespace {

using namespace tw::base;
using namespace tw::relay;

/// A fixed key, so that table positions are the same in every run.
const KeyedHash kHash{1};

Endpoint client_endpoint(std::uint32_t address, std::uint16_t port = 1000) {
    return tw::relay::test::ipv4_endpoint(address, port);
}

constexpr std::uint32_t kStartMs = 10'000;

/// A filter with the default limits.
struct FilterFixture {
    /// Asks the filter about a datagram whose bytes all have the value `what`.
    NewClientDecision decide(const Endpoint& who, std::uint8_t what, std::uint32_t now,
                             ClientStanding standing = ClientStanding::unverified,
                             bool is_first = true) {
        const std::vector<std::byte> datagram(12, std::byte{what});
        return filter.decide_new_client(who, standing, is_first, datagram, now);
    }

    bool admits(const Endpoint& who, std::uint8_t what, std::uint32_t now,
                ClientStanding standing = ClientStanding::unverified, bool is_first = true) {
        return decide(who, what, now, standing, is_first).refusal == NewClientRefusal::none;
    }

    /// Admits new clients until there are too many.
    void admit_clients_until_full(std::uint32_t who, std::uint32_t now) {
        for (std::uint32_t i = 0; i < 100'000; ++i) {
            static_cast<void>(admits(client_endpoint(0x0a000000 + who * 4096 + i), 1, now));
        }
    }

    void admit_clients_until_full(std::uint32_t now) { admit_clients_until_full(now, now); }

    const NewClientLimits limits{};
    SessionPoolSizes pools{1024, 1};
    NewClientFilter filter{limits, pools, kHash};
};

bool is_answered(RequestDecision decision) {
    return decision == RequestDecision::forward || decision == RequestDecision::repeat_answer;
}

/// Returns one of 60,000 ports.
std::uint16_t nth_port(std::uint32_t i) {
    return static_cast<std::uint16_t>(2000 + i % 60'000);
}

TEST_CASE_FIXTURE(
    FilterFixture,
    "an address can begin a limited number of sessions a second, and others are not affected") {
    std::uint32_t passed = 0;
    for (std::uint32_t i = 0; i < 100'000; ++i) { // from changing ports, for a second
        passed += admits(client_endpoint(1, nth_port(i)), 1, kStartMs + i / 100) ? 1U : 0U;
    }
    CHECK(passed <= 2 * limits.new_client_rate);
    CHECK(passed > limits.new_client_rate);
    CHECK(admits(client_endpoint(2), 1, kStartMs + 1000));
    CHECK(admits(client_endpoint(1), 1, kStartMs + 3000));
}

TEST_CASE("each IPv6 network has a limit, and so has each network that contains it") {
    const NewClientLimits limits;

    struct Row {
        std::string_view name;
        std::size_t varied; ///< the byte of the address that differs between requests
        std::uint32_t times;
    };

    for (const Row& row : {Row{"hosts of one /64", 15, 1}, Row{"/64s of one /56", 7, 4},
                           Row{"/56s of one /48", 6, 16}}) {
        CAPTURE(row.name);
        NewClientFilter filter{limits, SessionPoolSizes{1 << 16, 1}, kHash};
        Endpoint v6;
        v6.v6 = true;
        v6.address[0] = std::byte{0x20};
        std::uint32_t passed = 0;
        for (std::uint32_t i = 0; i < 10'000; ++i) {
            v6.address[row.varied] = static_cast<std::byte>(i);
            passed +=
                is_answered(filter.decide_request(v6, RequestKind::server_info, true, kStartMs))
                    ? 1U
                    : 0U;
        }
        CHECK(passed <= row.times * limits.request_burst);
        CHECK(passed > row.times * limits.request_burst / 4);
        v6.address[1] = std::byte{1};
        CHECK(is_answered(filter.decide_request(v6, RequestKind::server_info, true, kStartMs)));
    }
}

TEST_CASE("during a flood of requests, clients with few requests are answered") {
    struct Row {
        std::string_view name;
        std::uint32_t sources;
        bool has_answer;
        /// Answers in the last three of five seconds, for 40 clients that ask once a second.
        std::uint32_t min_answers;
    };

    const Row rows[]{{"1,000 a second from one address", 1, false, 120},
                     {"1,000 a second from one address, answers repeated", 1, true, 120},
                     {"3,000 a second from anywhere, answers repeated", 1 << 24, true, 120},
                     {"3,000 a second from 200 addresses", 200, false, 110}};
    for (const Row& row : rows) {
        CAPTURE(row.name);
        FilterFixture bench;
        const std::uint32_t rate = row.sources == 1 ? 1000 : 3000;
        std::uint32_t answered = 0;
        for (std::uint32_t i = 0; i < 5 * rate; ++i) {
            const std::uint32_t now = kStartMs + i * 1000 / rate;
            static_cast<void>(bench.filter.decide_request(
                client_endpoint(0x0a000000 + i * 7919 % row.sources, nth_port(i)),
                RequestKind::server_info, row.has_answer, now));
            if (i % (rate / 40) == 0) {
                const auto decision =
                    bench.filter.decide_request(client_endpoint(0x14000000 + i / (rate / 40) % 40),
                                                RequestKind::server_info, row.has_answer, now);
                answered += i >= 2 * rate && is_answered(decision) ? 1U : 0U;
            }
        }
        CHECK(answered >= row.min_answers);
    }
}

TEST_CASE_FIXTURE(FilterFixture,
                  "a flood of common requests does not use up the rate of reserved requests") {
    std::uint32_t passed = 0;
    for (std::uint32_t i = 0; i < 30'000; ++i) { // for ten seconds
        const std::uint32_t now = kStartMs + i / 3;
        static_cast<void>(filter.decide_request(
            client_endpoint(0x0a000000 + i),
            i % 2 == 0 ? RequestKind::server_info : RequestKind::other, false, now));
        if (i % 3000 == 0) {
            passed += filter.decide_request(client_endpoint(2), RequestKind::rare, false, now) ==
                              RequestDecision::forward
                          ? 1U
                          : 0U;
        }
    }
    CHECK(passed == 10);
}

TEST_CASE_FIXTURE(FilterFixture,
                  "few requests are forwarded while a stored answer can be repeated") {
    std::uint32_t passed_on = 0;
    std::uint32_t repeated = 0;
    for (std::uint32_t i = 0; i < 10'000; ++i) { // for ten seconds
        const auto decision = filter.decide_request(client_endpoint(0x0a000000 + i),
                                                    RequestKind::server_info, true, kStartMs + i);
        passed_on += decision == RequestDecision::forward ? 1U : 0U;
        repeated += decision == RequestDecision::repeat_answer ? 1U : 0U;
        if (i < limits.forwarded_rate) {
            CHECK(decision == RequestDecision::forward);
        }
    }
    CHECK(passed_on <= 11 * limits.forwarded_rate);
    CHECK(passed_on + repeated == 10'000);
}

TEST_CASE_FIXTURE(FilterFixture, "clients with loopback addresses have no network limit") {
    for (std::uint32_t i = 0; i < 30; ++i) {
        CHECK(filter.decide_request(client_endpoint(0x7f000001), RequestKind::server_info, false,
                                    kStartMs) == RequestDecision::forward);
    }
}

TEST_CASE_FIXTURE(FilterFixture, "without too many new clients, each client is admitted at once") {
    for (std::uint32_t i = 0; i < 100; ++i) {
        CHECK(admits(client_endpoint(i), 1, kStartMs));
        CHECK(admits(client_endpoint(i, 2), 2, kStartMs + 1000, ClientStanding::unrecognised));
    }
}

TEST_CASE("with too many new clients, only those that repeat like real clients are admitted") {
    struct Row {
        std::string_view name;
        std::uint32_t after;
        std::uint8_t says;
        ClientStanding standing;
        bool is_admitted;
    };

    const Row rows[] = {
        {"as a client does", 500, 7, ClientStanding::unverified, true},
        {"too early", 300, 7, ClientStanding::unverified, false},
        {"too late", 900, 7, ClientStanding::unverified, false},
        {"with something else", 500, 8, ClientStanding::unverified, false},
        {"with what begins nothing", 500, 7, ClientStanding::unrecognised, false},
    };
    for (const Row& row : rows) {
        CAPTURE(row.name);
        FilterFixture bench;
        bench.admit_clients_until_full(kStartMs);
        CHECK_FALSE(bench.admits(client_endpoint(1), 7, kStartMs));
        bench.admit_clients_until_full(kStartMs + row.after);
        CHECK(bench.admits(client_endpoint(1), row.says, kStartMs + row.after, row.standing) ==
              row.is_admitted);
    }
}

TEST_CASE_FIXTURE(FilterFixture,
                  "if many clients repeat, those with the most repetitions are admitted") {
    std::uint32_t now = kStartMs;
    bool entered = false;
    admit_clients_until_full(now);
    int tries = 0;
    for (; tries < 6 && !entered; ++tries, now += 500) {
        // The same new clients twice, then others: each repeats its datagram once.
        admit_clients_until_full(kStartMs + (now - kStartMs) / 1000 * 1000, now);
        entered = admits(client_endpoint(1), 7, now);
    }
    CHECK(entered);
    CHECK(tries <= 4); // within two seconds
}

TEST_CASE_FIXTURE(FilterFixture, "a lost repetition delays a waiting client by one interval only") {
    admit_clients_until_full(kStartMs);
    CHECK_FALSE(admits(client_endpoint(1), 7, kStartMs));
    const auto second = decide(client_endpoint(1), 7, kStartMs + 500, ClientStanding::unrecognised);
    const auto fourth =
        decide(client_endpoint(1), 7, kStartMs + 1500, ClientStanding::unrecognised);
    const auto fifth = decide(client_endpoint(1), 7, kStartMs + 2000, ClientStanding::unrecognised);
    CHECK(second.num_repeats == 1);
    CHECK(fourth.num_repeats == 1);
    CHECK(fifth.num_repeats == 2);
}

TEST_CASE_FIXTURE(
    FilterFixture,
    "many ports of few addresses keep no other address out, even if they repeat like clients") {
    std::uint32_t now = kStartMs;
    bool entered = false;
    int tries = 0;
    for (; tries < 6 && !entered; ++tries, now += 500) {
        for (std::uint32_t i = 0; i < 17 * 64; ++i) {
            static_cast<void>(
                admits(client_endpoint(2 + i / 64, static_cast<std::uint16_t>(i % 64)), 7, now,
                       ClientStanding::unverified, tries == 0 && i % 64 == 0));
        }
        entered = admits(client_endpoint(1), 7, now);
    }
    CHECK(entered);
    CHECK(tries <= 3); // within one and a half seconds
}

TEST_CASE("with too many new clients, a client that was not verified is not admitted again") {
    for (const bool proves : {false, true}) {
        CAPTURE(proves);
        FilterFixture bench;
        REQUIRE(bench.admits(client_endpoint(1), 7, kStartMs));
        if (proves) {
            bench.filter.lift_readmission_pause(client_endpoint(1));
        }
        bench.admit_clients_until_full(kStartMs + 4000);
        static_cast<void>(bench.admits(client_endpoint(1), 7, kStartMs + 4000));
        bench.admit_clients_until_full(kStartMs + 4500);
        CHECK(bench.admits(client_endpoint(1), 7, kStartMs + 4500) == proves);
    }
}

TEST_CASE_FIXTURE(FilterFixture,
                  "new clients are admitted at a rate that leaves each the time of a round trip") {
    std::size_t entered = 0;
    for (std::uint32_t ms = 0; ms < 10'000; ++ms) {
        for (std::uint32_t i = 0; i < 100; ++i) {
            entered += admits(client_endpoint(ms * 100 + i), 1, kStartMs + ms) ? 1U : 0U;
        }
    }
    const std::size_t rounds =
        10'000 / static_cast<std::size_t>(limits.min_unverified_time.count());
    CHECK(entered <= pools.unverified * (rounds + 1));
    CHECK(entered >= pools.unverified * (rounds - 1));
}

constexpr std::uint8_t kQuestionKind = 1;
constexpr auto kFirstPart = AnswerPartKind::first;
constexpr auto kLaterPart = AnswerPartKind::later;
constexpr std::uint32_t kCompleteAfterMs = AnswerCache::kMaxPartSpanMs;

std::vector<std::byte> make_answer_part(std::uint8_t what, std::size_t size = 10) {
    return std::vector<std::byte>(size, std::byte{what});
}

/// Returns the first byte of each part of the answer that would be repeated.
std::vector<int> first_bytes_of_answer(AnswerCache& answers, std::uint32_t now,
                                       std::uint8_t kind = kQuestionKind) {
    std::vector<int> parts;
    if (const AnswerCache::Answer* const answer = answers.find_answer(kind, now)) {
        for (std::size_t i = 0; i < answer->num_parts; ++i) {
            parts.push_back(std::to_integer<int>(answer->part(i)[0]));
        }
    }
    return parts;
}

TEST_CASE("an answer is repeated for a second after all of its parts must have arrived") {
    AnswerCache answers;
    CHECK(first_bytes_of_answer(answers, 0).empty());
    answers.add_part(kQuestionKind, 7, kFirstPart, make_answer_part(1), 100);
    answers.add_part(kQuestionKind, 7, kLaterPart, make_answer_part(2), 110);
    CHECK(first_bytes_of_answer(answers, 100 + kCompleteAfterMs - 1).empty());
    CHECK(first_bytes_of_answer(answers, 100 + kCompleteAfterMs) == std::vector{1, 2});
    CHECK(first_bytes_of_answer(answers, 100 + AnswerCache::kMaxAgeMs - 1) == std::vector{1, 2});
    CHECK(first_bytes_of_answer(answers, 100 + AnswerCache::kMaxAgeMs).empty());
    CHECK(first_bytes_of_answer(answers, 200, 2).empty());
}

TEST_CASE("a newer answer replaces the older one, and their parts are not mixed") {
    AnswerCache answers;
    answers.add_part(kQuestionKind, 7, kFirstPart, make_answer_part(1), 100);
    // Another session gets an answer at the same time.
    answers.add_part(kQuestionKind, 8, kFirstPart, make_answer_part(2), 101);
    answers.add_part(kQuestionKind, 8, kLaterPart, make_answer_part(3), 102);
    answers.add_part(kQuestionKind, 7, kLaterPart, make_answer_part(4), 103);
    CHECK(first_bytes_of_answer(answers, 140) == std::vector{1, 4});
    // The first part of this answer was lost.
    answers.add_part(kQuestionKind, 9, kLaterPart, make_answer_part(5), 150);
    answers.add_part(kQuestionKind, 9, kFirstPart, make_answer_part(6), 151);
    CHECK(first_bytes_of_answer(answers, 160) == std::vector{1, 4});
    CHECK(first_bytes_of_answer(answers, 190) == std::vector{6});
}

TEST_CASE("an answer that is too long is not repeated") {
    SUBCASE("in one part") {
        AnswerCache answers;
        answers.add_part(kQuestionKind, 7, kFirstPart,
                         make_answer_part(1, AnswerCache::kMaxPartBytes + 1), 100);
        CHECK(first_bytes_of_answer(answers, 200).empty());
    }
    SUBCASE("in all") {
        AnswerCache answers;
        answers.add_part(kQuestionKind, 7, kFirstPart, make_answer_part(1), 100);
        for (std::size_t i = 0; i < AnswerCache::kMaxParts; ++i) {
            answers.add_part(kQuestionKind, 7, kLaterPart, make_answer_part(2), 100);
        }
        CHECK(first_bytes_of_answer(answers, 200).empty());
        answers.add_part(kQuestionKind, 8, kFirstPart, make_answer_part(3), 300);
        CHECK(first_bytes_of_answer(answers, 400) == std::vector{3});
    }
}

} // namespace
