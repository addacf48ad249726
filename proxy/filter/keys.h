#pragma once

#include "proxy/filter/scanner.h"
#include "proxy/record/item_schema.h"
#include "proxy/wire/message_set.h"

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

/// The keys of records that filters can name, and how each is read. They come from the schemas in
/// proxy/record: a key reads as what the JSON says under it.
namespace tw::filter {

/// What a key belongs to.
enum class KeyScope : std::uint8_t {
    record,
    item, ///< an element of a snapshot's `items`
};

/// A key that exists, ready to be read.
struct Key {
    /// Which table `rows` counts in.
    enum class Way : std::uint8_t {
        row,     ///< the table of the record type or of items
        place,   ///< the table of `at`
        fields,  ///< `path` below `fields`
        names,   ///< `path` below `names`
        data,    ///< the ints of an item
        seen_by, ///< the sessions that were shown an item of a world
    };
    static constexpr std::int16_t kNoRow = -1;

    std::string name; ///< as in the JSON, dotted; for items without "items."
    KeyScope scope = KeyScope::record;
    Way way = Way::row;
    KeyKind kind = KeyKind::any;
    bool common = false; ///< every record has it: v, t, type, session; most have dir
    std::array<std::int16_t, std::variant_size_v<record::Record>> rows{}; ///< by record type
    std::string path;

    friend bool operator==(const Key&, const Key&) = default;
};

/// What a run knows beside the tables of objects and messages: a mod's own.
struct Described {
    std::span<const snapshot::ObjectSpec> objects{};
    std::span<const wire::MessageSpec> messages{};
};

[[nodiscard]] inline Described described_in(const wire::ModDescription& mod) {
    return {.objects = mod.objects.custom(), .messages = mod.messages.custom()};
}

/// The key of that name; nothing when no record type has it.
[[nodiscard]] std::optional<Key> find_key(KeyScope scope, std::string_view name,
                                          Described more = {});
/// The nearest existing key; empty when none is near.
[[nodiscard]] std::string suggest_key(KeyScope scope, std::string_view name, Described more = {});
/// Every key, in the order of the tables.
[[nodiscard]] std::vector<std::string> all_keys(KeyScope scope, Described more = {});

/// The words a key can hold when they are a closed set (type, event, dir, severity, ...); empty
/// otherwise.
[[nodiscard]] std::vector<std::string_view> words_of(const Key& key, Described more = {});
/// Names of the types of items.
[[nodiscard]] std::vector<std::string_view> item_type_words(Described more = {});
/// The word nearest to one that does not exist; empty when none is near.
[[nodiscard]] std::string_view nearest(std::string_view word,
                                       std::span<const std::string_view> words);

/// An item while conditions look at it. What is costly to know is found once, when asked for.
class ItemContext {
  public:
    ItemContext(const record::SnapshotRecord& record, std::size_t index);

    [[nodiscard]] const record::ShownItem& shown() const { return shown_; }

    [[nodiscard]] const snapshot::ItemView& item() const { return shown_.item; }

    [[nodiscard]] const snapshot::ObjectSpec* object() const { return shown_.object; }

    [[nodiscard]] const std::optional<record::WorldPlace>& place();

    /// Whether anybody was told this int of the item.
    [[nodiscard]] bool is_told(std::size_t offset) const {
        const record::SeenBy* sightings = shown_.record->sightings;
        return sightings == nullptr ||
               (sightings->untold[index_] & record::SeenBy::bit(offset)) == 0;
    }

    /// Hands on the sessions that were shown it.
    bool visit_sessions(ValueVisitor& visitor) const;

  private:
    record::ShownItem shown_;
    std::size_t index_;
    std::optional<record::WorldPlace> place_;
    bool located_ = false;
};

/// Hands the key's values to the visitor until it has enough; true when it had. Allocates nothing.
/// `show_secrets`: passwords and codes are read as they are, otherwise as "[redacted]".
bool visit_record(const Key& key, const record::Record& record, bool show_secrets, Scratch& scratch,
                  ValueVisitor& visitor);
bool visit_item(const Key& key, ItemContext& item, Scratch& scratch, ValueVisitor& visitor);

// Shared by the tables of keys; for nobody else.

using Found = std::optional<Value>;

/// Values that few keys need, written into the scratch room.
[[nodiscard]] Value hex_value(std::span<const std::byte> bytes, Scratch& scratch);
[[nodiscard]] Value uuid_value(const snapshot::Uuid& uuid, Scratch& scratch);
[[nodiscard]] Value int_string(std::span<const std::int32_t> ints, Scratch& scratch);
[[nodiscard]] Value time_value(record::Timestamp time, Scratch& scratch);

/// Hands on each set flag's name, or the name of an enum's value.
bool visit_names(const snapshot::NameTable& names, std::int32_t value, ValueVisitor& visitor);

/// How values are read.
struct Reading {
    Scratch& scratch;
    bool show_secrets;
};

/// One key of a record, an item or a place.
template <typename Source>
struct SchemaKey {
    std::string name;
    KeyKind kind = KeyKind::any;
    std::vector<std::string_view> words;               ///< what it can hold if that is a closed set
    std::function<Found(const Source&, Reading)> read; ///< nothing: absent or null
};

template <typename Source>
using SchemaKeys = std::vector<SchemaKey<Source>>;

template <typename Table>
std::int16_t row_of(const Table& table, std::string_view name) {
    const auto found =
        std::find_if(table.begin(), table.end(), [&](const auto& row) { return row.name == name; });
    return found == table.end() ? Key::kNoRow : static_cast<std::int16_t>(found - table.begin());
}

template <typename Integer>
Found number_value(const Integer& value) {
    return Value::of(static_cast<std::int64_t>(value));
}

template <typename Integer>
Found number_value(const std::optional<Integer>& value) {
    return value ? number_value(*value) : std::nullopt;
}

/// Keys below `at`.
[[nodiscard]] const SchemaKeys<record::WorldPlace>& place_keys();
/// Keys of an item besides fields, names, at and data, which are read elsewhere.
[[nodiscard]] const SchemaKeys<record::ShownItem>& item_keys();
/// Names of tiles a key below `at` can hold; empty for numbers.
[[nodiscard]] std::vector<std::string_view> tile_words(std::string_view key);

/// Fills in the rows and the kind of a key of whole records; false when no type has it.
bool find_record_rows(Key& key);
[[nodiscard]] Found read_record(const Key& key, const record::Record& record, bool show_secrets,
                                Scratch& scratch);
void add_record_keys(std::vector<std::string>& names);
/// What the key can hold when that is a closed set.
[[nodiscard]] std::vector<std::string_view> record_words(std::string_view key);

/// Hands on the values below `fields` and `names` of a message.
bool visit_fields(std::string_view path, const record::MessageRecord& record, bool show_secrets,
                  Scratch& scratch, ValueVisitor& visitor);
bool visit_field_names(std::string_view path, const record::MessageRecord& record,
                       ValueVisitor& visitor);

/// Every name there is below `fields` of messages: dotted paths are made of these.
[[nodiscard]] std::vector<std::string_view> message_field_words(Described more);
void add_message_keys(std::vector<std::string>& names, Described more);
/// The names that values of a message's field can have.
[[nodiscard]] std::vector<std::string_view> message_value_words(std::string_view field,
                                                                Described more);

} // namespace tw::filter
