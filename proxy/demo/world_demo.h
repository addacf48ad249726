#pragma once

#include "proxy/demo/demo_sink.h"
#include "proxy/record/records.h"
#include "proxy/record/roster.h"
#include "snapshot/snapshot.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace tw::demo {

/// The items and players of a world, with the client ids that they have in a demo.
struct DemoItems {
    snapshot::SnapshotView items{};
    const record::Roster* roster = nullptr;
    /// The number of items that were left out, because no id was free for their player.
    std::uint64_t num_left_out = 0;
};

/// Assigns client ids to the players of a world for a demo. Clients draw only players with ids
/// below a limit. A world may contain higher ids, which twscope has made up (docs/world.md).
class DemoClientIds {
  public:
    /// `vanilla`: true if vanilla Teeworlds must be able to play the demo, too.
    explicit DemoClientIds(bool vanilla) : vanilla_{vanilla} {}

    /// Returns the items and players of a world with ids that clients draw. A player whose id is
    /// too high gets a free id, and keeps it while present. The result is valid until the next call
    /// of assign_ids(), and not longer than `world`.
    [[nodiscard]] DemoItems assign_ids(const record::SnapshotRecord& world);

    /// Returns the id in the demo of a client of the world that was most recently passed to
    /// assign_ids(); nullopt if the client has no id.
    [[nodiscard]] std::optional<std::uint16_t> id_of(std::int32_t client) const;

  private:
    static constexpr std::uint16_t kMaxSlots = 64;

    /// Players with ids below `first_changed_id` keep them. Other players get an id below `slots`.
    struct IdLimits {
        std::uint16_t first_changed_id = 0;
        std::uint16_t slots = 0;
    };

    [[nodiscard]] IdLimits id_limits_for(const record::SnapshotRecord& world) const;
    void collect_clients(const record::SnapshotRecord& world);
    void assign_slot(std::uint16_t client);
    [[nodiscard]] std::uint64_t renumber_players(const record::SnapshotRecord& world);

    struct RenumberedItem {
        snapshot::ItemKey key{};
        std::vector<std::int32_t> data;
    };

    bool vanilla_;
    IdLimits limits_{};
    std::set<std::uint16_t> present_clients_; ///< the clients in the current world
    std::array<std::optional<std::uint16_t>, kMaxSlots> slots_{};
    std::vector<RenumberedItem> renumbered_;
    snapshot::Snapshot items_;
    record::Roster roster_;
};

/// Writes merged snapshots (worlds) as demos like those that servers record: with all players, and
/// without a player's view. After each start and map change of a server, a demo begins when the new
/// map is known. If a world has more than kMaxItems items or kMaxSnapshotBytes bytes, its items are
/// chosen in this order: descriptors, game items, player items, characters, flags, other items,
/// events. Within a group, they are chosen by key. Players get ids that clients draw
/// (DemoClientIds). Items that only 0.7 knows are left out of a 0.6 world. Each message to all
/// players is written once, after the tick of its world.
class WorldDemo final : public record::RecordSink, public record::WorldMessageSink {
  public:
    WorldDemo(DemoOptions options, store::FileQueue& files);

    void on_record(const record::Record& record) override;
    void on_world_message(const record::WorldMessage& message) override;

    void end_demos() { demos_.end_demos(); }

    [[nodiscard]] DemoLosses losses() const;

  private:
    /// The demo state of a server.
    struct ServerDemo {
        std::uint32_t number = 0; ///< the number that is passed to DemoSink as the session's number
        record::Timestamp last_world = 0; ///< time of the server's last world
        std::optional<std::uint32_t> run{};
        snapshot::Dialect dialect = snapshot::Dialect::six; ///< dialect of the server's worlds
        std::uint64_t ordinal = 0; ///< number of worlds since the map or dialect changed
        bool is_map_named = false; ///< true if the name of the current map is known
        DemoClientIds client_ids{false};
    };

    /// The most servers with demos at the same time. A further server replaces a server that has
    /// had no world for kIdleTimeout nanoseconds. Servers with connected players have worlds more
    /// often.
    static constexpr std::size_t kMaxServers = 64;
    static constexpr record::Timestamp kIdleTimeout = 10'000'000'000;

    /// Returns the demo state of the world's server; null if kMaxServers is reached.
    [[nodiscard]] ServerDemo* demo_of_server(const record::WorldRecord& world);
    /// Ends the demo of the server that has had no world for the longest time. Returns false if all
    /// servers had a world in the last kIdleTimeout nanoseconds.
    [[nodiscard]] bool end_longest_idle_demo(const record::RecordHeader& now);
    void handle_world(const record::WorldRecord& world);
    void begin_map(ServerDemo& server_demo, const record::WorldRecord& world);
    /// Returns the items that demo players of the world's dialect know and a snapshot has room for.
    /// The result is valid until the next call.
    [[nodiscard]] snapshot::SnapshotView playable_items(const record::SnapshotRecord& world);

    bool vanilla_; ///< true if vanilla Teeworlds must be able to play the demos, too
    DemoSink demos_;
    std::map<std::string, ServerDemo, std::less<>> servers_; ///< by server address
    std::uint32_t last_number_ = 0;
    snapshot::Snapshot playable_;
    /// The indices of the world's items, in the order of adding them to the demo's snapshot.
    std::vector<std::size_t> order_;
    DemoLosses losses_; ///< losses that demos_ does not count
    std::uint64_t num_runs_without_map_ =
        0; ///< number of server starts and map changes with an unknown map
};

} // namespace tw::demo
