#pragma once

#include "proxy/record/records.h"
#include "proxy/record/stats.h"
#include "proxy/world/difference_log.h"
#include "proxy/world/id_restorer.h"
#include "proxy/world/missing_tee_check.h"
#include "proxy/world/seven_to_six.h"
#include "proxy/world/view.h"
#include "proxy/world/view_collector.h"
#include "proxy/world/view_merger.h"
#include "proxy/world/world_messages.h"
#include "snapshot/objects.h"

#include <algorithm>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace tw::world {

/// Totals of the merged snapshots that were written.
struct WorldTotals {
    record::WorldStats worlds{};
    record::FindingCounts findings{};

    void add_totals(const WorldTotals& other);
    void add_findings_to(record::SessionStats& stats) const;
};

/// Objects and buffers that all ServerWorlds share, to save memory.
struct SharedMergeState {
    SharedMergeState(const snapshot::ObjectSet& known, MergeDelay ticks)
        : objects{&known}, delay{ticks}, seven_to_six{known} {}

    const snapshot::ObjectSet* objects;
    MergeDelay delay;
    SevenToSixTranslator seven_to_six;
    ViewMerger merger{};
    std::vector<View> views{}; ///< views of the tick that is being merged
    std::vector<ViewDifference> differences{};
    /// Receives messages to all players; null if not wanted.
    record::WorldMessageSink* messages = nullptr;
};

/// A server's address and its name in the configuration. The name is valid until the program ends,
/// and empty if the configuration has none.
struct ServerId {
    std::string address;
    std::string_view name{};

    friend auto operator<=>(const ServerId&, const ServerId&) = default;
};

/// Merges the sessions' snapshots of one server. Writes one world record for each tick that at
/// least one session received.
class ServerWorlds {
  public:
    /// `shared` and `sink` must outlive this object. The first map run (see ViewCollector) gets the
    /// number `run` + 1.
    ServerWorlds(ServerId server, SharedMergeState& shared, record::RecordSink& sink,
                 std::uint32_t run = 0);

    void on_input(const MergerInput& input);
    void merge_waiting_ticks();

    [[nodiscard]] const WorldTotals& totals() const { return totals_; }

    [[nodiscard]] std::size_t session_count() const { return collector_.session_count(); }

    [[nodiscard]] record::Timestamp last_event_time() const { return last_event_time_; }

    [[nodiscard]] std::uint32_t map_run_number() const { return map_run_; }

    [[nodiscard]] std::uint64_t lost_message_count() const {
        return messages_.lost_message_count();
    }

    [[nodiscard]] std::size_t memory_bytes() const;

    /// Frees memory by closing the oldest open tick early. If no tick is open, forgets the messages
    /// and the previous merged snapshot. The next merged snapshot is then written in full.
    void free_memory();

  private:
    /// A session's map and its tiles.
    struct SessionMap {
        std::shared_ptr<const AnnouncedMap> announced{}; ///< its name is empty if unknown
        std::optional<record::TileMap> tile_map{};
    };

    void write_world(ClosedTick closed);
    void begin_map_run(std::uint32_t run);
    /// Starts a new series of merged snapshots in this dialect. A map run has the dialect 0.7 until
    /// its first 0.6 view, then 0.6.
    void restart_in_dialect(snapshot::Dialect dialect);
    /// Prepares the views of a tick for the merge.
    void prepare_views(std::vector<View> views);
    void gather_roster();
    void choose_current_map();
    void pass_on_messages(const record::WorldRecord& world);
    void report_findings(std::vector<record::FindingRecord> findings, record::Timestamp time);

    ServerId server_;
    SharedMergeState* shared_;
    record::RecordSink* sink_;
    record::ItemTypes types_;
    ViewCollector collector_;
    std::unordered_map<std::uint32_t, SessionMap> session_maps_;
    SessionMap current_map_;
    DraggerBeams beams_;
    record::Roster roster_; ///< players of the current tick; unused if the items contain them
    IdRestorer id_restorer_;
    /// The clients whose id was replaced in the previous tick.
    std::vector<record::RenumberedClient> previously_renumbered_;
    WorldMessages messages_;
    DifferenceLog difference_log_;
    MissingTeeCheck missing_tees_;
    record::Timestamp newest_event_time_ = 0; ///< the latest time of all events so far
    /// Time of the most recent event; earlier than newest_event_time_ if the clock was set back.
    record::Timestamp last_event_time_ = 0;
    std::uint32_t map_run_;
    std::uint64_t num_worlds_written_ = 0;
    snapshot::Snapshot previous_world_; ///< the previous merged snapshot
    WorldTotals totals_;
};

