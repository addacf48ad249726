#include "proxy/game/world_messages.h"

#include <algorithm>
#include <utility>

namespace tw::game {

void WorldMessages::add(std::uint32_t session, const Moment& at, record::Timestamp time,
                        std::span<const std::byte> payload) {
    const std::size_t size = payload.size() + kWaitingBytes;
    if (bytes_ + size > kMaxBytes) {
        ++lost_;
        return;
    }
    bytes_ += size;
    waiting_.push_back(
        {.session = session, .at = at, .time = time, .payload = {payload.begin(), payload.end()}});
}

void WorldMessages::see(std::uint32_t session, const ClientIds* ids) {
    Session& known = sessions_[session];
    known.translated = ids != nullptr;
    known.ids = ids == nullptr ? ClientIds{} : *ids;
}

void WorldMessages::leave(std::uint32_t session) {
    if (const auto known = sessions_.find(session); known != sessions_.end()) {
        known->second.left = true; // what it was told last still waits
    }
}

std::size_t WorldMessages::playing() const {
    return static_cast<std::size_t>(
        std::ranges::count_if(sessions_, [](const auto& each) { return !each.second.left; }));
}

void WorldMessages::take(const Waiting& waiting, const World& world) {
    const auto known = sessions_.find(waiting.session);
    if (known == sessions_.end()) {
        return; // no world shows what it is shown: nobody knows whose ids it is told
    }
    ClientNumber number;
    if (known->second.translated) {
        number = [&ids = known->second.ids](std::int32_t client) -> std::optional<std::uint16_t> {
            const auto id = ids.find(static_cast<std::uint16_t>(client));
            return id == ids.end() ? std::nullopt : id->second;
        };
    }
    auto said = read_said(waiting.payload, waiting.at.dialect, world.dialect, number);
    if (!said) {
        return;
    }
    const std::size_t size = said->bytes.size();
    const auto [line, added] = lines_.try_emplace(std::move(said->bytes));
    Line& it = line->second;
    if (added) {
        it.spec = said->spec;
    }
    const auto [told, first] = it.told.try_emplace(waiting.session);
    bytes_ += first ? kToldBytes : 0;
    const bool is_new = told->second == it.times.size();
    if (is_new) {
        bytes_ += size + kTimeBytes;
        it.for_two = said->for_two && playing() > 1;
        it.times.push_back({.number = ++number_, .first = waiting.time});
        ages_.push_back({.tick = world.tick, .line = line});
    }
    Time& time = it.times[told->second];
    ++told->second;
    if (!time.passed_on && (!it.for_two || !is_new)) {
        time.passed_on = true;
        ready_.push_back({.number = time.number, .time = time.first, .line = line});
    }
}

void WorldMessages::forget_first(Lines::iterator line) {
    bytes_ -= line->first.size() + kTimeBytes;
    Line& it = line->second;
    it.times.pop_front();
    for (auto& [session, times] : it.told) {
        --times; // who was told anything was told the first
    }
    bytes_ -=
        kToldBytes * std::erase_if(it.told, [](const auto& told) { return told.second == 0; });
    if (it.times.empty()) {
        lines_.erase(line);
    }
}

void WorldMessages::tell(const World& world, record::WorldMessageSink& to) {
    while (!ages_.empty() && std::int64_t{ages_.front().tick} + kWindow < world.tick) {
        forget_first(ages_.front().line);
        ages_.pop_front();
    }
    std::deque<Waiting> later;
    for (Waiting& waiting : std::exchange(waiting_, {})) {
        const bool is_later = waiting.at.run == world.run && waiting.at.tick > world.tick;
        if (waiting.at.run > world.run || is_later) {
            later.push_back(std::move(waiting));
            continue;
        }
        bytes_ -= waiting.payload.size() + kWaitingBytes;
        if (waiting.at.run == world.run) {
            take(waiting, world);
        }
    }
    waiting_ = std::move(later);
    std::erase_if(sessions_, [this](const auto& each) {
        return each.second.left &&
               std::ranges::find(waiting_, each.first, &Waiting::session) == waiting_.end();
    });
    std::ranges::sort(ready_, {}, &Ready::number);
    wire::DecodedFields fields;
    for (const Ready& ready : std::exchange(ready_, {})) {
        const auto& [bytes, line] = *ready.line;
        if (const auto head = wire::decode_message_head(bytes, world.dialect)) {
            wire::decode_fields(*line.spec, head->body, fields);
            to.on_world_message({.time = ready.time,
                                 .server = world.server,
                                 .run = world.run,
                                 .spec = line.spec,
                                 .values = fields.values,
                                 .payload = bytes});
        }
    }
}

void WorldMessages::begin_run() {
    for (; !ages_.empty(); ages_.pop_front()) {
        forget_first(ages_.front().line);
    }
    sessions_.clear();
}

void WorldMessages::clear() {
    lost_ += waiting_.size();
    waiting_.clear();
    ages_.clear();
    lines_.clear();
    bytes_ = 0;
}

} // namespace tw::game
