#include "proxy/filter/json_scan.h"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <limits>

namespace tw::filter {

namespace {

constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();

/// Turns a mask of quotes into the mask of all bytes inside strings, including the first quote and
/// excluding the last one.
std::uint64_t inside_strings(std::uint64_t quotes) {
    for (unsigned shift = 1; shift < kMaskBytes; shift *= 2) {
        quotes ^= quotes << shift;
    }
    return quotes;
}

} // namespace

bool JsonBrackets::open_pair(std::size_t offset) {
    if (pairs_.size() == kMaxPairs) {
        return false;
    }
    const auto index = static_cast<std::uint32_t>(pairs_.size());
    pairs_.push_back({.open = static_cast<std::uint32_t>(offset), .next = inner_});
    inner_ = index;
    return true;
}

bool JsonBrackets::close_pair(std::size_t offset) {
    BracketPair& pair = pairs_[inner_];
    inner_ = pair.next;
    pair.close = static_cast<std::uint32_t>(offset);
    pair.next = static_cast<std::uint32_t>(pairs_.size());
    return inner_ != kNone;
}

std::optional<std::string_view> JsonBrackets::read(std::string_view text) {
    text_ = text.substr(0, kNone);
    pairs_.clear();
    inner_ = kNone;
    bool in_string = false;
    bool escaped = false; ///< whether the next byte is escaped
    for (std::size_t at = 0; at < text_.size(); at += kMaskBytes) {
        const ByteMasks masks{text_.substr(at, kMaskBytes)};
        std::uint64_t quotes = masks.quotes();
        if (masks.backslashes() != 0 || escaped) {
            quotes = unescaped(masks, in_string, escaped);
        }
        const std::uint64_t strings = inside_strings(quotes) ^ (in_string ? ~std::uint64_t{0} : 0U);
        in_string = strings >> (kMaskBytes - 1) != 0;
        const std::uint64_t opening = masks.opening();
        for (std::uint64_t left = (opening | masks.closing()) & ~strings; left != 0;
             left &= left - 1) {
            const auto bit = static_cast<unsigned>(std::countr_zero(left));
            if ((opening >> bit & 1U) != 0) {
                if (!open_pair(at + bit)) {
                    return std::nullopt;
                }
            } else if (pairs_.empty()) {
                return std::nullopt; // the text does not begin with a bracket
            } else if (!close_pair(at + bit)) {
                return text_.substr(0, at + bit + 1);
            }
        }
    }
    return std::nullopt;
}

namespace {

constexpr bool is_space(char character) {
    return character == ' ' || character == '\t' || character == '\r' || character == '\n';
}

/// The characters that end a number or a word.
constexpr std::array<bool, 256> kEndsWord = [] {
    std::array<bool, 256> ends{};
    for (const char end : {',', '}', ']', ' ', '\t', '\r', '\n'}) {
        ends[static_cast<unsigned char>(end)] = true;
    }
    return ends;
}();

void skip_space(std::string_view& text) {
    while (!text.empty() && is_space(text.front())) {
        text.remove_prefix(1);
    }
}

/// Returns the offset of the first quote from `at` on, which is usually near.
std::size_t find_quote(std::string_view text, std::size_t at) {
    constexpr std::size_t kNear = 16;
    const std::size_t near = std::min(text.size(), at + kNear);
    for (; at < near; ++at) {
        if (text[at] == '"') {
            return at;
        }
    }
    const void* const quote = std::memchr(text.data() + at, '"', text.size() - at);
    return quote == nullptr
               ? std::string_view::npos
               : static_cast<std::size_t>(static_cast<const char*>(quote) - text.data());
}

/// Returns the end of the string that begins at `at`; npos if the string is not closed.
std::size_t end_of_string(std::string_view text, std::size_t at) {
    while (true) {
        ++at;
        if (at >= text.size()) {
            return std::string_view::npos;
        }
        const std::size_t end = find_quote(text, at);
        if (end == std::string_view::npos) {
            return end;
        }
        if (end == at || text[end - 1] != '\\') {
            return end + 1;
        }
        std::size_t slashes = 0;
        while (end - slashes > at && text[end - slashes - 1] == '\\') {
            ++slashes;
        }
        at = end;
        if (slashes % 2 == 0) {
            return end + 1;
        }
    }
}

/// Returns the end of the value with brackets at the start of the text. Only counts brackets; the
/// contents are checked when they are read.
std::size_t end_of_brackets(std::string_view text) {
    std::size_t depth = 0;
    for (std::size_t at = 0; at < text.size(); ++at) {
        switch (text[at]) {
        case '"': {
            const std::size_t end = end_of_string(text, at);
            if (end == std::string_view::npos) {
                return end;
            }
            at = end - 1;
            break;
        }
        case '{':
        case '[':
            ++depth;
            break;
        case '}':
        case ']':
            if (--depth == 0) {
                return at + 1;
            }
            break;
        default:
            break;
        }
    }
    return std::string_view::npos;
}

std::size_t end_of_word(std::string_view text) {
    std::size_t size = 0;
    while (size < text.size() && !kEndsWord[static_cast<unsigned char>(text[size])]) {
        ++size;
    }
    return size == 0 ? std::string_view::npos : size;
}

/// Returns the end of the value at the start of the text; npos if the value is incomplete.
std::size_t end_of_value(std::string_view text) {
    switch (text.empty() ? '\0' : text.front()) {
    case '"':
        return end_of_string(text, 0);
    case '{':
    case '[':
        return end_of_brackets(text);
    default:
        return end_of_word(text);
    }
}

/// Appends a code point as UTF-8.
void append_utf8(std::uint32_t point, std::string& out) {
    const auto put = [&out](std::uint32_t byte) { out.push_back(static_cast<char>(byte)); };
    if (point < 0x80) {
        put(point);
    } else if (point < 0x800) {
        put(0xC0U | point >> 6U);
        put(0x80U | (point & 0x3FU));
    } else if (point < 0x10000) {
        put(0xE0U | point >> 12U);
        put(0x80U | (point >> 6U & 0x3FU));
        put(0x80U | (point & 0x3FU));
    } else {
        put(0xF0U | point >> 18U);
        put(0x80U | (point >> 12U & 0x3FU));
        put(0x80U | (point >> 6U & 0x3FU));
        put(0x80U | (point & 0x3FU));
    }
}

/// Parses four hex digits; nullopt if there are none.
std::optional<std::uint32_t> four_digits(std::string_view text) {
    std::uint32_t value = 0;
    const std::string_view digits = text.substr(0, 4);
    const auto [end, error] =
        std::from_chars(digits.data(), digits.data() + digits.size(), value, 16);
    return digits.size() == 4 && error == std::errc{} && end == digits.data() + 4
               ? std::optional{value}
               : std::nullopt;
}

/// Decodes `\uXXXX`. `text` starts after the u. Returns the number of characters used.
std::size_t append_escaped_point(std::string_view text, std::string& out) {
    constexpr std::uint32_t kHigh = 0xD800;
    constexpr std::uint32_t kLow = 0xDC00;
    constexpr std::uint32_t kSurrogates = 0x400;
    constexpr std::uint32_t kReplacement = 0xFFFD;
    const auto first = four_digits(text);
    if (!first) {
        append_utf8(kReplacement, out);
        return 0;
    }
    if (*first - kHigh >= 2 * kSurrogates) {
        append_utf8(*first, out);
        return 4;
    }
    const auto second =
        text.substr(4).starts_with("\\u") ? four_digits(text.substr(6)) : std::nullopt;
    if (*first >= kLow || !second || *second - kLow >= kSurrogates) {
        append_utf8(kReplacement, out);
        return 4;
    }
    append_utf8(0x10000U + ((*first - kHigh) << 10U) + (*second - kLow), out);
    return 10;
}

} // namespace

std::optional<std::string_view> first_value(std::string_view text) {
    const std::size_t end = end_of_value(text);
    return end == std::string_view::npos ? std::nullopt : std::optional{text.substr(0, end)};
}

JsonWalk::JsonWalk(const JsonText& json) : rest_{json.text}, value_{json}, pair_{json.pair} {
    if (rest_.starts_with('{') || rest_.starts_with('[')) {
        close_ = rest_.front() == '{' ? '}' : ']';
        rest_.remove_prefix(1);
    }
}

bool JsonWalk::step() {
    skip_space(rest_);
    if (rest_.starts_with(close_)) {
        rest_.remove_prefix(1);
        whole_ = true;
        return false;
    }
    if (!first_) {
        if (!rest_.starts_with(',')) {
            return false;
        }
        rest_.remove_prefix(1);
        skip_space(rest_);
    }
    first_ = false;
    return true;
}

bool JsonWalk::take_key() {
    const std::size_t end =
        rest_.starts_with('"') ? end_of_string(rest_, 0) : std::string_view::npos;
    if (end == std::string_view::npos) {
        return false;
    }
    key_ = rest_.substr(1, end - 2);
    rest_.remove_prefix(end);
    skip_space(rest_);
    if (!rest_.starts_with(':')) {
        return false;
    }
    rest_.remove_prefix(1);
    skip_space(rest_);
    return true;
}

bool JsonWalk::next_value() {
    const bool brackets = rest_.starts_with('{') || rest_.starts_with('[');
    const JsonBrackets::BracketPair* const pair = brackets && value_.brackets != nullptr
                                                      ? value_.brackets->find(rest_.data(), pair_)
                                                      : nullptr;
    std::size_t size = 0;
    if (pair == nullptr) {
        size = end_of_value(rest_);
    } else {
        size = pair->close - pair->open + std::size_t{1};
        value_.pair = pair_;
        pair_ = pair->next;
    }
    if (size > rest_.size()) {
        return false; // true also for npos
    }
    value_.text = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return true;
}

bool JsonWalk::next() {
    if (close_ == '\0') {
        return false;
    }
    const char close = close_;
    const bool there = step() && (close == ']' || take_key()) && next_value();
    close_ = there ? close : '\0'; // after an error, next() always returns false
    return there;
}

bool JsonWalk::next_key() {
    return close_ == '}' && step() && take_key();
}

std::optional<JsonText> JsonMembers::find(std::string_view key) {
    for (const Member& member : known_) {
        if (member.key == key) {
            return member.value;
        }
    }
    while (json_.text.starts_with('{') && walk_.next()) {
        known_.push_back({walk_.key(), walk_.json()});
        if (walk_.key() == key) {
            return walk_.json();
        }
    }
    return std::nullopt;
}

std::optional<JsonText> find_member(const JsonText& object, std::string_view key) {
    if (!object.text.starts_with('{')) {
        return std::nullopt;
    }
    for (JsonWalk walk{object}; walk.next();) {
        if (walk.key() == key) {
            return walk.json();
        }
    }
    return std::nullopt;
}

std::optional<JsonText> find_member(std::string_view object, std::string_view key,
                                    JsonBrackets& brackets) {
    for (JsonWalk walk{object}; walk.next_key();) {
        if (walk.key() == key) {
            const std::string_view rest = walk.rest();
            const bool some = rest.starts_with('{') || rest.starts_with('[');
            if (const auto all = some ? brackets.read(rest) : std::nullopt) {
                return JsonText{*all, brackets};
            }
            const auto value = first_value(rest);
            return value ? std::optional<JsonText>{*value} : std::nullopt;
        }
        if (!walk.next_value()) {
            break;
        }
    }
    return std::nullopt;
}

std::optional<std::string_view> find_member(std::string_view object, std::string_view key) {
    const auto member = find_member(JsonText{object}, key);
    return member ? std::optional{member->text} : std::nullopt;
}

std::uint64_t find_count(std::string_view object, std::string_view key) {
    const auto value = find_member(object, key);
    std::uint64_t count = 0;
    if (value) {
        std::from_chars(value->data(), value->data() + value->size(), count);
    }
    return count;
}

std::string_view string_of(std::string_view value, std::string& room) {
    if (value.size() < 2) {
        return {};
    }
    value = value.substr(1, value.size() - 2);
    if (value.find('\\') == std::string_view::npos) {
        return value;
    }
    room.clear();
    for (std::size_t at = 0; at < value.size(); ++at) {
        if (value[at] != '\\' || at + 1 == value.size()) {
            room.push_back(value[at]);
            continue;
        }
        constexpr std::string_view kShort = "bfnrt";
        constexpr std::string_view kMeant = "\b\f\n\r\t";
        const char escaped = value[++at];
        if (escaped == 'u') {
            at += append_escaped_point(value.substr(at + 1), room);
        } else if (const std::size_t known = kShort.find(escaped);
                   known != std::string_view::npos) {
            room.push_back(kMeant[known]);
        } else {
            room.push_back(escaped);
        }
    }
    return room;
}

} // namespace tw::filter
