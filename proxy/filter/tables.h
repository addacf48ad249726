#pragma once

#include "proxy/filter/keys.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

/// Shared by the tables of keys; for nobody else.
namespace tw::filter {

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
