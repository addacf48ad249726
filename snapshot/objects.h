#pragma once

#include "snapshot/item.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tw::snapshot {

/// Which of the game's two families a connection is of: each numbers its types on its own.
enum class Dialect : std::uint8_t {
    six,   ///< Teeworlds 0.6 and DDNet
    seven, ///< Teeworlds 0.7, and DDNet towards 0.7 clients
};

inline constexpr std::size_t kDialects = 2;

/// 16 bytes in textual order; names messages and snapshot types that DDNet and mods add.
using Uuid = std::array<std::uint8_t, 16>;

/// One named value of an enum or one named bit (or bit mask) of a flag word.
struct NamedValue {
    std::int64_t value = 0;
    std::string_view name;
};

/// The names behind an int. With `flags` the values are masks.
struct NameTable {
    std::string_view name; ///< the field's own word: "weapon", "playerflag"
    bool flags = false;
    std::span<const NamedValue> values;

    /// Name of an enum value; nothing when it has none or this is a flag word.
    [[nodiscard]] std::optional<std::string_view> find(std::int32_t value) const;
};

/// What an int of an item means.
enum class FieldKind : std::uint8_t {
    integer,
    boolean,
    tick,
    named,      ///< an enum or a flag word: `names` is set
    int_string, ///< text packed four bytes an int, `count` ints (protocol sheet, section 8.4)
    integers,   ///< an array of `count` ints
};

/// How the values that several clients were sent of one field become one: a server makes some
/// fields for the client it sends them to (views sheet, section 4). The first view is the one of the
/// newest client version that knows all players.
enum class FieldMerge : std::uint8_t {
    any,          ///< the same for everybody
    varies,       ///< by version, team or moment: the first view's
    own,          ///< true only for the player and who watches them; nobody else knows it
    own_first,    ///< the player's own view, else the first one's
    greatest,     ///< the greatest of all
    scoreboard,   ///< true for who looks at the scoreboard, else the greatest of all
    client,       ///< a client id; -1 may be one that a view does not know
    untranslated, ///< a rank among the players a view knows: of one that knows all
    viewer,       ///< about the viewer: 0 in a world
    race_flags,   ///< has a bit that says whether race_timer is the viewer's; without it in a world
    race_timer,   ///< then 0 in a world
    watched_flag, ///< of 0.7: has a bit that says that the viewer watches; without it in a world
    /// Made for each viewer on purpose (a mod's): of an item whose id is a client's, that client's
    /// view tells it. In a world nobody else does, and a difference says nothing.
    per_viewer,
};

/// What a field of 0.7 is beside the one of 0.6 with its name. A server that speaks both makes 0.7
/// of what it has for 0.6, and changes some values on the way (0.7 sheet, section 11.3).
enum class InSix : std::uint8_t {
    same,    ///< the same value
    remade,  ///< the same thing, but its value may be another
    another, ///< another thing: 0.7 does not tell that field
};

/// Objects that are one thing, told to clients of different versions in different forms.
enum class Family : std::uint8_t { none, projectile, laser, pickup };

/// How the items that several clients were sent of one object become one.
struct MergeSpec {
    bool per_session = false; ///< about the viewer: not in a world
    Family family = Family::none;
    std::uint8_t form = 0; ///< of a family; the lowest says most
    bool whole = false;    ///< an item whose `client` field is -1 is worth less as a whole
    /// Of 0.7: the object of 0.6 that is the same thing, and is told instead in a world of both.
    std::string_view six{};
    bool six_tells = false; ///< of 0.7: in such a world 0.6 tells it in another way
};

struct FieldSpec {
    std::string_view name;
    FieldKind kind = FieldKind::integer;
    std::uint8_t offset = 0; ///< first int of the field in the item
    std::uint8_t count = 1;  ///< ints it takes
    const NameTable* names = nullptr;
    /// The names hold only while the int before the field is one of these bits; 0: always. A pickup
    /// has a weapon only if it is one.
    std::uint32_t names_when = 0;
    FieldMerge merge = FieldMerge::any;
    InSix in_six = InSix::same; ///< only of 0.7
};

/// Whether the names of a field hold for this item. Precondition: the item has the field.
[[nodiscard]] constexpr bool names_hold(std::uint32_t names_when, std::size_t offset,
                                        std::span<const std::int32_t> data) {
    if (names_when == 0) {
        return true;
    }
    const auto kind = static_cast<std::uint32_t>(data[offset - 1]);
    constexpr std::uint32_t kBits = 32;
    return kind < kBits && (names_when >> kind & 1U) != 0;
}

