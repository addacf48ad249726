#pragma once

#include "proxy/filter/keys.h"
#include "proxy/filter/value.h"
#include "proxy/record/records.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tl/expected.hpp>

/// Filters on records. The types from Comparison to ParsedFilter are a filter's parsed form. Only
/// the code that parses or evaluates filters needs them.
namespace tw::filter {

struct Comparison {
    Key key;
    Operator op = Operator::equal;
    Literal literal;
    std::string text; ///< the key as written, such as "items.at.game"; for error messages
};

enum class NodeKind : std::uint8_t {
    all_of,     ///< children joined by "and"
    any_of,     ///< children joined by "or"
    negation,   ///< one child
    comparison, ///< no child; compares the values of a key with a literal
    some_item,  ///< one child; true if at least one item matches the child
    /// At most one child. Compares the number of items that match the child with a literal. Without
    /// a child, all items count.
    count_items,
};

/// A node of the expression tree. All conditions of a chain are children of one node, so the tree
/// is no deeper than the brackets of the text.
struct FilterNode {
    NodeKind kind = NodeKind::all_of;
    std::size_t index = 0; ///< index in ParsedFilter::comparisons, if the node has a comparison
    std::vector<FilterNode> children{};
};

struct ParsedFilter {
    FilterNode root{};
    std::vector<Comparison> comparisons{};
};

struct FilterError {
    std::string message;    ///< one line with the error, its position and perhaps a suggestion
    std::size_t offset = 0; ///< position of the error in the text, in bytes
};

struct FilterOptions {
    /// Whether to compare passwords and codes as they are. If false, their value is "[redacted]",
    /// so that users cannot guess them letter by letter with filters.
    bool show_secrets = false;
    /// Objects and messages that a mod adds. Used only by parse().
    ModTypes described{};
};

/// Receives each compared value. `comparison`: an index into Filter::comparisons().
using ValueObserver = std::function<void(std::size_t comparison, const Value& value)>;

/// A condition on records, in the language that FILTERS.md describes. Matching does not allocate
/// and is thread-safe.
class Filter {
  public:
    /// The longest text of a filter; a longer one is an error.
    static constexpr std::size_t kMaxLength = 4096;
    /// The deepest nesting of brackets and "not". It is limited, because each level is a nested
    /// call.
    static constexpr std::size_t kMaxDepth = 32;

    /// Parses a filter's text. The error has a message of one line. For an unknown word, the
    /// message suggests the most similar known word.
    [[nodiscard]] static tl::expected<Filter, FilterError> parse(std::string_view text,
                                                                 const FilterOptions& options = {});

    /// Returns whether the record matches. Passes each compared value to the observer, if there is
    /// one. Conditions that cannot change the result are not evaluated.
    [[nodiscard]] bool matches(const record::Record& record,
                               const ValueObserver* observer = nullptr) const;

    [[nodiscard]] const ParsedFilter& parsed_filter() const { return parsed_; }

    [[nodiscard]] std::span<const Comparison> comparisons() const { return parsed_.comparisons; }

    /// Returns whether the record has at least one of the filter's keys; see
    /// Evaluation::has_any_key().
    [[nodiscard]] bool has_any_key_in(const record::Record& record) const;

  private:
    Filter() = default;

    ParsedFilter parsed_;
    bool show_secrets_ = false;
};

/// A sink that passes on only the records that match a filter.
class FilteredSink final : public record::RecordSink {
  public:
    FilteredSink(Filter filter, record::RecordSink& target)
        : filter_{std::move(filter)}, target_{&target} {}

    void on_record(const record::Record& record) override {
        if (filter_.matches(record)) {
            target_->on_record(record);
        }
    }

  private:
    Filter filter_;
    record::RecordSink* target_;
};

// The classes below are for the code that evaluates filters. Users of filters do not need them.

/// Compares each value of a key with a literal. Stops at the first match, unless an observer
/// receives all values.
class ValueComparer final : public ValueVisitor {
  public:
    ValueComparer(const Comparison& comparison, std::size_t index, const ValueObserver* observer)
        : comparison_{&comparison}, index_{index}, observer_{observer} {}

    bool receive_value(const Value& value) override {
        has_value_ = true;
        if (observer_ != nullptr) {
            (*observer_)(index_, value);
        }
        is_satisfied_ =
            is_satisfied_ || (!comparison_->literal.is_null &&
                              is_comparison_true(value, comparison_->op, comparison_->literal));
        return observer_ == nullptr && (is_satisfied_ || comparison_->literal.is_null);
    }

    [[nodiscard]] bool is_satisfied() const {
        if (comparison_->literal.is_null) {
            return has_value_ == (comparison_->op == Operator::unequal);
        }
        return is_satisfied_;
    }

