#include "proxy/run/tap_feed.h"

#include <algorithm>
#include <vector>

#include <boost/asio/ip/udp.hpp>

namespace tw::run {

namespace {

/// Between two looks at whether sessions that were set aside can be shown again.
constexpr relay::Timestamp kSettleEvery = 100'000'000;

relay::Endpoint endpoint_of(const capture::CaptureEndpoint& endpoint) {
    const boost::asio::ip::udp::endpoint address{endpoint.address, endpoint.port};
    return relay::endpoint_from(address.data());
}

} // namespace

TapFeed::TapFeed(relay::Ring& ring, relay::Observation& observation, capture::ServerGuess servers,
                 capture::CaptureSessions::Limits limits, relay::Timestamp now)
    : tap_{&ring, limits.max_sessions, observation.observer},
      counters_{observation.counters.data()}, servers_{std::move(servers)},
      sessions_{*this, servers_, limits}, drops_{now} {}

void TapFeed::on_captured(const capture::CapturedDatagram& datagram) {
    tell_drops(datagram.time);
    sessions_.on_datagram(datagram);
}

/// In one place among the datagrams, where some may be missing.
void TapFeed::tell_drops(relay::Timestamp time) {
    if (const auto missing = drops_.reached(time)) {
        tap_.missed(*missing, time);
    }
}

void TapFeed::on_turn(relay::Timestamp now, std::uint64_t kernel_dropped, bool idle) {
    counters_->turns.add(1);
    counters_->kernel_dropped.add(kernel_dropped - dropped_);
    dropped_ = kernel_dropped;
    counters_->sessions_refused.add(sessions_.refused() - refused_);
    refused_ = sessions_.refused();
    drops_.look(now, kernel_dropped);
    if (idle) {
        sessions_.on_time(now);
        if (drops_.open() && now - drops_.end() > DropWindow::kSettled) {
            tell_drops(now);
        }
    }
    if (now - settled_ >= kSettleEvery || now < settled_) {
        settled_ = now;
        static_cast<void>(tap_.settle(now)); // what does not fit is tried again
    } else {
        tap_.commit();
    }
}

bool TapFeed::finish(relay::Timestamp now) {
    if (drops_.open()) {
        tell_drops(std::max(now, drops_.end() + 1));
    }
    std::vector<std::uint64_t> keys;
    keys.reserve(open_.size());
    for (const auto& [key, unused] : open_) {
        keys.push_back(key);
    }
    std::sort(keys.begin(), keys.end());
    for (const std::uint64_t key : keys) {
        close(key, now, relay::CloseReason::shutdown);
    }
    return tap_.settle(now);
}

void TapFeed::on_open(std::uint64_t key, std::int64_t time, const capture::CaptureEndpoint& client,
                      const capture::CaptureEndpoint& server) {
    relay::TapSession& session = open_[key];
    session.id = static_cast<std::uint32_t>(key);
    session.client = endpoint_of(client);
    session.upstream = session.client; // nothing stands between the two
    session.server = endpoint_of(server);
    counters_->sessions_opened.add(1);
    tap_.open(session, time);
}

void TapFeed::on_datagram(std::uint64_t key, std::int64_t time, wire::Direction direction,
                          std::span<const std::byte> bytes, std::span<const std::byte> /*next*/) {
    const auto found = open_.find(key);
    if (found == open_.end()) {
        return;
    }
    const bool to_server = direction == wire::Direction::c2s;
    auto& counters = counters_->directions[to_server ? 0 : 1];
    counters.datagrams.add(1);
    counters.bytes.add(bytes.size());
    const std::uint64_t lost = tap_.lost();
    tap_.datagram(found->second, time, to_server ? relay::Direction::c2s : relay::Direction::s2c,
                  bytes);
    counters.copies_lost.add(tap_.lost() - lost);
}

void TapFeed::on_end(std::uint64_t key, std::int64_t time, capture::Ended why) {
    close(key, time,
          why == capture::Ended::idle        ? relay::CloseReason::idle
          : why == capture::Ended::displaced ? relay::CloseReason::displaced
                                             : relay::CloseReason::turned);
}

void TapFeed::close(std::uint64_t key, relay::Timestamp time, relay::CloseReason reason) {
    const auto found = open_.find(key);
    if (found == open_.end()) {
        return;
    }
    tap_.close(found->second, time, reason);
    counters_->sessions_closed.add(1);
    open_.erase(found);
}

} // namespace tw::run
