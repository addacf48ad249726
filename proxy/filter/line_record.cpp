#include "proxy/filter/line_record.h"

#include "proxy/filter/filter.h"
#include "proxy/filter/json_scan.h"
#include "proxy/record/json_check.h"
#include "proxy/record/records.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <set>
#include <string>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace tw::filter {

namespace {

using Texts = std::set<std::string>;

struct Wanted {
    Texts keys;
    Texts texts;
};

std::string in_quotes(std::string_view text) {
    return '"' + std::string{text} + '"';
}

/// Returns whether a line contains the text without escapes.
bool is_plain(std::string_view text) {
    constexpr unsigned char kFirstPlain = 0x20;
    return !text.empty() && std::all_of(text.begin(), text.end(), [](char each) {
        return static_cast<unsigned char>(each) >= kFirstPlain && each != '"' && each != '\\';
    });
}

Wanted wanted_by(const Comparison& comparison) {
    constexpr std::string_view kFindings = "findings.";
    const bool absent = comparison.literal.null && comparison.op == Operator::equal;
    Wanted wanted;
    if (absent || comparison.key.way == Key::Location::removed) {
        return wanted;
    }
    std::string_view path = comparison.key.name;
    if (path.starts_with(kFindings) && comparison.key.scope == KeyScope::record) {
        // a missing key also counts, as zero
        wanted.keys.insert(in_quotes(path.substr(0, kFindings.size() - 1)));
        return wanted;
    }
    while (!path.empty()) {
        const std::string_view name = path.substr(0, path.find('.'));
        // x and y stand for the first and second element of a list
        if (name != "x" && name != "y") {
            wanted.keys.insert(in_quotes(name));
        }
        path.remove_prefix(std::min(path.size(), name.size() + 1));
    }
    const Operand& literal = comparison.literal;
    const bool text = !literal.null && literal.number.index() == 0;
    if (text && comparison.op == Operator::equal && is_plain(literal.text)) {
        wanted.texts.insert(in_quotes(literal.text));
    }
    return wanted;
}

Texts common_of(const Texts& left, const Texts& right) {
    Texts both;
    std::set_intersection(left.begin(), left.end(), right.begin(), right.end(),
                          std::inserter(both, both.end()));
    return both;
}

// NOLINTNEXTLINE(misc-no-recursion): the parser nests no deeper than kMaxDepth
Wanted wanted_by(const FilterProgram& program, std::size_t at) {
    const FilterNode& node = program.nodes[at];
    switch (node.kind) {
    case NodeKind::comparison:
        return wanted_by(program.comparisons[node.index]);
    case NodeKind::all_of: {
        Wanted all;
        for (std::size_t i = node.child; i != FilterNode::kNone; i = program.nodes[i].next) {
            Wanted one = wanted_by(program, i);
            all.keys.merge(one.keys);
            all.texts.merge(one.texts);
        }
        return all;
    }
    case NodeKind::any_of: {
        Wanted common = wanted_by(program, node.child);
        for (std::size_t i = program.nodes[node.child].next; i != FilterNode::kNone;
             i = program.nodes[i].next) {
            const Wanted one = wanted_by(program, i);
            common.keys = common_of(common.keys, one.keys);
            common.texts = common_of(common.texts, one.texts);
        }
        return common;
    }
    case NodeKind::some_item: {
        Wanted some = node.child == FilterNode::kNone ? Wanted{} : wanted_by(program, node.child);
        some.keys.insert(in_quotes("items"));
        return some;
    }
    case NodeKind::
        count_items: // the count may be compared with 0, so the items' texts are not required
        return {.keys = {in_quotes("items")}, .texts = {}};
    case NodeKind::negation:
        return {};
    }
    return {};
}

} // namespace

RequiredTexts::RequiredTexts(const FilterProgram& program) {
    const Wanted wanted = wanted_by(program, program.root);
    keys_.assign(wanted.keys.begin(), wanted.keys.end());
    texts_.assign(wanted.texts.begin(), wanted.texts.end());
}

