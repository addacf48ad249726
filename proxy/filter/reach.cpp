#include "proxy/filter/reach.h"

#include "proxy/record/values.h"

namespace tw::filter {

namespace {

template <typename Kind>
constexpr bool is_type(std::size_t type) {
    return record::Record{static_cast<const Kind*>(nullptr)}.index() == type;
}

bool has_items(std::size_t type) {
    return is_type<record::SnapshotRecord>(type) || is_type<record::WorldRecord>(type);
}

/// What a condition may turn out to be.
struct Outcomes {
    bool yes = false;
    bool no = false;
};

constexpr Outcomes kEither{.yes = true, .no = true};

constexpr Outcomes always(bool value) {
    return {.yes = value, .no = !value};
}

bool may_have(const Key& key, std::size_t type) {
    switch (key.way) {
    case Key::Way::row:
        return key.rows[type] != Key::kNoRow;
    case Key::Way::place:
        return is_type<record::FindingRecord>(type);
    default:
        return is_type<record::MessageRecord>(type);
    }
}

Outcomes compare(const Comparison& comparison, std::size_t type) {
    const Operand& literal = comparison.literal;
    if (comparison.key.scope == KeyScope::item) {
        return kEither;
    }
    if (!may_have(comparison.key, type)) {
        return always(literal.null && comparison.op == Operator::equal);
    }
    if (comparison.key.name == "type" && !literal.null) {
        return always(satisfies(Value::of(record::kRecordTypes[type]), comparison.op, literal));
    }
    return kEither;
}

// NOLINTNEXTLINE(misc-no-recursion): the parser nests no deeper than Filter::kMaxDepth
Outcomes ask(const Program& program, std::size_t at, std::size_t type) {
    const Node& node = program.nodes[at];
    if (node.kind == NodeKind::some_item || node.kind == NodeKind::count_items) {
        return has_items(type) ? kEither : always(false);
    }
    if (node.kind == NodeKind::comparison) {
        return compare(program.comparisons[node.index], type);
    }
    if (node.kind == NodeKind::negation) {
        const Outcomes inner = ask(program, node.child, type);
        return {.yes = inner.no, .no = inner.yes};
    }
    const bool all = node.kind == NodeKind::all_of;
    Outcomes joined = always(all);
    for (std::size_t i = node.child; i != Node::kNone; i = program.nodes[i].next) {
        const Outcomes each = ask(program, i, type);
        joined = all ? Outcomes{.yes = joined.yes && each.yes, .no = joined.no || each.no}
                     : Outcomes{.yes = joined.yes || each.yes, .no = joined.no && each.no};
    }
    return joined;
}

} // namespace

bool may_match(const Program& program, std::size_t type) {
    return ask(program, program.root, type).yes;
}

bool is_about_messages(const Program& program) {
    for (std::size_t type = 0; type < record::kRecordTypes.size(); ++type) {
        if (may_match(program, type) != is_type<record::MessageRecord>(type)) {
            return false;
        }
    }
    return true;
}

} // namespace tw::filter
