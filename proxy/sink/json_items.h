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

/// Writes items of one object type as JSON. The constructor prepares all text that does not depend
/// on an item's ints, so that writing is fast.
class ObjectWriter {
  public:
    explicit ObjectWriter(const snapshot::ObjectSpec& object);

    /// Appends an item as `{"type":"character","type_id":9,"id":0,"fields":{...},"names":{...}`,
    /// without the closing brace. `missing_ints`: bit mask of the item's unknown ints
    /// (record::ItemSightings), whose fields are not written.
    void write(snapshot::ItemKey key, std::span<const std::int32_t> data,
               std::uint32_t missing_ints, JsonBuffer& out) const;

  private:
    struct Field {
        JsonLiteral key; ///< `,"x":`; the first field's key has no comma
        snapshot::FieldKind kind = snapshot::FieldKind::integer;
        std::uint8_t offset = 0;
        std::uint8_t count = 1;
        std::uint32_t bit = 0; ///< bit of the field's first int in the bit mask `missing_ints`
    };

    struct Flag {
        std::uint32_t mask = 0;
        JsonLiteral name; ///< `,"in_menu"`
    };

    struct ValueText {
        std::int64_t value = 0;
        JsonLiteral text; ///< `,"weapon":"gun"`
    };

    /// A field whose values have names.
    struct NamedField {
        std::uint8_t offset = 0;
        std::uint32_t when = 0;
        std::uint32_t bit = 0;
        std::vector<ValueText> values{}; ///< sorted by value; each value occurs once
        JsonLiteral key{};               ///< for flags: `,"playerflags":[`
        std::vector<Flag> flags{};
    };

    void prepare_names(const snapshot::FieldSpec& field);
    [[nodiscard]] char* put_fields(char* to, std::span<const std::int32_t> data,
                                   std::uint32_t missing_ints) const;
    [[nodiscard]] char* put_names(char* to, std::span<const std::int32_t> data,
                                  std::uint32_t missing_ints) const;
    [[nodiscard]] static char* put_name(char* to, const NamedField& names, std::int32_t value);

    JsonLiteral item_start_; ///< `{"type":"character","type_id":`
    std::vector<Field> fields_;
    std::vector<NamedField> names_;
    std::size_t max_bytes_ = 0; ///< the most bytes that write() appends for an item
};

/// Appends the text that is packed into `ints` (DDNet's IntsToStr) as a JSON string.
void append_packed_string(JsonBuffer& out, std::span<const std::int32_t> ints);

/// The items of a snapshot that are written.
enum class ItemChoice : std::uint8_t {
    none,
    /// Items that changed since the session's previous snapshot; in every 250th snapshot all items.
    changed,
    all,
};

/// Appends a JSON array with the names of the flags that are set in `value`.
void write_flag_names(const snapshot::NameTable& names, std::int32_t value, JsonBuffer& out);

/// Writes the members `items` and `removed` of snapshot records.
class ItemWriter {
  public:
    ItemWriter(ItemChoice choice, bool raw, const snapshot::ObjectSet& objects);

    /// Appends `,"items":[...],"removed":[...]`, and `,"full":true` if all items are listed.
    /// `all_items`: lists all items, except with ItemChoice::none.
    void write_items(const record::SnapshotRecord& record, bool all_items, JsonBuffer& out);
    /// Appends a position as an object: `{"x":..,"y":..,"tile":[..],...}`.
    static void write_location(const map::Location& place, JsonBuffer& out);

  private:
    /// The cached JSON text of a player's name. It is cached because names rarely change, and are
    /// the same in all sessions of a server.
    struct PlayerName {
        /// The value of num_snapshots_ at the last snapshot for which this name was looked up.
        std::uint64_t checked_at_snapshot = 0;
        std::array<std::int32_t, record::kPlayerNameInts> ints{};
        JsonLiteral text; ///< `,"player":"nameless tee"`; empty if unknown
    };

