#pragma once

#include "proxy/filter/filter.h"
#include "proxy/filter/program.h"

#include <cstddef>
#include <cstdint>

/// How a filter is asked. For whoever reads records, and nobody else.
namespace tw::filter {

/// Compares each value of a key. Stops at the first that satisfies, unless somebody watches.
class Comparer final : public ValueVisitor {
  public:
    Comparer(const Comparison& comparison, std::size_t index, Observer* observer)
        : comparison_{&comparison}, index_{index}, observer_{observer} {}

    bool take(const Value& value) override {
        any_ = true;
        if (observer_ != nullptr) {
            observer_->saw(index_, value);
        }
        satisfied_ = satisfied_ || (!comparison_->literal.null &&
                                    satisfies(value, comparison_->op, comparison_->literal));
        return observer_ == nullptr && (satisfied_ || comparison_->literal.null);
    }

    [[nodiscard]] bool result() const {
        if (comparison_->literal.null) {
            return any_ == (comparison_->op == Operator::unequal);
        }
        return satisfied_;
    }

  private:
    const Comparison* comparison_;
    std::size_t index_;
    Observer* observer_;
    bool any_ = false;
    bool satisfied_ = false;
};

/// One question to one record. `Source` reads the record: it has an `Item`, and can visit(key,
/// scratch, visitor), visit_item(key, item, scratch, visitor), say whether it has_items(), and hand
/// each_item(use) to a function that returns true for enough.
template <typename Source>
class Evaluation {
  public:
    using Item = typename Source::Item;

    Evaluation(const Program& program, Source source, Observer* observer)
        : program_{&program}, source_{source}, observer_{observer} {}

    // NOLINTNEXTLINE(misc-no-recursion): the parser nests no deeper than kMaxDepth
    bool ask(std::size_t at, Item* item) {
        const Node& node = program_->nodes[at];
        switch (node.kind) {
        case NodeKind::all_of:
            for (std::size_t i = node.child; i != Node::kNone; i = program_->nodes[i].next) {
                if (!ask(i, item)) {
                    return false;
                }
            }
            return true;
        case NodeKind::any_of:
            for (std::size_t i = node.child; i != Node::kNone; i = program_->nodes[i].next) {
                if (ask(i, item)) {
                    return true;
                }
            }
            return false;
        case NodeKind::negation:
            return !ask(node.child, item);
        case NodeKind::comparison:
            return compare(node.index, item);
        case NodeKind::some_item:
            return count_items(node, 1) != 0;
        case NodeKind::count_items:
            return compare_count(node);
        }
        return false;
    }

  private:
    bool compare(std::size_t index, Item* item) {
        const Comparison& comparison = program_->comparisons[index];
        Comparer comparer{comparison, index, observer_};
        if (comparison.key.scope == KeyScope::item) {
            source_.visit_item(comparison.key, *item, scratch_, comparer);
        } else {
            source_.visit(comparison.key, scratch_, comparer);
        }
        return comparer.result();
    }

    /// How many items fit; stops at `enough`.
    // NOLINTNEXTLINE(misc-no-recursion): as ask
    std::size_t count_items(const Node& node, std::size_t enough) {
        std::size_t count = 0;
        // NOLINTNEXTLINE(misc-no-recursion): as ask
        source_.each_item([&](Item& item) {
            count += node.child == Node::kNone || ask(node.child, &item) ? 1U : 0U;
            return count >= enough;
        });
        return count;
    }

    // NOLINTNEXTLINE(misc-no-recursion): as ask
    bool compare_count(const Node& node) {
        if (!source_.has_items()) {
            return false;
        }
        const std::size_t count = count_items(node, SIZE_MAX);
        Comparer comparer{program_->comparisons[node.index], node.index, observer_};
        comparer.take(Value::of(static_cast<std::int64_t>(count)));
        return comparer.result();
    }

    const Program* program_;
    Source source_;
    Observer* observer_;
    Scratch scratch_; // left as it is: text is written into it before it is read
};

} // namespace tw::filter
