#include "map/tiles.h"
#include "proxy/filter/keys.h"
#include "proxy/record/schema.h"
#include "proxy/wire/secrets.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

/// Builds the filter keys of a record type, an item or a place on the map from its schema. Keys in
/// nested objects and in record::Spread (count, min, mean, max) get dotted names.
namespace tw::filter {

using record::Record;

namespace {

template <typename Type, typename... Types>
constexpr bool kIsOneOf = (std::is_same_v<Type, Types> || ...);

template <typename Type>
constexpr bool kIsOptional = false;
template <typename Inner>
constexpr bool kIsOptional<std::optional<Inner>> = true;

/// The kind of the values of a type in schemas; nullopt if filters cannot read them.
template <typename Type>
constexpr std::optional<KeyKind> kKindOf = []() -> std::optional<KeyKind> {
    if (std::is_same_v<Type, bool>) {
        return KeyKind::boolean;
    }
    if (std::is_integral_v<Type> || kIsOneOf<Type, double, record::NumberOrNull>) {
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

/// Returns all words that a value of the type can be; empty if these are not a closed set.
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

Value int_string_value(std::span<const std::int32_t> ints, FormatBuffer& buffer) {
    const auto fitting = ints.first(std::min(ints.size(), snapshot::kMaxStringInts));
    return Value::of(
        std::string_view{buffer.text.data(), snapshot::decode_int_string(fitting, buffer.text)});
}

/// Returns a value of a schema as filters read it; nullopt if it is null.
template <typename Type>
OptionalValue read_value(const Type& value, ReadContext reading) {
    if constexpr (kIsOneOf<Type, bool, double, std::string_view>) {
        return Value::of(value);
    } else if constexpr (std::is_integral_v<Type>) {
        return number_value(value);
    } else if constexpr (std::is_same_v<Type, record::NumberOrNull>) {
        return number_value(value.value);
    } else if constexpr (record::kIsWord<Type>) {
        return Value::of(value.text);
    } else if constexpr (std::is_same_v<Type, record::Severity>) {
        return Value{.text = record::severity_name(value),
                     .number = static_cast<std::int64_t>(value),
                     .word = true};
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

template <typename Inner>
OptionalValue read_value(const std::optional<Inner>& value, ReadContext reading) {
    return value ? read_value(*value, reading) : std::nullopt;
}

/// The keys of a record::Spread, and functions that read them. A spread of no numbers has only its
/// count.
constexpr std::array<std::pair<std::string_view, OptionalValue (*)(const record::Spread&)>, 4>
    kSpreadParts{{
        {".count", [](const record::Spread& s) { return number_value(s.count); }},
        {".min",
         [](const record::Spread& s) { return s.count == 0 ? std::nullopt : number_value(s.min); }},
        {".mean",
         [](const record::Spread& s) {
             return s.count == 0 ? std::nullopt : OptionalValue{Value::of(s.mean())};
         }},
        {".max",
         [](const record::Spread& s) { return s.count == 0 ? std::nullopt : number_value(s.max); }},
    }};

/// Collects the keys of the source type `From`. `reach`: a function that takes a `From` and returns
/// the object in it that a nested schema describes; null or nullopt if the object is absent.
template <typename From>
class KeyCollector {
  public:
    template <typename Reach, typename Schema>
    void add_schema(const std::string& prefix, const Reach& reach, const Schema& schema) {
        record::for_each_row(schema, [&](const auto& row) { add_row(prefix, reach, row); });
    }

    [[nodiscard]] SchemaKeys<From> take_keys() { return std::move(keys_); }

  private:
    template <typename Reach, typename Row>
    void add_row(const std::string& prefix, const Reach& reach, const Row& row) {
        if constexpr (record::kIsTotals<Row>) {
            add_keys_of_totals(prefix, reach, row);
        } else if constexpr (record::kIsMerged<Row>) {
            add_schema(prefix, nested_reach(reach, row.get), *row.schema);
        } else if constexpr (record::kIsObject<Row>) {
            add_schema(prefix + std::string{row.key.name()} + '.', nested_reach(reach, row.get),
                       *row.schema);
        } else {
            add_key(prefix + std::string{row.key.name()}, reach, row);
        }
    }

    template <typename Reach, typename Get>
    [[nodiscard]] static auto nested_reach(const Reach& reach, const Get& get) {
        return [reach, get](const From& from) {
            const auto source = reach(from);
            return source ? get(*source) : nullptr;
        };
    }

    template <typename Reach, typename Row>
    void add_key(const std::string& name, const Reach& reach, const Row& row) {
        using Source = std::remove_cvref_t<decltype(*reach(std::declval<From>()))>;
        using Result = std::remove_cvref_t<std::invoke_result_t<decltype(row.get), const Source&>>;
        const auto get = row.get;
        if constexpr (std::is_same_v<Result, record::FindingTotals>) {
            // The value is zero if the finding did not occur, although the JSON then lacks the key.
            for (const record::FindingInfo& info : record::finding_table()) {
                const auto id = static_cast<std::size_t>(info.id);
                add_number(name + '.' + std::string{info.name}, reach, [get, id](const Source& s) {
                    return number_value((*get(s).counts)[id]);
                });
            }
        } else if constexpr (std::is_same_v<Result, record::NumberPair>) {
            add_number(name + ".x", reach,
                       [get](const Source& s) { return number_value(std::invoke(get, s).x); });
            add_number(name + ".y", reach,
                       [get](const Source& s) { return number_value(std::invoke(get, s).y); });
        } else if constexpr (kKindOf<Result> != std::nullopt) {
            add(name, *kKindOf<Result>, possible_words_of<Result>(), reach,
                [get](const Source& s, ReadContext reading) {
                    return read_value(std::invoke(get, s), reading);
                });
        }
    }

    template <typename Reach, typename Row>
    void add_keys_of_totals(const std::string& prefix, const Reach& reach, const Row& row) {
        for (std::size_t i = 0; i < row.rows().size(); ++i) {
            const std::string name = prefix + std::string{row.rows()[i].key};
            if constexpr (std::is_same_v<typename Row::CellType, record::Spread>) {
                for (const auto& part : kSpreadParts) {
                    add_number(name + std::string{part.first}, reach,
                               [i, read = part.second](const auto& source) {
                                   return read(Row::cells(source)[i]);
                               });
                }
            } else {
                add_number(name, reach,
                           [i](const auto& source) { return number_value(Row::cells(source)[i]); });
            }
        }
    }

    /// Adds a key. `read`: returns the key's value; takes the object that `reach` returns.
    template <typename Reach, typename Read>
    void add(std::string name, KeyKind kind, std::vector<std::string_view> words,
             const Reach& reach, const Read& read) {
        keys_.push_back({std::move(name), kind, std::move(words),
                         [reach, read](const From& from, ReadContext reading) -> OptionalValue {
                             const auto source = reach(from);
                             return source ? read(*source, reading) : std::nullopt;
                         }});
    }

    template <typename Reach, typename Read>
    void add_number(std::string name, const Reach& reach, const Read& read) {
        add(std::move(name), KeyKind::number, {}, reach,
            [read](const auto& source, ReadContext /*unused*/) { return read(source); });
    }

    SchemaKeys<From> keys_;
};

using KeysByType = std::array<SchemaKeys<Record>, kRecordTypeCount>;

template <std::size_t kType>
SchemaKeys<Record> make_keys() {
    KeyCollector<Record> keys;
    keys.add_schema(
        {},
        [](const Record& record) {
            return std::optional{record::TypedHeader{&std::get<kType>(record)->head, kType}};
        },
        record::kHeadSchema);
    using Concrete = std::remove_cvref_t<decltype(*std::get<kType>(Record{}))>;
    keys.add_schema(
        {}, [](const Record& record) { return std::get<kType>(record); },
        record::schema_of(Concrete{}));
    return keys.take_keys();
}

template <std::size_t... kType>
KeysByType make_all_keys(std::index_sequence<kType...> /*unused*/) {
    return {make_keys<kType>()...};
}

} // namespace

const KeysByType& record_keys() {
    static const KeysByType all = make_all_keys(std::make_index_sequence<kRecordTypeCount>{});
    return all;
}

using record::RecordItem;
using snapshot::FieldSpec;

namespace {

template <typename From, typename Schema>
SchemaKeys<From> keys_of(const Schema& schema) {
    KeyCollector<From> keys;
    keys.add_schema(
        {}, [](const From& from) { return &from; }, schema);
    return keys.take_keys();
}

bool visit_ints(std::span<const std::int32_t> ints, ValueVisitor& visitor) {
    return std::ranges::any_of(ints, [&](std::int32_t value) {
        return visitor.receive_value(Value::of(std::int64_t{value}));
    });
}

} // namespace

const SchemaKeys<map::Location>& place_keys() {
    static const auto keys = keys_of<map::Location>(record::kPlaceSchema);
    return keys;
}

const SchemaKeys<RecordItem>& item_keys() {
    static const auto keys = keys_of<RecordItem>(record::kItemSchema);
    return keys;
}

std::vector<std::string_view> tile_names(std::string_view key) {
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

FilteredItem::FilteredItem(const record::SnapshotRecord& record, std::size_t index)
    : shown_{&record, record.items[index], nullptr}, index_{index} {
    const std::uint16_t type = shown_.item.key.type;
    shown_.object = record.types != nullptr ? record.types->object(type)
                                            : snapshot::find_object(type, snapshot::Dialect::six);
}

const std::optional<map::Location>& FilteredItem::place() {
    if (!located_ && shown_.record->tile_map != nullptr && shown_.object != nullptr) {
        place_ = shown_.record->tile_map->tiles_at(*shown_.object, data());
    }
    located_ = true;
    return place_;
}

const FieldSpec* FilteredItem::find_field(std::string_view name) const {
    const auto fields =
        shown_.object == nullptr ? std::span<const FieldSpec>{} : shown_.object->fields;
    for (const FieldSpec& field : fields) {
        if (std::size_t{field.offset} + field.count > data().size()) {
            return nullptr;
        }
        if (field.name == name) {
            const record::Sightings* const sightings = shown_.record->sightings;
            const std::uint32_t missing =
                sightings == nullptr ? 0 : sightings->missing_ints[index_];
            return (missing & record::Sightings::int_bit(field.offset)) == 0 ? &field : nullptr;
        }
    }
    return nullptr;
}

bool FilteredItem::visit_sessions(ValueVisitor& visitor) const {
    bool enough = false;
    if (const record::Sightings* sightings = shown_.record->sightings) {
        sightings->for_each_session(index_, [&](std::uint32_t session) {
            enough = visitor.receive_value(Value::of(std::int64_t{session}));
            return enough;
        });
    }
    return enough;
}

bool visit_item(const Key& key, FilteredItem& item, ReadContext reading, ValueVisitor& visitor) {
    OptionalValue found;
    const bool is_field = key.way == Key::Location::fields || key.way == Key::Location::names;
    const FieldSpec* const field = is_field ? item.find_field(key.path) : nullptr;
    switch (key.way) {
    case Key::Location::row:
        found = key.of_item->read(item.record_item(), reading);
        break;
    case Key::Location::place:
        found = item.place() ? key.of_place->read(*item.place(), reading) : std::nullopt;
        break;
    case Key::Location::fields:
        if (field != nullptr && field->kind == snapshot::FieldKind::int_string) {
            found =
                int_string_value(item.data().subspan(field->offset, field->count), reading.buffer);
            break;
        }
        return field != nullptr &&
               visit_ints(item.data().subspan(field->offset, field->count), visitor);
    case Key::Location::names:
        return field != nullptr && field->names != nullptr &&
               snapshot::names_hold(field->names_when, field->offset, item.data()) &&
               visit_names(*field->names, item.data()[field->offset], visitor);
    case Key::Location::data:
        return visit_ints(item.data(), visitor);
    case Key::Location::seen_by:
        return item.visit_sessions(visitor);
    case Key::Location::removed: // only lines of recordings have this key
        break;
    }
    return found && visitor.receive_value(*found);
}

} // namespace tw::filter
