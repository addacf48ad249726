#pragma once

#include "proxy/inspect/records.h"
#include "proxy/record/json_buffer.h"
#include "proxy/record/json_object.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace tw::record {

/// Which items of a snapshot are written.
enum class ItemChoice : std::uint8_t {
    none,
    changed, ///< new or different from the session's previous snapshot; all on every 250th
    all,
};

/// Appends the names of the set flags as an array.
void write_flag_names(const snapshot::NameTable& names, std::int32_t value, JsonBuffer& out);

/// Writes the `items` and `removed` of snapshots.
class ItemWriter {
  public:
    ItemWriter(ItemChoice choice, bool raw, const snapshot::ObjectSet& objects);

    /// Appends `,"items":[...],"removed":[...]`, and `,"full":true` when all items are listed.
    void write(const inspect::SnapshotRecord& record, JsonBuffer& out);
    /// Appends an object for a place: `{"x":..,"y":..,"tile":[..],...}`.
    static void write_place(const inspect::WorldPlace& place, JsonBuffer& out);

  private:
    /// A player's name as JSON. Names hardly change, and are the same in all sessions of a server.
    struct PlayerName {
        std::array<std::int32_t, 4> ints{};
        Literal text; ///< `,"player":"nameless tee"`; empty while nothing is known
    };

    static constexpr std::size_t kMaxPlayers = 128;

    void write_item(const inspect::SnapshotRecord& record, const snapshot::ItemView& item,
                    JsonBuffer& out);
    void write_player(const inspect::SnapshotRecord& record, std::uint16_t client, JsonBuffer& out);

    const snapshot::ObjectSet* set_;
    ItemChoice choice_;
    bool raw_;
    std::vector<ObjectWriter> objects_; ///< in the order of ObjectSet::index_of
    std::vector<PlayerName> players_ = std::vector<PlayerName>(kMaxPlayers); ///< by client id
    std::size_t first_client_info_ = 0; ///< in the snapshot at hand
    JsonBuffer removed_;
};

} // namespace tw::record
