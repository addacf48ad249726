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

/// Builds the filter keys of a record type, an item or a place from its schema. Keys of nested objects
/// and of spreads become dotted names.
namespace tw::filter {

/// How to read a comparable value of a type that occurs in schemas.
template <typename Value>
struct Readable {
    static constexpr bool kExists = false; ///< values of other types are read by path or not at all
};

template <KeyKind kKind>
struct ReadableAs {
    static constexpr bool kExists = true;
    static constexpr KeyKind kReadAs = kKind;

    [[nodiscard]] static std::vector<std::string_view> words() { return {}; }
};

template <>
struct Readable<bool> : ReadableAs<KeyKind::boolean> {
    [[nodiscard]] static OptionalValue read(bool value, ReadContext /*unused*/) {
        return Value::of(value);
    }
};

template <std::integral Integer>
struct Readable<Integer> : ReadableAs<KeyKind::number> {
    [[nodiscard]] static OptionalValue read(Integer value, ReadContext /*unused*/) {
        return number_value(value);
    }
};

template <>
struct Readable<double> : ReadableAs<KeyKind::number> {
    [[nodiscard]] static OptionalValue read(double value, ReadContext /*unused*/) {
        return Value::of(value);
    }
};

template <>
struct Readable<std::string_view> : ReadableAs<KeyKind::text> {
    [[nodiscard]] static OptionalValue read(std::string_view value, ReadContext /*unused*/) {
        return Value::of(value);
    }
};

template <const auto& kWords>
struct Readable<record::Word<kWords>> : ReadableAs<KeyKind::text> {
    [[nodiscard]] static OptionalValue read(record::Word<kWords> value, ReadContext /*unused*/) {
        return Value::of(value.text);
    }

    [[nodiscard]] static std::vector<std::string_view> words() {
        return {kWords.begin(), kWords.end()};
    }
};

template <>
struct Readable<record::Severity> : ReadableAs<KeyKind::text> {
    [[nodiscard]] static OptionalValue read(record::Severity value, ReadContext /*unused*/) {
        return Value{.text = record::severity_name(value),
                     .number = static_cast<std::int64_t>(value),
                     .word = true};
    }

    [[nodiscard]] static std::vector<std::string_view> words() {
        return {record::severity_name(record::Severity::info),
                record::severity_name(record::Severity::warning),
                record::severity_name(record::Severity::error)};
    }
};

template <>
struct Readable<record::FindingId> : ReadableAs<KeyKind::text> {
    [[nodiscard]] static OptionalValue read(record::FindingId value, ReadContext /*unused*/) {
        return Value::of(record::finding_info(value).name);
    }

    [[nodiscard]] static std::vector<std::string_view> words() {
        std::vector<std::string_view> names;
        for (const record::FindingInfo& info : record::finding_table()) {
            names.push_back(info.name);
        }
        return names;
    }
};

template <>
struct Readable<record::OrNull> : ReadableAs<KeyKind::number> {
    [[nodiscard]] static OptionalValue read(record::OrNull value, ReadContext /*unused*/) {
        return number_value(value.value);
    }
};

template <>
struct Readable<record::Moment> : ReadableAs<KeyKind::text> {
    [[nodiscard]] static OptionalValue read(record::Moment value, ReadContext reading) {
        return time_value(value.time, reading.buffer);
    }
};

template <>
struct Readable<record::Hex> : ReadableAs<KeyKind::text> {
    [[nodiscard]] static OptionalValue read(const record::Hex& value, ReadContext reading) {
        const bool hidden = value.secrecy == wire::Secrecy::secret && !reading.show_secrets;
        return hidden ? Value::of(wire::kRedacted) : hex_value(value.bytes, reading.buffer);
    }
};

template <>
struct Readable<record::Hex32> : ReadableAs<KeyKind::text> {
    [[nodiscard]] static OptionalValue read(record::Hex32 value, ReadContext reading) {
        std::array<std::byte, sizeof value.value> bytes{};
        for (std::size_t i = 0; i < bytes.size(); ++i) {
            bytes[i] = static_cast<std::byte>(value.value >> (24U - 8U * i));
        }
        return hex_value(bytes, reading.buffer);
    }
};

template <>
struct Readable<snapshot::Uuid> : ReadableAs<KeyKind::text> {
    [[nodiscard]] static OptionalValue read(const snapshot::Uuid& value, ReadContext reading) {
        return uuid_value(value, reading.buffer);
    }
};

template <>
struct Readable<record::PackedText> : ReadableAs<KeyKind::text> {
    [[nodiscard]] static OptionalValue read(record::PackedText value, ReadContext reading) {
        return int_string(value.ints, reading.buffer);
    }
};

template <typename Inner>
struct Readable<std::optional<Inner>> : Readable<Inner> {
    [[nodiscard]] static OptionalValue read(const std::optional<Inner>& value,
                                            ReadContext reading) {
        return value ? Readable<Inner>::read(*value, reading) : std::nullopt;
    }
};

/// The keys of a spread, and how to read their values. A spread without values has only its count.
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

/// Collects the keys of the source type `From`. A `reach` is a function that returns the object of a
/// nested schema in a `From`, as a pointer or an optional; it is empty if the object is absent.
template <typename From>
class KeyGatherer {
  public:
    template <typename Reach, typename Schema>
    void add(const std::string& prefix, const Reach& reach, const Schema& schema) {
        record::for_each_row(schema, [&](const auto& row) { add_row(prefix, reach, row); });
    }

    [[nodiscard]] SchemaKeys<From> take() { return std::move(keys_); }

  private:
    template <typename Reach, typename Row>
    void add_row(const std::string& prefix, const Reach& reach, const Row& row) {
        if constexpr (record::kIsTotals<Row>) {
            add_totals(prefix, reach, row);
        } else if constexpr (record::kIsMerged<Row>) {
            add(prefix, within(reach, row.get), *row.schema);
        } else if constexpr (record::kIsObject<Row>) {
            add(prefix + std::string{row.key.name()} + '.', within(reach, row.get), *row.schema);
        } else {
            add_key(prefix + std::string{row.key.name()}, reach, row);
        }
    }

    template <typename Reach, typename Get>
    [[nodiscard]] static auto within(const Reach& reach, const Get& get) {
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
        } else if constexpr (std::is_same_v<Result, record::Pair>) {
            add_number(name + ".x", part_of(reach, row.get, &record::Pair::x));
            add_number(name + ".y", part_of(reach, row.get, &record::Pair::y));
        } else if constexpr (Readable<Result>::kExists) {
            keys_.push_back(
                {std::move(name), Readable<Result>::kReadAs, Readable<Result>::words(),
                 [reach, get = row.get](const From& from, ReadContext reading) -> OptionalValue {
                     const auto source = reach(from);
                     return source ? Readable<Result>::read(std::invoke(get, *source), reading)
                                   : std::nullopt;
                 }});
        }
    }

    template <typename Reach, typename Get>
    [[nodiscard]] static auto part_of(const Reach& reach, const Get& get,
                                      std::int32_t record::Pair::*part) {
        return [reach, get, part](const From& from) -> OptionalValue {
            const auto source = reach(from);
            return source ? number_value(std::invoke(get, *source).*part) : std::nullopt;
        };
    }

    template <typename Reach, typename Row>
    void add_totals(const std::string& prefix, const Reach& reach, const Row& row) {
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

    /// Adds a key for the count of each finding. If the finding did not occur, the value is zero,
    /// although the JSON does not contain it.
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
