#include "proxy/filter/filter.h"

#include "proxy/base/numbers.h"

#include <array>

#include <fmt/format.h>

namespace tw::filter {

using record::Record;
using record::SnapshotRecord;

namespace {

char to_lower(char character) {
    return character >= 'A' && character <= 'Z' ? static_cast<char>(character + ('a' - 'A'))
                                                : character;
}

bool contains(std::string_view text, std::string_view part) {
    return std::search(text.begin(), text.end(), part.begin(), part.end(),
                       [](char a, char b) { return to_lower(a) == to_lower(b); }) != text.end() ||
           part.empty(); // even an empty text contains an empty part
}

double to_real(const Number& number) {
    const auto* const integer = std::get_if<std::int64_t>(&number);
    return integer != nullptr ? static_cast<double>(*integer) : std::get<double>(number);
}

std::partial_ordering compare_with_literal(const Value& value, const Literal& literal) {
    if (value.is_number()) {
        return literal.number.index() != 0 ? compare_numbers(value.number, literal.number)
                                           : std::partial_ordering::unordered;
    }
    return value.text.compare(literal.text) <=> 0;
}

/// Reads the values of a record in memory for an Evaluation.
class RecordValueReader {
  public:
    using Item = FilteredItem;

    RecordValueReader(const Record& record, bool show_secrets)
        : record_{&record}, reading_{buffer_, show_secrets} {}

    void visit(const Key& key, ValueVisitor& visitor) const {
        visit_record(key, *record_, reading_, visitor);
    }

    void visit_item(const Key& key, Item& item, ValueVisitor& visitor) const {
        filter::visit_item(key, item, reading_, visitor);
    }

    [[nodiscard]] bool has_items() const { return rebuilt_snapshot() != nullptr; }

    template <typename Use>
    // NOLINTNEXTLINE(misc-no-recursion): called by Evaluation::evaluate_node, and calls it
    void for_each_item(const Use& use) const {
        const SnapshotRecord* const snapshot = rebuilt_snapshot();
        for (std::size_t i = 0; snapshot != nullptr && i < snapshot->items.size(); ++i) {
            FilteredItem item{*snapshot, i};
            if (use(item)) {
                return;
            }
        }
    }

  private:
    /// Returns the rebuilt snapshot in the record; null if the record has none.
    [[nodiscard]] const SnapshotRecord* rebuilt_snapshot() const {
        if (const auto* const* world = std::get_if<const record::WorldRecord*>(record_)) {
            return &(*world)->merged;
        }
        const auto* const* snapshot = std::get_if<const SnapshotRecord*>(record_);
        return snapshot != nullptr && (*snapshot)->rebuilt ? *snapshot : nullptr;
    }

