#include "proxy/relay/impairment.h"
#include "tests/proxy/relay/udp_peers.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>
#include <set>
#include <string>
#include <vector>

#include <doctest/doctest.h>

namespace {

using namespace tw::relay;
using namespace tw::relay::test;
using namespace std::chrono_literals;

constexpr std::uint32_t kPercent = DirectionImpairment::kCertainPpm / 100;

DirectionImpairment make_direction_impairment(std::chrono::microseconds delay,
                                              std::chrono::microseconds jitter = {},
                                              std::uint64_t loss = 0, std::uint64_t duplicate = 0,
                                              std::uint64_t reorder = 0) {
    return {.delay_us = static_cast<std::uint64_t>(delay.count()),
            .jitter_us = static_cast<std::uint64_t>(jitter.count()),
            .loss_ppm = loss,
            .duplicate_ppm = duplicate,
            .reorder_ppm = reorder};
}

TEST_CASE("an impairment is parsed from text, and written as text that gives the same impairment") {
    struct Row {
        std::string_view text;
        DirectionImpairment c2s;
        DirectionImpairment s2c;
        std::string_view written;
    };

    DirectionImpairment bursts = make_direction_impairment({}, {}, 5 * kPercent);
    bursts.burst_thousandths = 2500;
    DirectionImpairment slow;
    slow.bits_per_second = 1'500'000;
    DirectionImpairment slower;
    slower.bits_per_second = 64'500;
    const std::vector<Row> rows{
        {"none", {}, {}, "none"},
        {" none ", {}, {}, "none"},
        {"s2c:delay=0ms", {}, {}, "none"},
        {"delay=40ms", make_direction_impairment(40ms), make_direction_impairment(40ms),
         "delay=40ms"},
        {"delay=10s", make_direction_impairment(10s), make_direction_impairment(10s), "delay=10s"},
        {"delay=0.25s", make_direction_impairment(250ms), make_direction_impairment(250ms),
         "delay=250ms"},
        {"delay=1.5ms", make_direction_impairment(1500us), make_direction_impairment(1500us),
         "delay=1500us"},
        {"s2c:delay=40ms,jitter=10ms,loss=2%,dup=1%,reorder=0.5%",
         {},
         make_direction_impairment(40ms, 10ms, 2 * kPercent, kPercent, kPercent / 2),
         "s2c:delay=40ms,jitter=10ms,loss=2%,dup=1%,reorder=0.5%"},
        {"c2s:loss=100%",
         make_direction_impairment({}, {}, DirectionImpairment::kCertainPpm),
         {},
         "c2s:loss=100%"},
        {"loss=0.0001%", make_direction_impairment({}, {}, 1), make_direction_impairment({}, {}, 1),
         "loss=0.0001%"},
        {"c2s:delay=1ms;s2c:delay=2ms", make_direction_impairment(1ms),
         make_direction_impairment(2ms), "c2s:delay=1ms;s2c:delay=2ms"},
        {" c2s : delay = 1 ms , loss = 1 % ; ",
         make_direction_impairment(1ms, {}, kPercent),
         {},
         "c2s:delay=1ms,loss=1%"},
        {"delay=5ms;s2c:loss=1%", make_direction_impairment(5ms),
         make_direction_impairment(5ms, {}, kPercent), "c2s:delay=5ms;s2c:delay=5ms,loss=1%"},
        {"s2c:loss=5%,burst=2.5", {}, bursts, "s2c:loss=5%,burst=2.5"},
        {"c2s:rate=1.5mbit", slow, {}, "c2s:rate=1500kbit"},
        {"c2s:rate=64.5kbit", slower, {}, "c2s:rate=64.5kbit"},
    };
    for (const auto& row : rows) {
        CAPTURE(row.text);
        const auto parsed = parse_impairment(row.text, 7);
        REQUIRE(parsed);
        CHECK(parsed->seed == 7);
        CHECK((parsed->directions[0] == row.c2s));
        CHECK((parsed->directions[1] == row.s2c));
        CHECK(to_string(*parsed) == row.written);
        CHECK((parse_impairment(to_string(*parsed), 7) == *parsed));
        CHECK(parsed->is_active() == (row.written != "none"));
    }
}

TEST_CASE("an invalid impairment is rejected with one helpful line") {
    struct Row {
        std::string text;
        std::string_view says;
    };

    const Row rows[]{
        {"", "expected name=value"},
        {";", "expected name=value"},
        {"delay", "expected name=value"},
        {"none;none", "expected name=value"},
        {"c2s:", "expected name=value"},
        {"delay=", "delay is a time up to 10s"},
        {"delay=40", "delay is a time up to 10s, for example 40ms, not '40'"},
        {"delay=ms", "delay is a time"},
        {"delay=-1ms", "delay is a time"},
        {"delay=+1ms", "delay is a time"},
        {"delay=10001ms", "delay is a time"},
        {"delay=1.ms", "delay is a time"},
        {"delay=.5ms", "delay is a time"},
        {"delay=1.2.3ms", "delay is a time"},
        {"delay=0.5us", "delay is a time"},
        {"delay=1.0000001s", "delay is a time"},
        {"delay=1e3ms", "delay is a time"},
        {"delay=99999999999999999999ms", "delay is a time"},
        {"delay=999999999s", "delay is a time"},
        {"delay=40msx", "delay is a time"},
        {"delay=40MS", "delay is a time"},
        {"loss=2", "loss is a share"},
        {"loss=100.0001%", "loss is a share"},
        {"loss=101%", "loss is a share"},
        {"loss=0.00001%", "loss is a share"},
        {"loss=nan%", "loss is a share"},
        {"loss=2%%", "loss is a share"},
        {"rate=63kbit", "rate is bits a second"},
        {"rate=1mb", "rate is bits a second"},
        {"rate=101gbit", "rate is bits a second"},
        {"loss=1%,burst=0.9", "burst is the mean number"},
        {"loss=1%,burst=1001", "burst is the mean number"},
        {"loss=1%,burst=2x", "burst is the mean number"},
        {"burst=3", "burst is the number of losses in a row"},
        {"s2c:loss=1%;c2s:burst=3", "burst is the number of losses in a row"},
        {"loss=60%,burst=1", "longer burst or less"},
        {"loss=100%,burst=1000", "longer burst or less"},
        {"jitter=1ms", "jitter must not exceed delay"},
        {"delay=1ms,jitter=2ms", "jitter must not exceed delay"},
        {"lag=3ms",
         "'lag' is not a setting; the settings are delay, jitter, loss, dup, reorder, burst, rate"},
        {"Delay=3ms", "'Delay' is not a setting"},
        {"up:delay=3ms", "'up' is not a direction"},
        {"c2s:s2c:delay=3ms", "'s2c:delay' is not a setting"},
        {"delay=1ms,delay=2ms", "delay is given twice for c2s"},
        {"delay=1ms;s2c:delay=2ms", "delay is given twice for s2c"},
        {std::string("delay=\0 1ms", 11), "not '? 1ms'"},
        {"\x1b[31m=1", "'?[31m' is not a setting"},
        {std::string(100'000, 'x') + "=1", "...' is not a setting"},
        {"delay=" + std::string(100'000, '9') + "ms", "delay is a time"},
        {std::string(100'000, ';'), "expected name=value"},
    };
    for (const Row& row : rows) {
        CAPTURE(row.text.substr(0, 60));
        const auto parsed = parse_impairment(row.text);
        REQUIRE(!parsed);
        CAPTURE(parsed.error());
        CHECK(parsed.error().find(row.says) != std::string::npos);
        CHECK(parsed.error().size() < 200);
        CHECK(parsed.error().find('\n') == std::string::npos);
    }
}

TEST_CASE("any impairment that is written as text is parsed as the same impairment") {
    std::mt19937_64 random{1};
    const auto random_up_to = [&](std::uint64_t max) { return random() % (max + 1); };
    for (int i = 0; i < 2000; ++i) {
        Impairment wanted;
        for (DirectionImpairment& each : wanted.directions) {
            each.delay_us = random_up_to(kMaxImpairDelayUs);
            each.jitter_us = random_up_to(each.delay_us);
            each.loss_ppm = random_up_to(500'000);
            each.duplicate_ppm = random_up_to(DirectionImpairment::kCertainPpm);
            each.reorder_ppm = random_up_to(DirectionImpairment::kCertainPpm);
            if (each.loss_ppm != 0 && random_up_to(1) == 1) {
                each.burst_thousandths = 1000 + random_up_to(999'000);
            }
            if (random_up_to(1) == 1) {
                each.bits_per_second =
                    kMinImpairBitsPerSecond +
                    random_up_to(kMaxImpairBitsPerSecond - kMinImpairBitsPerSecond);
            }
        }
        const std::string text = to_string(wanted);
        CAPTURE(text);
        CHECK((parse_impairment(text) == wanted));
    }
}

using Time = ImpairmentQueue::Time;
using ImpairmentTotalsPair = std::array<ImpairmentTotals<Counter>, 2>;

constexpr std::uint32_t kDatagrams = 20'000;

struct DatagramArrival {
    std::uint32_t number;
    std::chrono::nanoseconds time; ///< time since the start

    friend bool operator==(const DatagramArrival&, const DatagramArrival&) = default;
};

/// Sends numbered datagrams through an ImpairmentQueue at given times, and records when they leave.
class ImpairmentQueueBench {
  public:
    explicit ImpairmentQueueBench(const Impairment& impairment, std::uint32_t session = 1,
                                  Direction direction = Direction::s2c)
        : queue_{impairment, totals_}, direction_{direction} {
        session_.restart(impairment, session);
    }

    void send_datagram(std::chrono::nanoseconds at, std::size_t size = sizeof(std::uint32_t)) {
        release_until(at);
        std::vector<std::byte> bytes(std::max(size, sizeof number_));
        std::memcpy(bytes.data(), &number_, sizeof number_);
        ++number_;
        queue_.enqueue_datagram(this, session_, direction_, bytes, start_ + at);
    }

    /// Releases all datagrams that are due until `end`, each at exactly its due time.
    void release_until(std::chrono::nanoseconds end) {
        for (auto next = queue_.next_due_time(); next && *next <= start_ + end;
             next = queue_.next_due_time()) {
            queue_.release_due_datagrams(
                *next, [&](void* owner, Direction direction, std::span<const std::byte> bytes) {
                    CHECK(owner == this);
                    CHECK(direction == direction_);
                    std::uint32_t number = 0;
                    std::memcpy(&number, bytes.data(), sizeof number);
                    arrivals_.push_back({number, *next - start_});
                });
        }
    }

    const std::vector<DatagramArrival>& finish_and_get_arrivals() {
        release_until(24h);
        CHECK(queue_.num_waiting() == 0);
        CHECK(session_.num_waiting == 0);
        return arrivals_;
    }

    [[nodiscard]] const ImpairmentTotals<Counter>& totals() const {
        return totals_[static_cast<std::size_t>(direction_)];
    }

    [[nodiscard]] ImpairmentQueue& queue() { return queue_; }

  private:
    ImpairmentTotalsPair totals_{};
    ImpairmentQueue queue_;
    SessionImpairment session_;
    Direction direction_;
    Time start_{1h};
    std::uint32_t number_ = 0;
    std::vector<DatagramArrival> arrivals_;
};

/// Sends `count` datagrams at a constant rate. Returns the arrivals.
std::vector<DatagramArrival> send_at_constant_rate(ImpairmentQueueBench& bench, std::uint32_t count,
                                                   std::chrono::nanoseconds step,
                                                   std::size_t size = sizeof(std::uint32_t)) {
    for (std::uint32_t i = 0; i < count; ++i) {
        bench.send_datagram(i * step, size);
    }
    return bench.finish_and_get_arrivals();
}

std::set<std::uint32_t> arrived_numbers(const std::vector<DatagramArrival>& arrivals) {
    std::set<std::uint32_t> found;
    for (const DatagramArrival& arrival : arrivals) {
        found.insert(arrival.number);
    }
    return found;
}

TEST_CASE("the shares of lost and duplicated datagrams are those of the settings") {
    struct Row {
        std::string_view text;
        double loss;
        double duplicate;
    };

    const Row rows[] = {
        {"loss=2%", 0.02, 0},
        {"loss=2%,burst=4", 0.02, 0},
        {"loss=20%,burst=1.5", 0.2, 0},
        {"loss=50%,burst=1", 0.5, 0},
        {"dup=1%", 0, 0.01},
        {"loss=30%,dup=25%,reorder=5%", 0.3, 0.25 * 0.7},
        {"loss=100%", 1, 0},
        {"dup=100%", 0, 1},
    };
    for (const Row& row : rows) {
        for (const std::uint64_t seed : {1U, 2U, 3U}) {
            CAPTURE(row.text);
            CAPTURE(seed);
            ImpairmentQueueBench bench{parse_impairment_text(row.text, seed)};
            const auto arrivals = send_at_constant_rate(bench, kDatagrams, 20ms);
            const auto share_of_datagrams = [](std::uint64_t count) {
                return static_cast<double>(count) / kDatagrams;
            };
            const double tolerance = row.loss >= 0.2 ? 0.015 : 0.005;
            CHECK(std::abs(share_of_datagrams(bench.totals().dropped_by_chance.value()) -
                           row.loss) < tolerance);
            CHECK(std::abs(share_of_datagrams(bench.totals().duplicated.value()) - row.duplicate) <
                  tolerance);
            CHECK(bench.totals().datagrams.value() == kDatagrams);
            CHECK(arrivals.size() == kDatagrams - bench.totals().dropped_by_chance.value() +
                                         bench.totals().duplicated.value());
            CHECK(arrived_numbers(arrivals).size() ==
                  kDatagrams - bench.totals().dropped_by_chance.value());
        }
    }
}

TEST_CASE("the mean length of loss bursts is that of the setting") {
    struct Row {
        std::string_view text;
        double mean;
    };

    const Row rows[] = {{"loss=2%", 1 / 0.98},
                        {"loss=2%,burst=1", 1},
                        {"loss=5%,burst=3", 3},
                        {"loss=10%,burst=8", 8}};
    for (const Row& row : rows) {
        CAPTURE(row.text);
        ImpairmentQueueBench bench{parse_impairment_text(row.text)};
        const auto passed = arrived_numbers(send_at_constant_rate(bench, 5 * kDatagrams, 20ms));
        std::uint32_t bursts = 0;
        for (std::uint32_t i = 1; i < 5 * kDatagrams; ++i) {
            bursts += !passed.contains(i) && passed.contains(i - 1) ? 1U : 0U;
        }
        const double mean = static_cast<double>(bench.totals().dropped_by_chance.value()) / bursts;
        CHECK(std::abs(mean - row.mean) < row.mean * 0.1);
    }
}

TEST_CASE("results depend on seed, session, direction and traffic only") {
    const std::string_view text = "delay=40ms,jitter=10ms,loss=2%,dup=1%,reorder=1%,rate=1mbit";
    const auto run = [&](std::uint64_t seed, std::uint32_t session, Direction direction) {
        ImpairmentQueueBench bench{parse_impairment_text(text, seed), session, direction};
        return send_at_constant_rate(bench, 5000, 7ms, 500);
    };
    const auto first = run(1, 1, Direction::s2c);
    CHECK((run(1, 1, Direction::s2c) == first));
    CHECK((run(2, 1, Direction::s2c) != first));
    CHECK((run(1, 2, Direction::s2c) != first));
    CHECK((run(1, 1, Direction::c2s) != first));
}

TEST_CASE("random decisions depend neither on time nor on other settings") {
    const auto numbers_after_impairment = [](std::string_view text, std::chrono::nanoseconds step) {
        ImpairmentQueueBench bench{parse_impairment_text(text)};
        return arrived_numbers(send_at_constant_rate(bench, 5000, step));
    };
    const auto wanted = numbers_after_impairment("loss=10%", 20ms);
    CHECK((numbers_after_impairment("loss=10%", 1us) == wanted));
    CHECK((numbers_after_impairment("loss=10%,delay=100ms,jitter=50ms,dup=10%,reorder=10%", 3ms) ==
           wanted));
    CHECK((numbers_after_impairment("loss=11%", 20ms) != wanted));
}

TEST_CASE("delays are evenly distributed within the jitter, and no datagram overtakes another") {
    ImpairmentQueueBench bench{parse_impairment_text("delay=40ms,jitter=10ms")};
    const auto arrivals = send_at_constant_rate(bench, kDatagrams, 25ms);
    REQUIRE(arrivals.size() == kDatagrams);
    std::vector<std::chrono::nanoseconds> delays;
    for (std::uint32_t i = 0; i < kDatagrams; ++i) {
        REQUIRE(arrivals[i].number == i);
        delays.push_back(arrivals[i].time - i * 25ms);
    }
    std::ranges::sort(delays);
    CHECK(delays.front() >= 30ms);
    CHECK(delays.front() < 31ms);
    CHECK(delays.back() <= 50ms);
    CHECK(delays.back() > 49ms);
    const auto delay_quantile = [&](std::size_t percent) {
        return delays[kDatagrams * percent / 100];
    };
    CHECK(std::chrono::abs(delay_quantile(25) - 35ms) < 1ms);
    CHECK(std::chrono::abs(delay_quantile(50) - 40ms) < 1ms);
    CHECK(std::chrono::abs(delay_quantile(75) - 45ms) < 1ms);

    ImpairmentQueueBench dense{parse_impairment_text("delay=40ms,jitter=40ms")};
    const auto in_order = send_at_constant_rate(dense, 1000, 1ms);
    CHECK(std::is_sorted(in_order.begin(), in_order.end(), [](const auto& left, const auto& right) {
        return left.number < right.number;
    }));
}

TEST_CASE("a duplicate arrives directly after its original") {
    ImpairmentQueueBench bench{parse_impairment_text("delay=5ms,dup=100%")};
    const auto arrivals = send_at_constant_rate(bench, 3, 1ms);
    const std::vector<DatagramArrival> wanted{{0, 5ms}, {0, 5ms}, {1, 6ms},
                                              {1, 6ms}, {2, 7ms}, {2, 7ms}};
    CHECK((arrivals == wanted));
}

TEST_CASE("a reordered datagram is sent directly after the next one, or late if none follows") {
    ImpairmentQueueBench swapped{parse_impairment_text("delay=5ms,reorder=100%")};
    const std::vector<DatagramArrival> pairs{{1, 15ms}, {0, 15ms}, {3, 35ms}, {2, 35ms}};
    CHECK((send_at_constant_rate(swapped, 4, 10ms) == pairs));
    CHECK(swapped.totals().reordered.value() == 2);

    ImpairmentQueueBench alone{parse_impairment_text("delay=5ms,reorder=100%")};
    const std::vector<DatagramArrival> late{{0, 5ms + ImpairmentQueue::kMaxReorderHold}};
    CHECK((send_at_constant_rate(alone, 1, 10ms) == late));

    ImpairmentQueueBench slow{parse_impairment_text("delay=5ms,reorder=100%")};
    const std::vector<DatagramArrival> apart{{0, 85ms}, {1, 585ms}};
    CHECK((send_at_constant_rate(slow, 2, 500ms) == apart));

    ImpairmentQueueBench some{parse_impairment_text("reorder=1%")};
    const auto arrivals = send_at_constant_rate(some, kDatagrams, 20ms);
    std::uint32_t behind = 0;
    for (std::size_t i = 1; i < arrivals.size(); ++i) {
        behind += arrivals[i].number < arrivals[i - 1].number ? 1U : 0U;
    }
    CHECK(behind == some.totals().reordered.value());
    CHECK(std::abs(static_cast<double>(behind) / kDatagrams - 0.01) < 0.005);
}

TEST_CASE("a rate limit forwards its rate, and drops datagrams that would wait too long") {
    // At 1 Mbit/s, 121.6 datagrams of 1000 bytes and headers pass per second.
    constexpr double kWanted = 1e6 / 8 / 1028;
    ImpairmentQueueBench bench{parse_impairment_text("rate=1mbit")};
    // 1000 datagrams a second for ten seconds.
    const auto arrivals = send_at_constant_rate(bench, 10'000, 1ms, 1000);
    std::size_t in_time = 0;
    std::chrono::nanoseconds longest{};
    for (const DatagramArrival& arrival : arrivals) {
        in_time += arrival.time < 10s ? 1U : 0U;
        longest = std::max(longest, arrival.time - arrival.number * 1ms);
    }
    CHECK(std::abs(static_cast<double>(in_time) / 10 - kWanted) < kWanted * 0.02);
    CHECK(longest <= ImpairedDirection::kMaxRateWait + 10ms);
    CHECK(longest > ImpairedDirection::kMaxRateWait - 20ms);
    CHECK(bench.totals().dropped_by_rate.value() == 10'000 - arrivals.size());

    ImpairmentQueueBench idle{parse_impairment_text("rate=1mbit")};
    // At 50 datagrams a second, no datagram waits.
    for (const DatagramArrival& arrival : send_at_constant_rate(idle, 100, 20ms, 1000)) {
        CHECK(arrival.time == arrival.number * 20ms);
    }
    CHECK(idle.totals().dropped_by_rate.value() == 0);
}

TEST_CASE("waiting datagrams are limited in number and bytes; others are dropped and counted") {
    struct Row {
        std::size_t size;
        std::size_t fits;
    };

    const Row rows[] = {{4, ImpairmentQueue::kMaxDatagrams},
                        {65'507, ImpairmentQueue::kMaxBytes / 65'507}};
    for (const Row& row : rows) {
        CAPTURE(row.size);
        ImpairmentQueueBench bench{parse_impairment_text("delay=10s")};
        constexpr std::size_t kMore = 100;
        for (std::size_t i = 0; i < row.fits + kMore; ++i) {
            bench.send_datagram(0s, row.size);
        }
        CHECK(bench.queue().num_waiting() == row.fits);
        CHECK(bench.totals().dropped_by_full_queue.value() == kMore);
        CHECK(bench.finish_and_get_arrivals().size() == row.fits);
    }
}

TEST_CASE("sessions share the queue, but not the simulated network") {
    ImpairmentTotalsPair totals{};
    const Impairment impairment = parse_impairment_text("delay=10ms;s2c:reorder=100%");
    ImpairmentQueue queue{impairment, totals};
    SessionImpairment first;
    SessionImpairment second;
    first.restart(impairment, 1);
    second.restart(impairment, 2);
    const Time start{1h};
    const std::byte a[] = {std::byte{1}};
    const std::byte b[] = {std::byte{2}};
    queue.enqueue_datagram(&first, first, Direction::s2c, a, start);
    queue.enqueue_datagram(&second, second, Direction::c2s, b,
                           start); // does not overtake the first session's datagrams
    CHECK(first.num_waiting == 1);
    CHECK(second.num_waiting == 1);
    std::vector<void*> owners;
    const auto store_owner = [&](void* owner, Direction, std::span<const std::byte>) {
        owners.push_back(owner);
    };
    queue.release_due_datagrams(start + 10ms, store_owner);
    CHECK((owners == std::vector<void*>{&second}));
    CHECK(queue.next_due_time() == start + 10ms + ImpairmentQueue::kMaxReorderHold);
    queue.release_due_datagrams(Time::max(), store_owner);
    CHECK((owners == std::vector<void*>{&second, &first}));
    CHECK_FALSE(queue.next_due_time());
    CHECK(totals[kS2cIndex].reordered.value() == 1);
}

} // namespace
