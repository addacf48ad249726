#include "proxy/sink/split_lines.h"
#include "tests/support/captured_traffic.h"
#include "tests/support/damage.h"
#include "tests/support/json_records.h"

#include <algorithm>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>

using namespace tw;
using test::any_byte;
using test::damage;
using test::random_below;

namespace {

/// More of a capture than this shows nothing new to hostile changes, and takes long.
constexpr std::size_t kHostileDatagrams = 4'000;

/// Whether each datagram comes with the one behind it.
enum class LookAhead : bool { no, yes };

std::string decode(const std::vector<test::TrafficDatagram>& traffic,
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

/// Parses all lines; true when there are many and each is valid.
bool all_valid(const std::string& text) {
    const auto lines = test::parse_lines(text);
    constexpr std::size_t kFewest = 1000; // were there fewer, little was decoded
    return lines.size() > kFewest &&
           std::ranges::none_of(lines, [](const auto& line) { return line.is_null(); });
}

} // namespace

TEST_CASE("the same datagrams give the same records, byte for byte") {
    const auto traffic = test::read_traffic("bench-4.pcap.gz");
    const std::string first = decode(traffic, {});
    const bool same = first == decode(traffic, {});
    CHECK(same);
    CHECK(std::ranges::count(first, '\n') > 10'000);
    CHECK(all_valid(first));
}

TEST_CASE("with a limit, no line of 64 players is longer, and joined lines are what they were") {
    auto traffic = test::read_traffic("bench-64.pcap.gz");
    constexpr std::size_t kJoinAndPlay = 12'000; // the rest is more of the same
    REQUIRE(traffic.size() > kJoinAndPlay);
    traffic.resize(kJoinAndPlay);
    constexpr std::size_t kLimit = sink::kMinLineLimit;
    const std::string whole = decode(traffic, {});
    const std::string limited = decode(traffic, {.max_line_bytes = kLimit});
    std::string joined;
    const sink::LineJoiner::Use use = [&](std::string_view line) {
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
    joiner.finish(use);
    CHECK(longest <= kLimit);
    CHECK(longest > kLimit / 2);
    CHECK(lines > static_cast<std::size_t>(std::ranges::count(whole, '\n')));
    const bool same = joined == whole;
    CHECK(same);
}

TEST_CASE("looking ahead changes nothing, sound or damaged") {
    for (const char* const name : {"bench-4.pcap.gz", "one-client-0.6-0.7-0.6-0.7.pcap.gz",
                                   "teeworlds-0.7.5.pcap.gz", "vanilla-0.6.5-ctf.pcap.gz"}) {
        CAPTURE(name);
        auto traffic = test::read_traffic(name);
        traffic.resize(std::min(traffic.size(), kHostileDatagrams));
        CHECK((decode(traffic, {}) == decode(traffic, {}, LookAhead::yes)));
        std::mt19937 random{7};
        for (test::TrafficDatagram& datagram : traffic) {
            damage(datagram.bytes, random);
        }
        CHECK((decode(traffic, {}) == decode(traffic, {}, LookAhead::yes)));
    }
}

TEST_CASE("damaged traffic gives valid records and nothing worse") {
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
        CHECK(all_valid(decode(damaged, {.items = sink::ItemChoice::changed})));
    }
}

TEST_CASE("noise gives valid records and nothing worse") {
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
            datagram.bytes[0] = std::byte{0}; // uncompressed chunks: noise gets further in
            datagram.bytes[2] = std::byte{3};
        }
    }
    CHECK(all_valid(decode(noise, {.raw = true})));
}
