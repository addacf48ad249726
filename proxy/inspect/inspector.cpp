#include "proxy/inspect/inspector.h"

#include "proxy/inspect/legacy_code.h"

#include <algorithm>
#include <utility>

namespace tw::inspect {

namespace {

/// What a session keeps is counted every so many datagrams; it grows by a history's block in each
/// at most.
constexpr std::uint32_t kChargeEvery = 16;

} // namespace

Inspector::~Inspector() {
    for (auto& [unused, watched] : sessions_) {
        release(watched);
    }
}

void Inspector::charge(Watched& watched) const {
    watched.until_charge = kChargeEvery;
    const std::size_t bytes = watched.session->memory_bytes();
    options_.memory->change(watched.charged, bytes);
    watched.charged = bytes;
}

void Inspector::release(Watched& watched) const {
    if (options_.memory != nullptr) {
        options_.memory->change(watched.charged, 0);
        watched.charged = 0;
    }
}

void Inspector::shed(record::Timestamp time) {
    maps_->shed();
    std::vector<Watched*> longest_silent;
    for (auto& [unused, watched] : sessions_) {
        watched.session->trim();
        charge(watched);
        longest_silent.push_back(&watched);
    }
    std::ranges::sort(longest_silent, {}, [](const Watched* watched) {
        return std::pair{watched->heard, watched->session->number()};
    });
    for (Watched* const watched : longest_silent) {
        if (!options_.memory->tight()) {
            return;
        }
        watched->session->shed(time);
        charge(*watched);
    }
}

void Inspector::on_open(std::uint64_t key, record::Timestamp time, std::string client,
                        std::string server, std::optional<Legacy> legacy,
                        std::string_view server_name) {
    const std::uint32_t number = numbers_->fetch_add(1, std::memory_order_relaxed) + 1;
    auto session = std::make_unique<Session>(number, std::move(client), std::move(server), options_,
                                             *maps_, *sink_);
    session->name_server(server_name);
    if (legacy) {
        session->inherit(*std::move(legacy));
    }
    session->open(time);
    Watched& watched = sessions_[key];
    release(watched);
    watched = {.session = std::move(session), .heard = time};
    ++seen_;
}

void Inspector::on_datagram(std::uint64_t key, record::Timestamp time, wire::Direction direction,
                            std::span<const std::byte> bytes, std::span<const std::byte> next) {
    workspace_.packet.begin(bytes, next);
    const auto found = sessions_.find(key);
    if (found == sessions_.end()) {
        return;
    }
    Watched& watched = found->second;
    watched.heard = time;
    at_hand_ = watched.session.get();
    watched.session->on_datagram(time, direction, bytes, workspace_);
    at_hand_ = nullptr;
    if (options_.memory == nullptr || --watched.until_charge != 0) {
        return;
    }
    charge(watched);
    if (options_.memory->exceeded()) {
        shed(time);
    }
}

std::optional<Legacy> Inspector::leave(std::uint64_t key) const {
    const auto found = sessions_.find(key);
    return found == sessions_.end() ? std::nullopt : std::optional{found->second.session->leave()};
}

std::vector<std::byte> Inspector::state_at_hand() const {
    const Legacy legacy = at_hand_ == nullptr ? Legacy{} : at_hand_->leave();
    return legacy.form == TokenForm::unknown ? std::vector<std::byte>{} : encode_legacy(legacy);
}

void Inspector::inherit(std::uint64_t key, Legacy legacy) {
    if (const auto found = sessions_.find(key); found != sessions_.end()) {
        found->second.session->inherit(std::move(legacy));
        found->second.until_charge = 1; // it may hold more than many datagrams bring
    }
}

void Inspector::on_gap(std::uint64_t key, record::Timestamp time, std::uint64_t lost,
                       std::string_view reason) {
    if (const auto found = sessions_.find(key); found != sessions_.end()) {
        found->second.session->on_gap(time, lost, reason);
        return;
    }
    for (auto& [unused, watched] : sessions_) {
        // Nobody knows whose they were; the run's total counts them once.
        watched.session->on_gap(time, 0, reason);
    }
    closed_.gap_lost += lost;
}

void Inspector::on_resync(std::uint64_t key, record::Timestamp time) {
    if (const auto found = sessions_.find(key); found != sessions_.end()) {
        found->second.session->on_resync(time);
    }
}

bool Inspector::wants_resync(std::uint64_t key) const {
    const auto found = sessions_.find(key);
    if (found == sessions_.end()) {
        return false;
    }
    const SnapshotTracker& snapshots = found->second.session->snapshots();
    return snapshots.is_blind() && snapshots.dialect() == snapshot::Dialect::six;
}

void Inspector::on_close(std::uint64_t key, record::Timestamp time, std::string_view reason) {
    const auto found = sessions_.find(key);
    if (found == sessions_.end()) {
        return;
    }
    Watched& watched = found->second;
    watched.session->close(time, reason, workspace_);
    closed_.merge(watched.session->totals());
    release(watched);
    sessions_.erase(found);
}

std::unique_ptr<Playback> Inspector::play(record::Timestamp time, std::string client,
                                          std::string server, snapshot::Dialect dialect) {
    const std::uint32_t number = numbers_->fetch_add(1, std::memory_order_relaxed) + 1;
    auto playback = std::make_unique<Playback>(number, std::move(client), std::move(server),
                                               options_, *maps_, *sink_, dialect);
    playback->open(time);
    ++seen_;
    return playback;
}

void Inspector::on_played(Playback& playback, record::Timestamp time, std::string_view reason) {
    playback.close(time, reason);
    closed_.merge(playback.totals());
}

std::vector<std::uint64_t> Inspector::keys() const {
    std::vector<std::uint64_t> keys;
    keys.reserve(sessions_.size());
    for (const auto& [key, unused] : sessions_) {
        keys.push_back(key);
    }
    std::sort(keys.begin(), keys.end(), [&](std::uint64_t left, std::uint64_t right) {
        return sessions_.at(left).session->number() < sessions_.at(right).session->number();
    });
    return keys;
}

void Inspector::report(record::Timestamp time) {
    for (const std::uint64_t key : keys()) {
        sessions_.at(key).session->report(time);
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
        const Session& session = *sessions_.at(key).session;
        see(session.number(), session.totals());
    }
}

record::SessionStats Inspector::totals() const {
    record::SessionStats totals = closed_;
    for (const auto& [unused, watched] : sessions_) {
        totals.merge(watched.session->totals());
    }
    return totals;
}

} // namespace tw::inspect
