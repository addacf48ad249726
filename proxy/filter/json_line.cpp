#include "proxy/filter/json_line.h"

#include "proxy/base/numbers.h"
#include "proxy/filter/filter.h"

#include <simdjson.h>

namespace tw::filter {

namespace {

namespace ondemand = simdjson::ondemand;

/// The deepest nesting of lists and objects that is read. Records have fewer levels.
constexpr int kMaxDepth = 16;

/// The number of readable bytes that must follow each line. simdjson compares a searched key with
/// the bytes at a key of the line, and may read past the end of the line.
constexpr std::size_t kPadding = Filter::kMaxLength + simdjson::SIMDJSON_PADDING;

std::string_view path_head(std::string_view path) {
    return path.substr(0, path.find('.'));
}

std::string_view path_tail(std::string_view path) {
    return path.substr(std::min(path.size(), path_head(path).size() + 1));
}

/// Returns the text of a number, string or word. For a list or object, returns the opening bracket.
std::string_view text_of(ondemand::value& value) {
    const std::string_view text = value.raw_json_token();
    return text.substr(0, text.find_last_not_of(" \t\r\n") + 1);
}

} // namespace

/// The state of reading one line.
struct LineReadState {
    std::string_view line;
    std::vector<char>* text = nullptr; ///< the line, followed by kPadding bytes
    ondemand::parser parser{};
    ondemand::document document{};
    ondemand::object root{};
    bool is_in_items = false;
    std::optional<ondemand::object> item{}; ///< the current item; nullopt if it is not an object
    std::string unescaped_text{};
    /// False before the line is parsed, and after an error. The document and its values are then
    /// invalid, and the line must be parsed again.
    bool is_parsed = false;

    simdjson::error_code parse() {
        return parser.iterate(simdjson::padded_string_view{text->data(), line.size(), text->size()})
            .get(document);
    }

    bool parse_line_if_needed() {
        if (is_parsed) {
            return true;
        }
        auto error = parse();
        if (error == simdjson::UTF8_ERROR) { // reads the non-ASCII bytes as '?'
            const auto end = text->begin() + static_cast<std::ptrdiff_t>(line.size());
            std::replace_if(
                text->begin(), end, [](char each) { return (each & 0x80) != 0; }, '?');
            error = parse();
        }
        is_parsed =
            error == simdjson::SUCCESS && document.get_object().get(root) == simdjson::SUCCESS;
        return is_parsed;
    }

    /// Finds a member of the current item, or of the line's object if no item is being read.
    std::optional<ondemand::value> find(std::string_view name) {
        if (is_in_items ? !is_parsed || !item : !parse_line_if_needed()) {
            return std::nullopt;
        }
        ondemand::object& object = is_in_items ? *item : root;
        is_parsed = object.reset().error() == simdjson::SUCCESS;
        return is_parsed ? find(object, name) : std::nullopt;
    }

    std::optional<ondemand::value> find(ondemand::object& object, std::string_view name) {
        ondemand::value value;
        const auto error = name.size() < Filter::kMaxLength
                               ? object.find_field_unordered(name).get(value)
                               : simdjson::NO_SUCH_FIELD;
        is_parsed = error == simdjson::SUCCESS || error == simdjson::NO_SUCH_FIELD;
        return error == simdjson::SUCCESS ? std::optional{value} : std::nullopt;
    }

    std::optional<ondemand::value> find(ondemand::value& value, std::string_view name) {
        auto object = object_of(value);
        return object ? find(*object, name) : std::nullopt;
    }

    std::optional<ondemand::object> object_of(ondemand::value& value) {
        ondemand::object object;
        if (!text_of(value).starts_with('{')) {
            return std::nullopt;
        }
        is_parsed = value.get_object().get(object) == simdjson::SUCCESS;
        return is_parsed ? std::optional{object} : std::nullopt;
    }

    /// Calls `use` for each element of a list, with its index, until a call returns true. Returns
    /// whether a call returned true.
    template <typename Use>
    // NOLINTNEXTLINE(misc-no-recursion): no deeper than kMaxDepth
    bool for_each_element(ondemand::value& list, const Use& use) {
        std::size_t index = 0;
        for (auto element : list.get_array()) {
            ondemand::value value;
            is_parsed = is_parsed && element.get(value) == simdjson::SUCCESS;
            if (!is_parsed || use(value, index++)) {
                return is_parsed;
            }
            if (!is_parsed) {
                return false;
            }
        }
        return false;
    }
};

namespace {

/// Passes the values at a dotted path to a visitor.
class PathValueReader {
  public:
    PathValueReader(ValueVisitor& visitor, LineReadState& reading)
        : visitor_{&visitor}, reading_{&reading} {}

    // NOLINTNEXTLINE(misc-no-recursion): no deeper than kMaxDepth
    bool visit(std::optional<ondemand::value> value, std::string_view path, int depth) {
        if (!value || depth == kMaxDepth) {
            return false;
        }
        const std::string_view text = text_of(*value);
        if (text.starts_with('[')) {
            return visit_elements(*value, path, depth);
        }
        if (path.empty()) {
            return !text.starts_with('{') && pass_value(text);
        }
        return visit(reading_->find(*value, path_head(path)), path_tail(path), depth + 1);
    }

  private:
    /// Passes the elements of a list to the visitor. The elements of a pair have the keys .x and
    /// .y. The elements of other lists have the list's key.
    // NOLINTNEXTLINE(misc-no-recursion): as visit
    bool visit_elements(ondemand::value& list, std::string_view path, int depth) {
        const bool in_pair = path == "x" || path == "y";
        if (!in_pair) {
            visitor_->begin_list();
        }
        // NOLINTNEXTLINE(misc-no-recursion): as visit
        return reading_->for_each_element(list, [&](ondemand::value& element, std::size_t index) {
            const std::string_view text = text_of(element);
            if (!in_pair || text.starts_with('[') || text.starts_with('{')) {
                return visit(element, path, depth + 1);
            }
            return index == (path == "x" ? 0U : 1U) && pass_value(text);
        });
    }

