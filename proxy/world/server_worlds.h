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
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace tw::world {

/// Totals of the worlds that were written.
struct WorldTotals {
    record::WorldStats worlds{};
    record::FindingCounts findings{};

    void merge(const WorldTotals& other);
    void add_findings_to(record::SessionStats& stats) const;
};

/// The objects and buffers for making a world. All servers share them to save memory.
struct MergeTools {
    MergeTools(const snapshot::ObjectSet& known, WaitTicks ticks)
        : objects{&known}, patience{ticks}, seven_as_six{known} {}

    const snapshot::ObjectSet* objects;
    WaitTicks patience;
    OpenWorldPool open_worlds{};
    SevenAsSix seven_as_six;
    ViewMerge merge{};
    std::vector<View> views{}; ///< views of the current world
    std::vector<Difference> differences{};
    record::WorldMessageSink* messages = nullptr; ///< receives world messages; null if not wanted
};

/// A server's address and its name in the configuration. The name is valid as long as the run, and
/// empty if the configuration has none.
struct ServerId {
    std::string address;
    std::string_view name{};

    friend auto operator<=>(const ServerId&, const ServerId&) = default;
};

/// Makes the worlds of one server: one record for each tick that at least one session received.
class ServerWorlds {
  public:
    /// `tools` and `sink` must outlive this object. The first run has the number `run` + 1.
    ServerWorlds(ServerId server, MergeTools& tools, record::RecordSink& sink,
                 std::uint32_t run = 0);

    void on_input(const WorldInput& input);
    void finish();

    [[nodiscard]] const WorldTotals& totals() const { return totals_; }

    [[nodiscard]] std::size_t sessions() const { return timeline_.sessions(); }

    /// The time of the server's last event.
    [[nodiscard]] record::Timestamp last_event_time() const { return heard_; }

    [[nodiscard]] std::uint32_t run() const { return run_; }

    /// Messages dropped for want of memory.
    [[nodiscard]] std::uint64_t lost_messages() const { return messages_.lost(); }

    /// Memory use in bytes: waiting views, the previous world, and messages.
    [[nodiscard]] std::size_t bytes() const;

    /// Frees memory: closes the oldest open tick early. If no tick is open, forgets the messages
    /// and the previous world, so that the next world is written in full.
    void free_memory();

  private:
    /// A session's map, and the record::TileMap that finds the tiles at positions.
    struct SessionMap {
        std::string name{};
        record::MapRecord map{};
        const record::TileMap* seen =
            nullptr; ///< the session's object, of which `tile_map` is a copy
        std::optional<record::TileMap> tile_map{};
    };

    void set_map(const record::MapRecord& map);
    void set_tile_map(const WorldInput& input);
    void write_world(const ClosedWorld& closed);
    void begin_run(std::uint32_t run);
    /// Sets the dialect of the worlds. Once a world includes a 0.6 view, this world and all later
    /// ones are in 0.6.
    void begin_dialect(snapshot::Dialect dialect);
    void read_views(const OpenWorld& views);
    void gather_roster();
    void choose_map();
    void report(record::FindingRecord finding);
    void pass_on_messages(const record::WorldRecord& world);
    void report_differences(std::span<const DifferenceLog::Report> told, record::Timestamp time);
    void report_missing_tees(const record::WorldRecord& world);

    ServerId server_;
    MergeTools* tools_;
    record::RecordSink* sink_;
    record::TypeNames types_;
    Timeline timeline_;
    std::unordered_map<std::uint32_t, std::shared_ptr<SessionMap>> session_maps_;
    std::shared_ptr<const SessionMap> run_map_; ///< map of the current run
    DraggerBeams beams_;
    record::Roster roster_; ///< players of the current world; unused if its items contain them
    Translation translation_;
    /// Clients whose id the previous world had replaced.
    std::vector<record::Renumbered> renumbered_;
    WorldMessages messages_;
    DifferenceLog log_;
    MissingTeeCheck missing_tees_;
    record::Timestamp time_ = 0; ///< the latest time so far
    /// Time of the last event; before time_ if the clock was set back.
    record::Timestamp heard_ = 0;
    std::uint32_t run_;
    std::uint64_t ordinal_ = 0;
    snapshot::Snapshot previous_; ///< the previous world
    WorldTotals totals_;
};

/// Makes the worlds of all servers. Limits the number of servers and their memory, because traffic
/// with forged addresses can look like any number of servers. Views of servers that do not fit are
/// counted as dropped.
class WorldMerger final : public WorldInputSink {
  public:
    /// The limit of servers. If it is reached, a new server replaces one without events for kIdle:
    /// preferably one without sessions, otherwise the one without events for the longest time.
    static constexpr std::size_t kMaxServers = 256;
    static constexpr record::Timestamp kIdle = 10'000'000'000;
    /// The memory limit for all servers together. It suffices for 20 servers with 64 views of 10
    /// KiB each whose worlds wait a few ticks. If it is exceeded, the server that uses most memory
    /// closes its oldest tick early.
    static constexpr std::size_t kMaxBytes = std::size_t{96} << 20U;

    /// Returns the part of a run's memory limit that worlds may use.
    [[nodiscard]] static constexpr std::size_t share_of(std::size_t memory_bytes) {
        return std::min(kMaxBytes, memory_bytes / 4);
    }

    /// `objects`: the known item types. `sink`: receives worlds and findings. `max_bytes`: the
    /// limit for all servers together.
    WorldMerger(const snapshot::ObjectSet& objects, record::RecordSink& sink,
                WaitTicks patience = {}, std::size_t max_bytes = kMaxBytes)
        : tools_{objects, patience}, sink_{&sink}, max_bytes_{max_bytes} {}

    /// Sends broadcast messages to `sink`, each after the world it belongs to. Call it before the
    /// first input.
    void send_messages_to(record::WorldMessageSink& sink) { tools_.messages = &sink; }

    void on_input(const WorldInput& input) override;
    /// To be called after the last input: makes worlds of all ticks that still wait for views.
    void finish();

    /// The totals of all servers. Precondition: finish() was called.
    [[nodiscard]] const WorldTotals& totals() const { return totals_; }

    /// Messages dropped for want of memory. Precondition: finish() was called.
    [[nodiscard]] std::uint64_t lost_messages() const { return lost_messages_; }

    /// Memory use of all servers in bytes.
    [[nodiscard]] std::size_t bytes() const { return bytes_; }

    [[nodiscard]] std::size_t servers() const { return servers_.size(); }

  private:
    struct Session {
        ServerId server;
        ServerWorlds* worlds = nullptr; ///< null if there was no room for the session's server
    };

    /// The servers by address and configured name.
    using Servers = std::map<ServerId, std::unique_ptr<ServerWorlds>>;

    void pass_time(record::Timestamp now);
    /// Returns the worlds of the session's server; null if there is no room for that server.
    [[nodiscard]] ServerWorlds* worlds_of(std::uint32_t number, const WorldInput& input);
    [[nodiscard]] ServerWorlds* find_server(const ServerId& server, record::Timestamp now);
    /// Removes a server that has been without events for kIdle. Returns false if there is none.
    [[nodiscard]] bool evict_idle(record::Timestamp now);
    void pass_input(ServerWorlds& worlds, const WorldInput& input);
    void keep_within_budget();
    void remove_server(Servers::iterator server);

    MergeTools tools_;
    record::RecordSink* sink_;
    std::size_t max_bytes_;
    Servers servers_;
    std::unordered_map<std::uint32_t, Session> sessions_;
    std::size_t bytes_ = 0;
    std::uint32_t run_ = 0; ///< the highest run number of removed servers
    record::Timestamp advanced_ = 0;
    std::uint64_t lost_messages_ = 0;
    WorldTotals totals_;
};

/// Converts session records to the inputs of a WorldMerger.
class WorldFeed final : public record::RecordSink {
  public:
    /// `messages`: whether broadcast messages are wanted.
    explicit WorldFeed(WorldInputSink& to, bool messages = false) : to_{&to}, messages_{messages} {}

    void on_record(const record::Record& record) override;

  private:
    WorldInputSink* to_;
    bool messages_;
};

} // namespace tw::world
