#include "map/tiles.h"
#include "proxy/filter/keys.h"
#include "proxy/record/item_schema.h"
#include "proxy/record/schema.h"
#include "proxy/wire/secrets.h"

#include <functional>
#include <type_traits>
#include <utility>

/// Builds the filter keys of a record type, an item or a place on the map from its schema. Keys in
/// nested objects and in record::Distribution (count, min, mean, max) get dotted names.
///
/// Each row of a schema has its own type. To keep compile times short, the rows are converted to
/// one type, UntypedSchemaRow, with few functions for each row.
namespace tw::filter {

namespace {

template <typename Type, typename... Types>
constexpr bool kIsOneOf = (std::is_same_v<Type, Types> || ...);

template <typename Type>
constexpr bool kIsOptional = false;
template <typename Inner>
constexpr bool kIsOptional<std::optional<Inner>> = true;

/// True for the value type of a TotalsRow: an array of all counters, or of all distributions, of an
/// object.
template <typename Type>
constexpr bool kIsTotalsArray = false;
template <typename Cell, std::size_t kCount>
constexpr bool kIsTotalsArray<std::array<Cell, kCount>> =
    kIsOneOf<Cell, std::uint64_t, record::Distribution>; // a UUID is an array of another type

/// The kind of a schema's values of this type; nullopt if filters cannot read them.
template <typename Type>
constexpr std::optional<KeyKind> kKindOf = []() -> std::optional<KeyKind> {
    if (std::is_same_v<Type, bool>) {
        return KeyKind::boolean;
    }
    if (std::is_integral_v<Type> || kIsTotalsArray<Type> ||
        kIsOneOf<Type, double, record::NumberOrNull, record::NumberPair, record::FindingTotals>) {
        return KeyKind::number;
    }
    if (record::kIsWord<Type> ||
        kIsOneOf<Type, std::string_view, record::Severity, record::FindingId, record::UtcTime,
                 record::Hex, record::Hex32, snapshot::Uuid, record::PackedText>) {
        return KeyKind::text;
    }
    return std::nullopt;
}();

template <typename Inner>
constexpr std::optional<KeyKind> kKindOf<std::optional<Inner>> = kKindOf<Inner>;

/// Returns all words that a value of the type can be; empty if the type has other values, too.
template <typename Type>
std::vector<std::string_view> possible_words_of() {
    std::vector<std::string_view> words;
    if constexpr (kIsOptional<Type>) {
        return possible_words_of<typename Type::value_type>();
    } else if constexpr (record::kIsWord<Type>) {
        words.assign(Type::kAll.begin(), Type::kAll.end());
    } else if constexpr (std::is_same_v<Type, record::Severity>) {
        for (const auto each :
             {record::Severity::info, record::Severity::warning, record::Severity::error}) {
            words.push_back(record::severity_name(each));
        }
    } else if constexpr (std::is_same_v<Type, record::FindingId>) {
        for (const record::FindingInfo& info : record::finding_table()) {
            words.push_back(info.name);
        }
    }
    return words;
}

template <typename Integer>
OptionalValue number_value(Integer value) {
    return Value::of(static_cast<std::int64_t>(value));
}

/// The keys of a record::Distribution. read_distribution() takes an index in this list.
constexpr std::array<std::string_view, 4> kDistributionParts{".count", ".min", ".mean", ".max"};

/// Returns the value of a key of the distribution; nullopt if the distribution is empty, except for
/// the count. `part`: the index of the key in kDistributionParts.
OptionalValue read_distribution(const record::Distribution& distribution, std::size_t part) {
    if (part == 0 || distribution.count == 0) {
        return part == 0 ? number_value(distribution.count) : std::nullopt;
    }
    return part == 2 ? Value::of(distribution.mean())
                     : number_value(part == 1 ? distribution.min : distribution.max);
}

/// Converts a value of a schema to the value that filters compare; nullopt if it is null. `part`:
/// the index of the key, if the value has several keys.
template <typename Type>
OptionalValue read_value(const Type& value, std::size_t part, ReadContext reading) {
    if constexpr (kIsOptional<Type>) {
        return value ? read_value(*value, part, reading) : std::nullopt;
    } else if constexpr (kIsOneOf<Type, bool, double, std::string_view>) {
        return Value::of(value);
    } else if constexpr (std::is_integral_v<Type>) {
        return number_value(value);
    } else if constexpr (std::is_same_v<Type, record::NumberOrNull>) {
        return read_value(value.value, part, reading);
    } else if constexpr (std::is_same_v<Type, record::NumberPair>) {
        return number_value(part == 0 ? value.x : value.y);
    } else if constexpr (std::is_same_v<Type, record::FindingTotals>) {
        return number_value((*value.counts)[part]);
    } else if constexpr (kIsTotalsArray<Type>) {
        if constexpr (std::is_same_v<typename Type::value_type, record::Distribution>) {
            return read_distribution(value[part / kDistributionParts.size()],
                                     part % kDistributionParts.size());
        } else {
            return number_value(value[part]);
        }
    } else if constexpr (record::kIsWord<Type>) {
        return Value::of(value.text);
    } else if constexpr (std::is_same_v<Type, record::Severity>) {
        return Value{.text = record::severity_name(value),
                     .number = static_cast<std::int64_t>(value),
                     .is_word = true};
    } else if constexpr (std::is_same_v<Type, record::FindingId>) {
        return Value::of(record::finding_info(value).name);
    } else if constexpr (std::is_same_v<Type, record::UtcTime>) {
        return time_value(value.time, reading.buffer);
    } else if constexpr (std::is_same_v<Type, record::Hex>) {
        const bool hidden = value.secrecy == wire::Secrecy::secret && !reading.show_secrets;
        return hidden ? Value::of(wire::kRedacted) : hex_value(value.bytes, reading.buffer);
    } else if constexpr (std::is_same_v<Type, record::Hex32>) {
        std::array<std::byte, sizeof value.value> bytes{};
        for (std::size_t i = 0; i < bytes.size(); ++i) {
            bytes[i] = static_cast<std::byte>(value.value >> (24U - 8U * i));
        }
        return hex_value(bytes, reading.buffer);
    } else if constexpr (std::is_same_v<Type, snapshot::Uuid>) {
        return uuid_value(value, reading.buffer);
    } else {
        return int_string_value(value.ints, reading.buffer);
    }
}

// These functions return the names of the keys of a row with several keys, in the order of the
// argument `part` of read_value(). Each name is appended to the row's own key.

std::vector<std::string> finding_names() {
    std::vector<std::string> names;
    // A finding that did not occur is a key, too. Filters read its value as 0, although the JSON
    // lacks the key.
    for (const record::FindingInfo& info : record::finding_table()) {
        names.push_back('.' + std::string{info.name});
    }
    return names;
}

template <typename SchemaRow>
std::vector<std::string> totals_key_names() {
    std::vector<std::string> names;
    for (const auto& row : SchemaRow::rows()) {
        if constexpr (std::is_same_v<typename SchemaRow::CellType, record::Distribution>) {
            for (const std::string_view part : kDistributionParts) {
                names.push_back(std::string{row.key} + std::string{part});
            }
        } else {
            names.emplace_back(row.key);
        }
    }
    return names;
}

/// A row of a schema of objects, without the types of row and object. The functions take pointers
/// to the object and to the row's getter.
struct UntypedSchemaRow {
    std::string_view key{}; ///< empty if the row has several keys, or those of another object
    const void* get = nullptr;

