#include "proxy/filter/line_record.h"

#include "proxy/record/json.h"
#include "proxy/record/records.h"

#include <charconv>
#include <cstring>
#include <ctime>
#include <system_error>

namespace tw::filter {

namespace {

std::string in_quotes(std::string_view text) {
    return '"' + std::string{text} + '"';
}

/// Returns whether JSON writes the text without escapes.
bool needs_no_escapes(std::string_view text) {
    constexpr unsigned char kFirstPlain = 0x20;
    return !text.empty() && std::ranges::all_of(text, [](char each) {
        return static_cast<unsigned char>(each) >= kFirstPlain && each != '"' && each != '\\';
    });
}

constexpr std::string_view kFindings = "findings.";

/// Adds the texts that a line must contain to match the node. The line may write them with escapes.
// NOLINTNEXTLINE(misc-no-recursion): the parser nests no deeper than kMaxDepth
void add_required_texts(const ParsedFilter& parsed, const FilterNode& node,
                        std::vector<std::string>& texts) {
    if (node.kind == NodeKind::all_of || node.kind == NodeKind::some_item) {
        for (const FilterNode& child : node.children) {
            add_required_texts(parsed, child, texts);
        }
    }
    if (node.kind != NodeKind::comparison) {
        return;
    }
    const auto& [key, op, literal, unused] = parsed.comparisons[node.index];
    std::string_view path = key.name;
    if ((literal.is_null && op == Operator::equal) || key.location == Key::Location::removed ||
        path.starts_with(kFindings)) {
        return; // lines without the key may match, too
    }
    if (path.ends_with(".x") || path.ends_with(".y")) {
        path.remove_suffix(2); // x and y may be elements of a list, which have no names
    }
    texts.push_back(in_quotes(path.substr(path.rfind('.') + 1)));
    const bool is_text = !literal.is_null && literal.number.index() == 0;
    if (is_text && op == Operator::equal && needs_no_escapes(literal.text)) {
        texts.push_back(in_quotes(literal.text));
    }
}

bool is_string(std::string_view json) {
    return json.size() >= 2 && json.front() == '"' && json.back() == '"';
}

/// Removes a text and `ending` from the start of `rest`, and returns the text. `ending` begins with
/// the closing quote of the text. Returns nullopt if the text has escapes, or if it is not followed
/// by `ending`.
std::optional<std::string_view> take_quoted_text(std::string_view& rest, std::string_view ending) {
    const std::size_t end = rest.find('"');
    if (end == std::string_view::npos || !rest.substr(end).starts_with(ending)) {
        return std::nullopt;
    }
    const std::string_view text = rest.substr(0, end);
    rest.remove_prefix(end + ending.size());
    return text;
}

/// The start of each record that twscope writes.
constexpr std::string_view kRecordStart = R"({"v":1,"t":")";

std::optional<RecordLineHead> read_usual_line_head(std::string_view line) {
    if (!line.starts_with(kRecordStart)) {
        return std::nullopt;
    }
    line.remove_prefix(kRecordStart.size());
    const auto time = take_quoted_text(line, R"(","type":")");
    const auto type = time ? take_quoted_text(line, R"(","session":)") : std::nullopt;
    if (!type) {
        return std::nullopt;
    }
    RecordLineHead head{.time = *time, .type = *type};
    const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), head.session);
    const bool ends = end != line.data() + line.size() && (*end == ',' || *end == '}');
    return error == std::errc{} && ends ? std::optional{head} : std::nullopt;
}

/// Passes values on to `target`. Adds the rank as a number to a severity, because lines contain
/// only its name.
class SeverityRankAdder final : public ValueVisitor {
  public:
    explicit SeverityRankAdder(ValueVisitor& target) : target_{&target} {}

    bool receive_value(const Value& value) override {
        const auto severity = record::parse_severity(value.text);
        return target_->receive_value(severity
                                          ? Value{.text = value.text,
                                                  .number = static_cast<std::int64_t>(*severity),
                                                  .is_word = true}
                                          : value);
    }

  private:
    ValueVisitor* target_;
};

/// Reads the values of a line for an Evaluation.
class LineValueReader {
  public:
    using Item = JsonObject;

    explicit LineValueReader(JsonLine& line) : line_{&line} {}

    void visit(const Key& key, ValueVisitor& visitor) const {
        if (key.name == "severity") {
            SeverityRankAdder ranked{visitor};
            line_->object().visit_values(key.name, ranked);
        } else {
            visit_record(line_->object(), key.name, visitor);
        }
    }

    static void visit_item(const Key& key, Item& item, ValueVisitor& visitor) {
        visit_row_item(item, key.name, visitor);
    }

    [[nodiscard]] bool has_items() const { return line_->object().has_member("items"); }

    template <typename Use>
    // NOLINTNEXTLINE(misc-no-recursion): called by Evaluation::evaluate_node, and calls it
    void for_each_item(const Use& use) const {
        line_->for_each_item(use);
    }