    bool pass_value(std::string_view text) {
        if (text.starts_with('"')) {
            return visitor_->receive_value(Value::of(unescape_string(text)));
        }
        if (text == "true" || text == "false") {
            return visitor_->receive_value(Value::of(text == "true"));
        }
        if (const auto integer = base::parse_number<std::int64_t>(text)) {
            return visitor_->receive_value(Value::of(*integer));
        }
        const auto real = base::parse_number<double>(text);
        return real && visitor_->receive_value(Value::of(*real)); // null is not passed
    }

    /// Returns the contents of a quoted string. Replaces escapes by the characters that they mean.
    /// If an escape is invalid, replaces no escape.
    std::string_view unescape_string(std::string_view text) {
        const std::string_view inside = text.substr(1, text.size() - 2);
        if (inside.find('\\') == std::string_view::npos) {
            return inside;
        }
        std::string& unescaped_text = reading_->unescaped_text;
        unescaped_text.resize(text.size() + simdjson::SIMDJSON_PADDING);
        auto* end = reinterpret_cast<std::uint8_t*>(unescaped_text.data());
        std::string_view unescaped;
        const ondemand::raw_json_string raw{reinterpret_cast<const std::uint8_t*>(inside.data())};
        const auto error = reading_->parser.unescape(raw, end).get(unescaped);
        return error == simdjson::SUCCESS ? unescaped : inside;
    }

    ValueVisitor* visitor_;
    LineReadState* reading_;
};

} // namespace

bool JsonObject::has_member(std::string_view name) {
    return reading_->find(name).has_value();
}

std::optional<std::string_view> JsonObject::find_scalar_text(std::string_view key) {
    auto value = reading_->find(path_head(key));
    for (key = path_tail(key); value && !key.empty(); key = path_tail(key)) {
        value = reading_->find(*value, path_head(key));
    }
    const std::string_view text = value ? text_of(*value) : std::string_view{};
    if (text.empty() || text.starts_with('[') || text.starts_with('{')) {
        return std::nullopt;
    }
    const auto offset = static_cast<std::size_t>(text.data() - reading_->text->data());
    return reading_->line.substr(offset, text.size());
}

std::optional<std::int64_t> JsonObject::find_integer(std::string_view key) {
    const auto text = find_scalar_text(key);
    return text ? base::parse_number<std::int64_t>(*text) : std::nullopt;
}

std::uint64_t JsonObject::find_count(std::string_view key) {
    return static_cast<std::uint64_t>(std::max<std::int64_t>(find_integer(key).value_or(0), 0));
}

bool JsonObject::visit_values(std::string_view key, ValueVisitor& visitor) {
    return PathValueReader{visitor, *reading_}.visit(reading_->find(path_head(key)), path_tail(key),
                                                     1);
}

bool JsonObject::visit_finding_count(std::string_view finding, ValueVisitor& visitor) {
    auto findings = reading_->find("findings");
    auto object = findings ? reading_->object_of(*findings) : std::nullopt;
    if (!object) {
        return false;
    }
    auto count = reading_->find(*object, finding);
    const auto number = count ? base::parse_number<std::int64_t>(text_of(*count)) : std::nullopt;
    return visitor.receive_value(Value::of(number.value_or(0)));
}

struct JsonLine::State {
    std::vector<char> text{}; ///< the line, followed by kPadding bytes
    LineReadState main_reading{};
    LineReadState outer_reading{}; ///< reads the line's object during for_each_item()
    JsonObject object{main_reading};
    JsonObject item{main_reading};
};

JsonLine::JsonLine() : state_{std::make_unique<State>()} {
    set_line({});
}

JsonLine::JsonLine(std::string_view line) : state_{std::make_unique<State>()} {
    set_line(line);
}

JsonLine::~JsonLine() = default;
JsonLine::JsonLine(JsonLine&& other) noexcept = default;
JsonLine& JsonLine::operator=(JsonLine&& other) noexcept = default;

void JsonLine::set_line(std::string_view line) {
    std::vector<char>& text = state_->text;
    text.resize(std::max(text.size(), line.size() + kPadding));
    const auto end = std::ranges::copy(line, text.begin()).out;
    // The bytes after the line are overwritten. Otherwise, if the line lacks closing brackets, a
    // comma after it would be read as a part of the line.
    std::fill_n(end, simdjson::SIMDJSON_PADDING, ' ');
    for (LineReadState* const reading : {&state_->main_reading, &state_->outer_reading}) {
        reading->line = line;
        reading->text = &text;
        reading->is_parsed = false;
    }
}

bool JsonLine::is_readable() {
    return state_->main_reading.parse_line_if_needed();
}

JsonObject& JsonLine::object() {
    return state_->object;
}

void JsonLine::for_each_item(const std::function<bool(JsonObject&)>& use) {
    LineReadState& reading = state_->main_reading;
    auto items = reading.find("items");
    if (!items || !text_of(*items).starts_with('[')) {
        return;
    }
    state_->object = JsonObject{state_->outer_reading};
    reading.is_in_items = true;
    reading.for_each_element(*items, [&](ondemand::value& element, std::size_t /*index*/) {
        reading.item = reading.object_of(element);
        return use(state_->item);
    });
    reading.is_in_items = false;
    state_->object = JsonObject{reading};
}

} // namespace tw::filter
