#pragma once

#include "proxy/filter/scanner.h"
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

/// The record keys that filters can use, and how to read their values. The keys come from the schemas in
/// proxy/record, so a key has the same value as in the JSON.
namespace tw::filter {

enum class KeyScope : std::uint8_t {
    record,
    item, ///< the key belongs to an element of a snapshot's `items`
    /// Any key of a row in a table of items: a key of the item, with or without "items.", `removed`,
    /// or a key of the row's record. For find_key and all_keys only: a key has one of the others.
    row,
};

inline constexpr std::string_view kItemsPrefix = "items.";
/// The key of a row that tells the items that a record lists as removed from others.
inline constexpr std::string_view kRowRemoved = "removed";

/// An existing key, prepared for reading.
struct Key {
    /// Where the key's value is found.
    enum class Location : std::uint8_t {
        row,     ///< by `rows`, in the table of the record type or of items
        place,   ///< by `rows`, in the table of keys below `at`
        fields,  ///< by `path` below `fields`
        names,   ///< by `path` below `names`
        data,    ///< its values are the ints of an item
        seen_by, ///< its values are the sessions that saw an item of a world
        removed, ///< for rows only: whether the record lists the item as removed
    };
    static constexpr std::int16_t kNoRow = -1;

    std::string name; ///< dotted name as in the JSON; an item's key has no leading "items."
    KeyScope scope = KeyScope::record;
    Location way = Location::row;
    KeyKind kind = KeyKind::any;
    bool common = false; ///< the key is v, t, type, session (in all records) or dir (in most)
    /// For each record type, the index of the key in its table, or kNoRow.
    std::array<std::int16_t, std::variant_size_v<record::Record>> rows{};
    std::string path;

    friend bool operator==(const Key&, const Key&) = default;
};

/// The objects and messages of a mod's description, which extend the standard tables.
struct KnownTypes {
    std::span<const snapshot::ObjectSpec> objects{};
    std::span<const wire::MessageSpec> messages{};
};

[[nodiscard]] inline KnownTypes described_in(const wire::ModDescription& mod) {
    return {.objects = mod.objects.custom(), .messages = mod.messages.custom()};
}

/// Returns the key with this name; nullopt if no record type has it.
[[nodiscard]] std::optional<Key> find_key(KeyScope scope, std::string_view name,
                                          KnownTypes more = {});
/// Returns the key that was probably meant by this name, as it is written in this scope: an item's key
/// with "items." where a record's key could stand, too. Empty if none is similar.
[[nodiscard]] std::string suggest_key(KeyScope scope, std::string_view name, KnownTypes more = {});
/// Returns the names of all keys, in the order of the tables.
[[nodiscard]] std::vector<std::string> all_keys(KeyScope scope, KnownTypes more = {});

/// Returns the words that a key can have as value if they are a closed set (type, event, dir,
/// severity, ...); otherwise an empty list.
[[nodiscard]] std::vector<std::string_view> words_of(const Key& key, KnownTypes more = {});
/// Returns the names of all item types.
[[nodiscard]] std::vector<std::string_view> item_type_words(KnownTypes more = {});
/// Returns the word of `words` that is most similar to `word`; empty if none is similar.
[[nodiscard]] std::string_view nearest(std::string_view word,
                                       std::span<const std::string_view> words);

/// An item during the evaluation of a filter. Its costly properties are computed once, when needed.
class ItemContext {
  public:
    ItemContext(const record::SnapshotRecord& record, std::size_t index);

    [[nodiscard]] const record::ShownItem& shown() const { return shown_; }

    [[nodiscard]] const snapshot::ItemView& item() const { return shown_.item; }

    [[nodiscard]] const snapshot::ObjectSpec* object() const { return shown_.object; }

    [[nodiscard]] const std::optional<record::WorldPlace>& place();

    /// Returns whether any session received this int of the item.
    [[nodiscard]] bool is_told(std::size_t offset) const {
        const record::SeenBy* sightings = shown_.record->sightings;
        return sightings == nullptr ||
               (sightings->untold[index_] & record::SeenBy::bit(offset)) == 0;
    }

    /// Passes the numbers of the sessions that saw the item to the visitor.
    bool visit_sessions(ValueVisitor& visitor) const;

