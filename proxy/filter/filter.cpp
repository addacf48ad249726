#include "proxy/filter/filter.h"

#include "proxy/filter/parser.h"

#include <algorithm>
#include <utility>

namespace tw::filter {

using record::Record;
using record::SnapshotRecord;

namespace {

/// The snapshot whose items can be asked; null for other records and what could not be rebuilt.
const SnapshotRecord* with_items(const Record& record) {
    const auto* const* snapshot = std::get_if<const SnapshotRecord*>(&record);
    return snapshot != nullptr && (*snapshot)->rebuilt ? *snapshot : nullptr;
}

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

/// One question to one record.
class Evaluation {
  public:
    Evaluation(const Program& program, const Record& record, bool show_secrets, Observer* observer)
        : program_{&program}, record_{&record}, show_secrets_{show_secrets}, observer_{observer} {}

    // NOLINTNEXTLINE(misc-no-recursion): the parser nests no deeper than kMaxDepth
    bool ask(std::size_t at, ItemContext* item) {
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
    bool compare(std::size_t index, ItemContext* item) {
        const Comparison& comparison = program_->comparisons[index];
        Comparer comparer{comparison, index, observer_};
        if (comparison.key.scope == KeyScope::item) {
            visit_item(comparison.key, *item, scratch_, comparer);
        } else {
            visit_record(comparison.key, *record_, show_secrets_, scratch_, comparer);
        }
        return comparer.result();
    }

    /// How many items fit; stops at `enough`.
    // NOLINTNEXTLINE(misc-no-recursion): as ask
    std::size_t count_items(const Node& node, std::size_t enough) {
        const SnapshotRecord* snapshot = with_items(*record_);
        if (snapshot == nullptr) {
            return 0;
        }
        std::size_t count = 0;
        for (std::size_t i = 0; i < snapshot->items.size() && count < enough; ++i) {
            ItemContext item{*snapshot, i};
            count += node.child == Node::kNone || ask(node.child, &item) ? 1U : 0U;
        }
        return count;
    }

    // NOLINTNEXTLINE(misc-no-recursion): as ask
    bool compare_count(const Node& node) {
        if (with_items(*record_) == nullptr) {
            return false;
        }
        const std::size_t count = count_items(node, SIZE_MAX);
        Comparer comparer{program_->comparisons[node.index], node.index, observer_};
        comparer.take(Value::of(static_cast<std::int64_t>(count)));
        return comparer.result();
    }

    const Program* program_;
    const Record* record_;
    bool show_secrets_;
    Observer* observer_;
    Scratch scratch_; // left as it is: text is written into it before it is read
};

/// Only notes that there is a value.
class Presence final : public ValueVisitor {
  public:
    bool take(const Value& /*value*/) override { return true; }
};

} // namespace

tl::expected<Filter, FilterError> Filter::parse(std::string_view text,
                                                const FilterOptions& options) {
    auto program = parse_filter(text, options);
    if (!program) {
        return tl::unexpected{std::move(program.error())};
    }
    Filter filter;
    filter.text_ = text;
    filter.program_ = std::move(*program);
    filter.show_secrets_ = options.show_secrets;
    return filter;
}

bool Filter::matches(const Record& record) const {
    return Evaluation{program_, record, show_secrets_, nullptr}.ask(program_.root, nullptr);
}

bool Filter::matches(const Record& record, Observer& observer) const {
    return Evaluation{program_, record, show_secrets_, &observer}.ask(program_.root, nullptr);
}

bool Filter::concerns(const Record& record) const {
    bool named = false;
    Scratch scratch;
    Presence presence;
    for (const Comparison& comparison : program_.comparisons) {
        const Key& key = comparison.key;
        if (key.scope == KeyScope::record && key.common) {
            continue;
        }
        named = true;
        if (key.scope == KeyScope::item
                ? with_items(record) != nullptr
                : visit_record(key, record, show_secrets_, scratch, presence)) {
            return true;
        }
    }
    return !named;
}

} // namespace tw::filter
