#include "tests/support/captured_traffic.h"

#include "tests/support/capture.h"
#include "tests/support/test_data.h"

#include <algorithm>
#include <map>
#include <span>

namespace tw::test {

std::vector<TrafficDatagram> read_traffic(const std::string& name) {
    auto captured = read_capture(test_data("captures/" + name));
    std::map<std::uint16_t, std::size_t> ports;
    for (const CapturedDatagram& datagram : captured) {
        ++ports[datagram.source_port];
        ++ports[datagram.destination_port];
    }
    const auto by_count = [](const auto& a, const auto& b) { return a.second < b.second; };
    const auto server = std::ranges::max_element(ports, by_count);
    std::vector<TrafficDatagram> traffic;
    traffic.reserve(captured.size());
    for (CapturedDatagram& datagram : captured) {
        const bool s2c = datagram.source_port == server->first;
        traffic.push_back({.session = s2c ? datagram.destination_port : datagram.source_port,
                           .direction = s2c ? wire::Direction::s2c : wire::Direction::c2s,
                           .time = datagram.time_us * 1000,
                           .bytes = std::move(datagram.payload)});
    }
    return traffic;
}

inspect::MapSearchResult NoMaps::find_map(const inspect::MapAnnouncement& /*announcement*/) {
    return {};
}

inspect::MapSearchResult NoMaps::store_map(const inspect::MapAnnouncement& /*announcement*/,
                                           std::vector<std::byte> /*bytes*/) {
    return {};
}

void TrafficInspector::on_datagram(const TrafficDatagram& datagram, const TrafficDatagram* next) {
    last_ = datagram.time;
    if (!open_[datagram.session % open_.size()]) {
        open_[datagram.session % open_.size()] = true;
        inspector_.on_open(datagram.session, datagram.time,
                           "client " + std::to_string(datagram.session), "server");
    }
    inspector_.on_datagram(datagram.session, datagram.time, datagram.direction, datagram.bytes,
                           next == nullptr ? std::span<const std::byte>{} : next->bytes);
}

void TrafficInspector::finish() {
    inspector_.close_all_sessions(last_, "end of capture");
}

void TrafficInspector::play(const std::vector<TrafficDatagram>& traffic) {
    for (const TrafficDatagram& datagram : traffic) {
        on_datagram(datagram);
    }
    finish();
}

} // namespace tw::test
