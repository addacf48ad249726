#pragma once

#include "snapshot/item.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace tw::snapshot {

/// The protocol family of a connection. The type numbers of items and the ids of messages depend on
/// it.
enum class Dialect : std::uint8_t {
    six,   ///< Teeworlds 0.6, and DDNet in connections with 0.6 clients
    seven, ///< Teeworlds 0.7, and DDNet in connections with 0.7 clients
};

inline constexpr std::size_t kDialects = 2;

/// A UUID: 16 bytes in the order of the text form. A UUID identifies a message type or item type
/// that DDNet or a mod added.
using Uuid = std::array<std::uint8_t, 16>;

/// A named value of an enum, or a named bit or bit mask of flags.
struct NamedValue {
    std::int64_t value = 0;
    std::string_view name;
};

/// The names of an int's values. If `flags` is set, the values are bit masks.
struct NameTable {
    std::string_view name; ///< such as "weapon" or "playerflag"
    bool flags = false;
    std::span<const NamedValue> values;

    /// Returns the name of an enum value; nullopt if the value has no name or if `flags` is set.
    [[nodiscard]] std::optional<std::string_view> find(std::int32_t value) const;
};

/// The type of a field of an item.
enum class FieldKind : std::uint8_t {
    integer,
    boolean,
    tick,
    named,      ///< an enum or flags; `names` is set
    int_string, ///< a text, with four bytes packed into each int
    integers,   ///< an array of `count` ints
};

/// How the value of a field is chosen when the snapshots that several clients received are merged
/// into one snapshot. Servers adapt some fields to the receiving client. The criteria for the best
/// client are, in this order: it uses 0.6, its snapshots contain all players, its version is newer.
enum class FieldMerge : std::uint8_t {
    same_for_all, ///< the value is the same for all clients
    varies,       ///< depends on the client's version or team: use the value of the best client
    own,          ///< use the value sent to the player or its spectators; otherwise it is unknown
    own_first,    ///< use the value sent to the player or its spectators, else to the best client
    greatest,     ///< use the greatest value among clients whose snapshots contain all players
    scoreboard,   ///< use the value sent to a client with open scoreboard, else the greatest value
    client_id,    ///< a client id; -1 may hide a client from the receiver, so prefer other values
    /// The value is a rank among the players in the snapshot. Snapshots with translated client ids
    /// lack some players, so use the value of a snapshot without translated ids.
    untranslated,
    about_viewer, ///< the value is about the receiving client: set to 0
    race_flags,   ///< flags; the bit "race_timer is the receiving client's time" is cleared
    race_timer,   ///< a time; set to 0 if it is the receiving client's time
    watched_flag, ///< 0.7 only: flags; the bit "the receiving client watches" is cleared
    /// A mod's field that intentionally differs per client. If the item's id is a client id, use
    /// the value sent to this client; otherwise the merged field has no value. Differences are not
    /// reported.
    per_viewer,
};

/// How a 0.7 field relates to the 0.6 field of the same name. A server that supports 0.6 and 0.7
/// keeps its state in the form of 0.6 and converts some values for 0.7 clients.
enum class RelationToSix : std::uint8_t {
    same,          ///< the same value
    recomputed,    ///< the same meaning; the value is computed anew and may differ
    other_meaning, ///< the value has another meaning; the 0.6 value is unknown
};

/// Families of objects with the same meaning. The client's version determines which object of a
/// family a server sends.
enum class ObjectFamily : std::uint8_t { none, projectile, laser, pickup };

/// How to merge the items of one object from the snapshots of several clients (see FieldMerge).
struct MergeSpec {
    bool per_session = false; ///< the object is about the receiving client, so it is not merged
    ObjectFamily family = ObjectFamily::none;
    /// Tells the objects of a family apart. The object with variant 0 has the most fields.
    std::uint8_t variant = 0;
    bool prefer_known_client = false; ///< prefer an item whose client id is not -1
    /// 0.7 only: name of the equivalent 0.6 object, used if 0.6 and 0.7 snapshots are merged.
    std::string_view six_name{};
    /// 0.7 only: the object is left out if 0.6 and 0.7 snapshots are merged, because 0.6 objects
    /// contain the same values.
    bool covered_by_six = false;
};

/// Describes a field of an object.
struct FieldSpec {
    std::string_view name;
    FieldKind kind = FieldKind::integer;
    std::uint8_t offset = 0; ///< index of the field's first int in the item
    std::uint8_t count = 1;  ///< number of ints in the field
    const NameTable* names = nullptr;
    /// Unless 0, the names apply only if the previous int has a value n whose bit n is set here.
    /// Example: a pickup's subtype is a weapon only if its type is weapon or ninja.
    std::uint32_t names_when = 0;
    FieldMerge merge = FieldMerge::same_for_all;
    RelationToSix six_relation =
        RelationToSix::same; ///< 0.7 only: relation to the 0.6 field of the same name
};

