#pragma once

#include "proxy/filter/value.h"

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace tw::filter {

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
