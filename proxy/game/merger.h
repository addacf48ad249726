#pragma once

#include "proxy/game/input.h"
#include "proxy/game/server_worlds.h"
#include "proxy/record/records.h"
#include "snapshot/object_set.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>

namespace tw::game {

/// The worlds of all servers. Whoever sends traffic may invent servers: there is one table of them and
/// one budget, and what finds no room is counted as dropped.
class Merger final : public InputSink {
  public:
    /// More servers at one time are not looked at. One that was silent for kIdle gives its place to
    /// another, the longest silent first, and those without sessions before the others.
    static constexpr std::size_t kMaxServers = 256;
    static constexpr record::Timestamp kIdle = 10'000'000'000;
    /// What all servers keep together, at most: 20 with 64 players of 10 KiB each, in worlds that close after
    /// 4 ticks and more; or one whose players are waited for, and some. Beyond, the oldest tick of the
    /// server that keeps most closes with what it has.
    static constexpr std::size_t kMaxBytes = std::size_t{96} << 20U;

    /// What of the memory of a run worlds may take.
    [[nodiscard]] static constexpr std::size_t share_of(std::size_t memory_bytes) {
        return std::min(kMaxBytes, memory_bytes / 4);
    }

    /// `objects`: what is known of items. Worlds, and what is found while making them, go to `sink`.
    /// `max_bytes`: that all servers keep together.
    Merger(const snapshot::ObjectSet& objects, record::RecordSink& sink, Patience patience = {},
           std::size_t max_bytes = kMaxBytes)
        : bench_{objects, patience}, sink_{&sink}, max_bytes_{max_bytes} {}

    /// What is said to everybody goes there, behind the world that it belongs to. To be called before
    /// the first input.
    void tell_messages_to(record::WorldMessageSink& sink) { bench_.messages = &sink; }

    void on_input(const Input& input) override;
    /// Makes worlds of what is left.
    void finish();

    /// After `finish`.
    [[nodiscard]] const WorldTotals& totals() const { return totals_; }

    /// Messages for which there was no room. After `finish`.
    [[nodiscard]] std::uint64_t lost_messages() const { return lost_messages_; }

    /// What is kept of all servers.
    [[nodiscard]] std::size_t bytes() const { return bytes_; }

    [[nodiscard]] std::size_t servers() const { return servers_.size(); }

  private:
    struct Session {
        ServerId server;
        ServerWorlds* worlds = nullptr; ///< null: there was no room for its server
    };

    /// By address, and by the name that the configuration has for it.
    using Servers = std::map<ServerId, std::unique_ptr<ServerWorlds>>;

    void pass_time(record::Timestamp now);
    /// The session's, where there is room for its server.
    [[nodiscard]] ServerWorlds* worlds_of(std::uint32_t number, const Input& input);
    [[nodiscard]] ServerWorlds* find_server(const ServerId& server, record::Timestamp now);
    /// False: none is idle.
    [[nodiscard]] bool evict_idle(record::Timestamp now);
    void tell(ServerWorlds& worlds, const Input& input);
    void keep_within_budget();
    void end(Servers::iterator server);

    Workbench bench_;
    record::RecordSink* sink_;
    std::size_t max_bytes_;
    Servers servers_;
    std::unordered_map<std::uint32_t, Session> sessions_;
    std::size_t bytes_ = 0;
    std::uint32_t run_ = 0; ///< the highest of servers that gave their place away
    record::Timestamp advanced_ = 0;
    std::uint64_t lost_messages_ = 0;
    WorldTotals totals_;
};

} // namespace tw::game