  private:
    const Comparison* comparison_;
    std::size_t index_;
    const ValueObserver* observer_;
    bool has_value_ = false;
    bool is_satisfied_ = false;
};

class ValueDetector final : public ValueVisitor {
  public:
    bool receive_value(const Value& /*value*/) override {
        found = true;
        return true;
    }

    bool found = false;
};

/// Evaluates a filter for one record. `Source` reads the record; it has a type `Item` and the
/// functions visit(key, visitor), visit_item(key, item, visitor), has_items() and
/// for_each_item(use). for_each_item() calls `use` for each item until `use` returns true.
template <typename Source>
class Evaluation {
  public:
    using Item = typename Source::Item;

    Evaluation(const ParsedFilter& parsed, Source& source, const ValueObserver* observer = nullptr)
        : parsed_{&parsed}, source_{&source}, observer_{observer} {}

    /// Returns whether the record matches. `item`: for a filter for rows (KeyScope::item_row), the
    /// row's item; otherwise null.
    [[nodiscard]] bool matches(Item* item = nullptr) { return evaluate_node(parsed_->root, item); }

    /// Returns whether the record has at least one of the filter's keys. Keys that all records have
    /// do not count. True if the filter has only such keys.
    [[nodiscard]] bool has_any_key() {
        bool named = false;
        for (const Comparison& comparison : parsed_->comparisons) {
            if (comparison.key.location == Key::Location::header) {
                continue;
            }
            named = true;
            ValueDetector any;
            if (comparison.key.scope == KeyScope::record) {
                source_->visit(comparison.key, any);
            }
            if (any.found || (comparison.key.scope == KeyScope::item && source_->has_items())) {
                return true;
            }
        }
        return !named;
    }

  private:
    // NOLINTNEXTLINE(misc-no-recursion): the parser nests no deeper than kMaxDepth
    bool evaluate_node(const FilterNode& node, Item* item) {
        // NOLINTNEXTLINE(misc-no-recursion): as evaluate_node
        const auto is_true = [&](const FilterNode& child) { return evaluate_node(child, item); };
        switch (node.kind) {
        case NodeKind::all_of:
            return std::ranges::all_of(node.children, is_true);
        case NodeKind::any_of:
            return std::ranges::any_of(node.children, is_true);
        case NodeKind::negation:
            return !is_true(node.children.front());
        case NodeKind::comparison:
            return evaluate_comparison(node.index, item);
        case NodeKind::some_item:
            return count_items(node, 1) != 0;
        case NodeKind::count_items:
            return evaluate_count(node);
        }
        return false;
    }

    bool evaluate_comparison(std::size_t index, Item* item) {
        const Comparison& comparison = parsed_->comparisons[index];
        ValueComparer comparer{comparison, index, observer_};
        if (comparison.key.scope == KeyScope::item) {
            source_->visit_item(comparison.key, *item, comparer);
        } else {
            source_->visit(comparison.key, comparer);
        }
        return comparer.is_satisfied();
    }

    /// Counts the items that match the node's child, or all items if the node has no child. Stops
    /// counting at `enough`.
    // NOLINTNEXTLINE(misc-no-recursion): as evaluate_node
    std::size_t count_items(const FilterNode& node, std::size_t enough) {
        std::size_t count = 0;
        // NOLINTNEXTLINE(misc-no-recursion): as evaluate_node
        source_->for_each_item([&](Item& item) {
            count += node.children.empty() || evaluate_node(node.children.front(), &item) ? 1U : 0U;
            return count >= enough;
        });
        return count;
    }

    // NOLINTNEXTLINE(misc-no-recursion): as evaluate_node
    bool evaluate_count(const FilterNode& node) {
        if (!source_->has_items()) {
            return false;
        }
        const std::size_t count = count_items(node, SIZE_MAX);
        ValueComparer comparer{parsed_->comparisons[node.index], node.index, observer_};
        comparer.receive_value(Value::of(static_cast<std::int64_t>(count)));
        return comparer.is_satisfied();
    }

    const ParsedFilter* parsed_;
    Source* source_;
    const ValueObserver* observer_;
};

/// Returns whether the filter requires a message record, because of a condition on the type or on a
/// key that only messages have. Negated conditions are ignored.
[[nodiscard]] bool matches_only_messages(const ParsedFilter& parsed);

/// Returns the first word of a filter's text; empty if the text does not begin with a word.
[[nodiscard]] std::string_view first_word(std::string_view text);

/// Parses a filter's text. In each comparison of the result, the key exists, and the literal is a
/// possible value if the key's values are a closed set. `scope`: the object to which the keys in
/// the text belong.
[[nodiscard]] tl::expected<ParsedFilter, FilterError>
parse_filter(std::string_view text, const FilterOptions& options,
             KeyScope scope = KeyScope::record);

} // namespace tw::filter
