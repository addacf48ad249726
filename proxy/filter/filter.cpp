#include "proxy/filter/filter.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include <fmt/format.h>

namespace tw::filter {

using record::Record;
using record::SnapshotRecord;

namespace {

/// Returns the rebuilt snapshot in a record; null if the record has none.
const SnapshotRecord* snapshot_of(const Record& record) {
    if (const auto* const* world = std::get_if<const record::WorldRecord*>(&record)) {
        return &(*world)->shown;
    }
    const auto* const* snapshot = std::get_if<const SnapshotRecord*>(&record);
    return snapshot != nullptr && (*snapshot)->rebuilt ? *snapshot : nullptr;
}

/// Passes the values of a record in memory to an Evaluation.
class RecordValues {
  public:
    using Item = FilteredItem;

    RecordValues(const Record& record, bool show_secrets)
        : record_{&record}, show_secrets_{show_secrets} {}

    void visit(const Key& key, FormatBuffer& buffer, ValueVisitor& visitor) const {
        visit_record(key, *record_, show_secrets_, buffer, visitor);
    }

    static void visit_item(const Key& key, Item& item, FormatBuffer& buffer,
                           ValueVisitor& visitor) {
        filter::visit_item(key, item, buffer, visitor);
    }

    [[nodiscard]] bool has_items() const { return snapshot_of(*record_) != nullptr; }

    template <typename Use>
    // NOLINTNEXTLINE(misc-no-recursion): called by Evaluation::evaluate, and calls it
    void for_each_item(const Use& use) const {
        const SnapshotRecord* const snapshot = snapshot_of(*record_);
        for (std::size_t i = 0; snapshot != nullptr && i < snapshot->items.size(); ++i) {
            FilteredItem item{*snapshot, i};
            if (use(item)) {
                return;
            }
        }
    }

  private:
    const Record* record_;
    bool show_secrets_;
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

bool Filter::matches(const Record& record, ValueObserver* observer) const {
    return Evaluation{program_, RecordValues{record, show_secrets_}, observer}.matches();
}

bool Filter::has_any_key_in(const Record& record) const {
    return Evaluation{program_, RecordValues{record, show_secrets_}, nullptr}.has_any_key();
}

namespace {

/// Returns whether the comparison is false for all records except messages.
bool requires_message(const Comparison& comparison) {
    constexpr std::size_t kMessage =
        Record{static_cast<const record::MessageRecord*>(nullptr)}.index();
    const Key& key = comparison.key;
    const Operand& literal = comparison.literal;
    const bool is_absence = literal.null && comparison.op == Operator::equal;
    if (key.scope == KeyScope::item || key.way == Key::Location::place || is_absence) {
        return false;
    }
    if (key.way != Key::Location::row) {
        return true; // only messages have the objects `fields` and `names`
    }
    for (std::size_t type = 0; type < record::kRecordTypes.size(); ++type) {
        const bool may_match =
            key.name != "type" || literal.null ||
            satisfies(Value::of(record::kRecordTypes[type]), comparison.op, literal);
        if (type != kMessage && key.of_records[type] != nullptr && may_match) {
            return false;
        }
    }
    return true;
}

// NOLINTNEXTLINE(misc-no-recursion): the parser nests no deeper than Filter::kMaxDepth
bool requires_message(const FilterProgram& program, std::size_t at) {
    const FilterNode& node = program.nodes[at];
    if (node.kind == NodeKind::comparison) {
        return requires_message(program.comparisons[node.index]);
    }
    const bool is_all = node.kind == NodeKind::all_of;
    if (!is_all && node.kind != NodeKind::any_of) {
        return false;
    }
    std::size_t i = node.child;
    while (i != FilterNode::kNone && requires_message(program, i) != is_all) {
        i = program.nodes[i].next;
    }
    return (i != FilterNode::kNone) == is_all;
}

} // namespace

bool matches_only_messages(const FilterProgram& program) {
    return requires_message(program, program.root);
}

namespace {

constexpr std::array<std::string_view, 3> kKeywords{"and", "or", "not"};

bool is_keyword(std::string_view word) {
    return std::ranges::find(kKeywords, word) != kKeywords.end();
}

bool contains_word(const std::vector<std::string_view>& words, std::string_view word) {
    return std::ranges::find(words, word) != words.end();
}

/// Returns a key as error messages show it. An item's key gets the prefix "items.".
std::string shown_key(KeyScope scope, std::string_view name) {
    return std::string{scope == KeyScope::item ? kItemsPrefix : std::string_view{}} +
           std::string{name};
}

std::string suggestion_text(std::string_view word) {
    return word.empty() ? std::string{} : fmt::format("; did you mean \"{}\"?", word);
}

/// Converts the literal to the type of its key. Returns an error text if that is not possible.
std::optional<std::string> convert_literal(Comparison& comparison, DescribedTypes more) {
    const Key& key = comparison.key;
    Operand& literal = comparison.literal;
    const bool equality = comparison.op == Operator::equal || comparison.op == Operator::unequal;
    const bool contains = comparison.op == Operator::contains;
    if (literal.null) {
        return equality ? std::nullopt
                        : std::optional<std::string>{"null can only be compared with == and !="};
    }
    if (contains) {
        return key.kind == KeyKind::number
                   ? std::optional{fmt::format("~ searches text, but {} is a number",
                                               comparison.text)}
                   : std::nullopt;
    }
    const bool word = literal.text == "true" || literal.text == "false";
    if (key.kind == KeyKind::number && (literal.number.index() == 0 || word)) {
        return fmt::format("{} is a number, but {} is not", comparison.text,
                           quoted_for_message(literal.text));
    }
    if (key.kind == KeyKind::boolean && literal.number.index() == 0) {
        return fmt::format("{} is true or false", comparison.text);
    }
    const std::vector<std::string_view> words = possible_words(key, more);
    const bool number_allowed = key.kind == KeyKind::any && literal.number.index() != 0;
    const bool ranked = key.scope == KeyScope::record && key.name == "severity";
    if (!words.empty() && (equality || ranked) && !number_allowed && !literal.text.empty() &&
        !contains_word(words, literal.text)) {
        return fmt::format("{} is never {}{}", comparison.text, quoted_for_message(literal.text),
                           suggestion_text(most_similar_word(literal.text, words)));
    }
    if (const auto severity = record::find_severity(literal.text); ranked && severity) {
        literal.number = static_cast<std::int64_t>(*severity);
    }
    return std::nullopt;
}

class Parser {
  public:
    Parser(std::string_view text, const FilterOptions& options)
        : scanner_{text}, more_{options.described} {}