bool RequiredTexts::are_all_in(std::string_view line) const {
    return std::all_of(keys_.begin(), keys_.end(),
                       [line](const std::string& key) { return contains_text(line, key); }) &&
           std::all_of(texts_.begin(), texts_.end(), [line](const std::string& text) {
               return contains_text(line, text) || line.find('\\') != std::string_view::npos;
           });
}

bool contains_text(std::string_view text, std::string_view part) {
    if (text.size() < part.size()) {
        return false;
    }
    std::size_t at = 0;
#if defined(__SSE2__)
    // A candidate is a position at which two bytes of the part match. Quotes are not compared first,
    // because there are too many.
    constexpr std::size_t kPiece = 16;
    const std::size_t left_one = part.size() > 2 ? 1 : 0;
    const std::size_t right_one = part.size() - 1 - left_one;
    const __m128i first = _mm_set1_epi8(part[left_one]);
    const __m128i last = _mm_set1_epi8(part[right_one]);
    for (; at + part.size() - 1 + kPiece <= text.size(); at += kPiece) {
        __m128i begins;
        __m128i ends;
        std::memcpy(&begins, text.data() + at + left_one, kPiece);
        std::memcpy(&ends, text.data() + at + right_one, kPiece);
        const __m128i both =
            _mm_and_si128(_mm_cmpeq_epi8(begins, first), _mm_cmpeq_epi8(ends, last));
        for (auto left = static_cast<std::uint32_t>(_mm_movemask_epi8(both)); left != 0;
             left &= left - 1) {
            const auto place = at + static_cast<std::size_t>(std::countr_zero(left));
            if (std::memcmp(text.data() + place, part.data(), part.size()) == 0) {
                return true;
            }
        }
    }
#endif
    return text.find(part, at) != std::string_view::npos;
}

namespace {

using namespace std::string_view_literals;

/// The deepest nesting of lists; records are not nested so deep.
constexpr int kMaxDepth = 16;

std::optional<std::int64_t> integer_of(std::string_view text) {
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    return error == std::errc{} && end == text.data() + text.size() ? std::optional{value}
                                                                    : std::nullopt;
}

bool is_string(std::string_view json) {
    return json.size() >= 2 && json.front() == '"' && json.back() == '"';
}

/// Removes a text, its closing quote and the text `behind` from the start of `rest`. Returns the text;
/// nullopt if it has escapes.
std::optional<std::string_view> take_text(std::string_view& rest, std::string_view behind) {
    const std::size_t end = rest.find('"');
    if (end == std::string_view::npos || !rest.substr(end).starts_with(behind)) {
        return std::nullopt;
    }
    const std::string_view text = rest.substr(0, end);
    rest.remove_prefix(end + behind.size());
    return text;
}

/// The start of each record that twscope writes.
constexpr std::string_view kFront = R"({"v":1,"t":")";

std::optional<LineHead> read_usual_head(std::string_view line) {
    if (!line.starts_with(kFront)) {
        return std::nullopt;
    }
    line.remove_prefix(kFront.size());
    const auto time = take_text(line, R"(","type":")");
    const auto type = time ? take_text(line, R"(","session":)") : std::nullopt;
    if (!type) {
        return std::nullopt;
    }
    LineHead head{.time = *time, .type = *type};
    const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), head.session);
    const bool ends = end != line.data() + line.size() && (*end == ',' || *end == '}');
    return error == std::errc{} && ends ? std::optional{head} : std::nullopt;
}

/// Passes the values of a line to a visitor.
class LineValues {
  public:
    LineValues(ValueVisitor& visitor) : visitor_{&visitor} {}

    // NOLINTNEXTLINE(misc-no-recursion): no deeper than kMaxDepth
    bool visit(const JsonText& value, std::string_view path, int depth) {
        if (depth == kMaxDepth) {
            return false;
        }
        if (value.text.starts_with('[')) {
            return visit_elements(value, path, depth);
        }
        if (path.empty()) {
            return !value.text.starts_with('{') && take(value.text);
        }
        return visit_member(find_member(value, first_of(path)), path, depth);
    }

    bool visit(JsonMembers& members, std::string_view path) {
        if (path.empty() || !members.json().text.starts_with('{')) {
            return visit(members.json(), path, 0);
        }
        return visit_member(members.find(first_of(path)), path, 0);
    }

