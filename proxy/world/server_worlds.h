#pragma once

#include "proxy/record/records.h"
#include "proxy/record/stats.h"
#include "proxy/world/difference_log.h"
#include "proxy/world/merge.h"
#include "proxy/world/missing_tee_check.h"
#include "proxy/world/open_world.h"
#include "proxy/world/seven_as_six.h"
#include "proxy/world/timeline.h"
#include "proxy/world/translation.h"
#include "proxy/world/world_messages.h"
#include "snapshot/objects.h"

#include <algorithm>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace tw::world {

/// What worlds there were.
struct WorldTotals {
    record::WorldStats worlds{};
    record::FindingCounts findings{};

    void merge(const WorldTotals& other);
    void add_findings_to(record::SessionStats& stats) const;
};

/// What the servers' worlds are made with, one after the other: its memory is there once.
struct Workbench {
    Workbench(const snapshot::ObjectSet& known, Patience ticks)
        : objects{&known}, patience{ticks}, seven_as_six{known} {}

    const snapshot::ObjectSet* objects;
    Patience patience;
    OpenWorlds open_worlds{};
    SevenAsSix seven_as_six;
    ViewMerge merge{};
    std::vector<View> views{}; ///< of the world being made
    std::vector<Difference> differences{};
    record::WorldMessageSink* messages = nullptr; ///< null: nobody wants what is said
};

/// Which server it is: its address, and the name that the configuration has for it, which lives as
/// long as the run; empty: none.
struct ServerId {
    std::string address;
    std::string_view name{};

    friend auto operator<=>(const ServerId&, const ServerId&) = default;
};

/// The worlds of one server: one record for each tick that any session was sent.
class ServerWorlds {
  public:
    /// `bench`: has to outlive it. `run`: the one before its first.
    ServerWorlds(ServerId server, Workbench& bench, record::RecordSink& sink,
                 std::uint32_t run = 0);

    void on_input(const Input& input);
    void finish();

    [[nodiscard]] const WorldTotals& totals() const { return totals_; }

    [[nodiscard]] std::size_t sessions() const { return timeline_.sessions(); }

    /// When anything was last heard of it.
    [[nodiscard]] record::Timestamp heard() const { return heard_; }

    [[nodiscard]] std::uint32_t run() const { return run_; }

    /// Messages for which there was no room.
    [[nodiscard]] std::uint64_t lost_messages() const { return messages_.lost(); }

    /// What it keeps: views that wait, the world before, and what was said.
    [[nodiscard]] std::size_t bytes() const;

    /// Keeps less, if it keeps anything: the oldest tick closes with what it has, or else the next
    /// world is told as a whole and what was said is forgotten.
    void shed();

  private:
    /// A session's map, and where its positions land.
    struct Place {
        std::string name{};
        record::MapRecord map{};
        const record::World* seen = nullptr; ///< that `world` is a copy of
        std::optional<record::World> world{};
    };

    void take_map(const record::MapRecord& map);
    void take_world(const Input& input);
    void close(const ClosedWorld& closed);
    void begin_run(std::uint32_t run);
    /// Of the views at hand; a world with a view of 0.6 is one of 0.6, and so are those behind it.
    void begin_dialect(snapshot::Dialect dialect);
    void read_views(const OpenWorld& views);
    void gather_roster();
    void find_place();
    void tell(record::FindingRecord finding);
    void tell_messages(const record::WorldRecord& world);
    void tell_differences(std::span<const DifferenceLog::Told> told, record::Timestamp time);
    void tell_vanished(const record::WorldRecord& world);

    ServerId server_;
    Workbench* bench_;
    record::RecordSink* sink_;
    record::TypeNames types_;
    Timeline timeline_;
    std::unordered_map<std::uint32_t, std::shared_ptr<Place>> places_; ///< of open sessions
    std::shared_ptr<const Place> place_;                               ///< of the run
    Beams beams_;
    record::Roster roster_; ///< of the world being made, where no items tell who plays
    Translation translation_;
    std::vector<record::Renumbered> renumbered_; ///< of the world before
    WorldMessages messages_;
    DifferenceLog log_;
    MissingTeeCheck vanishing_;
    record::Timestamp time_ = 0;  ///< the latest there was
    record::Timestamp heard_ = 0; ///< which is earlier after a clock stepped back
    std::uint32_t run_;
    std::uint64_t ordinal_ = 0;
    snapshot::Snapshot previous_; ///< the world before
    WorldTotals totals_;
};

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

/// Picks out of the records of sessions what worlds are made of.
class Feed final : public record::RecordSink {
  public:
    /// `messages`: somebody wants to know what is said to everybody.
    explicit Feed(InputSink& to, bool messages = false) : to_{&to}, messages_{messages} {}

    void on_record(const record::Record& record) override;

  private:
    InputSink* to_;
    bool messages_;
};

} // namespace tw::world
