#include "proxy/record/json.h"

#include "proxy/record/terminal_text.h"
#include "proxy/wire/text.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>

#include <fmt/format.h>
#include <simdjson.h>

namespace tw::record {

namespace json = boost::json;

namespace {

void append_string(std::string_view text, std::string& out) {
    append_terminal_json(json::serialize(wire::sanitize_string(std::as_bytes(std::span{text}), 0)),
                         out);
}

// NOLINTBEGIN(misc-no-recursion): the values are from twscope itself, a few levels deep

void append_value(const json::value& value, std::string& out);

void append_value(const json::object& object, std::string& out) {
    out += '{';
    for (const auto& [key, value] : object) {
        out += out.back() == '{' ? "" : ",";
        append_string(key, out);
        out += ':';
        append_value(value, out);
    }
    out += '}';
}

void append_value(const json::array& array, std::string& out) {
    out += '[';
    for (const json::value& value : array) {
        out += out.back() == '[' ? "" : ",";
        append_value(value, out);
    }
    out += ']';
}

void append_value(const json::value& value, std::string& out) {
    if (value.is_object()) {
        append_value(value.get_object(), out);
    } else if (value.is_array()) {
        append_value(value.get_array(), out);
    } else if (value.is_string()) {
        append_string(value.get_string(), out);
    } else if (value.is_double()) {
        const double number = value.get_double();
        out += std::isfinite(number) ? fmt::format("{:.3f}", number) : "0";
    } else {
        out += json::serialize(value);
    }
}

// NOLINTEND(misc-no-recursion)

} // namespace

std::string json_text(const json::value& value) {
    std::string text;
    append_value(value, text);
    return text;
}

std::string_view text_of(const json::object& object, std::string_view key) {
    const json::value* value = object.if_contains(key);
    return value != nullptr && value->is_string() ? std::string_view{value->get_string()}
                                                  : std::string_view{};
}

bool flag_of(const json::object& object, std::string_view key) {
    const json::value* value = object.if_contains(key);
    return value != nullptr && value->is_bool() && value->get_bool();
}

std::optional<std::int64_t> number_of(const json::object& object, std::string_view key) {
    const json::value* value = object.if_contains(key);
    return value != nullptr && value->is_int64() ? std::optional{value->get_int64()} : std::nullopt;
}

const json::object* object_of(const json::object& object, std::string_view key) {
    const json::value* value = object.if_contains(key);
    return value == nullptr ? nullptr : value->if_object();
}

const json::object* object_of(const json::object* object, std::string_view key) {
    return object == nullptr ? nullptr : object_of(*object, key);
}

const json::array* list_of(const json::object& object, std::string_view key) {
    const json::value* value = object.if_contains(key);
    return value == nullptr ? nullptr : value->if_array();
}

json::object distribution_json(const Distribution& distribution) {
    json::object object{{"count", distribution.count}};
    if (distribution.count != 0) {
        object.emplace("min", distribution.min);
        object.emplace("mean", distribution.mean());
        object.emplace("max", distribution.max);
    }
    return object;
}

json::object findings_json(const FindingCounts& counts) {
    json::object object;
    for (const FindingInfo& info : finding_table()) {
        if (const auto count = counts[static_cast<std::size_t>(info.id)]; count != 0) {
            object.emplace(info.name, count);
        }
    }
    return object;
}

namespace {

/// Shortens numbers to a few digits and replaces escaped surrogates, because simdjson rejects large
/// numbers and unpaired surrogates, which are well-formed JSON. The result is well formed if and
/// only if `text` is well formed.
std::string simplify_values(std::string_view text) {
    constexpr std::size_t kDigits = 2; // an exponent of two digits is never too large
    constexpr std::size_t kShortEscape = 2;
    constexpr std::size_t kPointEscape = 6;
    std::string plain;
    std::size_t digits = 0;
    for (std::size_t at = 0; at < text.size();) {
        std::size_t size = 1;
        if (text[at] == '\\') {
            size = text.substr(at + 1, 1) == "u" ? kPointEscape : kShortEscape;
        }
        const std::string_view piece = text.substr(at, size);
        at += size;
        digits = piece.front() >= '0' && piece.front() <= '9' ? digits + 1 : 0;
        if (piece.size() == kPointEscape && (piece[2] == 'd' || piece[2] == 'D')) {
            plain.append(R"(\u0)").append(piece.substr(3));
        } else if (digits <= kDigits) {
            plain.append(piece);
        }
    }
    return plain;
}

/// Checks texts with simdjson. Reuses the parser's memory.
class JsonValidator {
  public:
    [[nodiscard]] bool is_valid(std::string_view text) {
        if (text.size() > parser_.capacity()) {
            constexpr std::size_t kLeast = std::size_t{1} << 14U;
            allocated_ = parser_.allocate(std::max(text.size(), kLeast), kMaxJsonDepth);
        }
        return allocated_ == simdjson::SUCCESS &&
               parser_.parse(text.data(), text.size()).error() == simdjson::SUCCESS;
    }

  private:
    simdjson::dom::parser parser_;
    simdjson::error_code allocated_ = simdjson::SUCCESS;
};

} // namespace

bool is_json_object(std::string_view text) {
    constexpr std::size_t kKeptBytes = std::size_t{1} << 20U;
    // simdjson would accept tabs and line ends between tokens. Three searches for one character are
    // faster than one search for three characters.
    const auto has = [text](char each) { return text.find(each) != std::string_view::npos; };
    if (!text.starts_with('{') || has('\t') || has('\r') || has('\n')) {
        return false;
    }
    // This validator keeps its memory for later calls. Long texts use a separate validator, whose
    // memory is freed.
    static thread_local JsonValidator kept;
    std::optional<JsonValidator> extra;
    JsonValidator& parser = text.size() > kKeptBytes ? extra.emplace() : kept;
    return parser.is_valid(text) || parser.is_valid(simplify_values(text));
}

bool has_control_bytes(std::string_view text) {
    constexpr std::size_t kPiece = 256; // number of bytes checked at once
    while (!text.empty()) {
        const std::string_view piece = text.substr(0, kPiece);
        unsigned char least = ' ';
        for (const char character : piece) {
            least = std::min(least, static_cast<unsigned char>(character));
        }
        if (least < ' ') {
            return true;
        }
        text.remove_prefix(piece.size());
    }
    return false;
}

} // namespace tw::record