    const Record* record_;
    FormatBuffer buffer_; // not initialised, because text is always written before it is read
    ReadContext reading_;
};

/// Returns whether the comparison is false for all records except messages.
bool requires_message(const Comparison& comparison) {
    constexpr std::size_t kMessage =
        Record{static_cast<const record::MessageRecord*>(nullptr)}.index();
    const Key& key = comparison.key;
    const Literal& literal = comparison.literal;
    const bool is_absence = literal.is_null && comparison.op == Operator::equal;
    if (key.scope == KeyScope::item || key.location == Key::Location::place || is_absence) {
        return false;
    }
    if (key.location != Key::Location::top_level && key.location != Key::Location::header) {
        return true; // only messages have the objects `fields` and `names`
    }
    for (std::size_t type = 0; type < record::kRecordTypes.size(); ++type) {
        const bool may_match =
            key.name != "type" || literal.is_null ||
            is_comparison_true(Value::of(record::kRecordTypes[type]), comparison.op, literal);
        if (type != kMessage && key.entries_by_record_type[type] != nullptr && may_match) {
            return false;
        }
    }
    return true;
}

// NOLINTNEXTLINE(misc-no-recursion): the parser nests no deeper than Filter::kMaxDepth
bool requires_message(const ParsedFilter& parsed, const FilterNode& node) {
    // NOLINTNEXTLINE(misc-no-recursion): as above
    const auto requires_it = [&](const FilterNode& each) { return requires_message(parsed, each); };
    switch (node.kind) {
    case NodeKind::comparison:
        return requires_message(parsed.comparisons[node.index]);
    case NodeKind::all_of:
        return std::ranges::any_of(node.children, requires_it);
    case NodeKind::any_of:
        return std::ranges::all_of(node.children, requires_it);
    default:
        return false;
    }
}

bool is_blank(char c) {
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

bool is_word_char(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || is_digit(c) || c == '_' || c == '.';
}

/// True for characters that a literal may contain without quotes. More characters are allowed than
/// in keys, for addresses, times, versions, and names in any script.
bool is_bare_literal_char(char c) {
    constexpr std::string_view kNot = "()\"'=!<>~";
    return static_cast<unsigned char>(c) > ' ' && c != '\x7f' &&
           kNot.find(c) == std::string_view::npos;
}

Literal bare_operand(std::string_view text) {
    Literal literal{.text = std::string{text}, .is_null = text == "null"};
    const std::size_t sign = text.starts_with('-') ? 1 : 0;
    if (text == "true" || text == "false") {
        literal.number = std::int64_t{text == "true" ? 1 : 0};
    } else if (text.size() <= sign || !is_digit(text[sign])) {
        return literal; // "inf" and "nan" are compared as texts, not as numbers
    } else if (const auto integer = base::parse_number<std::int64_t>(text)) {
        literal.number = *integer;
    } else if (const auto real = base::parse_number<double>(text)) {
        literal.number = *real;
    }
    return literal;
}

/// Returns a text as error messages show it: quoted, shortened, in printable ASCII.
std::string quoted_for_message(std::string_view text) {
    constexpr std::size_t kMaxShown = 40;
    std::string out{'"'};
    for (const char c : text.substr(0, kMaxShown)) {
        out += c >= ' ' && c < '\x7f' ? c : '?';
    }
    out += text.size() > kMaxShown ? "...\"" : "\"";
    return out;
}

/// Splits a filter's text into tokens. The parser calls the function for the kind of token that it
/// expects, because the same text can be several kinds of token.
class FilterScanner {
  public:
    explicit FilterScanner(std::string_view text) : text_{text} {}

    /// Returns the offset of the next token; at the end, the length of the text.
    [[nodiscard]] std::size_t offset() {
        while (at_ < text_.size() && is_blank(text_[at_])) {
            ++at_;
        }
        return at_;
    }

    [[nodiscard]] bool at_end() { return offset() == text_.size(); }

    /// Reads a word of letters, digits, '_' and '.': a key, a keyword or a type name. Returns an
    /// empty text if the next token is no word.
    std::string_view read_word() {
        const std::string_view word = peek_word();
        at_ += word.size();
        return word;
    }

    /// If this word comes next, moves past it and returns true; else returns false.
    bool skip_if_next(std::string_view word) {
        const bool there = peek_word() == word;
        at_ += there ? word.size() : 0;
        return there;
    }

    /// If `character` comes next, moves past it and returns true; else returns false.
    bool skip_if_next(char character) {
        const bool there = next_is(character);
        at_ += there ? 1U : 0U;
        return there;
    }

    [[nodiscard]] bool next_is(char character) { return !at_end() && text_[at_] == character; }

    std::optional<Operator> read_operator() {
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

    /// Reads the literal of a comparison: a quoted string, or a word without quotes. The error says
    /// why no literal could be read.
    tl::expected<Literal, std::string_view> read_literal() {
        if (next_is('"') || next_is('\'')) {
            return read_quoted(text_[at_]);
        }
        const std::size_t begin = offset();
        while (at_ < text_.size() && is_bare_literal_char(text_[at_])) {
            ++at_;
        }
        if (at_ == begin) {
            return tl::unexpected<std::string_view>{"a value is missing"};
        }
        return bare_operand(text_.substr(begin, at_ - begin));
    }

    /// Returns the next token, shortened and in printable characters, for error messages.
    [[nodiscard]] std::string describe_next_token() {
        if (at_end()) {
            return "the end";
        }
        const std::string_view word = peek_word();
        return quoted_for_message(word.empty() ? text_.substr(at_, 1) : word);
    }

    [[nodiscard]] std::string_view peek_word() {
        const std::size_t begin = offset();
        std::size_t end = begin;
        while (end < text_.size() && is_word_char(text_[end])) {
            ++end;
        }
        return text_.substr(begin, end - begin);
    }

  private:
    tl::expected<Literal, std::string_view> read_quoted(char quote) {
        Literal literal;
        for (++at_; at_ < text_.size() && text_[at_] != quote; ++at_) {
            if (text_[at_] == '\\') {
                ++at_;
                if (at_ == text_.size() ||
                    std::string_view{"\"'\\"}.find(text_[at_]) == std::string_view::npos) {
                    return tl::unexpected<std::string_view>{
                        "only a quote or a backslash can follow a backslash"};
                }
            }
            literal.text += text_[at_];
        }
        if (at_ == text_.size()) {
            return tl::unexpected<std::string_view>{"the string that starts here is not closed"};
        }
        ++at_;
        return literal;
    }

    std::string_view text_;
    std::size_t at_ = 0;
};

bool contains_word(std::span<const std::string_view> words, std::string_view word) {
    return std::ranges::find(words, word) != words.end();
}

/// Returns a key as error messages show it. An item's key gets the prefix "items.".
std::string shown_key(KeyScope scope, std::string_view name) {
    return fmt::format("{}{}", scope == KeyScope::item ? kItemsPrefix : "", name);
}

std::string suggestion_text(std::string_view word) {
    return word.empty() ? std::string{} : fmt::format("; did you mean \"{}\"?", word);
}

class Parser {
  public:
    Parser(std::string_view text, const FilterOptions& options)
        : scanner_{text}, described_{options.described} {}

    tl::expected<ParsedFilter, FilterError> parse(KeyScope scope) {
        auto root = parse_any_of(scope);
        if (root && !scanner_.at_end()) {
            fail_unexpected_rest();
        }
        if (error_) {
            return tl::unexpected{*error_};
        }
        parsed_.root = *std::move(root);
        return std::move(parsed_);
    }

  private:
    using Parsed = std::optional<FilterNode>;

    /// Stores the first error. `hint`: a suggestion, which is appended to the message.
    std::nullopt_t fail(std::size_t offset, std::string_view message, std::string_view hint = {}) {
        if (!error_) {
            error_ = FilterError{fmt::format("column {}: {}{}", offset + 1, message, hint), offset};
        }
        return std::nullopt;
    }

    Parsed fail_unexpected_rest() {
        const std::size_t at = scanner_.offset();
        if (scanner_.next_is('&') || scanner_.next_is('|')) {
            return fail(at, R"(conditions are joined by the words "and" and "or")");
        }
        if (scanner_.next_is('=')) {
            return fail(at, "equality is written ==, not =");
        }
        const bool may_be_text = !scanner_.peek_word().empty() && !parsed_.comparisons.empty() &&
                                 parsed_.comparisons.back().literal.number.index() == 0;
        return fail(at, R"(expected "and", "or" or the end, not )" + scanner_.describe_next_token(),
                    may_be_text ? R"(; text with spaces needs quotes, as in "[D] bert")" : "");
    }

    // NOLINTBEGIN(misc-no-recursion): nested no deeper than kMaxDepth

    /// Parses conditions that are joined by `word`. `part` parses one condition. Returns a node of
    /// the kind `kind`, or the condition's node if there is only one condition.
    template <typename Part>
    Parsed parse_joined(std::string_view word, NodeKind kind, const Part& part) {
        FilterNode joined{.kind = kind};
        for (bool more = true; more; more = scanner_.skip_if_next(word)) {
            Parsed next = part();
            if (!next) {
                return std::nullopt;
            }
            joined.children.push_back(*std::move(next));
        }
        return joined.children.size() == 1 ? std::move(joined.children.front()) : std::move(joined);
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
        Parsed parsed = part();
        --depth_;
        return parsed;
    }

    Parsed parse_negation(KeyScope scope) {
        if (!scanner_.skip_if_next("not")) {
            return parse_primary(scope);
        }
        Parsed inner = parse_nested([&] { return parse_negation(scope); });
        return inner ? Parsed{node_with_child(NodeKind::negation, *std::move(inner))}
                     : std::nullopt;
    }

    Parsed parse_primary(KeyScope scope) {
        if (scanner_.skip_if_next('(')) {
            Parsed inner = parse_nested([&] { return parse_any_of(scope); });
            return inner && skip_closing_bracket() ? std::move(inner) : std::nullopt;
        }
        const std::size_t at = scanner_.offset();
        const std::string_view word = scanner_.read_word();
        if (word.empty() || word == "and" || word == "or" || word == "not") {
            return fail_missing_condition(at, word);
        }
        if ((word == "any" || word == "count") && scanner_.next_is('(')) {
            return scope == KeyScope::record
                       ? parse_group(word == "count")
                       : Parsed{
                             fail(at, "a condition on one item cannot use \"any\" or \"count\"")};
        }
        const std::size_t sign = scanner_.offset();
        if (const auto op = scanner_.read_operator()) {
            return parse_comparison(scope, at, word, *op);
        }
        if (scanner_.next_is('=')) {
            return fail(sign, "equality is written ==, not =");
        }
        return parse_single_word(scope, at, word);
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
            Parsed inner = parse_nested([&] { return parse_any_of(KeyScope::item); });
            if (!inner) {
                return std::nullopt;
            }
            node.children.push_back(*std::move(inner));
        } else if (!count) {
            return fail(scanner_.offset(), "expected \":\" and a condition on items");
        }
        if (!skip_closing_bracket()) {
            return std::nullopt;
        }
        return count ? parse_count_comparison(std::move(node)) : Parsed{std::move(node)};
    }

    // NOLINTEND(misc-no-recursion)

    static FilterNode node_with_child(NodeKind kind, FilterNode child) {
        FilterNode node{.kind = kind};
        node.children.push_back(std::move(child));
        return node;
    }

    bool skip_closing_bracket() {
        if (scanner_.skip_if_next(')')) {
            return true;
        }
        fail(scanner_.offset(),
             fmt::format("expected \")\", not {}", scanner_.describe_next_token()));
        return false;
    }

    Parsed fail_missing_condition(std::size_t at, std::string_view word) {
        if (scanner_.next_is('!')) {
            return fail(at, "negation is written \"not\"");
        }
        const std::string found =
            word.empty() ? scanner_.describe_next_token() : quoted_for_message(word);
        return fail(at, fmt::format("expected a condition, not {}", found));
    }

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
        node.index = index.value_or(0);
        return index ? Parsed{std::move(node)} : std::nullopt;
    }

    /// Reads the literal of a comparison, and stores the comparison. Returns the comparison's index
    /// in ParsedFilter::comparisons.
    std::optional<std::size_t> parse_literal(Comparison comparison) {
        const std::size_t at = scanner_.offset();
        auto literal = scanner_.read_literal();
        if (!literal) {
            return fail(at, literal.error());
        }
        comparison.literal = *std::move(literal);
        return add_comparison(std::move(comparison), at);
    }

    std::optional<std::size_t> add_comparison(Comparison comparison, std::size_t at) {
        if (!convert_literal(comparison, at)) {
            return std::nullopt;
        }
        parsed_.comparisons.push_back(std::move(comparison));
        return parsed_.comparisons.size() - 1;
    }

    /// Converts the literal, which is at the offset `at`, to the type of its key. Returns false if
    /// that is not possible.
    bool convert_literal(Comparison& comparison, std::size_t at) {
        const Key& key = comparison.key;
        Literal& literal = comparison.literal;
        const bool equality =
            comparison.op == Operator::equal || comparison.op == Operator::unequal;
        const bool is_number = literal.number.index() != 0;
        const bool is_boolean = literal.text == "true" || literal.text == "false";
        const bool ranked = key.scope == KeyScope::record && key.name == "severity";
        const auto reject = [&](std::string_view message, std::string_view hint = {}) {
            fail(at, message, hint);
            return false;
        };
        if (literal.is_null) {
            return equality || reject("null can only be compared with == and !=");
        }
        if (comparison.op == Operator::contains) {
            return key.kind != KeyKind::number ||
                   reject(fmt::format("~ searches text, but {} is a number", comparison.text));
        }
        const std::string shown = quoted_for_message(literal.text);
        if (key.kind == KeyKind::number && (!is_number || is_boolean)) {
            return reject(fmt::format("{} is a number, but {} is not", comparison.text, shown));
        }
        if (key.kind == KeyKind::boolean && !is_number) {
            return reject(fmt::format("{} is true or false", comparison.text));
        }
        const std::vector<std::string_view> words = possible_words(key, described_);
        if (!words.empty() && (equality || ranked) && !literal.text.empty() &&
            !(key.kind == KeyKind::any && is_number) && !contains_word(words, literal.text)) {
            const bool is_item_type =
                key.name == "type" && contains_word(item_type_names(described_), literal.text);
            return reject(fmt::format("{} is never {}", comparison.text, shown),
                          is_item_type
                              ? fmt::format("; did you mean \"any(items: {})\"?", literal.text)
                              : suggestion_text(most_similar_word(literal.text, words)));
        }
        if (const auto severity = record::parse_severity(literal.text); ranked && severity) {
            literal.number = static_cast<std::int64_t>(*severity);
        }
        return true;
    }

    /// Returns the node of a comparison. In the scope of records, a comparison of an item's key is
    /// true if it is true for at least one item.
    Parsed make_comparison_node(KeyScope scope, std::optional<std::size_t> index) {
        if (!index) {
            return std::nullopt;
        }
        FilterNode node{.kind = NodeKind::comparison, .index = *index};
        const bool is_of_item = parsed_.comparisons[*index].key.scope == KeyScope::item;
        return scope == KeyScope::record && is_of_item
                   ? node_with_child(NodeKind::some_item, std::move(node))
                   : std::move(node);
    }

    [[nodiscard]] std::optional<Key> find_known_key(KeyScope scope, std::string_view name) const {
        if (scope == KeyScope::record && name.starts_with(kItemsPrefix)) {
            return find_key(KeyScope::item, name.substr(kItemsPrefix.size()), described_);
        }
        return find_key(scope, name, described_);
    }

    Parsed fail_unknown_key(KeyScope scope, std::size_t at, std::string_view name) {
        const bool item = scope == KeyScope::item || name.starts_with(kItemsPrefix);
        return fail(at,
                    fmt::format("no {} has a key {}",
                                item                        ? "item"
                                : scope == KeyScope::record ? "record"
                                                            : "item or record",
                                quoted_for_message(name)),
                    suggestion_text(suggest_key(scope, name, described_)));
    }

    Parsed parse_comparison(KeyScope scope, std::size_t at, std::string_view name, Operator op) {
        auto found = find_known_key(scope, name);
        if (!found) {
            return fail_unknown_key(scope, at, name);
        }
        return make_comparison_node(scope, parse_literal({.key = *std::move(found),
                                                          .op = op,
                                                          .literal = {},
                                                          .text = shown_key(scope, name)}));
    }

    /// Parses a single word: a record type, an item type, or a boolean key.
    Parsed parse_single_word(KeyScope scope, std::size_t at, std::string_view word) {
        const std::vector<std::string_view> item_types = item_type_names(described_);
        const std::span<const std::string_view> types =
            scope == KeyScope::record ? std::span<const std::string_view>{record::kRecordTypes}
                                      : item_types;
        const bool type = contains_word(types, word);
        const std::string_view name = type ? "type" : word;
        auto found = find_known_key(scope, name);
        if (!found) {
            const std::string near = scope == KeyScope::record && contains_word(item_types, word)
                                         ? fmt::format("any(items: {})", word)
                                         : std::string{most_similar_word(word, types)};
            return near.empty()
                       ? fail_unknown_key(scope, at, word)
                       : Parsed{fail(at, fmt::format("unknown name {}", quoted_for_message(word)),
                                     suggestion_text(near))};
        }
        if (!type && (found->kind == KeyKind::number || found->kind == KeyKind::text)) {
            return fail(at, fmt::format("{} must be compared with something", word));
        }
        Literal literal{.text = std::string{type ? word : "true"}};
        if (!type) {
            literal.number = std::int64_t{1};
        }
        return make_comparison_node(scope, add_comparison({.key = *std::move(found),
                                                           .op = Operator::equal,
                                                           .literal = std::move(literal),
                                                           .text = shown_key(scope, name)},
                                                          at));
    }

    FilterScanner scanner_;
    ModTypes described_;
    ParsedFilter parsed_;
    std::optional<FilterError> error_;
    std::size_t depth_ = 0;
};

} // namespace

std::partial_ordering compare_numbers(const Number& left, const Number& right) {
    const auto* const a = std::get_if<std::int64_t>(&left);
    const auto* const b = std::get_if<std::int64_t>(&right);
    return a != nullptr && b != nullptr ? std::partial_ordering{*a <=> *b}
                                        : to_real(left) <=> to_real(right);
}

bool is_comparison_true(const Value& value, Operator op, const Literal& literal) {
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

tl::expected<Filter, FilterError> Filter::parse(std::string_view text,
                                                const FilterOptions& options) {
    auto parsed = parse_filter(text, options);
    if (!parsed) {
        return tl::unexpected{std::move(parsed.error())};
    }
    Filter filter;
    filter.parsed_ = std::move(*parsed);
    filter.show_secrets_ = options.show_secrets;
    return filter;
}

bool Filter::matches(const Record& record, const ValueObserver* observer) const {
    RecordValueReader values{record, show_secrets_};
    return Evaluation{parsed_, values, observer}.matches();
}

bool Filter::has_any_key_in(const Record& record) const {
    RecordValueReader values{record, show_secrets_};
    return Evaluation{parsed_, values}.has_any_key();
}

bool matches_only_messages(const ParsedFilter& parsed) {
    return requires_message(parsed, parsed.root);
}

std::string_view first_word(std::string_view text) {
    return FilterScanner{text}.read_word();
}

tl::expected<ParsedFilter, FilterError> parse_filter(std::string_view text,
                                                     const FilterOptions& options, KeyScope scope) {
    if (text.size() > Filter::kMaxLength) {
        return tl::unexpected{
            FilterError{fmt::format("the filter is longer than {} bytes", Filter::kMaxLength),
                        Filter::kMaxLength}};
    }
    return Parser{text, options}.parse(scope);
}

} // namespace tw::filter
