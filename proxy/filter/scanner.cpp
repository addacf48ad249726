#include "proxy/filter/scanner.h"

#include <algorithm>
#include <charconv>
#include <utility>

namespace tw::filter {

namespace {

char to_lower(char character) {
    return character >= 'A' && character <= 'Z' ? static_cast<char>(character + ('a' - 'A'))
                                                : character;
}

bool contains(std::string_view text, std::string_view part) {
    return std::search(text.begin(), text.end(), part.begin(), part.end(),
                       [](char a, char b) { return to_lower(a) == to_lower(b); }) != text.end() ||
           part.empty(); // an empty part is also in an empty text
}

double to_real(const Number& number) {
    const auto* const integer = std::get_if<std::int64_t>(&number);
    return integer != nullptr ? static_cast<double>(*integer) : std::get<double>(number);
}

std::partial_ordering compare_with_literal(const Value& value, const Operand& literal) {
    if (value.is_number()) {
        return literal.number.index() != 0 ? compare_numbers(value.number, literal.number)
                                           : std::partial_ordering::unordered;
    }
    return value.text.compare(literal.text) <=> 0;
}

} // namespace

std::partial_ordering compare_numbers(const Number& left, const Number& right) {
    const auto* const a = std::get_if<std::int64_t>(&left);
    const auto* const b = std::get_if<std::int64_t>(&right);
    return a != nullptr && b != nullptr ? std::partial_ordering{*a <=> *b}
                                        : to_real(left) <=> to_real(right);
}

bool satisfies(const Value& value, Operator op, const Operand& literal) {
    if (op == Operator::contains) {
        return (!value.is_number() || value.word) && contains(value.text, literal.text);
    }
    const std::partial_ordering sign = compare_with_literal(value, literal);
    switch (op) {
    case Operator::equal:
        return sign == 0;
    case Operator::unequal:
        return sign != 0;
    case Operator::less:
        return sign < 0;
    case Operator::at_most:
        return sign <= 0;
    case Operator::greater:
        return sign > 0;
    case Operator::at_least:
        return sign >= 0;
    case Operator::contains:
        break;
    }
    return false;
}

namespace {

bool is_blank(char c) {
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

bool is_word(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || is_digit(c) || c == '_' || c == '.';
}

/// True for characters that a literal may contain without quotes. More characters are allowed than
/// in keys, for addresses, times, versions, and names in any script.
bool is_bare(char c) {
    constexpr std::string_view kNot = "()\"'=!<>~";
    return static_cast<unsigned char>(c) > ' ' && c != '\x7f' &&
           kNot.find(c) == std::string_view::npos;
}

template <typename Parsed>
bool parse_number(std::string_view text, Parsed& number) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    return error == std::errc{} && end == text.data() + text.size();
}

Operand bare_operand(std::string_view text) {
    Operand literal;
    literal.text = text;
    literal.null = text == "null";
    const std::size_t sign = text.starts_with('-') ? 1 : 0;
    std::int64_t integer = 0;
    double real = 0;
    if (text == "true" || text == "false") {
        literal.number = std::int64_t{text == "true" ? 1 : 0};
    } else if (text.size() <= sign || !is_digit(text[sign])) {
        return literal; // "inf" and "nan" are compared as texts, not as numbers
    } else if (parse_number(text, integer)) {
        literal.number = integer;
    } else if (parse_number(text, real)) {
        literal.number = real;
    }
    return literal;
}

} // namespace

std::string quoted_for_message(std::string_view text) {
    constexpr std::size_t kMaxShown = 40;
    std::string out{'"'};
    for (const char c : text.substr(0, kMaxShown)) {
        out += c >= ' ' && c < '\x7f' ? c : '?';
    }
    out += text.size() > kMaxShown ? "...\"" : "\"";
    return out;
}

std::size_t FilterScanner::offset() {
    while (at_ < text_.size() && is_blank(text_[at_])) {
        ++at_;
    }
    return at_;
}

std::string_view FilterScanner::peek_word() {
    const std::size_t begin = offset();
    std::size_t end = begin;
    while (end < text_.size() && is_word(text_[end])) {
        ++end;
    }
    return text_.substr(begin, end - begin);
}

std::string_view FilterScanner::read_word() {
    const std::string_view word = peek_word();
    at_ += word.size();
    return word;
}

bool FilterScanner::next_is(char character) {
    return !at_end() && text_[at_] == character;
}

bool FilterScanner::skip_if_next(char character) {
    const bool there = next_is(character);
    at_ += there ? 1U : 0U;
    return there;
}

std::optional<Operator> FilterScanner::read_operator() {
    static constexpr std::array<std::pair<std::string_view, Operator>, 7> kOperators{
        {{"==", Operator::equal},
         {"!=", Operator::unequal},
         {"<=", Operator::at_most},
         {">=", Operator::at_least},
         {"<", Operator::less},
         {">", Operator::greater},
         {"~", Operator::contains}}};
    const std::string_view rest = text_.substr(offset());
    for (const auto& [sign, op] : kOperators) {
        if (rest.starts_with(sign)) {
            at_ += sign.size();
            return op;
        }
    }
    return std::nullopt;
}

FilterScanner::ScannedLiteral FilterScanner::read_quoted(char quote) {
    Operand literal{.text = {}, .number = {}, .null = false, .quoted = true};
    for (++at_; at_ < text_.size() && text_[at_] != quote; ++at_) {
        if (text_[at_] == '\\') {
            ++at_;
            if (at_ == text_.size() ||
                std::string_view{"\"'\\"}.find(text_[at_]) == std::string_view::npos) {
                return {.error = "only a quote or a backslash can follow a backslash"};
            }
        }
        literal.text += text_[at_];
    }
    if (at_ == text_.size()) {
        return {.error = "the string that starts here is not closed"};
    }
    ++at_;
    return {.literal = std::move(literal)};
}

FilterScanner::ScannedLiteral FilterScanner::read_literal() {
    if (next_is('"') || next_is('\'')) {
        return read_quoted(text_[at_]);
    }
    const std::size_t begin = offset();
    while (at_ < text_.size() && is_bare(text_[at_])) {
        ++at_;
    }
    if (at_ == begin) {
        return {.error = "a value is missing"};
    }
    return {.literal = bare_operand(text_.substr(begin, at_ - begin))};
}

std::string FilterScanner::describe_next_token() {
    if (at_end()) {
        return "the end";
    }
    const std::string_view word = peek_word();
    return quoted_for_message(word.empty() ? text_.substr(at_, 1) : word);
}

} // namespace tw::filter
