#pragma once

#include "proxy/filter/value.h"
#include "proxy/record/records.h"
#include "proxy/wire/message.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

/// The record keys that filters can use, and how to read their values. The keys come from the
/// schemas in proxy/record, so a key has the same value as in the JSON.
namespace tw::filter {

/// The JSON object to which a key belongs.
enum class KeyScope : std::uint8_t {
    record,
    item, ///< an element of a snapshot's `items`
    /// A row in a table of items. It has the keys of the item, with or without "items.", the keys
    /// of the item's record, and the key `removed`. Key::scope never has this value.
    item_row,
};

inline constexpr std::string_view kItemsPrefix = "items.";
/// The key of a row whose value is true if the record lists the item as removed.
inline constexpr std::string_view kRemovedRowKey = "removed";

using OptionalValue = std::optional<Value>;

/// The buffer and the option with which a value is read.
struct ReadContext {
    FormatBuffer& buffer; ///< receives formatted texts
    /// Whether passwords and codes are read as they are. If false, they are read as "[redacted]".
    bool show_secrets;
};

/// A key of a record type, an item or a place on the map, and how to read its value.
struct SchemaKey {
    /// A step to a nested object. find_object() calls the schema's getter `get`, and returns the
    /// nested object, or null.
    struct Step {
        const void* (*find_object)(const void* object, const void* get);
        const void* get;
    };

    /// A function that reads a value of an object, and arguments for this function. `part`: the
    /// index of the value, if the getter returns several values.
    struct Reader {
        OptionalValue (*read)(const void* object, const void* get, std::size_t part,
                              ReadContext reading);
        const void* get;
        std::size_t part;
    };

    std::string name;
    KeyKind kind = KeyKind::any;
    std::vector<std::string_view> words; ///< all possible values; empty if other values may occur
    std::vector<Step> path;              ///< leads to the nested object that has the value
    Reader reader;

    /// Returns the key's value; nullopt if the value is absent or null. `object`: points to an
    /// object of the type for which the key's table was made.
    [[nodiscard]] OptionalValue read(const void* object, ReadContext reading) const {
        for (const Step& step : path) {
            object = step.find_object(object, step.get);
            if (object == nullptr) {
                return std::nullopt;
            }
        }
        return reader.read(object, reader.get, reader.part, reading);
    }
};

using SchemaKeys = std::vector<SchemaKey>;

inline constexpr std::size_t kRecordTypeCount = std::variant_size_v<record::Record>;

/// An existing key, with the location of its values.
struct Key {
    /// Where the key's values are found.
    enum class Location : std::uint8_t {
        header, ///< among the first values of every record: v, t, type, session, dir, server_name
        top_level, ///< in the record or item itself
        place,     ///< in the object `at`, a place on the map
        fields,    ///< in the object `fields` of a message or item, at `path`
        names,     ///< in the object `names` of a message or item, at `path`
        data,      ///< the values are the ints of an item
        seen_by,   ///< the values are the sessions that received an item of a merged snapshot
        removed,   ///< for rows only: whether the record lists the item as removed
    };

