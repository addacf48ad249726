#pragma once

#include "proxy/filter/value.h"
#include "proxy/record/item_schema.h"
#include "proxy/wire/message.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
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
    /// A row in a table of items. Its keys are those of the item, with or without "items.",
    /// `removed`, and those of the item's record. An argument of functions only: Key::scope is
    /// never `row`.
    row,
};

inline constexpr std::string_view kItemsPrefix = "items.";
/// The key of a row that is true for items that the record lists as removed.
inline constexpr std::string_view kRowRemoved = "removed";

using OptionalValue = std::optional<Value>;

/// How values are read.
struct ReadContext {
    FormatBuffer& buffer; ///< receives formatted texts
    /// Whether passwords and codes are read as they are; if false, as "[redacted]".
    bool show_secrets;
};

/// A key of a record type, an item or a place on the map, with the function that reads its value.
template <typename Source>
struct SchemaKey {
    std::string name;
    KeyKind kind = KeyKind::any;
    std::vector<std::string_view> words; ///< all possible values; empty if they are no closed set
    /// Returns the key's value; nullopt if the value is absent or null.
    std::function<OptionalValue(const Source&, ReadContext)> read;
};

template <typename Source>
using SchemaKeys = std::vector<SchemaKey<Source>>;

inline constexpr std::size_t kRecordTypeCount = std::variant_size_v<record::Record>;

/// An existing key, with the location of its values.
struct Key {
    /// Where the key's values are found.
    enum class Location : std::uint8_t {
        row,     ///< in the record or item itself; read by `of_records` or `of_item`
        place,   ///< in the object `at`, a place on the map; read by `of_place`
        fields,  ///< in the object `fields` of a message or item, at `path`
        names,   ///< in the object `names` of a message or item, at `path`
        data,    ///< the values are the ints of an item
        seen_by, ///< the values are the sessions that received an item of a merged snapshot
        removed, ///< for rows only: whether the record lists the item as removed
    };

    std::string name; ///< dotted name as in the JSON; an item's key has no leading "items."
    KeyScope scope = KeyScope::record;
    Location way = Location::row;
    KeyKind kind = KeyKind::any;
    bool common = false; ///< the key is v, t, type, session (in all records) or dir (in most)
    /// For each record type, the key's entry in the table of the type; null if the type does not
    /// have the key.
    std::array<const SchemaKey<record::Record>*, kRecordTypeCount> of_records{};
    const SchemaKey<record::RecordItem>* of_item = nullptr;
    const SchemaKey<map::Location>* of_place = nullptr;
    std::string path; ///< the dotted name below `fields`, `names` or `at`
};

/// The objects and messages of a mod's description, which extend the standard tables.
struct DescribedTypes {
    std::span<const snapshot::ObjectSpec> objects{};
    std::span<const wire::MessageSpec> messages{};
};

[[nodiscard]] inline DescribedTypes described_types(const wire::ModDescription& mod) {
    return {.objects = mod.objects.custom(), .messages = mod.messages.custom()};
}

/// Returns the key with this name; nullopt if the scope has no such key.
[[nodiscard]] std::optional<Key> find_key(KeyScope scope, std::string_view name,
                                          DescribedTypes more = {});
/// Returns the existing key that is most similar to this name; empty if no key is similar. In the
/// scope of records and rows, an item's key begins with "items.".
[[nodiscard]] std::string suggest_key(KeyScope scope, std::string_view name,
                                      DescribedTypes more = {});
/// Returns the names of all keys of a scope, in alphabetical order.
[[nodiscard]] std::vector<std::string> all_keys(KeyScope scope, DescribedTypes more = {});

/// Returns all words that a key can have as value, if these are a closed set, as for type, event,
/// dir and severity; empty for other keys.
[[nodiscard]] std::vector<std::string_view> possible_words(const Key& key,
                                                           DescribedTypes more = {});
[[nodiscard]] std::vector<std::string_view> item_type_names(DescribedTypes more = {});
/// Returns the word of `words` that is most similar to `word`; empty if no word is similar.
[[nodiscard]] std::string_view most_similar_word(std::string_view word,
                                                 std::span<const std::string_view> words);

/// An item for which a filter is evaluated. Its place on the map is computed once, when needed.
class FilteredItem {
  public:
    FilteredItem(const record::SnapshotRecord& record, std::size_t index);

    [[nodiscard]] const record::RecordItem& record_item() const { return shown_; }

    [[nodiscard]] std::span<const std::int32_t> data() const { return shown_.item.data; }

    [[nodiscard]] const std::optional<map::Location>& place();

    /// Returns the item's field with this name; null if the item is too short for the field,
    /// because old servers send fewer ints, or if no session received the field.
    [[nodiscard]] const snapshot::FieldSpec* find_field(std::string_view name) const;

    /// Passes the numbers of the sessions that received the item to the visitor.
    bool visit_sessions(ValueVisitor& visitor) const;

  private:
    record::RecordItem shown_;
    std::size_t index_;
    std::optional<map::Location> place_;
    bool located_ = false;
};

/// Passes the values of a record's key to the visitor. Stops and returns true when the visitor
/// wants no more. Does not allocate.
bool visit_record(const Key& key, const record::Record& record, ReadContext reading,
                  ValueVisitor& visitor);
/// Passes the values of an item's key to the visitor, as visit_record() does.
bool visit_item(const Key& key, FilteredItem& item, ReadContext reading, ValueVisitor& visitor);

// The declarations below are for the code that builds the tables of keys.

// These functions return a value as text, formatted in `buffer`.
[[nodiscard]] Value hex_value(std::span<const std::byte> bytes, FormatBuffer& buffer);
[[nodiscard]] Value uuid_value(const snapshot::Uuid& uuid, FormatBuffer& buffer);
[[nodiscard]] Value time_value(record::Timestamp time, FormatBuffer& buffer);

/// Passes the names of an int's value to the visitor: of each set flag, or of the enum value.
bool visit_names(const snapshot::NameTable& names, std::int32_t value, ValueVisitor& visitor);

/// Returns the key with this name; null if the table has none.
template <typename Source>
const SchemaKey<Source>* find_row(const SchemaKeys<Source>& table, std::string_view name) {
    const auto found = std::ranges::find(table, name, &SchemaKey<Source>::name);
    return found == table.end() ? nullptr : &*found;
}

template <typename Integer>
OptionalValue number_value(const Integer& value) {
    return Value::of(static_cast<std::int64_t>(value));
}

template <typename Integer>
OptionalValue number_value(const std::optional<Integer>& value) {
    return value ? number_value(*value) : std::nullopt;
}

/// Returns the keys of each record type.
[[nodiscard]] const std::array<SchemaKeys<record::Record>, kRecordTypeCount>& record_keys();
/// Returns the keys below `at`, which describe the item's place on the map.
[[nodiscard]] const SchemaKeys<map::Location>& place_keys();
/// Returns the keys of an item, except fields, names, at and data, which are read separately.
[[nodiscard]] const SchemaKeys<record::RecordItem>& item_keys();
/// Returns the tile names that a key below `at` can have as value; empty if the values are numbers.
[[nodiscard]] std::vector<std::string_view> tile_names(std::string_view key);

} // namespace tw::filter