/// Merges the sessions' snapshots of all servers. Limits the number of servers and their memory,
/// because traffic with forged addresses can look like any number of servers. Views of servers that
/// do not fit are counted as dropped.
class WorldMerger final : public WorldInputSink {
  public:
    /// The maximum number of servers. A further server replaces a server that had no event for
    /// kIdleTimeout nanoseconds, preferably one without sessions, otherwise the one that has been
    /// idle longest.
    static constexpr std::size_t kMaxServers = 256;
    static constexpr record::Timestamp kIdleTimeout = 10'000'000'000;
    /// The memory limit for all servers together. The limit suffices for 20 servers with 64 views
    /// of 10 KiB each that wait a few ticks. If the limit is exceeded, the server that uses the
    /// most memory closes its oldest tick early.
    static constexpr std::size_t kMaxBytes = std::size_t{96} << 20U;

    /// Returns how much of the program's memory limit a WorldMerger may use.
    [[nodiscard]] static constexpr std::size_t memory_share(std::size_t memory_bytes) {
        return std::min(kMaxBytes, memory_bytes / 4);
    }

    /// `objects`: the known item types. `sink`: receives world records and findings. `max_bytes`:
    /// the memory limit for all servers together.
    WorldMerger(const snapshot::ObjectSet& objects, record::RecordSink& sink, MergeDelay delay = {},
                std::size_t max_bytes = kMaxBytes)
        : shared_{objects, delay}, sink_{&sink}, max_bytes_{max_bytes} {}

    /// Makes `sink` receive the messages to all players, each after the world record of its tick.
    /// Call this function before the first input.
    void send_messages_to(record::WorldMessageSink& sink) { shared_.messages = &sink; }

    void on_input(MergerInput input) override;
    /// Merges all ticks that still wait for views. Call this function after the last input.
    void merge_waiting_ticks();

    /// Returns the totals of all servers. Precondition: merge_waiting_ticks() was called.
    [[nodiscard]] const WorldTotals& totals() const { return totals_; }

    /// Returns the number of messages that were dropped to limit the memory use. Precondition:
    /// merge_waiting_ticks() was called.
    [[nodiscard]] std::uint64_t lost_message_count() const { return lost_messages_; }

    [[nodiscard]] std::size_t memory_bytes() const { return memory_bytes_; }

    [[nodiscard]] std::size_t server_count() const { return servers_.size(); }

  private:
    struct Session {
        ServerId server;
        ServerWorlds* worlds = nullptr; ///< null if the session's server exceeded kMaxServers
    };

    /// The servers by address and configured name.
    using Servers = std::map<ServerId, std::unique_ptr<ServerWorlds>>;

    void advance_time(record::Timestamp now);
    /// Returns the ServerWorlds of the session's server; null if the server exceeds kMaxServers.
    [[nodiscard]] ServerWorlds* find_or_add_worlds_of_session(std::uint32_t number,
                                                              const MergerInput& input);
    [[nodiscard]] ServerWorlds* find_or_add_server(const ServerId& server, record::Timestamp now);
    /// Removes a server that had no event for kIdleTimeout. Returns false if no server is idle.
    [[nodiscard]] bool remove_idle_server(record::Timestamp now);
    void pass_input_to_server(ServerWorlds& worlds, const MergerInput& input);
    void enforce_memory_limit();
    void remove_server(Servers::iterator server);

    SharedMergeState shared_;
    record::RecordSink* sink_;
    std::size_t max_bytes_;
    Servers servers_;
    std::unordered_map<std::uint32_t, Session> sessions_;
    std::size_t memory_bytes_ = 0;
    std::uint32_t newest_removed_map_run_ = 0; ///< the highest map run number of removed servers
    record::Timestamp last_advance_time_ = 0;
    std::uint64_t lost_messages_ = 0;
    WorldTotals totals_;
};

/// Converts the records of sessions to inputs of a WorldMerger.
class WorldInputConverter final : public record::RecordSink {
  public:
    /// `messages`: whether messages to all players are converted, too.
    explicit WorldInputConverter(WorldInputSink& to, bool messages = false)
        : input_sink_{&to}, passes_messages_{messages} {}

    void on_record(const record::Record& record) override;

  private:
    void add_snapshot(const record::SnapshotRecord& record, MergerInput& input);

    WorldInputSink* input_sink_;
    bool passes_messages_;
    /// The newest roster of each 0.7 session, which its snapshots share until it changes.
    std::unordered_map<std::uint32_t, std::shared_ptr<const record::Roster>> rosters_;
};

} // namespace tw::world
