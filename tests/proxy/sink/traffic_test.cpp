// Changes to the datagrams of some sessions must not change a byte of the lines about the other
// sessions. The seeds are fixed. `TW_MUTATED_DATAGRAMS=250000 tw_sink_test -tc="mutated*"` runs
// as many as that variable says, instead of the few that fit into every test run.
#include "proxy/sink/split_lines.h"
#include "tests/support/captured_traffic.h"
#include "tests/support/damage.h"
#include "tests/support/json_records.h"

#include <algorithm>
#include <array>
#include <optional>
#include <set>

#include <doctest/doctest.h>

using namespace tw;
using test::any_byte;
using test::damage;
using test::random_below;

namespace {

/// More damaged datagrams would find nothing new and take long.
constexpr std::size_t kHostileDatagrams = 4'000;

/// Whether each datagram is announced before it is inspected.
enum class LookAhead : bool { no, yes };

std::string decode_traffic(const std::vector<test::TrafficDatagram>& traffic,
                           const sink::JsonOptions& options, LookAhead ahead = LookAhead::no) {
    sink::TextOutput output;
    sink::JsonLines json{options, output};
    test::TrafficInspector run{{}, json};
    for (std::size_t i = 0; i < traffic.size(); ++i) {
        const bool last = i + 1 == traffic.size();
        run.on_datagram(traffic[i], last || ahead == LookAhead::no ? nullptr : &traffic[i + 1]);
    }
    run.finish();
    json.flush();
    return output.text;
}

/// Returns whether there are many lines and all of them are valid JSON.
bool are_valid_json_lines(const std::string& text) {
    const auto lines = test::parse_lines(text);
    constexpr std::size_t kFewest = 1000; // fewer lines would mean that little was decoded
    return lines.size() > kFewest &&
           std::ranges::none_of(lines, [](const auto& line) { return line.is_null(); });
}

} // namespace

