#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

namespace tw::filter {

/// What a comparison reads from a record: one value of one key. Views live as long as the record
/// and the scratch text it was read with.
struct Value {
    std::string_view text{};                                     ///< empty for plain numbers
    std::variant<std::monostate, std::int64_t, double> number{}; ///< nothing: text only
    bool word = false; ///< the text is how the number is written: booleans, severities

    [[nodiscard]] static Value of(std::string_view text) { return {.text = text}; }

    [[nodiscard]] static Value of(std::int64_t number) { return {.number = number}; }

    [[nodiscard]] static Value of(double number) { return {.number = number}; }

    [[nodiscard]] static Value of(bool flag) {
        return {
            .text = flag ? "true" : "false", .number = std::int64_t{flag ? 1 : 0}, .word = true};
    }

    [[nodiscard]] bool numeric() const { return number.index() != 0; }
};

/// Takes the values of a key one by one: a key may have none (absent or null) or several (flags,
/// arrays, items).
class ValueVisitor {
  public:
    ValueVisitor() = default;
    ValueVisitor(const ValueVisitor&) = delete;
    ValueVisitor& operator=(const ValueVisitor&) = delete;
    ValueVisitor(ValueVisitor&&) = delete;
    ValueVisitor& operator=(ValueVisitor&&) = delete;
    virtual ~ValueVisitor() = default;

    /// True: enough, no more values are wanted.
    virtual bool take(const Value& value) = 0;
};

/// Room for text that stands in no record as such: times, checksums, UUIDs, hex, int strings.
struct Scratch {
    /// Hex of more bytes than this is cut: a datagram holds 1400.
    static constexpr std::size_t kMaxHexBytes = 2048;
    std::array<char, 2 * kMaxHexBytes> text;
};

/// What a key holds in every record that has it; `any` when records differ.
enum class KeyKind : std::uint8_t { number, text, boolean, any };

enum class Operator : std::uint8_t { equal, unequal, less, at_most, greater, at_least, contains };

/// The right side of a comparison.
struct Operand {
    std::string text; ///< as written, unquoted
    std::variant<std::monostate, std::int64_t, double>
        number{}; ///< also of true, false and severities
    bool null = false;
    bool quoted = false;

    friend bool operator==(const Operand&, const Operand&) = default;
};

/// Whether a present value satisfies `value op literal`. Numbers compare as numbers when the
/// literal is one, otherwise text with text, byte by byte. `contains` knows text only and ignores
/// the case of ASCII letters.
[[nodiscard]] bool satisfies(const Value& value, Operator op, const Operand& literal);

/// Cuts a filter's text into words. What a word is depends on where it stands, so the parser asks
/// for what it wants next.
class FilterScanner {
  public:
    explicit FilterScanner(std::string_view text) : text_{text} {}

    /// Where the next token starts; behind the last one: the text's length.
    [[nodiscard]] std::size_t offset();

    [[nodiscard]] bool at_end() { return offset() == text_.size(); }

    /// Takes a key, a keyword or the name of a type: letters, digits, '_' and '.'. Empty if there
    /// is none.
    std::string_view word();
    [[nodiscard]] std::string_view peek_word();
    /// Takes this character if it comes next.
    bool take(char character);
    [[nodiscard]] bool next_is(char character);
    std::optional<Operator> take_operator();

    struct Value {
        std::optional<Operand> literal{};
        std::string_view error{}; ///< what is wrong when there is no literal
    };

    /// Takes the right side of a comparison: a quoted string or a bare word.
    Value literal();
    /// What comes next, short and printable, for messages.
    [[nodiscard]] std::string shown();

  private:
    Value quoted(char quote);

    std::string_view text_;
    std::size_t at_ = 0;
};

/// A text as messages show it: quoted, short, printable ASCII.
[[nodiscard]] std::string shown_text(std::string_view text);

} // namespace tw::filter