  private:
    record::ShownItem shown_;
    std::size_t index_;
    std::optional<record::WorldPlace> place_;
    bool located_ = false;
};

/// Passes the key's values to the visitor until the visitor has enough. Returns whether it had enough.
/// Does not allocate. `show_secrets`: pass passwords and codes as they are; if false, as "[redacted]".
bool visit_record(const Key& key, const record::Record& record, bool show_secrets,
                  FormatBuffer& buffer, ValueVisitor& visitor);
bool visit_item(const Key& key, ItemContext& item, FormatBuffer& buffer, ValueVisitor& visitor);

// For the files of the key tables only.

using OptionalValue = std::optional<Value>;

// These functions format values of special types in the buffer buffer.
[[nodiscard]] Value hex_value(std::span<const std::byte> bytes, FormatBuffer& buffer);
[[nodiscard]] Value uuid_value(const snapshot::Uuid& uuid, FormatBuffer& buffer);
[[nodiscard]] Value int_string(std::span<const std::int32_t> ints, FormatBuffer& buffer);
[[nodiscard]] Value time_value(record::Timestamp time, FormatBuffer& buffer);

/// Passes the name of each set flag, or the name of the enum value, to the visitor.
bool visit_names(const snapshot::NameTable& names, std::int32_t value, ValueVisitor& visitor);

/// What reading a value needs in addition to its source.
struct ReadContext {
    FormatBuffer& buffer;
    bool show_secrets;
};

/// One key of a record, an item or a place.
template <typename Source>
struct SchemaKey {
    std::string name;
    KeyKind kind = KeyKind::any;
    std::vector<std::string_view> words; ///< all possible values, if they are a closed set
    /// Reads the value; returns nullopt if the value is absent or null.
    std::function<OptionalValue(const Source&, ReadContext)> read;
};

template <typename Source>
using SchemaKeys = std::vector<SchemaKey<Source>>;

template <typename Table>
std::int16_t row_of(const Table& table, std::string_view name) {
    const auto found =
        std::ranges::find_if(table, [&](const auto& row) { return row.name == name; });
    return found == table.end() ? Key::kNoRow : static_cast<std::int16_t>(found - table.begin());
}

template <typename Integer>
OptionalValue number_value(const Integer& value) {
    return Value::of(static_cast<std::int64_t>(value));
}

template <typename Integer>
OptionalValue number_value(const std::optional<Integer>& value) {
    return value ? number_value(*value) : std::nullopt;
}

/// Returns the keys below `at`.
[[nodiscard]] const SchemaKeys<record::WorldPlace>& place_keys();
/// Returns the keys of an item, except fields, names, at and data, which are read separately.
[[nodiscard]] const SchemaKeys<record::ShownItem>& item_keys();
/// Returns the tile names that a key below `at` can have as value; empty if its values are numbers.
[[nodiscard]] std::vector<std::string_view> tile_words(std::string_view key);

/// Sets rows and kind of a record key. Returns false if no record type has the key.
bool find_record_rows(Key& key);
[[nodiscard]] OptionalValue read_record(const Key& key, const record::Record& record,
                                        bool show_secrets, FormatBuffer& buffer);
void add_record_keys(std::vector<std::string>& names);
/// Returns the words that a record key can have as value, if they are a closed set; otherwise an
/// empty list.
[[nodiscard]] std::vector<std::string_view> record_words(std::string_view key);

/// Passes the values below `fields` or `names` of a message to the visitor.
bool visit_fields(std::string_view path, const record::MessageRecord& record, bool show_secrets,
                  FormatBuffer& buffer, ValueVisitor& visitor);
bool visit_field_names(std::string_view path, const record::MessageRecord& record,
                       ValueVisitor& visitor);

/// Returns all names that a dotted path below a message's `fields` can contain.
[[nodiscard]] std::vector<std::string_view> message_field_words(KnownTypes more);
void add_message_keys(std::vector<std::string>& names, KnownTypes more);
/// Returns all names that the values of a message field can have.
[[nodiscard]] std::vector<std::string_view> message_value_words(std::string_view field,
                                                                KnownTypes more);

} // namespace tw::filter