/// Whether FieldSpec::names apply to a field of an item. Precondition: `data` contains the field.
[[nodiscard]] constexpr bool names_apply(std::uint32_t names_when, std::size_t offset,
                                         std::span<const std::int32_t> data) {
    if (names_when == 0) {
        return true;
    }
    const auto kind = static_cast<std::uint32_t>(data[offset - 1]);
    constexpr std::uint32_t kBits = 32;
    return kind < kBits && (names_when >> kind & 1U) != 0;
}

/// Which ints of an object hold its position, and in which unit.
struct PositionSpec {
    std::uint8_t x = 0;        ///< index of the int that holds x
    std::uint8_t y = 0;        ///< index of the int that holds y
    std::uint8_t per_unit = 1; ///< factor from world units (pixels): 1; 100 for DDNet's projectiles
};

/// Where an object holds the id of the client to which it belongs.
struct ClientIdSpec {
    /// Index of the int with the client id; nullopt if the item's id is the client id.
    std::optional<std::uint8_t> field{};
};

enum class ObjectKind : std::uint8_t {
    object,
    event, ///< an item of this type is in the snapshots of only one tick
};

/// Describes one type of item.
struct ObjectSpec {
    std::uint16_t type = 0; ///< type number on the wire; 0 for a type with a UUID
    Uuid uuid{};            ///< UUID of the type; all zero for a numbered type
    std::string_view name;  ///< the name that DDNet gives the type, in snake_case
    std::string_view uuid_name{};
    ObjectKind kind = ObjectKind::object;
    /// Size in ints: the agreed size (see AgreedSizes) of a numbered type, or the current size of a
    /// type with a UUID.
    std::uint8_t size = 0;
    std::uint8_t min_size = 0; ///< in ints; clients ignore shorter items
    std::span<const FieldSpec> fields{};
    std::optional<PositionSpec> position{};
    std::optional<ClientIdSpec> client{};
    Dialect dialect = Dialect::six; ///< dialect of a numbered type; UUID types exist in both
    MergeSpec merge{};
};

/// The size of an item in ints, for each type below 64. Client and server know this size, so deltas
/// do not state it. 0: deltas state the size, as for all types above 63.
using AgreedSizes = std::array<std::uint8_t, 64>;

/// The sizes of types 1 to 20 in 0.6, which deltas do not state. object_fields.cpp checks that
/// object_table() has the same sizes.
inline constexpr AgreedSizes kAgreedSizes{0,  10, 6, 5, 4, 3, 8, 4, 15, 22, 5,
                                          17, 3,  2, 2, 2, 2, 3, 3, 3,  3};
/// The sizes of types 1 to 22 in 0.7, which deltas do not state. For 23 and 24 the delta contains
/// the size, because 0.7.0 did not have these types.
inline constexpr AgreedSizes kSevenAgreedSizes{0, 10, 6, 5,  3, 3, 3, 2, 4, 15, 22, 3,
                                               4, 58, 5, 32, 2, 2, 2, 2, 3, 3,  7};

[[nodiscard]] constexpr const AgreedSizes& agreed_sizes(Dialect dialect) {
    return dialect == Dialect::six ? kAgreedSizes : kSevenAgreedSizes;
}

[[nodiscard]] constexpr std::size_t agreed_size(std::uint16_t type, const AgreedSizes& sizes) {
    return type < sizes.size() ? sizes[type] : 0;
}

// Type numbers of objects in 0.6.
inline constexpr std::uint16_t kProjectileType = 2; ///< the same type in 0.7
inline constexpr std::uint16_t kLaserType = 3;
inline constexpr std::uint16_t kCharacterType = 9;
inline constexpr std::uint16_t kPlayerInfoType = 10;
inline constexpr std::uint16_t kClientInfoType = 11;
inline constexpr std::uint16_t kSpectatorInfoType = 12;
inline constexpr std::uint16_t kDeathType = 17;
// Type numbers of objects in 0.7.
inline constexpr std::uint16_t kSevenCharacterType = 10;
inline constexpr std::uint16_t kSevenPlayerInfoType = 11;
inline constexpr std::uint16_t kSevenDeathType = 20;
inline constexpr std::uint16_t kSevenGameDataRaceType = 24; ///< only races have it

[[nodiscard]] constexpr std::uint16_t character_type(Dialect dialect) {
    return dialect == Dialect::six ? kCharacterType : kSevenCharacterType;
}

[[nodiscard]] constexpr std::uint16_t player_info_type(Dialect dialect) {
    return dialect == Dialect::six ? kPlayerInfoType : kSevenPlayerInfoType;
}