  private:
    [[nodiscard]] static std::string_view first_of(std::string_view path) {
        return path.substr(0, path.find('.'));
    }

    // NOLINTNEXTLINE(misc-no-recursion): as visit
    bool visit_member(const std::optional<JsonText>& member, std::string_view path, int depth) {
        const std::size_t name = first_of(path).size();
        return member && visit(*member, path.substr(std::min(path.size(), name + 1)), depth + 1);
    }

    /// Passes the elements of a list. A pair has the keys .x and .y; in other lists, all elements have the
    /// list's key.
    // NOLINTNEXTLINE(misc-no-recursion): as visit
    bool visit_elements(const JsonText& list, std::string_view path, int depth) {
        std::size_t index = 0;
        if (path != "x" && path != "y") {
            visitor_->begin_list();
        }
        for (JsonWalk walk{list}; walk.next(); ++index) {
            const bool object = walk.value().starts_with('{') || walk.value().starts_with('[');
            if (!object && (path == "x" || path == "y")) {
                if (index == (path == "x" ? 0U : 1U) && take(walk.value())) {
                    return true;
                }
            } else if (visit(walk.json(), path, depth + 1)) {
                return true;
            }
        }
        return false;
    }

    bool take(std::string_view value) {
        if (value.starts_with('"')) {
            return visitor_->take(Value::of(string_of(value, room_)));
        }
        if (value == "true" || value == "false") {
            return visitor_->take(Value::of(value == "true"));
        }
        if (const auto integer = integer_of(value)) {
            return visitor_->take(Value::of(*integer));
        }
        double real = 0;
        const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), real);
        return error == std::errc{} && end == value.data() + value.size() &&
               visitor_->take(Value::of(real)); // null is no value
    }

    ValueVisitor* visitor_;
    std::string room_;
};

/// Adds the rank of a severity, as a number, to its name.
class SeverityRanks final : public ValueVisitor {
  public:
    explicit SeverityRanks(ValueVisitor& target) : target_{&target} {}

    bool take(const Value& value) override {
        const auto severity = record::find_severity(value.text);
        return target_->take(severity ? Value{.text = value.text,
                                              .number = static_cast<std::int64_t>(*severity),
                                              .word = true}
                                      : value);
    }

  private:
    ValueVisitor* target_;
};

/// Notes whether the key has any value.
class AnyValue final : public ValueVisitor {
  public:
    bool take(const Value& /*value*/) override {
        found = true;
        return true;
    }

    bool found = false;
};

/// Gives an Evaluation the values of a line.
class LineRecord {
  public:
    using Item = JsonMembers;

    LineRecord(std::string_view line, LineBuffers& room) : line_{line}, room_{&room} {}

    void visit(const Key& key, Scratch& /*scratch*/, ValueVisitor& visitor) const {
        constexpr std::string_view kFindings = "findings.";
        if (key.name == "severity") {
            SeverityRanks weighing{visitor};
            visit_line(line_, key.name, weighing);
        } else if (key.name.starts_with(kFindings)) {
            visit_finding_count(line_, std::string_view{key.name}.substr(kFindings.size()),
                                visitor);
        } else {
            visit_line(line_, key.name, visitor);
        }
    }

    static void visit_item(const Key& key, Item& item, Scratch& /*scratch*/,
                           ValueVisitor& visitor) {
        visit_row(item, key.name, visitor);
    }

    [[nodiscard]] bool has_items() { return items().has_value(); }

    template <typename Use>
    // NOLINTNEXTLINE(misc-no-recursion): called by Evaluation::evaluate, and calls it
    void each_item(const Use& use) {
        if (!items() || !items()->text.starts_with('[')) {
            return;
        }
        for (JsonWalk walk{*items()}; walk.next();) {
            room_->members.begin(walk.json());
            if (use(room_->members)) {
                return;
            }
        }
    }

  private:
    [[nodiscard]] const std::optional<JsonText>& items() {
        if (!looked_) {
            looked_ = true;
            items_ = find_member(line_, "items", room_->brackets);
        }
        return items_;
    }

    std::string_view line_;
    LineBuffers* room_;
    bool looked_ = false; ///< whether the items were already looked for
    std::optional<JsonText> items_;
};