    /// The cached JSON text of an item. The sessions of a server have the same items, most items do
    /// not change from tick to tick, and copying text is many times faster than formatting it.
    struct CachedItemText {
        const snapshot::ObjectSpec* spec = nullptr;
        snapshot::ItemKey key;
        /// A bit mask of the item's unknown ints, as in record::ItemSightings.
        std::uint32_t missing_ints = 0;
        std::optional<std::uint16_t> client; ///< the client that the item belongs to
        std::size_t num_ints = 0;
        snapshot::RawVector<char> bytes; ///< the item's ints, followed by its text

        [[nodiscard]] bool has_ints(std::span<const std::int32_t> ints) const;
        void store_text(std::span<const std::int32_t> ints, std::string_view text);

        [[nodiscard]] std::string_view text() const {
            const std::size_t begin = num_ints * sizeof(std::int32_t);
            return {bytes.data() + begin, bytes.size() - begin};
        }
    };

    /// The cached JSON text that lists the sessions that received an item of a world. Most items
    /// share one text.
    struct CachedSessionsText {
        /// The value of seen_generation_ for which `sessions` is valid; 0: no text is cached.
        std::uint64_t generation = 0;
        std::vector<std::uint64_t> sessions; ///< a bit set as in record::ItemSightings
        JsonBuffer text;                     ///< `,"seen_by":[1,2]`
    };

    static constexpr std::size_t kMaxPlayers = record::Roster::kMaxPlayers;
    /// The size of the cache for lists of sessions. A server with 64 players has about 60 lists.
    static constexpr std::size_t kCachedSessionsTexts = 256;
    /// The size of the cache for items. A server with 64 players has about 800 different items.
    static constexpr std::size_t kCachedItems = 2048;
    /// The longest cached text of an item, in bytes. Only custom objects have longer texts.
    static constexpr std::size_t kMaxCachedTextBytes = 2048;

    void write_item(const record::SnapshotRecord& record, const snapshot::ObjectSpec* spec,
                    std::size_t index, JsonBuffer& out);
    static void write_id_kind(record::IdKind kind, JsonBuffer& out);
    static void write_renumbered_players(const record::ItemSightings& sightings, JsonBuffer& out);
    void write_sessions(const record::ItemSightings& sightings, std::size_t index, JsonBuffer& out);
    /// Appends an item of a known type. Returns the client that it belongs to; nullopt: no client.
    std::optional<std::uint16_t> write_object(const snapshot::ObjectSpec& spec,
                                              const snapshot::ItemView& item,
                                              std::uint32_t missing_ints, JsonBuffer& out);
    void write_player(const record::SnapshotRecord& record, std::uint16_t client, JsonBuffer& out);
    void look_up_player(const record::SnapshotRecord& record, std::uint16_t client,
                        PlayerName& player) const;
    static void set_name(PlayerName& player, std::optional<record::PackedText> packed);

    const snapshot::ObjectSet* object_set_;
    ItemChoice choice_;
    bool writes_raw_ints_;
    std::vector<ObjectWriter> objects_; ///< indexed by ObjectSet::index_of()
    /// The cached names of players, indexed by client id.
    std::vector<PlayerName> player_names_ = std::vector<PlayerName>(kMaxPlayers);
    /// The cache for items, indexed by the hash of an item's key.
    std::vector<CachedItemText> item_texts_ = std::vector<CachedItemText>(kCachedItems);
    std::size_t first_client_info_ = 0; ///< index of the first client_info in the current snapshot
    std::uint64_t num_snapshots_ = 0;   ///< number of snapshots written, including the current one
    JsonBuffer removed_;
    std::vector<std::uint32_t> seen_sessions_; ///< the sessions in the world that was written last
    std::uint64_t seen_generation_ = 1;        ///< incremented whenever seen_sessions_ changes
    /// The cache for lists of sessions, indexed by the hash of the sessions.
    std::vector<CachedSessionsText> session_texts_ =
        std::vector<CachedSessionsText>(kCachedSessionsTexts);
};

} // namespace tw::sink