/// Returns all known objects in this order: 0.6 objects by number, objects with a UUID, 0.7 objects
/// by number. An object that exists in 0.6 and 0.7 has the same name in both.
[[nodiscard]] std::span<const ObjectSpec> object_table();
[[nodiscard]] const ObjectSpec* find_object(std::uint16_t type, Dialect dialect);
[[nodiscard]] const ObjectSpec* find_object(const Uuid& uuid);

/// Returns which ints of an item are its position; nullopt if it has no position or is too short. A
/// projectile (type 2) may have DDNet's layout, with positions in hundredths. Servers send that
/// layout to clients that announce a DDNet version before 15.4.
[[nodiscard]] std::optional<PositionSpec> position_of(const ObjectSpec& object,
                                                      std::span<const std::int32_t> data);

/// Returns the id of the client to which an item belongs; nullopt if it belongs to no client.
[[nodiscard]] std::optional<std::uint16_t> client_of(const ObjectSpec& object, ItemKey key,
                                                     std::span<const std::int32_t> data);

/// Returns the UUID in a descriptor item (type 0): the first four ints, big-endian.
[[nodiscard]] std::optional<Uuid> descriptor_uuid(std::span<const std::int32_t> data);

/// The number of ints in the longest int string of all objects, which is a skin's name.
inline constexpr std::size_t kMaxStringInts = 6;

/// The number of text bytes in each int of an int string.
inline constexpr std::size_t kIntStringBytes = 4;

/// Packs a text into ints. A text that is too long is cut. The last byte is always 0.
void encode_int_string(std::string_view text, std::span<std::int32_t> ints);

/// Unpacks an int string into `out` (at most 4 bytes per int). Returns the length of the text. The
/// bytes may be invalid UTF-8.
[[nodiscard]] std::size_t decode_int_string(std::span<const std::int32_t> ints,
                                            std::span<char> out);

/// Parses a UUID such as "76ce455b-f9eb-3a48-add7-e04b941d045c", in lower case. For constants only:
/// the wrong number of digits is a compile error; other characters are not detected.
constexpr Uuid parse_uuid(std::string_view text) {
    Uuid bytes{};
    std::size_t digits = 0;
    for (const char c : text) {
        if (c != '-') {
            auto& byte = bytes.at(digits++ / 2);
            byte = static_cast<std::uint8_t>(byte * 16 + (c >= 'a' ? c - 'a' + 10 : c - '0'));
        }
    }
    return digits == 2 * bytes.size() ? bytes : throw "not a UUID";
}

/// Formats a UUID as parse_uuid() reads it.
[[nodiscard]] std::array<char, 36> format_uuid(const Uuid& uuid);

/// Owns the texts and tables of the objects and messages that a mod's description file adds.
class SpecStorage {
  public:
    /// Stores a value for the lifetime of this object. Returns the stored value, which does not
    /// move.
    template <typename T>
    const T& keep(T value) {
        const auto kept = std::make_shared<const T>(std::move(value));
        kept_.push_back(kept);
        return *kept;
    }

  private:
    std::vector<std::shared_ptr<const void>> kept_;
};

/// The objects that twscope knows: standard objects, and objects that a mod adds.
class ObjectSet {
  public:
    ObjectSet();

    /// Returns the set that contains only the standard objects.
    [[nodiscard]] static const ObjectSet& standard();

    /// The maximum number of added objects, which is more than any known mod adds.
    static constexpr std::size_t kMaxCustom = 256;

    /// Adds an object, or replaces the standard object with the same type or UUID.
    /// `is_size_agreed`: deltas do not state the object's size (see AgreedSizes). The texts and
    /// tables of the object must outlive the set. Returns false if the set is full, if the type or
    /// UUID was added before, or if the type cannot be added.
    [[nodiscard]] bool add(const ObjectSpec& object, bool is_size_agreed);

    [[nodiscard]] const ObjectSpec* find(std::uint16_t type, Dialect dialect) const;
    [[nodiscard]] const ObjectSpec* find(const Uuid& uuid) const;

    [[nodiscard]] const AgreedSizes& sizes(Dialect dialect) const {
        return sizes_[static_cast<std::size_t>(dialect)];
    }

    /// Returns the added objects. Pointers to them stay valid when more objects are added.
    [[nodiscard]] std::span<const ObjectSpec> custom() const { return custom_; }

    /// Returns the index of an object that `find` returned. Added objects follow the standard
    /// objects.
    [[nodiscard]] std::size_t index_of(const ObjectSpec& spec) const;

  private:
    std::vector<ObjectSpec> custom_; ///< never reallocated: space for kMaxCustom is reserved
    std::array<AgreedSizes, kDialects> sizes_{kAgreedSizes, kSevenAgreedSizes};
};

} // namespace tw::snapshot
