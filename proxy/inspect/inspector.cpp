#include "proxy/inspect/inspector.h"

#include <algorithm>
#include <utility>

namespace tw::inspect {

void Inspector::on_open(std::uint64_t key, record::Timestamp time, std::string client,
                        std::string server) {
    const std::uint32_t number = numbers_->fetch_add(1, std::memory_order_relaxed) + 1;
    auto session = std::make_unique<Session>(number, std::move(client), std::move(server), options_,
                                             *maps_, *sink_);
    session->open(time);
    sessions_.insert_or_assign(key, std::move(session));
    ++seen_;
}

void Inspector::on_datagram(std::uint64_t key, record::Timestamp time, wire::Direction direction,
                            std::span<const std::byte> bytes) {
    const auto found = sessions_.find(key);
    if (found != sessions_.end()) {
        found->second->on_datagram(time, direction, bytes, workspace_);
    }
}

void Inspector::on_gap(std::uint64_t key, record::Timestamp time, std::uint64_t lost,
                       std::string_view reason) {
    if (const auto found = sessions_.find(key); found != sessions_.end()) {
        found->second->on_gap(time, lost, reason);
        return;
    }
    for (auto& [key_, session] : sessions_) {
        // Nobody knows whose they were; the run's total counts them once.
        session->on_gap(time, 0, reason);
    }
    closed_.gap_lost += lost;
}

void Inspector::on_close(std::uint64_t key, record::Timestamp time, std::string_view reason) {
    const auto found = sessions_.find(key);
    if (found == sessions_.end()) {
        return;
    }
    found->second->close(time, reason);
    closed_.merge(found->second->totals());
    sessions_.erase(found);
}

std::vector<std::uint64_t> Inspector::keys() const {
    std::vector<std::uint64_t> keys;
    keys.reserve(sessions_.size());
    for (const auto& [key, unused] : sessions_) {
        keys.push_back(key);
    }
    std::sort(keys.begin(), keys.end(), [&](std::uint64_t left, std::uint64_t right) {
        return sessions_.at(left)->number() < sessions_.at(right)->number();
    });
    return keys;
}

void Inspector::report(record::Timestamp time) {
    for (const std::uint64_t key : keys()) {
        sessions_.at(key)->report(time);
    }
}

void Inspector::finish(record::Timestamp time, std::string_view reason) {
    for (const std::uint64_t key : keys()) {
        on_close(key, time, reason);
    }
}

void Inspector::visit(
    const std::function<void(std::uint32_t number, const record::SessionStats&)>& see) const {
    for (const std::uint64_t key : keys()) {
        const Session& session = *sessions_.at(key);
        see(session.number(), session.totals());
    }
}

record::SessionStats Inspector::totals() const {
    record::SessionStats totals = closed_;
    for (const auto& [unused, session] : sessions_) {
        totals.merge(session->totals());
    }
    return totals;
}

} // namespace tw::inspect
