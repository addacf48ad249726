#include "proxy/filter/json_scan.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstring>

namespace tw::filter {

namespace {

bool is_space(char character) {
    return character == ' ' || character == '\t' || character == '\r' || character == '\n';
}

void skip_space(std::string_view& text) {
    while (!text.empty() && is_space(text.front())) {
        text.remove_prefix(1);
    }
}

/// Behind the quote that ends a string, which begins at `at` with one; npos: it does not end.
std::size_t end_of_string(std::string_view text, std::size_t at) {
    while (true) {
        ++at;
        if (at >= text.size()) {
            return std::string_view::npos;
        }
        const void* const quote = std::memchr(text.data() + at, '"', text.size() - at);
        if (quote == nullptr) {
            return std::string_view::npos;
        }
        const auto end = static_cast<std::size_t>(static_cast<const char*>(quote) - text.data());
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

/// Behind the bracket that closes the first one. Only counts them: who looks inside checks.
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
    const std::size_t end = text.find_first_of(",}] \t\r\n");
    const std::size_t size = std::min(end, text.size());
    return size == 0 ? std::string_view::npos : size;
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

/// Four hex digits; nothing when there are none.
std::optional<std::uint32_t> four_digits(std::string_view text) {
    std::uint32_t value = 0;
    const std::string_view digits = text.substr(0, 4);
    const auto [end, error] =
        std::from_chars(digits.data(), digits.data() + digits.size(), value, 16);
    return digits.size() == 4 && error == std::errc{} && end == digits.data() + 4
               ? std::optional{value}
               : std::nullopt;
}

/// Undoes `\uXXXX`, of which `text` is what stands behind the u. Returns how much of it was used.
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
    if (text.empty()) {
        return std::nullopt;
    }
    std::size_t end = 0;
    switch (text.front()) {
    case '"':
        end = end_of_string(text, 0);
        break;
    case '{':
    case '[':
        end = end_of_brackets(text);
        break;
    default:
        end = end_of_word(text);
        break;
    }
    return end == std::string_view::npos ? std::nullopt : std::optional{text.substr(0, end)};
}

JsonWalk::JsonWalk(std::string_view text) : rest_{text} {
    if (text.starts_with('{') || text.starts_with('[')) {
        close_ = text.front() == '{' ? '}' : ']';
        rest_.remove_prefix(1);
    }
}

bool JsonWalk::next() {
    if (close_ == '\0') {
        return false;
    }
    const char close = close_;
    close_ = '\0'; // whatever ends it early ends it for good
    skip_space(rest_);
    if (rest_.starts_with(close)) {
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
    if (close == '}') {
        const auto key = rest_.starts_with('"') ? first_value(rest_) : std::nullopt;
        if (!key) {
            return false;
        }
        key_ = key->substr(1, key->size() - 2);
        rest_.remove_prefix(key->size());
        skip_space(rest_);
        if (!rest_.starts_with(':')) {
            return false;
        }
        rest_.remove_prefix(1);
        skip_space(rest_);
    }
    const auto value = first_value(rest_);
    if (!value) {
        return false;
    }
    value_ = *value;
    rest_.remove_prefix(value->size());
    close_ = close;
    return true;
}

std::optional<std::string_view> find_member(std::string_view object, std::string_view key) {
    if (!object.starts_with('{')) {
        return std::nullopt;
    }
    for (JsonWalk walk{object}; walk.next();) {
        if (walk.key() == key) {
            return walk.value();
        }
    }
    return std::nullopt;
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
