#pragma once

#include "proxy/record/interface.h"

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

namespace tw::filter {

/// A number, or monostate if there is none.
using Number = std::variant<std::monostate, std::int64_t, double>;

/// Compares two numbers. Precondition: neither is monostate.
[[nodiscard]] std::partial_ordering compare_numbers(const Number& left, const Number& right);

/// A value of a key, as a text, a number or both. The text is valid as long as the record and the
/// FormatBuffer from which it was made.
struct Value {
    std::string_view text{}; ///< empty if the value is only a number
    Number number{};         ///< the value as a number; monostate if the value is only a text
    bool is_word = false;    ///< `text` is the name of `number`, as for booleans and severities

    [[nodiscard]] static Value of(std::string_view text) { return {.text = text}; }

    [[nodiscard]] static Value of(std::int64_t number) { return {.number = number}; }

    [[nodiscard]] static Value of(double number) { return {.number = number}; }

    [[nodiscard]] static Value of(bool flag) {
        return {
            .text = flag ? "true" : "false", .number = std::int64_t{flag ? 1 : 0}, .is_word = true};
    }

    [[nodiscard]] bool is_number() const { return number.index() != 0; }
};

/// Receives the values of a key one by one. A key that is absent or null has no value. A key has
/// several values if it is a list or a set of flags, or if it belongs to items.
class ValueVisitor : public record::InterfaceBase {
  public:
    /// Receives a value. Returns true if no further value is wanted.
    virtual bool receive_value(const Value& value) = 0;

    /// Called before the values of a JSON list, even if the list has only one value.
    virtual void begin_list() {}
};

/// Memory for texts that are formatted for a comparison: times, checksums, UUIDs, hex, int strings.
struct FormatBuffer {
    /// The most bytes that are formatted as hex; a datagram has at most 1400 bytes.
    static constexpr std::size_t kMaxHexBytes = 2048;
    std::array<char, 2 * kMaxHexBytes> text;
};

/// The type of a key's values; `any` if it differs between records.
enum class KeyKind : std::uint8_t { number, text, boolean, any };

enum class Operator : std::uint8_t { equal, unequal, less, at_most, greater, at_least, contains };

/// The literal on the right side of a comparison.
struct Literal {
    std::string text;     ///< the text as written in the filter, without quotes
    Number number{};      ///< the literal as a number; also set for true, false and severities
    bool is_null = false; ///< the literal is the word null
};

/// Returns whether the comparison `value op literal` is true. Compares numbers if the value is a
/// number, and otherwise texts, byte by byte. A number is unequal to every literal that is not a
/// number. `contains` compares only texts and ignores the case of ASCII letters.
[[nodiscard]] bool is_comparison_true(const Value& value, Operator op, const Literal& literal);

} // namespace tw::filter