  private:
    JsonLine* line_;
};

/// Returns whether a line matches. An unreadable line matches no filter, not even a negated one.
bool matches_parsed_filter(const ParsedFilter& parsed, JsonLine& line,
                           const ValueObserver* observer = nullptr) {
    LineValueReader record{line};
    return line.is_readable() && Evaluation{parsed, record, observer}.matches();
}

} // namespace

LineFilter::LineFilter(ParsedFilter parsed) : parsed_{std::move(parsed)} {
    add_required_texts(parsed_, parsed_.root, required_texts_);
}

bool LineFilter::may_match(std::string_view line) const {
    // memmem is faster than std::string_view::find.
    return std::ranges::all_of(required_texts_, [line](const std::string& text) {
        return ::memmem(line.data(), line.size(), text.data(), text.size()) != nullptr ||
               line.find('\\') != std::string_view::npos;
    });
}

std::optional<RecordLineHead> read_line_head(std::string_view line) {
    if (auto head = read_usual_line_head(line)) {
        return head;
    }
    JsonLine json{line};
    const auto time = json.object().find_scalar_text("t");
    const auto type = json.object().find_scalar_text("type");
    const auto session = json.object().find_integer("session");
    if (!time || !type || !session || !is_string(*time) || !is_string(*type)) {
        return std::nullopt;
    }
    return RecordLineHead{.time = time->substr(1, time->size() - 2),
                          .type = type->substr(1, type->size() - 2),
                          .session = *session};
}

std::int64_t parse_unix_ms(std::string_view time) {
    constexpr std::string_view kShape = "2026-11-21T02:04:47.124";
    const std::string text{time.substr(0, kShape.size())};
    std::tm utc{};
    std::int64_t ms = 0;
    const char* const fraction = ::strptime(text.c_str(), "%Y-%m-%dT%H:%M:%S.", &utc);
    if (fraction == nullptr || text.size() < kShape.size() ||
        std::from_chars(fraction, text.data() + text.size(), ms).ec != std::errc{}) {
        return 0;
    }
    constexpr std::int64_t kSecond = 1000;
    return ::timegm(&utc) * kSecond + ms;
}

bool is_record_line(std::string_view line) {
    line = line.substr(0, line.find_last_not_of(" \t\r") + 1);
    // A second kRecordStart shows a damaged line. In a string, its quotes would be escaped.
    return line.ends_with('}') && read_line_head(line) && !record::has_control_bytes(line) &&
           line.find(kRecordStart, 1) == std::string_view::npos;
}

bool is_valid_record(std::string_view line) {
    return is_record_line(line) && record::is_json_object(line);
}

bool matches_line(const Filter& filter, std::string_view line, const ValueObserver* observer) {
    JsonLine json{line};
    return matches_parsed_filter(filter.parsed_filter(), json, observer);
}

tl::expected<LineFilter, FilterError>
LineFilter::parse(std::string_view text, const FilterOptions& options, KeyScope scope) {
    auto parsed = parse_filter(text, options, scope);
    if (!parsed) {
        return tl::unexpected{std::move(parsed.error())};
    }
    LineFilter filter{*std::move(parsed)};
    if (filter.uses_key("size_bytes")) {
        return tl::unexpected{FilterError{.message = "recorded lines have no size_bytes"}};
    }
    const std::vector<std::string_view> messages = message_names(options.described);
    for (const Comparison& each : filter.parsed_.comparisons) {
        if (each.text == "name" && each.op == Operator::equal &&
            std::ranges::find(messages, each.literal.text) == messages.end()) {
            filter.similar_message_ = most_similar_word(each.literal.text, messages);
        }
    }
    return filter;
}

bool LineFilter::uses_key(std::string_view key) const {
    return std::ranges::any_of(parsed_.comparisons, [key](const Comparison& comparison) {
        return comparison.key.name == key;
    });
}

bool LineFilter::matches(std::string_view line) {
    if (!may_match(line)) {
        return false;
    }
    line_.set_line(line);
    return matches_parsed_filter(parsed_, line_);
}

bool LineFilter::matches_row(JsonLine& line, JsonObject& item) {
    LineValueReader record{line};
    return Evaluation{parsed_, record}.matches(&item);
}

bool has_any_key_in_line(const Filter& filter, std::string_view line) {
    JsonLine json{line};
    LineValueReader record{json};
    return Evaluation{filter.parsed_filter(), record}.has_any_key();
}

bool visit_record(JsonObject& record, std::string_view key, ValueVisitor& visitor) {
    return key.starts_with(kFindings)
               ? record.visit_finding_count(key.substr(kFindings.size()), visitor)
               : record.visit_values(key, visitor);
}

bool visit_row_item(JsonObject& item, std::string_view key, ValueVisitor& visitor) {
    return key == kRemovedRowKey ? visitor.receive_value(Value::of(item.has_member(key)))
                                 : item.visit_values(key, visitor);
}

} // namespace tw::filter