    std::string name; ///< dotted name as in the JSON; an item's key has no leading "items."
    KeyScope scope = KeyScope::record;
    Location location = Location::top_level;
    KeyKind kind = KeyKind::any;
    /// For a key of records, its entry in the table of each type; null if the type lacks the key.
    std::array<const SchemaKey*, kRecordTypeCount> entries_by_record_type{};
    const SchemaKey* entry = nullptr; ///< the entry of a key of a header, an item or a place
    std::string path;                 ///< the dotted name below `fields`, `names` or `at`
};

/// The objects and messages of a mod's description, which extend the standard tables.
struct ModTypes {
    std::span<const snapshot::ObjectSpec> objects{};
    std::span<const wire::MessageSpec> messages{};
};

[[nodiscard]] inline ModTypes types_of_mod(const wire::ModDescription& mod) {
    return {.objects = mod.objects.custom(), .messages = mod.messages.custom()};
}

[[nodiscard]] std::optional<Key> find_key(KeyScope scope, std::string_view name,
                                          ModTypes described = {});
/// Returns the existing key that is most similar to this name; empty if no key is similar. In the
/// scope of records and rows, an item's key begins with "items.".
[[nodiscard]] std::string suggest_key(KeyScope scope, std::string_view name,
                                      ModTypes described = {});
/// Returns the names of all keys of a scope, in alphabetical order.
[[nodiscard]] std::vector<std::string> all_keys(KeyScope scope, ModTypes described = {});

/// Returns all words that a key such as type, event, dir or severity can have as value. Returns an
/// empty list if the key can have other values, too.
[[nodiscard]] std::vector<std::string_view> possible_words(const Key& key, ModTypes described = {});
[[nodiscard]] std::vector<std::string_view> item_type_names(ModTypes described = {});
[[nodiscard]] std::vector<std::string_view> message_names(ModTypes described = {});
/// Returns the word of `words` that is most similar to `word`; empty if no word is similar.
[[nodiscard]] std::string_view most_similar_word(std::string_view word,
                                                 std::span<const std::string_view> words);

/// An item for which a filter is evaluated. Its place on the map is computed once, when needed.
class FilteredItem {
  public:
    FilteredItem(const record::SnapshotRecord& record, std::size_t index);

    [[nodiscard]] const record::RecordItem& record_item() const { return record_item_; }

    [[nodiscard]] std::span<const std::int32_t> data() const { return record_item_.item.data; }

    [[nodiscard]] const std::optional<map::Location>& map_location();

    /// Returns the item's field with this name; null if the item is too short for the field,
    /// because old servers send fewer ints, or if no session received the field.
    [[nodiscard]] const snapshot::FieldSpec* find_field(std::string_view name) const;

    bool visit_sessions(ValueVisitor& visitor) const;

  private:
    record::RecordItem record_item_;
    std::size_t index_;
    std::optional<map::Location> location_;
    bool is_location_computed_ = false;
};

/// Passes the values of a record's key to the visitor. Stops and returns true when the visitor
/// wants no more. Does not allocate.
bool visit_record(const Key& key, const record::Record& record, ReadContext reading,
                  ValueVisitor& visitor);
/// Passes the values of an item's key to the visitor, like visit_record().
bool visit_item(const Key& key, FilteredItem& item, ReadContext reading, ValueVisitor& visitor);

// The declarations below are for the code that builds the tables of keys.

// These functions return a value as text, formatted in `buffer`.
[[nodiscard]] Value hex_value(std::span<const std::byte> bytes, FormatBuffer& buffer);
[[nodiscard]] Value uuid_value(const snapshot::Uuid& uuid, FormatBuffer& buffer);
[[nodiscard]] Value time_value(record::Timestamp time, FormatBuffer& buffer);

[[nodiscard]] Value int_string_value(std::span<const std::int32_t> ints, FormatBuffer& buffer);

using KeysByType = std::array<SchemaKeys, kRecordTypeCount>;

/// Returns the keys that all records have. Their values are read from a record::TypedHeader.
[[nodiscard]] const SchemaKeys& header_keys();
/// Returns the further keys of each record type, in the order of the types in record::Record.
[[nodiscard]] const KeysByType& record_keys();
/// Returns the keys below `at`. Their values are read from a map::Location.
[[nodiscard]] const SchemaKeys& tile_position_keys();
/// Returns the JSON keys of an item. Their values are read from a record::RecordItem. The result
/// does not contain the keys fields, names, at and data, which visit_item() reads itself.
[[nodiscard]] const SchemaKeys& item_keys();
/// Returns the tile names that a key below `at` can have as value; empty if the values are numbers.
[[nodiscard]] std::vector<std::string_view> possible_tile_names(std::string_view key);

} // namespace tw::filter