/// Where an object's own position stands, and its unit.
struct PositionSpec {
    std::uint8_t x = 0; ///< index of the int that holds x
    std::uint8_t y = 0;
    std::uint8_t per_unit = 1; ///< ints per world unit (pixel): 1, or 100 for DDNet's projectiles
};

/// How an object says which client it belongs to.
struct ClientSpec {
    std::optional<std::uint8_t> field{}; ///< index of the int that says it; nothing: the item's id
};

enum class ObjectKind : std::uint8_t {
    object,
    event, ///< in the snapshot of one tick only
};

/// All that is known of one type of item. This table is the only place that knows.
struct ObjectSpec {
    std::uint16_t type = 0; ///< number on the wire, 0 for those named by a UUID
    Uuid uuid{};            ///< all zero for those with a number
    std::string_view name;  ///< DDNet's, in snake_case
    std::string_view uuid_name;
    ObjectKind kind = ObjectKind::object;
    std::uint8_t size = 0; ///< ints: agreed for numbered types, the current version's for UUIDs
    std::uint8_t min_size =
        0; ///< ints that current readers demand; shorter items stay raw for them
    std::span<const FieldSpec> fields;
    std::optional<PositionSpec> position;
    std::optional<ClientSpec> client{};
    Dialect dialect = Dialect::six; ///< of numbered types; those with a UUID are the same in both
    MergeSpec merge{};
};

/// Ints of an item of each type when both sides agree on it without saying it on the wire; 0: the
/// size is written in the delta. Only types below 64 can have one.
using AgreedSizes = std::array<std::uint8_t, 64>;

/// What everybody agrees on in 0.6: types 1 to 20. objects_table.cpp checks its table against it.
inline constexpr AgreedSizes kAgreedSizes{0,  10, 6, 5, 4, 3, 8, 4, 15, 22, 5,
                                          17, 3,  2, 2, 2, 2, 3, 3, 3,  3};
/// The same in 0.7: types 1 to 22. Of 23 and 24 the size is written: 0.7.0 did not know them.
inline constexpr AgreedSizes kSevenAgreedSizes{0, 10, 6, 5,  3, 3, 3, 2, 4, 15, 22, 3,
                                               4, 58, 5, 32, 2, 2, 2, 2, 3, 3,  7};

[[nodiscard]] constexpr const AgreedSizes& agreed_sizes(Dialect dialect) {
    return dialect == Dialect::six ? kAgreedSizes : kSevenAgreedSizes;
}

[[nodiscard]] constexpr std::size_t agreed_size(std::uint16_t type, const AgreedSizes& sizes) {
    return type < sizes.size() ? sizes[type] : 0;
}

/// Types of 0.6 that are known by more than their row in the table.
inline constexpr std::uint16_t kProjectileType = 2; ///< of 0.7 as well
inline constexpr std::uint16_t kLaserType = 3;
inline constexpr std::uint16_t kCharacterType = 9;
inline constexpr std::uint16_t kPlayerInfoType = 10;
inline constexpr std::uint16_t kClientInfoType = 11;
inline constexpr std::uint16_t kSpectatorInfoType = 12;
inline constexpr std::uint16_t kDeathType = 17;
/// The same of 0.7, which tells the rest by messages.
inline constexpr std::uint16_t kSevenCharacterType = 10;
inline constexpr std::uint16_t kSevenPlayerInfoType = 11;

inline constexpr std::uint16_t kSevenDeathType = 20;

[[nodiscard]] constexpr std::uint16_t character_type(Dialect dialect) {
    return dialect == Dialect::six ? kCharacterType : kSevenCharacterType;
}

[[nodiscard]] constexpr std::uint16_t player_info_type(Dialect dialect) {
    return dialect == Dialect::six ? kPlayerInfoType : kSevenPlayerInfoType;
}

/// All objects: those of 0.6 by number, those with a UUID, those of 0.7 by number. What both have
/// has one name.
[[nodiscard]] std::span<const ObjectSpec> object_table();
[[nodiscard]] const ObjectSpec* find_object(std::uint16_t type, Dialect dialect);
[[nodiscard]] const ObjectSpec* find_object(const Uuid& uuid);