    // These members are set if filters can read the row's values.
    OptionalValue (*read)(const void* object, const void* get, std::size_t part,
                          ReadContext reading) = nullptr;
    KeyKind kind = KeyKind::any;
    std::vector<std::string_view> (*words)() = nullptr;
    std::vector<std::string> (*part_names)() = nullptr; ///< null if the row has one key

    // These members are set if the row has an object with its own schema.
    const void* (*find_object)(const void* object, const void* get) = nullptr;
    std::span<const UntypedSchemaRow> rows{};
};

/// Returns the rows of a schema of objects of the type `Object`.
template <typename Object, const auto& kSchema>
constexpr std::span<const UntypedSchemaRow> untyped_schema_rows();

template <typename Object, typename Get>
decltype(auto) call_getter(const void* object, const void* get) {
    return std::invoke(*static_cast<const Get*>(get), *static_cast<const Object*>(object));
}

template <typename Object, const auto& kSchema, std::size_t kIndex>
constexpr UntypedSchemaRow untyped_row() {
    constexpr const auto& kRow = std::get<kIndex>(kSchema);
    using SchemaRow = std::remove_cvref_t<decltype(kRow)>;
    using Get = std::remove_cvref_t<decltype(kRow.get)>;
    using Type = std::remove_cvref_t<std::invoke_result_t<Get, const Object&>>;
    UntypedSchemaRow untyped{.get = &kRow.get};
    if constexpr (!record::kIsTotals<SchemaRow> && !record::kIsInlined<SchemaRow>) {
        untyped.key = kRow.key.name();
    }
    if constexpr (std::is_pointer_v<Type>) {
        untyped.find_object = [](const void* object, const void* get) -> const void* {
            return call_getter<Object, Get>(object, get);
        };
        untyped.rows = untyped_schema_rows<std::remove_pointer_t<Type>, *kRow.schema>();
    } else if constexpr (kKindOf<Type> != std::nullopt) {
        untyped.read = [](const void* object, const void* get, std::size_t part,
                          ReadContext reading) {
            return read_value(call_getter<Object, Get>(object, get), part, reading);
        };
        untyped.kind = *kKindOf<Type>;
        untyped.words = possible_words_of<Type>;
        if constexpr (record::kIsTotals<SchemaRow>) {
            untyped.part_names = totals_key_names<SchemaRow>;
        } else if constexpr (std::is_same_v<Type, record::FindingTotals>) {
            untyped.part_names = finding_names;
        } else if constexpr (std::is_same_v<Type, record::NumberPair>) {
            untyped.part_names = [] { return std::vector<std::string>{".x", ".y"}; };
        }
    }
    return untyped;
}

template <typename Object, const auto& kSchema, typename Indices>
constexpr std::array<UntypedSchemaRow, 0> kUntypedRows{};
template <typename Object, const auto& kSchema, std::size_t... kIndex>
constexpr std::array kUntypedRows<Object, kSchema, std::index_sequence<kIndex...>>{
    untyped_row<Object, kSchema, kIndex>()...};

template <typename Object, const auto& kSchema>
constexpr std::span<const UntypedSchemaRow> untyped_schema_rows() {
    constexpr std::size_t kCount = std::tuple_size_v<std::remove_cvref_t<decltype(kSchema)>>;
    return kUntypedRows<Object, kSchema, std::make_index_sequence<kCount>>;
}

/// Adds the keys of the object to which `path` leads. `prefix`: the start of the name of each key.
// NOLINTNEXTLINE(misc-no-recursion): schemas have at most four levels
void add_keys(std::span<const UntypedSchemaRow> rows, const std::string& prefix,
              std::vector<SchemaKey::Step>& path, SchemaKeys& keys) {
    for (const UntypedSchemaRow& row : rows) {
        const std::string name = prefix + std::string{row.key};
        if (row.find_object != nullptr) {
            path.push_back({row.find_object, row.get});
            add_keys(row.rows, row.key.empty() ? prefix : name + '.', path, keys);
            path.pop_back();
        } else if (row.read != nullptr) {
            const auto names =
                row.part_names == nullptr ? std::vector<std::string>{""} : row.part_names();
            for (std::size_t i = 0; i < names.size(); ++i) {
                keys.push_back(
                    {name + names[i], row.kind, row.words(), path, {row.read, row.get, i}});
            }
        }
    }
}

SchemaKeys make_keys(std::span<const UntypedSchemaRow> rows) {
    SchemaKeys keys;
    std::vector<SchemaKey::Step> path;
    add_keys(rows, {}, path, keys);
    return keys;
}

template <std::size_t... kType>
KeysByType keys_by_type(std::index_sequence<kType...> /*unused*/) {
    return {make_keys(untyped_schema_rows<
                      std::remove_pointer_t<std::variant_alternative_t<kType, record::Record>>,
                      *std::get<kType>(record::kSchemas)>())...};
}

} // namespace

const SchemaKeys& header_keys() {
    static const auto keys =
        make_keys(untyped_schema_rows<record::TypedHeader, record::kHeadSchema>());
    return keys;
}

const KeysByType& record_keys() {
    static const auto keys = keys_by_type(std::make_index_sequence<kRecordTypeCount>{});
    return keys;
}

const SchemaKeys& tile_position_keys() {
    static const auto keys = make_keys(untyped_schema_rows<map::Location, record::kPlaceSchema>());
    return keys;
}

const SchemaKeys& item_keys() {
    static const auto keys =
        make_keys(untyped_schema_rows<record::RecordItem, record::kItemSchema>());
    return keys;
}

std::vector<std::string_view> possible_tile_names(std::string_view key) {
    std::vector<std::string_view> words;
    for (int i = 0; i < map::kPhysicsLayers; ++i) {
        const auto layer = static_cast<map::Layer>(i);
        const std::string type = std::string{map::layer_name(layer)} + ".type";
        if (key == type || (layer == map::Layer::game && key == "game")) {
            for (unsigned index = 0; index <= UINT8_MAX; ++index) {
                words.push_back(map::tile_name(layer, static_cast<std::uint8_t>(index)));
            }
        }
    }
    return words;
}

} // namespace tw::filter
