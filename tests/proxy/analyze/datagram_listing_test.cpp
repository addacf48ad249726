#include "proxy/analyze/datagram_listing.h"
#include "tests/support/captured_traffic.h"

#include <deque>
#include <map>

#include <doctest/doctest.h>

using namespace tw;
using namespace tw::test;

namespace {

/// Number of datagrams listed of each capture.
constexpr std::size_t kListed = 1500;

/// Lists the first datagrams of a capture: one listing for each datagram.
std::deque<analyze::DatagramListing> list_datagrams(const std::vector<TrafficDatagram>& traffic) {
    std::deque<analyze::DatagramListing> listings;
    std::size_t next = 0; // index of the datagram that is read
    inspect::Observers observers;
    for (std::size_t i = 0; i < std::min(kListed, traffic.size()); ++i) {
        // A listing is asked once for each datagram until it is complete.
        listings.emplace_back([&next, i](record::Timestamp) { return next == i; }, [] {});
        observers.add_observer(listings.back());
    }

    class Counter final : public inspect::Observer {
      public:
        explicit Counter(std::size_t& next) : next_{&next} {}

        void on_datagram_end() override { ++*next_; }

      private:
        std::size_t* next_;
    } counter{next};

    observers.add_observer(counter);
    NoSink sink;
    TrafficInspector inspector{{.observers = &observers}, sink};
    inspector.play(traffic);
    return listings;
}

} // namespace

TEST_CASE("each byte of real datagrams has one use, and their bits add up") {
    for (const char* name : {"bench-4.pcap.gz", "ddnet-20.1.1-race.pcap.gz",
                             "teeworlds-0.7.5.pcap.gz", "vanilla-0.6.5-ctf.pcap.gz"}) {
        CAPTURE(name);
        const auto traffic = read_traffic(name);
        const auto listings = list_datagrams(traffic);
        std::map<std::string, std::size_t> uses;
        std::size_t complete = 0;
        for (const analyze::DatagramListing& listing : listings) {
            if (!listing.is_complete()) {
                continue;
            }
            ++complete;
            const boost::json::object json = listing.json();
            CAPTURE(boost::json::serialize(json));
            std::map<std::string, std::int64_t> ends; // of the bytes so far, by container
            std::int64_t bits = 0;
            std::int64_t delta_bits = 0; // of the bytes of deltas that are known to be in it
            bool has_several_parts = false;
            for (const auto& each : json.at("rows").as_array()) {
                const auto& row = each.as_object();
                const std::string in{row.at("in").as_string()};
                const std::string use{row.at("use").as_string()};
                ++uses[use];
                if (use == "delta") { // each delta's bytes count from its beginning
                    ends["delta"] = 0;
                    has_several_parts = has_several_parts || row.at("value").as_string().find(
                                                                 "parts") != std::string::npos;
                }
                if (use != "packet compression end") {
                    CHECK(row.at("offset").to_number<std::int64_t>() == ends[in]);
                    ends[in] += row.at("bytes").to_number<std::int64_t>();
                    const auto& hex = row.at("hex").as_string();
                    CHECK((hex == "[redacted]" ||
                           hex.size() == 2 * row.at("bytes").to_number<std::size_t>()));
                }
                (in == "delta" ? delta_bits : bits) += row.at("bits").to_number<std::int64_t>();
            }
            if (!has_several_parts) {
                CHECK(bits + delta_bits == 8 * json.at("bytes").to_number<std::int64_t>());
            }
        }
        CHECK(complete > 500);
        for (const char* use : {"packet header", "chunk header", "message input head",
                                "delta counts", "item character fields"}) {
            CAPTURE(use);
            CHECK(uses[use] > 0);
        }
    }
}
