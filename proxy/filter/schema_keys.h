#pragma once

#include "proxy/filter/keys.h"
#include "proxy/record/schema.h"
#include "proxy/wire/secrets.h"

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

template <typename Type, typename... Types>
inline constexpr bool kIsOneOf = (std::is_same_v<Type, Types> || ...);

template <typename Type>
inline constexpr bool kIsOptional = false;
template <typename Inner>
inline constexpr bool kIsOptional<std::optional<Inner>> = true;

/// The kind of the values of a type in schemas; nullopt if filters cannot read them.
template <typename Type>
inline constexpr std::optional<KeyKind> kKindOf = []() -> std::optional<KeyKind> {
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
inline constexpr std::optional<KeyKind> kKindOf<std::optional<Inner>> = kKindOf<Inner>;

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
inline constexpr std::array<std::pair<std::string_view, OptionalValue (*)(const record::Spread&)>,
                            4>
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
    void add_key(std::string name, const Reach& reach, const Row& row) {
        using Source = std::remove_cvref_t<decltype(*reach(std::declval<From>()))>;
        using Result = std::remove_cvref_t<std::invoke_result_t<decltype(row.get), const Source&>>;
        if constexpr (std::is_same_v<Result, record::FindingTotals>) {
            add_findings(name, reach, row);
        } else if constexpr (std::is_same_v<Result, record::NumberPair>) {
            add_number(name + ".x", read_coordinate(reach, row.get, &record::NumberPair::x));
            add_number(name + ".y", read_coordinate(reach, row.get, &record::NumberPair::y));
        } else if constexpr (kKindOf<Result> != std::nullopt) {
            keys_.push_back(
                {std::move(name), *kKindOf<Result>, possible_words_of<Result>(),
                 [reach, get = row.get](const From& from, ReadContext reading) -> OptionalValue {
                     const auto source = reach(from);
                     return source ? read_value(std::invoke(get, *source), reading) : std::nullopt;
                 }});
        }
    }

    template <typename Reach, typename Get>
    [[nodiscard]] static auto read_coordinate(const Reach& reach, const Get& get,
                                              std::int32_t record::NumberPair::*part) {
        return [reach, get, part](const From& from) -> OptionalValue {
            const auto source = reach(from);
            return source ? number_value(std::invoke(get, *source).*part) : std::nullopt;
        };
    }

    template <typename Reach, typename Row>
    void add_keys_of_totals(const std::string& prefix, const Reach& reach, const Row& row) {
        for (std::size_t i = 0; i < row.rows().size(); ++i) {
            const std::string name = prefix + std::string{row.rows()[i].key};
            if constexpr (std::is_same_v<typename Row::CellType, record::Spread>) {
                for (const auto& [part, read] : kSpreadParts) {
                    add_number(name + std::string{part},
                               [reach, i, read = read](const From& from) -> OptionalValue {
                                   const auto source = reach(from);
                                   return source ? read(Row::cells(*source)[i]) : std::nullopt;
                               });
                }
            } else {
                add_number(name, [reach, i](const From& from) -> OptionalValue {
                    const auto source = reach(from);
                    return source ? number_value(Row::cells(*source)[i]) : std::nullopt;
                });
            }
        }
    }

    /// Adds a key for the count of each finding. The value is zero if the finding did not occur,
    /// although the JSON then does not contain the key.
    template <typename Reach, typename Row>
    void add_findings(const std::string& name, const Reach& reach, const Row& row) {
        for (const record::FindingInfo& info : record::finding_table()) {
            add_number(name + '.' + std::string{info.name},
                       [reach, get = row.get,
                        id = static_cast<std::size_t>(info.id)](const From& from) -> OptionalValue {
                           const auto source = reach(from);
                           return source ? number_value((*get(*source).counts)[id]) : std::nullopt;
                       });
        }
    }

    template <typename Read>
    void add_number(std::string name, Read read) {
        keys_.push_back({std::move(name),
                         KeyKind::number,
                         {},
                         [read = std::move(read)](const From& from, ReadContext /*unused*/) {
                             return read(from);
                         }});
    }

    SchemaKeys<From> keys_;
};

} // namespace tw::filter
