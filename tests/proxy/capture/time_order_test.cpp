// Covers: proxy/capture/capture_run.cpp
#include "proxy/capture/capture_run.h"

#include <string>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>

using namespace tw;
using capture::TimeSorter;

namespace {

constexpr std::int64_t kMillisecond = 1'000'000;

/// Adds a datagram of a client, "a" to "z", at a time in milliseconds.
struct Sent {
    char client = 'a';
    std::int64_t at = 0;
    bool to_client = false;
};

capture::CapturedDatagram datagram_of(const Sent& sent, std::span<const std::byte> payload) {
    const auto address = boost::asio::ip::make_address("127.0.0.1");
    const capture::CaptureEndpoint client{address, static_cast<std::uint16_t>(50000 + sent.client)};
    const capture::CaptureEndpoint server{address, 8303};
    return {.time = sent.at * kMillisecond,
            .source = sent.to_client ? server : client,
            .destination = sent.to_client ? client : server,
            .payload = payload};
}

/// Returns the sorted datagrams as "a10 b20 ...". `early`: the number of those returned before the end.
std::string order_of(const std::vector<Sent>& all, std::size_t* early = nullptr) {
    TimeSorter order;
    std::string text;
    const auto take = [&](bool rest) {
        std::size_t count = 0;
        while (const TimeSorter::OrderedDatagram* const item =
                   order.next_datagram(rest ? 0 : TimeSorter::kMaxDatagrams)) {
            const Sent& sent = all[item->file];
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
        std::vector<Sent> given;
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
        CHECK(order_of(row.given) == row.order);
    }
}

TEST_CASE("a datagram is passed on once no earlier one can follow") {
    std::size_t early = 0;
    CHECK(order_of({{'a', 10}, {'a', 500}, {'a', 1009}, {'a', 1010}}, &early) ==
          "a10 a500 a1009 a1010");
    CHECK(early == 1);
    CHECK(order_of({{'a', 9000}, {'b', 9100}, {'a', 10}}, &early) == "a9000 b9100 a10");
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
    capture::CapturedState state{.client = {}, .server = {}, .bytes = {std::byte{7}}};
    capture::CapturedDatagram datagram = datagram_of({'a', 10}, {});
    datagram.state = &state;
    order.add_datagram(datagram, 0);
    state.bytes.clear(); // reading the file continues, which invalidates the state
    const TimeSorter::OrderedDatagram* const item = order.next_datagram(0);
    REQUIRE(item != nullptr);
    REQUIRE(item->datagram.state != nullptr);
    CHECK(item->datagram.state->bytes == std::vector{std::byte{7}});
}