    tl::expected<FilterProgram, FilterError> parse(KeyScope scope) {
        const auto root = parse_any_of(scope);
        if (root && !scanner_.at_end()) {
            fail_unexpected_rest();
        }
        if (!root || error_) {
            return tl::unexpected{error_.value_or(FilterError{})};
        }
        program_.root = *root;
        return std::move(program_);
    }

  private:
    using Parsed = std::optional<std::size_t>;

    Parsed fail(std::size_t offset, std::string_view message) {
        if (!error_) {
            error_ = FilterError{fmt::format("{} at column {}", message, offset + 1), offset};
            // Writes the column before the suggestion, which ends with a question mark.
            if (const std::size_t hint = message.find("; did you mean");
                hint != std::string_view::npos) {
                error_->message = fmt::format("{} at column {}{}", message.substr(0, hint),
                                              offset + 1, message.substr(hint));
            }
        }
        return std::nullopt;
    }

    Parsed fail_unexpected_rest() {
        const std::size_t at = scanner_.offset();
        if (scanner_.next_is('&') || scanner_.next_is('|')) {
            return fail(at, R"(conditions are joined by the words "and" and "or")");
        }
        if (scanner_.next_is('=')) {
            return fail(at, "equality is written ==");
        }
        return fail(at, fmt::format(R"(expected "and", "or" or the end, not {})",
                                    scanner_.describe_next_token()));
    }

    std::size_t add_node(FilterNode node) {
        program_.nodes.push_back(node);
        return program_.nodes.size() - 1;
    }

    // NOLINTBEGIN(misc-no-recursion): nested no deeper than kMaxDepth

    /// Parses conditions that are joined by `word`. `part` parses one condition. Returns a node of
    /// the kind `kind`, or the condition's node if there is only one condition.
    template <typename Part>
    Parsed parse_joined(std::string_view word, NodeKind kind, const Part& part) {
        const Parsed first = part();
        if (!first || scanner_.peek_word() != word) {
            return first;
        }
        std::size_t last = *first;
        while (scanner_.peek_word() == word) {
            scanner_.read_word();
            const Parsed next = part();
            if (!next) {
                return std::nullopt;
            }
            program_.nodes[last].next = *next;
            last = *next;
        }
        return add_node({.kind = kind, .child = *first});
    }