TEST_CASE("the same datagrams give the same records, byte for byte") {
    const auto traffic = test::read_traffic("bench-4.pcap.gz");
    const std::string first = decode_traffic(traffic, {});
    const bool same = first == decode_traffic(traffic, {});
    CHECK(same);
    CHECK(std::ranges::count(first, '\n') > 10'000);
    CHECK(are_valid_json_lines(first));
}

TEST_CASE("with a limit, the lines of 64 players are short enough, and joining restores them") {
    auto traffic = test::read_traffic("bench-64.pcap.gz");
    constexpr std::size_t kJoinAndPlay = 12'000; // the other datagrams are similar
    REQUIRE(traffic.size() > kJoinAndPlay);
    traffic.resize(kJoinAndPlay);
    constexpr std::size_t kLimit = sink::kMinLineLimit;
    const std::string whole = decode_traffic(traffic, {});
    const std::string limited = decode_traffic(traffic, {.max_line_bytes = kLimit});
    std::string joined;
    const sink::LineJoiner::LineHandler use = [&](std::string_view line) {
        joined += line;
        joined += '\n';
    };
    sink::LineJoiner joiner;
    std::size_t longest = 0;
    std::size_t lines = 0;
    for (std::string_view rest{limited}; !rest.empty(); ++lines) {
        const std::size_t size = rest.find('\n') + 1;
        longest = std::max(longest, size);
        joiner.add_line(rest.substr(0, size - 1), use);
        rest.remove_prefix(size);
    }
    joiner.flush_incomplete_record(use);
    CHECK(longest <= kLimit);
    CHECK(longest > kLimit / 2);
    CHECK(lines > static_cast<std::size_t>(std::ranges::count(whole, '\n')));
    const bool same = joined == whole;
    CHECK(same);
}

TEST_CASE("announcing the next datagram does not change the records") {
    for (const char* const name : {"bench-4.pcap.gz", "one-client-0.6-0.7-0.6-0.7.pcap.gz",
                                   "teeworlds-0.7.5.pcap.gz", "vanilla-0.6.5-ctf.pcap.gz"}) {
        CAPTURE(name);
        auto traffic = test::read_traffic(name);
        traffic.resize(std::min(traffic.size(), kHostileDatagrams));
        CHECK((decode_traffic(traffic, {}) == decode_traffic(traffic, {}, LookAhead::yes)));
        std::mt19937 random{7};
        for (test::TrafficDatagram& datagram : traffic) {
            damage(datagram.bytes, random);
        }
        CHECK((decode_traffic(traffic, {}) == decode_traffic(traffic, {}, LookAhead::yes)));
    }
}

TEST_CASE("damaged traffic gives valid records") {
    auto traffic = test::read_traffic("bench-4.pcap.gz");
    traffic.resize(std::min(traffic.size(), kHostileDatagrams));
    for (const std::uint32_t seed : {1U, 2U}) {
        CAPTURE(seed);
        std::mt19937 random{seed};
        auto damaged = traffic;
        for (test::TrafficDatagram& datagram : damaged) {
            if (random_below(random, 3) == 0) {
                damage(datagram.bytes, random);
            }
            if (random_below(random, 50) == 0) {
                datagram.direction = datagram.direction == wire::Direction::c2s
                                         ? wire::Direction::s2c
                                         : wire::Direction::c2s;
            }
        }
        CHECK(are_valid_json_lines(decode_traffic(damaged, {.items = sink::ItemChoice::changed})));
    }
}

TEST_CASE("random datagrams give valid records") {
    std::mt19937 random{3};
    std::vector<test::TrafficDatagram> noise(4'000);
    for (test::TrafficDatagram& datagram : noise) {
        datagram.session = 1 + random_below(random, 4);
        datagram.direction =
            random_below(random, 2) == 0 ? wire::Direction::c2s : wire::Direction::s2c;
        datagram.time = static_cast<record::Timestamp>(random()) * 1'000'000;
        datagram.bytes.resize(random_below(random, 200));
        std::generate(datagram.bytes.begin(), datagram.bytes.end(),
                      [&] { return any_byte(random); });
        if (datagram.bytes.size() > 2 && random_below(random, 2) == 0) {
            datagram.bytes[0] =
                std::byte{0}; // uncompressed chunks, so that more code sees the noise
            datagram.bytes[2] = std::byte{3};
        }
    }
    CHECK(are_valid_json_lines(decode_traffic(noise, {.raw = true})));
}

using test::TrafficDatagram;

namespace {

using Traffic = std::vector<TrafficDatagram>;

constexpr std::size_t kUsualDatagrams = 25'000;

std::size_t requested_datagram_count() {
    // NOLINTNEXTLINE(concurrency-mt-unsafe): the program has one thread
    const char* const text = std::getenv("TW_MUTATED_DATAGRAMS");
    return text == nullptr ? kUsualDatagrams : std::stoul(text);
}

/// Passes on the records of some sessions. Sessions are numbered as they appear.
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

/// Compares the written text with an earlier text, without storing it.
class ComparingOutput final : public sink::Output {
  public:
    explicit ComparingOutput(std::string_view expected) : expected_{expected} {}

    void write(std::string_view block) override {
        if (!difference_ &&
            expected_.substr(std::min(at_, expected_.size()), block.size()) != block) {
            difference_ = std::string{block.substr(0, block.find('\n'))};
        }
        at_ += block.size();
    }

    [[nodiscard]] bool same() const { return !difference_ && at_ == expected_.size(); }

    /// Returns the first line of the first block that differs; "none" if no block differs.
    [[nodiscard]] std::string difference() const { return difference_.value_or("none"); }

  private:
    std::string_view expected_;
    std::size_t at_ = 0;
    std::optional<std::string> difference_;
};

void decode_traffic(const Traffic& traffic, const std::set<std::uint32_t>& sessions,
                    sink::Output& output) {
    sink::JsonLines json{{.items = sink::ItemChoice::changed}, output};
    OnlySessions only{sessions, json};
    test::TrafficInspector run{{}, only};
    run.play(traffic);
    json.flush();
}

/// First bytes of valid packets: control packets of 0.6 and 0.7, connless, chunks with each flag.
constexpr auto kFirstBytes =
    std::to_array<std::uint8_t>({0x00, 0x04, 0x08, 0x10, 0x20, 0x21, 0x40, 0x80, 0x90, 0xff});

/// Changes a datagram like a peer, a bad connection or an attacker could.
void mutate_datagram(TrafficDatagram& datagram, const Traffic& traffic, std::mt19937& random) {
    const auto any_datagram = [&]() -> const TrafficDatagram& {
        return traffic[random_below(random, traffic.size())];
    };
    auto& bytes = datagram.bytes;
    switch (random_below(random, 8)) {
    case 0: // another datagram of the capture, mostly of another connection
        bytes = any_datagram().bytes;
        break;
    case 1: // the other direction
        datagram.direction = wire::opposite(datagram.direction);
        break;
    case 2: // another kind of packet
        if (!bytes.empty()) {
            bytes[0] = std::byte{kFirstBytes[random_below(random, kFirstBytes.size())]};
        }
        break;
    case 3: // a control packet (CLOSE, CONNECT, …) with random bytes in place of the token
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

struct MutationPlan {
    std::string capture;
    std::size_t touched; ///< every n-th session is mutated
    std::size_t share;   ///< percentage of the requested number of datagrams
};

/// Returns the clients of a capture, in order of appearance.
std::vector<std::uint64_t> clients_of(const Traffic& traffic) {
    std::vector<std::uint64_t> clients;
    for (const TrafficDatagram& datagram : traffic) {
        if (std::ranges::find(clients, datagram.session) == clients.end()) {
            clients.push_back(datagram.session);
        }
    }
    return clients;
}

/// Inspects a capture with mutated datagrams of some sessions. Returns how many were mutated.
std::size_t inspect_mutated(const Traffic& traffic, const MutationPlan& plan, std::uint32_t seed,
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
    decode_traffic(traffic, untouched, expected);
    REQUIRE(std::ranges::count(expected.text, '\n') > 10'000);

    std::mt19937 random{seed};
    Traffic mutated = traffic;
    std::size_t count = 0;
    // Begins at a random datagram, so that sessions are hit in every state.
    std::size_t left = random_below(random, 200);
    for (TrafficDatagram& datagram : mutated) {
        if (touched.contains(datagram.session) && count < most && (left == 0 || --left == 0)) {
            mutate_datagram(datagram, traffic, random);
            ++count;
            left = random_below(random, 3); // unchanged datagrams let sessions continue
        }
    }
    ComparingOutput output{expected.text};
    decode_traffic(mutated, untouched, output);
    CAPTURE(output.difference());
    CHECK(output.same());
    return count;
}

} // namespace

TEST_CASE("mutated datagrams change no byte of what is written about other sessions") {
    const MutationPlan plans[] = {{"bench-4.pcap.gz", 4, 50}, {"bench-64.pcap.gz", 2, 50}};
    constexpr std::size_t kPercent = 100;
    std::size_t done = 0;
    for (const MutationPlan& plan : plans) {
        CAPTURE(plan.capture);
        const Traffic traffic = test::read_traffic(plan.capture);
        std::size_t left = requested_datagram_count() * plan.share / kPercent;
        for (std::uint32_t seed = 1; left > 0; ++seed) {
            CAPTURE(seed);
            const std::size_t count = inspect_mutated(traffic, plan, seed, left);
            REQUIRE(count > 0);
            left -= count;
            done += count;
        }
    }
    MESSAGE(done, " datagrams mutated");
}
