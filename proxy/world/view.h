#pragma once

#include "proxy/record/interface.h"
#include "proxy/record/records.h"
#include "proxy/record/roster.h"
#include "snapshot/objects.h"
#include "snapshot/snapshot.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tw::world {

/// One session's snapshot of a tick, with the data needed to interpret it.
struct View {
    std::uint32_t session = 0;
    std::int32_t client_version = 0; ///< the client's version; 0: vanilla
    snapshot::SnapshotView items{};
    /// The server replaced its client ids by numbers valid only for this client.
    bool has_translated_ids = false;
    std::optional<std::uint16_t> own_client_id{};       ///< client id of the viewer
    std::optional<std::uint16_t> spectated_client_id{}; ///< client id that the viewer spectates
    bool is_spectating = false;    ///< the viewer's camera is not at its own tee
    bool shows_scoreboard = false; ///< the client shows the scoreboard
    snapshot::Dialect dialect = snapshot::Dialect::six; ///< protocol version of the client
    /// The players; null if the items contain them, as in 0.6 and after the translation of a 0.7
    /// view by SevenToSixTranslator.
    const record::Roster* roster = nullptr;
    /// For each item, a bit mask of the ints whose value the view does not contain, as in
    /// record::ItemSightings; empty if no int is missing.
    std::span<const std::uint32_t> missing_ints{};

    /// Returns whether the view certainly has a client id for every player. Then the id -1 means
    /// "no player". This is never certain for 0.7.
    [[nodiscard]] bool has_ids_of_all_players() const {
        return !has_translated_ids && dialect == snapshot::Dialect::six;
    }
};

/// The changed items and players of a view. The view refers to them instead of the originals.
struct ViewCopy {
    snapshot::Snapshot items;
    std::vector<std::uint32_t> missing_ints;
    record::Roster roster;

    void clear() {
        items.clear();
        missing_ints.clear();
        roster.clear();
    }

    void append(snapshot::ItemKey key, std::span<const std::int32_t> ints, std::uint32_t missing) {
        items.append(key, ints);
        missing_ints.push_back(missing);
    }

    void replace_items_of(View& view) const {
        view.items = items.view();
        view.missing_ints = missing_ints;
    }
};

[[nodiscard]] std::string unpack_text(record::PackedText name);

/// Makes a view of a snapshot. `roster`: the players of a 0.7 session; null if unknown, and for
/// 0.6, where the items contain the players.
[[nodiscard]] View make_view(std::uint32_t session, std::int32_t version,
                             const snapshot::SnapshotView& items,
                             snapshot::Dialect dialect = snapshot::Dialect::six,
                             const record::Roster* roster = nullptr);

/// Returns whether `left` has more information than `right`. The criteria are, in this order: 0.6
/// before 0.7, ids for all players, newer version, lower session number. This is a total order,
/// because a session has only one view per tick.
[[nodiscard]] bool has_more_information(const View& left, const View& right);

/// Returns the class of a client version. Servers build some objects differently for clients before
/// certain versions, so only views of the same class must agree.
[[nodiscard]] unsigned client_version_class(std::int32_t version);

/// The map that a server announced.
struct AnnouncedMap {
    explicit AnnouncedMap(const record::MapRecord& announced);
    AnnouncedMap(const AnnouncedMap&) = delete;
    AnnouncedMap& operator=(const AnnouncedMap&) = delete;
    ~AnnouncedMap() = default;

    std::string name;
    record::MapRecord record; ///< its texts refer to `name` and a static text
};

/// A session's event that affects the merged snapshots of its server.
struct MergerInput {
    enum class Kind : std::uint8_t {
        open, ///< the session begins, or its client reconnects; `server` is set
        map,  ///< the session's server announced a map; `map` is set
        /// The session received a verified snapshot. These members are set: `tick`, `items`,
        /// `tile_map`, `dialect`, `roster`, `client_version`.
        snapshot,
        message,     ///< the session received a message, perhaps to all players; `payload` is set
        close,       ///< the session ended
        time_passed, ///< no session had an event until `time`
    };
    Kind kind = Kind::time_passed;
    record::Timestamp time = 0;
    std::uint32_t session = 0;
    std::string server{};
    /// The server's configured name, valid until the program ends; empty if none.
    std::string_view server_name{};
    bool resumed = false; ///< only for `open`: another process inspected the session before
    std::shared_ptr<const AnnouncedMap> map{};
    snapshot::Tick tick = 0;
    std::shared_ptr<const snapshot::Snapshot> items{};
    /// The map's tiles, to find the tile at a position; nullopt while the map is unknown.
    std::optional<record::TileMap> tile_map{};
    snapshot::Dialect dialect = snapshot::Dialect::six;
    std::shared_ptr<const record::Roster> roster{}; ///< the players; only for 0.7
    std::int32_t client_version = 0;  ///< DDNet's version number; 0: vanilla or unknown
    std::vector<std::byte> payload{}; ///< the whole message, see record::MessageRecord
};

/// Receives sessions' events.
class WorldInputSink : public record::InterfaceBase {
  public:
    virtual void on_input(MergerInput input) = 0;

    /// Whether snapshots are wanted at the moment. Otherwise, they need not be passed on.
    [[nodiscard]] virtual bool wants_snapshots() const { return true; }
};

} // namespace tw::world