    Parsed parse_any_of(KeyScope scope) {
        return parse_joined("or", NodeKind::any_of, [&] { return parse_all_of(scope); });
    }

    Parsed parse_all_of(KeyScope scope) {
        return parse_joined("and", NodeKind::all_of, [&] { return parse_negation(scope); });
    }

    /// Parses a nested part of the text with `part`. Returns an error if it is nested too deep.
    template <typename Part>
    Parsed parse_nested(const Part& part) {
        if (depth_ == Filter::kMaxDepth) {
            return fail(
                scanner_.offset(),
                fmt::format("more than {} brackets and \"not\" are nested", Filter::kMaxDepth));
        }
        ++depth_;
        const Parsed parsed = part();
        --depth_;
        return parsed;
    }

    Parsed parse_negation(KeyScope scope) {
        if (scanner_.peek_word() != "not") {
            return parse_primary(scope);
        }
        scanner_.read_word();
        const Parsed inner = parse_nested([&] { return parse_negation(scope); });
        return inner ? Parsed{add_node({.kind = NodeKind::negation, .child = *inner})}
                     : std::nullopt;
    }

    Parsed expect_closing_bracket(Parsed inner) {
        if (inner && !scanner_.skip_if_next(')')) {
            return fail(scanner_.offset(),
                        fmt::format("expected \")\", not {}", scanner_.describe_next_token()));
        }
        return inner;
    }

    Parsed parse_primary(KeyScope scope) {
        if (scanner_.skip_if_next('(')) {
            return expect_closing_bracket(parse_nested([&] { return parse_any_of(scope); }));
        }
        const std::size_t at = scanner_.offset();
        const std::string_view word = scanner_.read_word();
        if (word.empty() || is_keyword(word)) {
            return fail_missing_condition(at, word);
        }
        if ((word == "any" || word == "count") && scanner_.next_is('(')) {
            return scope == KeyScope::record ? parse_group(word == "count")
                                             : fail(at, "items contain no items");
        }
        const std::size_t sign = scanner_.offset();
        if (const auto op = scanner_.read_operator()) {
            return parse_comparison(scope, at, word, *op);
        }
        if (scanner_.next_is('=')) {
            return fail(sign, "equality is written ==");
        }
        return parse_single_word(scope, at, word);
    }

    Parsed fail_missing_condition(std::size_t at, std::string_view word) {
        if (scanner_.next_is('!')) {
            return fail(at, "negation is written \"not\"");
        }
        const std::string found =
            word.empty() ? scanner_.describe_next_token() : quoted_for_message(word);
        return fail(at, fmt::format("expected a condition, not {}", found));
    }

    /// Parses the text after "any" or "count": `(items: CONDITION)`. After "count", `(items)` is
    /// possible, too, and a comparison must follow.
    Parsed parse_group(bool count) {
        scanner_.skip_if_next('(');
        const std::size_t at = scanner_.offset();
        if (scanner_.read_word() != "items") {
            return fail(at, "expected \"items\": only items are lists");
        }
        FilterNode node{.kind = count ? NodeKind::count_items : NodeKind::some_item};
        if (scanner_.skip_if_next(':')) {
            const Parsed inner = parse_nested([&] { return parse_any_of(KeyScope::item); });
            if (!inner) {
                return std::nullopt;
            }
            node.child = *inner;
        } else if (!count) {
            return fail(scanner_.offset(), "expected \":\" and a condition on items");
        }
        if (!expect_closing_bracket(Parsed{0})) {
            return std::nullopt;
        }
        return count ? parse_count_comparison(node) : Parsed{add_node(node)};
    }

    // NOLINTEND(misc-no-recursion)

    Parsed parse_count_comparison(FilterNode node) {
        const auto op = scanner_.read_operator();
        if (!op) {
            return fail(scanner_.offset(), "a count must be compared, for example with >= 2");
        }
        Comparison count{.key = {}, .op = *op, .literal = {}, .text = "count(items)"};
        count.key.name = count.text;
        count.key.scope = KeyScope::item;
        count.key.kind = KeyKind::number;
        const auto index = parse_literal(std::move(count));
        if (!index) {
            return std::nullopt;
        }
        node.index = *index;
        return add_node(node);
    }

