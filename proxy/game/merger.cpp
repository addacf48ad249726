#include "proxy/game/merger.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace tw::game {

void Merger::tell(ServerWorlds& worlds, const Input& input) {
    const std::size_t before = worlds.bytes();
    worlds.on_input(input);
    bytes_ = bytes_ - before + worlds.bytes();
}

void Merger::pass_time(record::Timestamp now) {
    constexpr record::Timestamp kStep = 100'000'000;
    constexpr record::Timestamp kSteppedBack = 10 * kStep; // more than what workers are apart
    if (now - advanced_ >= kStep || advanced_ - now >= kSteppedBack) {
        advanced_ = now;
        for (const auto& [name, server] : servers_) {
            tell(*server, {.kind = Input::Kind::time_passed, .time = now});
        }
    }
}

void Merger::end(Servers::iterator server) {
    ServerWorlds* const worlds = server->second.get();
    const std::size_t before = worlds->bytes();
    worlds->finish();
    totals_.merge(worlds->totals());
    lost_messages_ += worlds->lost_messages();
    bytes_ -= before;
    run_ = std::max(run_, worlds->run());
    for (auto& [number, session] : sessions_) {
        if (session.worlds == worlds) {
            session.worlds = nullptr;
        }
    }
    servers_.erase(server);
}

bool Merger::evict_idle(record::Timestamp now) {
    const auto is_busy = [now](const ServerWorlds& worlds) { return now - worlds.heard() < kIdle; };
    const auto rank = [&](const Servers::value_type& server) {
        const ServerWorlds& worlds = *server.second;
        return std::tuple{is_busy(worlds), worlds.sessions() != 0, worlds.heard()};
    };
    const auto idlest = std::ranges::min_element(servers_, {}, rank);
    if (idlest == servers_.end() || is_busy(*idlest->second)) {
        return false;
    }
    end(idlest);
    return true;
}

ServerWorlds* Merger::find_server(const ServerId& server, record::Timestamp now) {
    if (const auto known = servers_.find(server); known != servers_.end()) {
        return known->second.get();
    }
    if (servers_.size() >= kMaxServers && !evict_idle(now)) {
        return nullptr;
    }
    auto worlds = std::make_unique<ServerWorlds>(server, bench_, *sink_, run_);
    return servers_.emplace(server, std::move(worlds)).first->second.get();
}

ServerWorlds* Merger::worlds_of(std::uint32_t number, const Input& input) {
    auto known = sessions_.find(number);
    if (known == sessions_.end()) {
        if (input.kind != Input::Kind::open) {
            return nullptr;
        }
        known = sessions_
                    .emplace(number, Session{.server = {.address = std::string{input.server},
                                                        .name = input.server_name}})
                    .first;
    }
    Session& session = known->second;
    const bool asks_for_room =
        input.kind != Input::Kind::close && input.kind != Input::Kind::message;
    if (session.worlds == nullptr && asks_for_room) {
        session.worlds = find_server(session.server, input.time);
        if (session.worlds != nullptr && input.kind != Input::Kind::open) {
            tell(*session.worlds,
                 {.kind = Input::Kind::open, .time = input.time, .session = number});
        }
    }
    if (session.worlds == nullptr && input.kind == Input::Kind::snapshot) {
        ++totals_.worlds.dropped;
    }
    return session.worlds;
}

void Merger::keep_within_budget() {
    while (bytes_ > max_bytes_) {
        const auto size = [](const Servers::value_type& server) { return server.second->bytes(); };
        ServerWorlds& largest = *std::ranges::max_element(servers_, {}, size)->second;
        bytes_ -= largest.bytes();
        largest.shed();
        bytes_ += largest.bytes();
    }
}

void Merger::on_input(const Input& input) {
    // Silence of one server shows in what others say; of messages it must not depend, for which not
    // everybody asks.
    if (input.kind != Input::Kind::message) {
        pass_time(input.time);
    }
    if (input.kind == Input::Kind::time_passed) {
        return;
    }
    if (ServerWorlds* const worlds = worlds_of(input.session, input); worlds != nullptr) {
        tell(*worlds, input);
        keep_within_budget();
    }
    if (input.kind == Input::Kind::close) {
        sessions_.erase(input.session);
    }
}

void Merger::finish() {
    while (!servers_.empty()) {
        end(servers_.begin());
    }
    sessions_.clear();
}

} // namespace tw::game
