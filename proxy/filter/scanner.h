#pragma once

#include "proxy/record/interface.h"

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
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
    bool word = false;       ///< `text` is the name of `number`, as for booleans and severities

    [[nodiscard]] static Value of(std::string_view text) { return {.text = text}; }

    [[nodiscard]] static Value of(std::int64_t number) { return {.number = number}; }

    [[nodiscard]] static Value of(double number) { return {.number = number}; }

    [[nodiscard]] static Value of(bool flag) {
        return {
            .text = flag ? "true" : "false", .number = std::int64_t{flag ? 1 : 0}, .word = true};
    }

    [[nodiscard]] bool is_number() const { return number.index() != 0; }
};

/// Receives the values of a key one by one. A key that is absent or null has no value. A key has
/// several values if it is a list or a set of flags, or if it belongs to items.
class ValueVisitor : public record::Interface {
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
struct Operand {
    std::string text;    ///< the text as written in the filter, without quotes
    Number number{};     ///< the literal as a number; also set for true, false and severities
    bool null = false;   ///< the literal is the word null
    bool quoted = false; ///< the literal is in quotes

    friend bool operator==(const Operand&, const Operand&) = default;
};

/// Returns whether the comparison `value op literal` is true. Compares numbers if the value is a
/// number, and otherwise texts, byte by byte. A number is unequal to every literal that is not a
/// number. `contains` compares only texts and ignores the case of ASCII letters.
[[nodiscard]] bool satisfies(const Value& value, Operator op, const Operand& literal);

/// Splits a filter's text into tokens. The parser calls the function for the kind of token that it
/// expects, because the same text can be several kinds of token.
class FilterScanner {
  public:
    explicit FilterScanner(std::string_view text) : text_{text} {}

    /// Returns the offset of the next token; at the end, the length of the text.
    [[nodiscard]] std::size_t offset();

    [[nodiscard]] bool at_end() { return offset() == text_.size(); }

    /// Reads a word of letters, digits, '_' and '.': a key, a keyword or a type name. Returns an
    /// empty text if the next token is no word.
    std::string_view read_word();
    /// Like read_word(), but does not move past the word.
    [[nodiscard]] std::string_view peek_word();
    /// If `character` comes next, moves past it and returns true; else returns false.
    bool skip_if_next(char character);
    [[nodiscard]] bool next_is(char character);
    std::optional<Operator> read_operator();

    struct ScannedLiteral {
        std::optional<Operand> literal{};
        std::string_view error{}; ///< why no literal could be read; empty if one was read
    };

    /// Reads the literal of a comparison: a quoted string, or a word without quotes.
    ScannedLiteral read_literal();
    /// Returns the next token, shortened and in printable characters, for error messages.
    [[nodiscard]] std::string describe_next_token();

  private:
    ScannedLiteral read_quoted(char quote);

    std::string_view text_;
    std::size_t at_ = 0;
};

/// Returns a text as error messages show it: quoted, shortened, in printable ASCII.
[[nodiscard]] std::string quoted_for_message(std::string_view text);

} // namespace tw::filter
