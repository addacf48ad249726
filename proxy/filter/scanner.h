#pragma once

#include "proxy/record/interface.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

namespace tw::filter {

/// One value of a key, in the form in which comparisons use it. Its views are valid as long as the
/// record and the buffer buffer.
struct Value {
    std::string_view text{}; ///< empty if the value is only a number
    /// Monostate: the value is only a text.
    std::variant<std::monostate, std::int64_t, double> number{};
    bool word = false; ///< `text` is the name of `number`, as for booleans and severities

    [[nodiscard]] static Value of(std::string_view text) { return {.text = text}; }

    [[nodiscard]] static Value of(std::int64_t number) { return {.number = number}; }

    [[nodiscard]] static Value of(double number) { return {.number = number}; }

    [[nodiscard]] static Value of(bool flag) {
        return {
            .text = flag ? "true" : "false", .number = std::int64_t{flag ? 1 : 0}, .word = true};
    }

    [[nodiscard]] bool numeric() const { return number.index() != 0; }
};

/// Receives the values of a key one by one. A key has no value if it is absent or null, and several
/// values if it is a list or a set of flags, or belongs to items.
class ValueVisitor : public record::Interface {
  public:
    /// Receives a value. Returns true to receive no further value.
    virtual bool take(const Value& value) = 0;

    /// The values that follow are in a list of the JSON, even if there is only one.
    virtual void begin_list() {}
};

/// A buffer for texts that are formatted for a comparison: times, checksums, UUIDs, hex, int strings.
struct FormatBuffer {
    /// The most bytes formatted as hex; a datagram has at most 1400.
    static constexpr std::size_t kMaxHexBytes = 2048;
    std::array<char, 2 * kMaxHexBytes> text;
};

/// The type of a key's values; `any` if it differs between records.
enum class KeyKind : std::uint8_t { number, text, boolean, any };

enum class Operator : std::uint8_t { equal, unequal, less, at_most, greater, at_least, contains };

/// The right side of a comparison.
struct Operand {
    std::string text; ///< the text as written in the filter, without quotes
    std::variant<std::monostate, std::int64_t, double>
        number{}; ///< also set for true, false and severities
    bool null = false;
    bool quoted = false;

    friend bool operator==(const Operand&, const Operand&) = default;
};

/// Returns whether `value op literal` is true. If the literal is a number, numbers are compared;
/// otherwise texts, byte by byte. `contains` compares texts only and ignores ASCII case.
[[nodiscard]] bool satisfies(const Value& value, Operator op, const Operand& literal);

/// Splits a filter's text into tokens. The parser calls the function for the kind of token that it
/// expects, because the same text can be several kinds of token.
class FilterScanner {
  public:
    explicit FilterScanner(std::string_view text) : text_{text} {}

    /// The offset of the next token; at the end, the length of the text.
    [[nodiscard]] std::size_t offset();

    [[nodiscard]] bool at_end() { return offset() == text_.size(); }

    /// Reads a key, a keyword or a type name: letters, digits, '_' and '.'. Empty if none comes next.
    std::string_view read_word();
    [[nodiscard]] std::string_view peek_word();
    /// Skips this character if it comes next. Returns whether it did.
    bool skip(char character);
    [[nodiscard]] bool next_is(char character);
    std::optional<Operator> take_operator();

    struct ScannedLiteral {
        std::optional<Operand> literal{};
        std::string_view error{}; ///< the reason if no literal could be read; otherwise empty
    };

    /// Reads the right side of a comparison: a quoted string, or a word without quotes.
    ScannedLiteral read_literal();
    /// Returns the next token, shortened and in printable characters, for error messages.
    [[nodiscard]] std::string describe_next();

  private:
    ScannedLiteral read_quoted(char quote);

    std::string_view text_;
    std::size_t at_ = 0;
};

/// Returns a text for error messages: quoted, shortened, in printable ASCII.
[[nodiscard]] std::string shown_text(std::string_view text);

} // namespace tw::filter
