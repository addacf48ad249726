#pragma once

#include "proxy/record/totals.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string_view>
#include <tuple>
#include <type_traits>

/// What schemas of records are made of. A schema is a constexpr list of rows; a row is a key, what
/// stands under it (a member or a function of the record) and one sentence. The type of what stands
/// there says how it is written and compared: values.h has those types beside numbers, bools and
/// texts. An optional that is empty has no key in the record.
namespace tw::record {

/// Who knows a key.
enum class KeyUse : std::uint8_t {
    everywhere,
    filter, ///< not in the JSON: made for filters
};

/// A key as the JSON writer needs it: `,"name":`, made while compiling.
template <std::size_t Length>
class KeyText {
  public:
    // NOLINTNEXTLINE(google-explicit-constructor,*-avoid-c-arrays): takes string literals
    constexpr KeyText(const char (&name)[Length]) {
        text_[0] = ',';
        text_[1] = '"';
        std::copy_n(name, Length - 1, text_.begin() + 2);
        text_[Length + 1] = '"';
        text_[Length + 2] = ':';
    }

    [[nodiscard]] constexpr std::string_view name() const { return {text_.data() + 2, Length - 1}; }

    /// With the comma in front.
    [[nodiscard]] constexpr std::string_view json() const { return {text_.data(), text_.size()}; }

  private:
    std::array<char, Length + 3> text_{};
};

/// One key and its value.
template <typename Get, std::size_t Length>
struct KeyRow {
    KeyText<Length> key;
    Get get;
    std::string_view sentence;
    KeyUse use = KeyUse::everywhere;
};

/// A key with an object under it, which has a schema of its own.
template <typename Get, std::size_t Length, typename Schema>
struct ObjectRow {
    KeyText<Length> key;
    Get get; ///< a pointer to the object; null: the key is absent
    std::string_view sentence;
    const Schema* schema;
};

/// All cells of some totals, each under the key that its line gives it.
template <template <typename> class Totals, typename Cell, typename Row>
struct TotalsRow {
    using CellType = Cell;

    /// `source` is or inherits these totals.
    [[nodiscard]] static constexpr auto cells(const Totals<Cell>& source) {
        return cells_of<Totals>(source);
    }

    [[nodiscard]] static const auto& rows() { return rows_of<Totals, Row>(); }
};

/// The rows of another object, as if they were this one's.
template <typename Get, typename Schema>
struct MergedRow {
    Get get; ///< a pointer to the object, never null
    const Schema* schema;
};

template <typename Row>
inline constexpr bool kIsTotals = requires {
    typename Row::CellType;
};

template <typename Row>
inline constexpr bool kIsObject = requires(Row row) {
    row.schema;
    row.sentence;
};

template <typename Row>
inline constexpr bool kIsMerged = requires(Row row) {
    row.schema;
}

&&!kIsObject<Row>;

// NOLINTBEGIN(*-avoid-c-arrays): string literals
template <std::size_t Length, typename Get>
constexpr KeyRow<Get, Length> key(const char (&name)[Length], Get get, std::string_view sentence) {
    return {name, get, sentence};
}

template <std::size_t Length, typename Get>
constexpr KeyRow<Get, Length> filter_key(const char (&name)[Length], Get get,
                                         std::string_view sentence) {
    return {name, get, sentence, KeyUse::filter};
}

template <std::size_t Length, typename Get, typename Schema>
constexpr ObjectRow<Get, Length, Schema> object(const char (&name)[Length], Get get,
                                                std::string_view sentence, const Schema& schema) {
    return {name, get, sentence, &schema};
}

// NOLINTEND(*-avoid-c-arrays)

template <typename Get, typename Schema>
constexpr MergedRow<Get, Schema> merged(Get get, const Schema& schema) {
    return {get, &schema};
}

template <typename... Rows>
constexpr std::tuple<Rows...> schema(Rows... rows) {
    return {rows...};
}

/// Calls `visit(row)` for each row in order; unrolled while compiling.
template <typename... Rows, typename Visit>
constexpr void for_each_row(const std::tuple<Rows...>& schema, const Visit& visit) {
    std::apply([&](const auto&... row) { (visit(row), ...); }, schema);
}

} // namespace tw::record