bool fulfils(const Filter& filter, std::string_view line, LineBuffers& room, Observer* observer) {
    return Evaluation{filter.program(), LineRecord{line, room}, observer}.evaluate(
        filter.program().root, nullptr);
}

} // namespace

std::optional<LineHead> read_head(std::string_view line) {
    if (auto head = read_usual_head(line)) {
        return head;
    }
    const auto time = find_member(line, "t");
    const auto type = find_member(line, "type");
    const auto session = find_member(line, "session");
    const auto number = session ? integer_of(*session) : std::nullopt;
    if (!time || !type || !number || !is_string(*time) || !is_string(*type)) {
        return std::nullopt;
    }
    return LineHead{.time = time->substr(1, time->size() - 2),
                    .type = type->substr(1, type->size() - 2),
                    .session = *number};
}

bool is_record(std::string_view line) {
    line = line.substr(0, line.find_last_not_of(" \t\r") + 1);
    // A second kFront means a torn line: inside a string, its quotes would be escaped.
    return line.ends_with('}') && read_head(line) && !record::has_control_bytes(line) &&
           line.find(kFront, 1) == std::string_view::npos;
}

bool is_sound_record(std::string_view line) {
    return is_record(line) && record::is_json_object(line);
}

bool matches_line(const Filter& filter, std::string_view line) {
    LineBuffers room;
    return fulfils(filter, line, room, nullptr);
}

bool matches_line(const Filter& filter, std::string_view line, Observer& observer) {
    LineBuffers room;
    return fulfils(filter, line, room, &observer);
}

bool LineFilter::matches(std::string_view line) {
    return required_texts_.are_all_in(line) && fulfils(filter_, line, room_, nullptr);
}

tl::expected<RowFilter, FilterError> RowFilter::parse(std::string_view text,
                                                      const FilterOptions& options) {
    auto program = parse_filter(text, options, KeyScope::row);
    if (!program) {
        return tl::unexpected{std::move(program.error())};
    }
    return RowFilter{*std::move(program)};
}

bool RowFilter::names(std::string_view key) const {
    return std::ranges::any_of(program_.comparisons, [key](const Comparison& comparison) {
        return comparison.key.name == key;
    });
}

bool RowFilter::matches(std::string_view line, JsonMembers& item) {
    return Evaluation{program_, LineRecord{line, room_}, nullptr}.evaluate(program_.root, &item);
}

bool concerns_line(const Filter& filter, std::string_view line) {
    LineBuffers room;
    LineRecord record{line, room};
    Scratch scratch;
    bool named = false;
    for (const Comparison& comparison : filter.comparisons()) {
        const Key& key = comparison.key;
        if (key.scope == KeyScope::record && key.common) {
            continue;
        }
        named = true;
        AnyValue any;
        if (key.scope == KeyScope::record) {
            record.visit(key, scratch, any);
        }
        if (any.found || (key.scope == KeyScope::item && record.has_items())) {
            return true;
        }
    }
    return !named;
}

std::string_view find_impossible_key(const Filter& filter) {
    for (const Comparison& comparison : filter.comparisons()) {
        if (comparison.key.name == kSizeBytes) {
            return comparison.text;
        }
    }
    return {};
}

bool visit_line(std::string_view json, std::string_view key, ValueVisitor& visitor) {
    return LineValues{visitor}.visit(json, key, 0);
}

// Not a part of visit_line(), because names of findings contain dots.
bool visit_finding_count(std::string_view line, std::string_view finding, ValueVisitor& visitor) {
    const auto findings = find_member(line, "findings");
    if (!findings || !findings->starts_with('{')) {
        return false;
    }
    const auto count = find_member(*findings, finding);
    return visitor.take(Value::of(count ? integer_of(*count).value_or(0) : 0));
}

bool visit_line(JsonMembers& members, std::string_view key, ValueVisitor& visitor) {
    return LineValues{visitor}.visit(members, key);
}

bool visit_row(JsonMembers& item, std::string_view key, ValueVisitor& visitor) {
    return key == kRowRemoved ? visitor.take(Value::of(item.find(key).has_value()))
                              : visit_line(item, key, visitor);
}

} // namespace tw::filter