/// Where this item's own position stands: as its object says, or nothing when the item is too short
/// to hold it. A projectile (type 2) may be a DDNet projectile in disguise, whose position counts
/// hundredths: servers send it so to clients that announce DDNet versions before 15.4.
[[nodiscard]] std::optional<PositionSpec> position_of(const ObjectSpec& object,
                                                      std::span<const std::int32_t> data);

/// The client an item belongs to; nothing for what belongs to nobody.
[[nodiscard]] std::optional<std::uint16_t> client_of(const ObjectSpec& object, ItemKey key,
                                                     std::span<const std::int32_t> data);

/// The UUID that a descriptor item (type 0) carries in its first four ints, big-endian.
[[nodiscard]] std::optional<Uuid> descriptor_uuid(std::span<const std::int32_t> data);

/// Longest int string of any object: a skin's name.
inline constexpr std::size_t kMaxStringInts = 6;

/// Text bytes in each int of an int string.
inline constexpr std::size_t kIntStringBytes = 4;

/// Packs a text; what is longer than the ints hold is cut, the last byte is always 0.
void encode_int_string(std::string_view text, std::span<std::int32_t> ints);

/// Text of an int string into `out` (at most 4 bytes an int); returns its length. Bytes as they
/// stand: what is not UTF-8 is for the reader to replace.
[[nodiscard]] std::size_t decode_int_string(std::span<const std::int32_t> ints,
                                            std::span<char> out);

/// "76ce455b-f9eb-3a48-add7-e04b941d045c"
[[nodiscard]] std::array<char, 36> format_uuid(const Uuid& uuid);

/// An object that a mod adds, or its own form of a known one. Owns what its description points at.
struct CustomObject {
    struct Field {
        std::string name;
        FieldKind kind = FieldKind::integer;
        std::uint8_t offset = 0;
        std::uint8_t count = 1;
        bool flags = false;
        std::vector<std::pair<std::int64_t, std::string>> names{};
        const NameTable* known_names = nullptr; ///< of the table; used if `names` is empty
        std::uint32_t names_when = 0;           ///< as in FieldSpec; only of `known_names`
        FieldMerge merge = FieldMerge::any;
        InSix in_six = InSix::same;
    };

    std::uint16_t type = 0; ///< number on the wire, 0 for those named by a UUID
    Uuid uuid{};
    std::string name;
    std::string uuid_name{}; ///< what the UUID was made of; empty if unknown
    std::uint8_t size = 0;
    bool agreed = false; ///< numbered types: the size is not written in deltas
    std::vector<Field> fields{};
    std::optional<PositionSpec> position{};
    std::optional<ClientSpec> client{};
    Dialect dialect = Dialect::six; ///< of a numbered type
    ObjectKind kind = ObjectKind::object;
    MergeSpec merge{};
};

/// The objects of a run: the table of objects.h and what a mod adds to it.
class ObjectSet {
  public:
    ObjectSet();

    /// The table alone.
    [[nodiscard]] static const ObjectSet& standard();

    /// More than any mod has; a server describes at most 64 types.
    static constexpr std::size_t kMaxCustom = 256;

    /// Adds an object, or replaces the table's object of that type or UUID. False if another added
    /// object has the type or UUID, if the type is not one that can be added, or if the set is full.
    [[nodiscard]] bool add(const CustomObject& object);

    [[nodiscard]] const ObjectSpec* find(std::uint16_t type, Dialect dialect) const;
    [[nodiscard]] const ObjectSpec* find(const Uuid& uuid) const;

    [[nodiscard]] const AgreedSizes& sizes(Dialect dialect) const {
        return sizes_[static_cast<std::size_t>(dialect)];
    }

    /// What was added; specs stay where they are.
    [[nodiscard]] std::span<const ObjectSpec> custom() const { return custom_; }

    /// Place of a spec that `find` gave: those of the table come first, then what was added.
    [[nodiscard]] std::size_t index_of(const ObjectSpec& spec) const;

  private:
    /// What custom specs point at.
    struct Owned {
        CustomObject object;
        std::vector<FieldSpec> fields;
        std::deque<std::vector<NamedValue>> values;
        std::deque<NameTable> tables;
    };

    std::vector<ObjectSpec> custom_; ///< never grows past what it has reserved
    std::vector<std::unique_ptr<Owned>> owned_;
    std::array<AgreedSizes, kDialects> sizes_{kAgreedSizes, kSevenAgreedSizes};
};

} // namespace tw::snapshot
