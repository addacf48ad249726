#pragma once

#include "proxy/filter/keys.h"
#include "proxy/filter/value.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

/// What a filter's text becomes. For the parser, the evaluation and nobody else.
namespace tw::filter {

struct Comparison {
    Key key;
    Operator op = Operator::equal;
    Operand literal;
    std::string text; ///< the key as written, for messages: "items.at.game"

    friend bool operator==(const Comparison&, const Comparison&) = default;
};

enum class NodeKind : std::uint8_t {
    all_of,      ///< children joined by "and"
    any_of,      ///< children joined by "or"
    negation,    ///< one child
    comparison,  ///< leaf: `index` is the comparison
    some_item,   ///< one child, asked of every item until one fits
    count_items, ///< at most one child; how many items fit, compared as `index` says
};

/// A node of the tree. Children stand in a list: a long row of conditions is wide, not deep, so
/// that evaluation nests no deeper than the brackets of the text.
struct Node {
    static constexpr std::size_t kNone = SIZE_MAX;

    NodeKind kind = NodeKind::all_of;
    std::size_t index = kNone;
    std::size_t child = kNone; ///< the first
    std::size_t next = kNone;  ///< the next child of the same parent

    friend bool operator==(const Node&, const Node&) = default;
};

struct Program {
    std::vector<Node> nodes;
    std::vector<Comparison> comparisons;
    std::size_t root = Node::kNone;

    friend bool operator==(const Program&, const Program&) = default;
};

} // namespace tw::filter
