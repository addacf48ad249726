// What is done to the datagrams of some sessions must not change a byte of what is written about
// the others. The seeds are fixed. `TW_MUTATED_DATAGRAMS=250000 tw_sink_test -tc="mutated*"` runs
// as many as that variable says, instead of the few that fit into every test run.

#include "tests/support/captured_traffic.h"
#include "tests/support/damage.h"
#include "tests/support/json_records.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>

using namespace tw;
using test::random_below;
using test::TrafficDatagram;

namespace {

using Traffic = std::vector<TrafficDatagram>;

constexpr std::size_t kUsualDatagrams = 25'000;

std::size_t datagrams_asked_for() {
    // NOLINTNEXTLINE(concurrency-mt-unsafe): the program has one thread
    const char* const text = std::getenv("TW_MUTATED_DATAGRAMS");
    return text == nullptr ? kUsualDatagrams : std::stoul(text);
}

/// Hands on the records of some sessions. Sessions are numbered as they appear.
class OnlySessions final : public record::RecordSink {
  public:
    OnlySessions(std::set<std::uint32_t> numbers, record::RecordSink& sink)
        : numbers_{std::move(numbers)}, sink_{&sink} {}

    void on_record(const record::Record& record) override {
        const std::uint32_t session =
            std::visit([](const auto* each) { return each->head.session; }, record);
        if (numbers_.contains(session)) {
            sink_->on_record(record);
        }
    }

  private:
    std::set<std::uint32_t> numbers_;
    record::RecordSink* sink_;
};

/// Compares what is written with what was written before, and keeps nothing of it.
class SameOutput final : public sink::Output {
  public:
    explicit SameOutput(std::string_view expected) : expected_{expected} {}

    void write(std::string_view block) override {
        if (!difference_ &&
            expected_.substr(std::min(at_, expected_.size()), block.size()) != block) {
            difference_ = std::string{block.substr(0, block.find('\n'))};
        }
        at_ += block.size();
    }

    [[nodiscard]] bool same() const { return !difference_ && at_ == expected_.size(); }

    /// First line of the block that differs.
    [[nodiscard]] std::string difference() const { return difference_.value_or("none"); }

  private:
    std::string_view expected_;
    std::size_t at_ = 0;
    std::optional<std::string> difference_;
};

void decode(const Traffic& traffic, const std::set<std::uint32_t>& sessions, sink::Output& output) {
    sink::JsonLines json{{.items = sink::ItemChoice::changed}, output};
    OnlySessions only{sessions, json};
    test::TrafficInspector run{{}, only};
    for (const TrafficDatagram& datagram : traffic) {
        run.on_datagram(datagram);
    }
    run.finish();
    json.flush();
}

/// First bytes that say something: the controls of 0.6 and 0.7, connless, chunks with each flag.
constexpr auto kFirstBytes =
    std::to_array<std::uint8_t>({0x00, 0x04, 0x08, 0x10, 0x20, 0x21, 0x40, 0x80, 0x90, 0xff});

/// Does something to a datagram that its peer, its line or an enemy may do.
void mutate(TrafficDatagram& datagram, const Traffic& traffic, std::mt19937& random) {
    const auto any_datagram = [&]() -> const TrafficDatagram& {
        return traffic[random_below(random, traffic.size())];
    };
    auto& bytes = datagram.bytes;
    switch (random_below(random, 8)) {
    case 0: // something else of the same capture, mostly of another connection
        bytes = any_datagram().bytes;
        break;
    case 1: // goes the other way
        datagram.direction = wire::opposite(datagram.direction);
        break;
    case 2: // another kind of packet
        if (!bytes.empty()) {
            bytes[0] = std::byte{kFirstBytes[random_below(random, kFirstBytes.size())]};
        }
        break;
    case 3: // CLOSE, CONNECT, ACCEPT, …: kind and what stands where a token may
        bytes = {std::byte{0x10}, std::byte{0}, std::byte{0}, std::byte(random_below(random, 6))};
        for (std::size_t left = random_below(random, 9); left > 0; --left) {
            bytes.push_back(test::any_byte(random));
        }
        break;
    case 4: { // ends with the token of another connection
        const auto& other = any_datagram().bytes;
        const std::size_t size = std::min({bytes.size(), other.size(), wire::kTokenSize});
        std::copy_n(other.end() - static_cast<std::ptrdiff_t>(size), size,
                    bytes.end() - static_cast<std::ptrdiff_t>(size));
        break;
    }
    default:
        test::damage(bytes, random);
        break;
    }
}

struct Plan {
    std::string capture;
    std::size_t touched; ///< every so many-th session is touched
    std::size_t share;   ///< of the datagrams asked for, in percent
};

/// The clients of a capture, as they appear.
std::vector<std::uint64_t> clients_of(const Traffic& traffic) {
    std::vector<std::uint64_t> clients;
    for (const TrafficDatagram& datagram : traffic) {
        if (std::ranges::find(clients, datagram.session) == clients.end()) {
            clients.push_back(datagram.session);
        }
    }
    return clients;
}

/// One run over a capture with some sessions mutated; returns how many datagrams were.
std::size_t run_mutated(const Traffic& traffic, const Plan& plan, std::uint32_t seed,
                        std::size_t most) {
    const auto clients = clients_of(traffic);
    std::set<std::uint64_t> touched;
    std::set<std::uint32_t> untouched;
    for (std::size_t i = 0; i < clients.size(); ++i) {
        if (i % plan.touched == seed % plan.touched) {
            touched.insert(clients[i]);
        } else {
            untouched.insert(static_cast<std::uint32_t>(i + 1));
        }
    }
    sink::TextOutput expected;
    decode(traffic, untouched, expected);
    REQUIRE(std::ranges::count(expected.text, '\n') > 10'000);

    std::mt19937 random{seed};
    Traffic mutated = traffic;
    std::size_t count = 0;
    // From a random place on, so that sessions are hit in every state they can have.
    std::size_t left = random_below(random, 200);
    for (TrafficDatagram& datagram : mutated) {
        if (touched.contains(datagram.session) && count < most && (left == 0 || --left == 0)) {
            mutate(datagram, traffic, random);
            ++count;
            left = random_below(random, 3); // what is left whole lets sessions get further
        }
    }
    SameOutput output{expected.text};
    decode(mutated, untouched, output);
    CAPTURE(output.difference());
    CHECK(output.same());
    return count;
}

} // namespace

TEST_CASE("mutated datagrams change no byte of what is written about other sessions") {
    const Plan plans[] = {{"bench-4.pcap.gz", 4, 50}, {"bench-64.pcap.gz", 2, 50}};
    constexpr std::size_t kPercent = 100;
    std::size_t done = 0;
    for (const Plan& plan : plans) {
        CAPTURE(plan.capture);
        const Traffic traffic = test::read_traffic(plan.capture);
        std::size_t left = datagrams_asked_for() * plan.share / kPercent;
        for (std::uint32_t seed = 1; left > 0; ++seed) {
            CAPTURE(seed);
            const std::size_t count = run_mutated(traffic, plan, seed, left);
            REQUIRE(count > 0);
            left -= count;
            done += count;
        }
    }
    MESSAGE(done, " datagrams mutated");
}
