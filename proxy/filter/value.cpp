#include "proxy/filter/value.h"

#include <algorithm>

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
        return (!value.is_number() || value.is_word) && contains(value.text, literal.text);
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

} // namespace tw::filter
