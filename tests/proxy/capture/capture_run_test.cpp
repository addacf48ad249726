#include "proxy/capture/capture_run.h"
#include "proxy/capture/pcapng.h"
#include "proxy/sink/json_lines.h"
#include "tests/support/capture.h"
#include "tests/support/capture_writer.h"
#include "tests/support/captured_traffic.h"
#include "tests/support/test_data.h"
#include "tests/support/time.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <map>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

using namespace tw;

namespace {

using Traffic = std::vector<test::CapturedDatagram>;
using Bytes = std::vector<std::byte>;

constexpr std::int64_t kFlushEveryUs = 100'000;
/// All players have joined by this time.
constexpr std::int64_t kJoinedUs = 10'000'000;

capture::CaptureEndpoint endpoint_of(std::uint32_t address, std::uint16_t port) {
    return {boost::asio::ip::address_v4{address}, port};
}

/// Returns a pcapng file with this head, then the datagrams in order.
Bytes pcapng_file_of(Bytes head, std::span<const test::CapturedDatagram> traffic) {
    Bytes frame;
    for (const test::CapturedDatagram& each : traffic) {
        capture::make_udp_frame(endpoint_of(each.source_address, each.source_port),
                                endpoint_of(each.destination_address, each.destination_port),
                                each.payload, frame);
        capture::PcapngEncoder{}.append_packet(
            {.time = static_cast<std::uint64_t>(each.time_us) * 1000, .frame = frame}, head);
    }
    return head;
}

/// Returns the datagrams in the order in which several workers would write them.
Traffic in_worker_order(const Traffic& traffic, unsigned workers) {
    std::map<std::pair<std::int64_t, unsigned>, Traffic> gathered;
    for (const test::CapturedDatagram& each : traffic) {
        const unsigned client = std::max(each.source_port, each.destination_port);
        const unsigned worker = client % workers;
        const std::int64_t flushed = (each.time_us + worker * 7'000) / kFlushEveryUs + 1;
        const bool joining = each.time_us - traffic.front().time_us < kJoinedUs;
        gathered[joining ? std::pair{each.time_us, 0U} : std::pair{flushed * kFlushEveryUs, worker}]
            .push_back(each);
    }
    Traffic all;
    for (const auto& [unused, part] : gathered) {
        all.insert(all.end(), part.begin(), part.end());
    }
    return all;
}

std::string decode_to_records(const std::vector<std::string>& files,
                              const capture::ServerDetector& servers = {}) {
    test::NoMaps maps;
    sink::TextOutput records;
    sink::JsonLines json{{}, records};
    std::atomic<std::uint32_t> numbers{0};
    inspect::Inspector inspector{{}, maps, json, numbers};
    capture::CaptureRun captures{files, servers};
    captures.set_quiet(true);
    captures.read_captures(inspector);
    json.flush();
    return records.text;
}

std::string decode_to_records(const Bytes& file, const capture::ServerDetector& servers = {}) {
    const test::TemporaryFile written{file};
    return decode_to_records({written.path()}, servers);
}

/// Returns the header of a pcapng file that another program wrote.
Bytes foreign_pcapng_header() {
    Bytes head;
    capture::PcapngEncoder{}.append_section("tcpdump", head);
    capture::PcapngEncoder{}.append_interface({.name = "lo", .description = ""}, head);
    return head;
}

/// Adds name lookups, as a host's capture has them. Each has the time of a game's datagram, so that
/// sessions close at the same times as without lookups.
Traffic with_other_traffic(const Traffic& game) {
    constexpr std::size_t kEvery = 10;
    constexpr std::uint16_t kNames = 53;
    std::mt19937 random{1};
    Traffic all;
    for (std::size_t i = 0; i < game.size(); ++i) {
        if (i % kEvery == 0) {
            Bytes lookup(33);
            std::ranges::generate(lookup, [&random] { return static_cast<std::byte>(random()); });
            all.push_back({.time_us = game[i].time_us,
                           .source_address = game[i].source_address,
                           .destination_address = 0x08080808,
                           .source_port = static_cast<std::uint16_t>(32768 + random() % 28000),
                           .destination_port = kNames,
                           .payload = lookup});
        }
        all.push_back(game[i]);
    }
    return all;
}

/// Moves a server's traffic to another port of its host.
Traffic move_to_port(Traffic game, std::uint16_t server, std::uint16_t port) {
    for (test::CapturedDatagram& each : game) {
        (each.source_port == server ? each.source_port : each.destination_port) = port;
    }
    return game;
}

/// Repeats a server's traffic on several ports of its host, a little later on each.
Traffic copy_to_servers(const Traffic& game, std::uint16_t server, std::uint16_t copies) {
    constexpr std::int64_t kLaterUs = 4'999'000;
    Traffic all;
    for (std::uint16_t copy = 0; copy < copies; ++copy) {
        for (test::CapturedDatagram& each :
             move_to_port(game, server, static_cast<std::uint16_t>(server + copy))) {
            each.time_us += copy * kLaterUs;
            all.push_back(std::move(each));
        }
    }
    std::ranges::stable_sort(all, {}, &test::CapturedDatagram::time_us);
    return all;
}

} // namespace

TEST_CASE("a capture written by several threads gives the records of the original order") {
    Traffic traffic = test::read_capture(test::test_data("captures/bench-4.pcap.gz"));
    for (std::size_t i = 1; i < traffic.size();
         ++i) { // gives each datagram its own time, so that the order is certain
        traffic[i].time_us = std::max(traffic[i].time_us, traffic[i - 1].time_us + 1);
    }
    const Traffic disordered = in_worker_order(traffic, 3);
    const auto earlier = [](const auto& a, const auto& b) { return a.time_us < b.time_us; };
    REQUIRE(std::ranges::is_sorted(traffic, earlier));
    REQUIRE_FALSE(std::ranges::is_sorted(disordered, earlier));

    const Bytes ours = capture::CaptureEncoder::encode_start();
    const std::string wanted = decode_to_records(pcapng_file_of(ours, traffic));
    CHECK((decode_to_records(pcapng_file_of(ours, disordered)) == wanted));

    // Writes the traffic in segments; no thread waits for the others between two segments.
    const std::span<const test::CapturedDatagram> all{disordered};
    const std::size_t cut = all.size() / 2;
    const test::TemporaryFile first{pcapng_file_of(ours, all.first(cut))};
    const test::TemporaryFile second{pcapng_file_of(ours, all.subspan(cut))};
    CHECK((decode_to_records({first.path(), second.path()}) == wanted));

    // Captures of other programs are not sorted, because only their order may be right.
    const Bytes others = foreign_pcapng_header();
    CHECK((decode_to_records(pcapng_file_of(others, disordered)) != wanted));
    CHECK((decode_to_records(pcapng_file_of(others, traffic)) == wanted));
}

TEST_CASE("the records of a server are the same, whatever other servers are in the capture") {
    const Traffic game = test::read_capture(test::test_data("captures/ddnet-20.1.1-race.pcap.gz"));
    const std::uint16_t server = game.front().destination_port;
    const Traffic several = copy_to_servers(game, server, 6);
    capture::ServerDetector asked_for;
    asked_for.add_server(server, std::nullopt);
    for (const Bytes& head : {capture::CaptureEncoder::encode_start(), foreign_pcapng_header()}) {
        const std::string wanted = decode_to_records(pcapng_file_of(head, game), asked_for);
        const std::string records = decode_to_records(pcapng_file_of(head, several), asked_for);
        // The run with all servers lasts longer, so open sessions are closed later.
        const std::size_t played = wanted.find("\"event\":\"close\"");
        REQUIRE(played != std::string::npos);
        CHECK((records.substr(0, played) == wanted.substr(0, played)));
    }
}

TEST_CASE("other traffic in a capture opens no session, whatever the ports of the game") {
    const Traffic whole = test::read_capture(test::test_data("captures/ddnet-20.1.1-race.pcap.gz"));
    const std::uint16_t server = whole.front().destination_port;
    const Traffic moved = move_to_port(whole, server, 40000);
    const std::span<const test::CapturedDatagram> all{moved};
    const Bytes head = foreign_pcapng_header();
    for (const std::size_t begin : {std::size_t{0}, all.size() / 2, all.size() / 3}) {
        CAPTURE(begin);
        const auto part = all.subspan(begin);
        const Traffic game{part.begin(), part.end()};
        const std::string records = decode_to_records(pcapng_file_of(head, game));
        CHECK((decode_to_records(pcapng_file_of(head, with_other_traffic(game))) == records));
        CHECK(records.find(
                  R"("event":"open","client":"127.0.0.1:43581","server":"127.0.0.1:40000")") !=
              std::string::npos);
    }
}

using capture::TimeSorter;

namespace {

using test::kMillisecond;

/// A datagram to or from a client, "a" to "z", at a time in milliseconds.
struct TimedDatagram {
    char client = 'a';
    std::int64_t at = 0;
    bool to_client = false;
};

capture::CapturedDatagram datagram_of(const TimedDatagram& sent,
                                      std::span<const std::byte> payload) {
    const auto address = boost::asio::ip::make_address("127.0.0.1");
    const capture::CaptureEndpoint client{address, static_cast<std::uint16_t>(50000 + sent.client)};
    const capture::CaptureEndpoint server{address, 8303};
    return {.time = sent.at * kMillisecond,
            .source = sent.to_client ? server : client,
            .destination = sent.to_client ? client : server,
            .payload = payload};
}

/// Returns the sorted datagrams as "a10 b20 ...". `early`: the number of those returned before the end.
std::string sorted_order(const std::vector<TimedDatagram>& all, std::size_t* early = nullptr) {
    TimeSorter order;
    std::string text;
    const auto take = [&](bool rest) {
        std::size_t count = 0;
        while (const TimeSorter::OrderedDatagram* const item =
                   order.next_datagram(rest ? 0 : TimeSorter::kMaxDatagrams)) {
            const TimedDatagram& sent = all[item->file];
            CHECK(item->datagram.time == sent.at * kMillisecond);
            CHECK(item->datagram.payload.size() == 1);
            CHECK(item->datagram.payload[0] == static_cast<std::byte>(sent.client));
            text += (text.empty() ? "" : " ") + (sent.client + std::to_string(sent.at));
            ++count;
        }
        return count;
    };
    std::size_t before = 0;
    for (std::size_t i = 0; i < all.size(); ++i) {
        const std::byte payload[]{static_cast<std::byte>(all[i].client)};
        order.add_datagram(datagram_of(all[i], payload), i);
        before += take(false);
    }
    take(true);
    if (early != nullptr) {
        *early = before;
    }
    return text;
}

} // namespace

TEST_CASE("datagrams are sorted by time within a window") {
    struct Row {
        std::string_view name;
        std::vector<TimedDatagram> given;
        std::string_view order;
    };

    const Row rows[] = {
        {"nothing", {}, ""},
        {"in order", {{'a', 10}, {'b', 10}, {'a', 20}}, "a10 b10 a20"},
        {"what two threads gathered",
         {{'a', 10}, {'a', 30}, {'a', 50}, {'b', 20}, {'b', 30}, {'b', 60}, {'a', 55}},
         "a10 a30 a50 b20 b30 a55 b60"},
        {"a newcomer, when that is known",
         {{'a', 10}, {'b', 10}, {'a', 50}, {'b', 20}, {'c', 30}, {'b', 60}},
         "a10 b10 b20 c30 a50 b60"},
        {"the clock of a connection goes back",
         {{'a', 100}, {'b', 120}, {'a', 90}, {'a', 91}, {'b', 130}},
         "a100 a90 a91 b120 b130"},
        {"both directions are one connection",
         {{'a', 100}, {'b', 110}, {'a', 90, true}, {'b', 120}},
         "a100 a90 b110 b120"},
        {"the clock was set back",
         {{'a', 5000}, {'b', 5010}, {'c', 3000}, {'a', 3020}, {'b', 3010}, {'a', 3030}},
         "a5000 b5010 c3000 a3020 b3010 a3030"},
        {"one from the future",
         {{'a', 10}, {'b', 900'000}, {'a', 20}, {'a', 30}, {'c', 25}},
         "a10 b900000 a20 a30 c25"},
    };
    for (const Row& row : rows) {
        CAPTURE(row.name);
        CHECK(sorted_order(row.given) == row.order);
    }
}

TEST_CASE("a datagram is passed on once no earlier one can follow") {
    std::size_t early = 0;
    CHECK(sorted_order({{'a', 10}, {'a', 500}, {'a', 1009}, {'a', 1010}}, &early) ==
          "a10 a500 a1009 a1010");
    CHECK(early == 1);
    CHECK(sorted_order({{'a', 9000}, {'b', 9100}, {'a', 10}}, &early) == "a9000 b9100 a10");
    CHECK(early == 2);
}

TEST_CASE("the number of waiting datagrams is limited") {
    TimeSorter order;
    std::size_t out = 0;
    const std::vector<std::byte> payload(60'000);
    for (std::size_t i = 0; i < 2000; ++i) {
        order.add_datagram(datagram_of({.at = 1}, payload), i);
        while (const TimeSorter::OrderedDatagram* const item = order.next_datagram()) {
            CHECK(item->file == out++);
        }
        CHECK((i + 1 - out) * payload.size() <= TimeSorter::kMaxBytes);
    }
    CHECK(out != 0);
    while (order.next_datagram(0) != nullptr) {
        ++out;
    }
    CHECK(out == 2000);
    for (std::size_t i = 0; i < TimeSorter::kMaxDatagrams; ++i) {
        order.add_datagram(datagram_of({.at = 1}, {}), i);
    }
    CHECK(order.next_datagram() == nullptr);
    order.add_datagram(datagram_of({.at = 1}, {}), 0);
    CHECK(order.next_datagram() != nullptr);
    CHECK(order.next_datagram() == nullptr);
}

TEST_CASE("a state stays with its datagram") {
    TimeSorter order;
    capture::StoredSessionState state{.client = {}, .server = {}, .bytes = {std::byte{7}}};
    capture::CapturedDatagram datagram = datagram_of({'a', 10}, {});
    datagram.state = &state;
    order.add_datagram(datagram, 0);
    state.bytes.clear(); // reading the file continues, which invalidates the state
    const TimeSorter::OrderedDatagram* const item = order.next_datagram(0);
    REQUIRE(item != nullptr);
    REQUIRE(item->datagram.state != nullptr);
    CHECK(item->datagram.state->bytes == std::vector{std::byte{7}});
}