    /// Reads the literal of a comparison, and stores the comparison. Returns the comparison's index
    /// in FilterProgram::comparisons.
    Parsed parse_literal(Comparison comparison) {
        const std::size_t at = scanner_.offset();
        FilterScanner::ScannedLiteral value = scanner_.read_literal();
        if (!value.literal) {
            return fail(at, value.error);
        }
        comparison.literal = std::move(*value.literal);
        return add_comparison(std::move(comparison), at);
    }

    Parsed add_comparison(Comparison comparison, std::size_t at) {
        if (const auto complaint = convert_literal(comparison, more_)) {
            return fail(at, *complaint);
        }
        program_.comparisons.push_back(std::move(comparison));
        return program_.comparisons.size() - 1;
    }

    Parsed add_comparison_node(Parsed index, bool some_item) {
        if (!index) {
            return std::nullopt;
        }
        const std::size_t node = add_node({.kind = NodeKind::comparison, .index = *index});
        return some_item ? add_node({.kind = NodeKind::some_item, .child = node}) : node;
    }

    [[nodiscard]] std::optional<Key> find_known_key(KeyScope scope, std::string_view name) const {
        if (scope == KeyScope::record && name.starts_with(kItemsPrefix)) {
            return find_key(KeyScope::item, name.substr(kItemsPrefix.size()), more_);
        }
        return find_key(scope, name, more_);
    }

    Parsed fail_unknown_key(KeyScope scope, std::size_t at, std::string_view name) {
        const bool item = scope == KeyScope::item || name.starts_with(kItemsPrefix);
        return fail(at, fmt::format("no {} has a key {}{}",
                                    item                        ? "item"
                                    : scope == KeyScope::record ? "record"
                                                                : "item or record",
                                    quoted_for_message(name),
                                    suggestion_text(suggest_key(scope, name, more_))));
    }

    Parsed parse_comparison(KeyScope scope, std::size_t at, std::string_view name, Operator op) {
        auto found = find_known_key(scope, name);
        if (!found) {
            return fail_unknown_key(scope, at, name);
        }
        const bool short_form = scope == KeyScope::record && found->scope == KeyScope::item;
        return add_comparison_node(parse_literal({.key = std::move(*found),
                                                  .op = op,
                                                  .literal = {},
                                                  .text = shown_key(scope, name)}),
                                   short_form);
    }

    /// Parses a single word: a record type, an item type, or a boolean key.
    Parsed parse_single_word(KeyScope scope, std::size_t at, std::string_view word) {
        const std::vector<std::string_view> types =
            scope != KeyScope::record ? item_type_names(more_)
                                      : std::vector<std::string_view>{record::kRecordTypes.begin(),
                                                                      record::kRecordTypes.end()};
        const bool type = contains_word(types, word);
        auto found = find_known_key(scope, type ? "type" : word);
        if (!found) {
            const std::string near =
                scope == KeyScope::record && contains_word(item_type_names(more_), word)
                    ? fmt::format("any(items: {})", word)
                    : std::string{most_similar_word(word, types)};
            return near.empty()
                       ? fail_unknown_key(scope, at, word)
                       : fail(at, fmt::format("unknown name {}{}", quoted_for_message(word),
                                              suggestion_text(near)));
        }
        if (!type && (found->kind == KeyKind::number || found->kind == KeyKind::text)) {
            return fail(at, fmt::format("{} must be compared with something", word));
        }
        Operand literal{.text = std::string{type ? word : "true"}};
        if (!type) {
            literal.number = std::int64_t{1};
        }
        const bool short_form = scope == KeyScope::record && found->scope == KeyScope::item;
        return add_comparison_node(add_comparison({.key = std::move(*found),
                                                   .op = Operator::equal,
                                                   .literal = std::move(literal),
                                                   .text = shown_key(scope, type ? "type" : word)},
                                                  at),
                                   short_form);
    }

    FilterScanner scanner_;
    DescribedTypes more_;
    FilterProgram program_;
    std::optional<FilterError> error_;
    std::size_t depth_ = 0;
};

} // namespace

tl::expected<FilterProgram, FilterError>
parse_filter(std::string_view text, const FilterOptions& options, KeyScope scope) {
    if (text.size() > Filter::kMaxLength) {
        return tl::unexpected{
            FilterError{fmt::format("the filter is longer than {} bytes", Filter::kMaxLength),
                        Filter::kMaxLength}};
    }
    return Parser{text, options}.parse(scope);
}

} // namespace tw::filter
