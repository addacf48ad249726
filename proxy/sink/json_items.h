#pragma once

#include "proxy/record/records.h"
#include "proxy/record/snapshot_names.h"
#include "proxy/sink/json_buffer.h"
#include "proxy/sink/json_object.h"
#include "snapshot/raw_vector.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace tw::sink {

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

    /// Appends `,"items":[...],"removed":[...]`, and `,"full":true` when all items are listed; with
    /// `whole` they are, unless none are wanted.
    void write(const record::SnapshotRecord& record, bool whole, JsonBuffer& out);
    /// Appends an object for a place: `{"x":..,"y":..,"tile":[..],...}`.
    static void write_place(const record::WorldPlace& place, JsonBuffer& out);

  private:
    /// A player's name as JSON. Names hardly change, and are the same in all sessions of a server.
    struct PlayerName {
        std::uint64_t checked_in = 0; ///< the snapshot whose name this is, counted in snapshots_
        std::array<std::int32_t, record::kPlayerNameInts> ints{};
        Literal text; ///< `,"player":"nameless tee"`; empty while nothing is known
    };

    /// An item as it was written last. The sessions of a server see the same items, and most of
    /// them are the same from tick to tick: copying is many times faster than formatting.
    struct WrittenItem {
        const snapshot::ObjectSpec* spec = nullptr;
        snapshot::ItemKey key;
        std::uint32_t untold = 0;            ///< of its ints, bits as of record::Sightings
        std::optional<std::uint16_t> client; ///< whose item it is
        std::size_t num_ints = 0;
        snapshot::RawVector<char> bytes; ///< its ints, then its text

        [[nodiscard]] bool has(std::span<const std::int32_t> ints) const;
        void put(std::span<const std::int32_t> ints, std::string_view text);

        [[nodiscard]] std::string_view text() const {
            const std::size_t begin = num_ints * sizeof(std::int32_t);
            return {bytes.data() + begin, bytes.size() - begin};
        }
    };

    /// Who was shown an item of a world: most items have the same.
    struct SeenText {
        std::uint64_t generation = 0; ///< of the sessions that the bits are of; 0: no text yet
        std::vector<std::uint64_t> sessions; ///< bits as of record::Sightings
        JsonBuffer text;                     ///< `,"seen_by":[1,2]`
    };

    static constexpr std::size_t kMaxPlayers = record::Roster::kMaxPlayers;
    /// 64 players see about 60 different choices of items.
    static constexpr std::size_t kSeenTexts = 256;
    /// A server with 64 players shows about 800 different items.
    static constexpr std::size_t kWrittenItems = 2048;
    /// Longer texts are not kept. Items of custom objects can be long; those of the game are not.
    static constexpr std::size_t kMaxWrittenText = 2048;

    void write_item(const record::SnapshotRecord& record, const snapshot::ObjectSpec* spec,
                    std::size_t index, JsonBuffer& out);
    static void write_id_kind(record::IdKind kind, JsonBuffer& out);
    static void write_renumbered(const record::Sightings& sightings, JsonBuffer& out);
    /// Appends who was shown an item of a world.
    void write_sessions(const record::Sightings& sightings, std::size_t index, JsonBuffer& out);
    /// Returns whose item it is.
    std::optional<std::uint16_t> write_object(const snapshot::ObjectSpec& spec,
                                              const snapshot::ItemView& item, std::uint32_t untold,
                                              JsonBuffer& out);
    void write_player(const record::SnapshotRecord& record, std::uint16_t client, JsonBuffer& out);
    /// Makes `player` what this snapshot says.
    void look_up_player(const record::SnapshotRecord& record, std::uint16_t client,
                        PlayerName& player) const;
    static void set_name(PlayerName& player, std::optional<record::PackedText> packed);

    const snapshot::ObjectSet* set_;
    ItemChoice choice_;
    bool raw_;
    std::vector<ObjectWriter> objects_; ///< in the order of ObjectSet::index_of
    std::vector<PlayerName> players_ = std::vector<PlayerName>(kMaxPlayers);     ///< by client id
    std::vector<WrittenItem> written_ = std::vector<WrittenItem>(kWrittenItems); ///< by hash of key
    std::size_t first_client_info_ = 0; ///< in the snapshot at hand
    std::uint64_t snapshots_ = 0;       ///< written so far, with the one at hand
    JsonBuffer removed_;
    std::vector<std::uint32_t> seen_sessions_; ///< of the world written last
    std::uint64_t seen_generation_ = 1;        ///< one more whenever those are others
    std::vector<SeenText> seen_ = std::vector<SeenText>(kSeenTexts); ///< by hash of the sessions
};

} // namespace tw::sink
