#include "proxy/analyze/snapshot_datagrams.h"

#include <algorithm>
#include <functional>
#include <string>
#include <utility>

namespace tw::analyze {

std::vector<SnapshotDatagram> SnapshotDatagrams::find(std::int64_t session,
                                                      std::int64_t tick) const {
    std::vector<SnapshotDatagram> found;
    const auto kept = kept_.find(static_cast<std::uint32_t>(session));
    if (kept == kept_.end()) {
        return found;
    }
    for (const KeptDatagram& each : kept->second) {
        if (each.tick != tick) {
            continue;
        }
        const auto older = std::ranges::find(found, each.datagram.part, &SnapshotDatagram::part);
        if (older == found.end()) {
            found.push_back(each.datagram);
        } else {
            *older = each.datagram;
        }
    }
    std::ranges::sort(found, {}, &SnapshotDatagram::part);
    return found;
}

void SnapshotDatagrams::on_datagram(const record::RecordHead& head,
                                    std::span<const std::byte> datagram) {
    session_ = head.session;
    current_ = {.time = head.time, .bytes = datagram.size()};
    // If a datagram was held back until its protocol was known, the capture's position is that of a later
    // datagram.
    if (const DatagramPosition place = place_(); place.frame != 0 && place.time == head.time) {
        current_.file = place.file;
        current_.frame = place.frame;
    }
    payload_ = {};
}

void SnapshotDatagrams::on_packet(const wire::Packet& packet) {
    current_.header = wire::header_size(packet);
    current_.compressed = packet.compressed;
    payload_ = packet.payload;
}

void SnapshotDatagrams::on_part(const inspect::PartSeen& part) {
    const std::span<const std::byte> data = part.body.data;
    if (part.fate == inspect::PartFate::repeated ||
        (kept_.size() >= kMaxSessions && !kept_.contains(session_))) {
        return;
    }
    SnapshotDatagram datagram = current_;
    datagram.part = part.body.part;
    datagram.num_parts = part.body.num_parts;
    const bool is_inside =
        !data.empty() && std::less_equal<>{}(payload_.data(), data.data()) &&
        std::less_equal<>{}(data.data() + data.size(), payload_.data() + payload_.size());
    if (is_inside) {
        datagram.size = data.size();
        datagram.begin = static_cast<std::size_t>(data.data() - payload_.data()) +
                         (datagram.compressed ? 0 : datagram.header);
    }
    std::deque<KeptDatagram>& kept = kept_[session_];
    kept.push_back({.tick = part.body.tick, .datagram = std::move(datagram)});
    if (kept.size() > kMaxDatagrams) {
        kept.pop_front();
    }
}

} // namespace tw::analyze
