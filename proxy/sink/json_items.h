#pragma once

#include "proxy/record/records.h"
#include "proxy/record/roster.h"
#include "proxy/sink/json_buffer.h"
#include "snapshot/arena.h"
#include "snapshot/item.h"
#include "snapshot/objects.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace tw::sink {

/// Writes the items of one object type. All text that does not depend on an item's ints is made once, and
/// so is the limit of the length of an item's text. So an item needs only copies and numbers.
class ObjectWriter {
  public:
    explicit ObjectWriter(const snapshot::ObjectSpec& object);

    /// Appends `{"type":"character","type_id":9,"id":0,"fields":{...},"names":{...}`, without the
    /// closing brace. `untold`: bit mask of the ints that are not known (record::SeenBy); their fields
    /// are left out.
    void write(snapshot::ItemKey key, std::span<const std::int32_t> data, std::uint32_t untold,
               JsonBuffer& out) const;

  private:
    struct Field {
        Literal key; ///< `,"x":`; the first field's key has no comma
        snapshot::FieldKind kind = snapshot::FieldKind::integer;
        std::uint8_t offset = 0;
        std::uint8_t count = 1;
        std::uint32_t bit = 0; ///< bit of the field's first int in `untold`
    };

    struct Flag {
        std::uint32_t mask = 0;
        Literal name; ///< `,"in_menu"`
    };

    struct Name {
        std::int64_t value = 0;
        Literal text; ///< `,"weapon":"gun"`
    };

    /// A field whose values have names.
    struct Names {
        std::uint8_t offset = 0;
        std::uint32_t when = 0;
        std::uint32_t bit = 0;
        std::vector<Name> values{}; ///< sorted by value; each value occurs once
        Literal key{};              ///< for flags: `,"playerflags":[`
        std::vector<Flag> flags{};
    };

    void prepare_names(const snapshot::FieldSpec& field);
    [[nodiscard]] char* put_fields(char* to, std::span<const std::int32_t> data,
                                   std::uint32_t untold) const;
    [[nodiscard]] char* put_names(char* to, std::span<const std::int32_t> data,
                                  std::uint32_t untold) const;
    [[nodiscard]] static char* put_name(char* to, const Names& names, std::int32_t value);

    Literal front_; ///< `{"type":"character","type_id":`
    std::vector<Field> fields_;
    std::vector<Names> names_;
    std::size_t room_ = 0; ///< the most bytes of an item's text
};

/// Appends the text packed in these ints as a JSON string.
void append_int_string(JsonBuffer& out, std::span<const std::int32_t> ints);

/// Which items of a snapshot are written.
enum class ItemChoice : std::uint8_t {
    none,
    changed, ///< items that are new or differ from the session's previous snapshot; all items in every 250th
    all,
};

/// Appends the names of the set flags as a JSON array.
void write_flag_names(const snapshot::NameTable& names, std::int32_t value, JsonBuffer& out);

/// Writes the keys `items` and `removed` of snapshots.
class ItemWriter {
  public:
    ItemWriter(ItemChoice choice, bool raw, const snapshot::ObjectSet& objects);

    /// Appends `,"items":[...],"removed":[...]`, and `,"full":true` if all items are listed. With
    /// `whole`, all items are listed, except for ItemChoice::none.
    void write(const record::SnapshotRecord& record, bool whole, JsonBuffer& out);
    /// Appends a position as an object: `{"x":..,"y":..,"tile":[..],...}`.
    static void write_place(const record::WorldPlace& place, JsonBuffer& out);

  private:
    /// The cached JSON text of a player's name. Names rarely change, and are the same in all sessions of
    /// a server.
    struct PlayerName {
        /// The value of snapshots_ for the last snapshot that contained this name.
        std::uint64_t checked_in = 0;
        std::array<std::int32_t, record::kPlayerNameInts> ints{};
        Literal text; ///< `,"player":"nameless tee"`; empty if unknown
    };

    /// The cached text of an item. The sessions of a server have the same items, and most items stay the
    /// same from tick to tick. Copying the text is many times faster than formatting it.
    struct WrittenItem {
        const snapshot::ObjectSpec* spec = nullptr;
        snapshot::ItemKey key;
        std::uint32_t untold = 0; ///< bit mask of the item's unknown ints, as in record::SeenBy
        std::optional<std::uint16_t> client; ///< the client that the item belongs to
        std::size_t num_ints = 0;
        snapshot::RawVector<char> bytes; ///< the item's ints, followed by its text

        [[nodiscard]] bool has(std::span<const std::int32_t> ints) const;
        void put(std::span<const std::int32_t> ints, std::string_view text);

        [[nodiscard]] std::string_view text() const {
            const std::size_t begin = num_ints * sizeof(std::int32_t);
            return {bytes.data() + begin, bytes.size() - begin};
        }
    };

    /// The cached text for the sessions that received an item of a world. Most items share one text.
    struct SeenText {
        /// The value of seen_generation_ for which `sessions` is valid; 0 if there is no text yet.
        std::uint64_t generation = 0;
        std::vector<std::uint64_t> sessions; ///< bits as in record::SeenBy
        JsonBuffer text;                     ///< `,"seen_by":[1,2]`
    };

    static constexpr std::size_t kMaxPlayers = record::Roster::kMaxPlayers;
    /// In a server with 64 players, there are about 60 different sets of sessions.
    static constexpr std::size_t kSeenTexts = 256;
    /// A server with 64 players has about 800 different items.
    static constexpr std::size_t kWrittenItems = 2048;
    /// A longer text is not cached. Only items of custom objects have such texts.
    static constexpr std::size_t kMaxWrittenText = 2048;

    void write_item(const record::SnapshotRecord& record, const snapshot::ObjectSpec* spec,
                    std::size_t index, JsonBuffer& out);
    static void write_id_kind(record::IdKind kind, JsonBuffer& out);
    static void write_renumbered(const record::SeenBy& sightings, JsonBuffer& out);
    /// Appends the sessions that received an item of a world.
    void write_sessions(const record::SeenBy& sightings, std::size_t index, JsonBuffer& out);
    /// Appends an item of a known type. Returns the client that the item belongs to.
    std::optional<std::uint16_t> write_object(const snapshot::ObjectSpec& spec,
                                              const snapshot::ItemView& item, std::uint32_t untold,
                                              JsonBuffer& out);
    void write_player(const record::SnapshotRecord& record, std::uint16_t client, JsonBuffer& out);
    void look_up_player(const record::SnapshotRecord& record, std::uint16_t client,
                        PlayerName& player) const;
    static void set_name(PlayerName& player, std::optional<record::PackedText> packed);

    const snapshot::ObjectSet* set_;
    ItemChoice choice_;
    bool raw_;
    std::vector<ObjectWriter> objects_; ///< in the order of ObjectSet::index_of
    std::vector<PlayerName> players_ = std::vector<PlayerName>(kMaxPlayers); ///< by client id
    /// The items that were written last, in a table indexed by the hash of the item's key.
    std::vector<WrittenItem> written_ = std::vector<WrittenItem>(kWrittenItems);
    std::size_t first_client_info_ = 0; ///< index of the first client_info in the current snapshot
    std::uint64_t snapshots_ = 0;       ///< number of snapshots written, including the current one
    JsonBuffer removed_;
    std::vector<std::uint32_t> seen_sessions_; ///< sessions of the world written last
    std::uint64_t seen_generation_ = 1;        ///< incremented when seen_sessions_ changes
    std::vector<SeenText> seen_ = std::vector<SeenText>(kSeenTexts); ///< by hash of the sessions
};

} // namespace tw::sink
