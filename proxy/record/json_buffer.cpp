#include "proxy/record/json_buffer.h"

#include <charconv>
#include <cmath>

namespace tw::record {

namespace {

/// Length of the well-formed UTF-8 sequence at the front, 0 if there is none.
std::size_t utf8_length(std::string_view text) {
    struct Form {
        unsigned char lead_min, lead_max;     // first byte
        unsigned char second_min, second_max; // second byte; the others are 80..bf
        std::size_t length;
    };

    // Unicode, table 3-7: no overlong forms, no surrogates, nothing past U+10FFFF.
    static constexpr Form kForms[] = {
        {0xC2, 0xDF, 0x80, 0xBF, 2}, {0xE0, 0xE0, 0xA0, 0xBF, 3}, {0xE1, 0xEC, 0x80, 0xBF, 3},
        {0xED, 0xED, 0x80, 0x9F, 3}, {0xEE, 0xEF, 0x80, 0xBF, 3}, {0xF0, 0xF0, 0x90, 0xBF, 4},
        {0xF1, 0xF3, 0x80, 0xBF, 4}, {0xF4, 0xF4, 0x80, 0x8F, 4},
    };
    const auto byte = [&](std::size_t index) { return static_cast<unsigned char>(text[index]); };
    for (const Form& form : kForms) {
        if (byte(0) < form.lead_min || byte(0) > form.lead_max || text.size() < form.length) {
            continue;
        }
        bool good = byte(1) >= form.second_min && byte(1) <= form.second_max;
        for (std::size_t i = 2; i < form.length; ++i) {
            good = good && byte(i) >= 0x80 && byte(i) <= 0xBF;
        }
        return good ? form.length : 0;
    }
    return 0;
}

/// Bytes at the front that stand in JSON as they are.
std::size_t plain_length(std::string_view text) {
    std::size_t plain = 0;
    while (plain < text.size() && is_plain(text[plain])) {
        ++plain;
    }
    return plain;
}

constexpr std::string_view kHexDigits = "0123456789abcdef";

} // namespace

void JsonBuffer::grow(std::size_t bytes) {
    constexpr std::size_t kFirst = 4096;
    std::size_t capacity = text_.empty() ? kFirst : text_.size() * 2;
    while (capacity - size_ < bytes) {
        capacity *= 2;
    }
    text_.resize(capacity);
}

void JsonBuffer::append_int(std::int64_t value) {
    char* to = reserve(kMaxIntChars);
    size_ += static_cast<std::size_t>(std::to_chars(to, to + kMaxIntChars, value).ptr - to);
}

void JsonBuffer::append_ints(std::span<const std::int32_t> values) {
    append('[');
    for (std::size_t i = 0; i < values.size(); ++i) {
        if (i != 0) {
            append(',');
        }
        append_int(values[i]);
    }
    append(']');
}

void JsonBuffer::append_string(std::string_view text) {
    append('"');
    while (!text.empty()) {
        const std::size_t plain = plain_length(text);
        append(text.substr(0, plain));
        text.remove_prefix(plain);
        if (text.empty()) {
            break;
        }
        if (const std::size_t length = utf8_length(text); length != 0) {
            append(text.substr(0, length));
            text.remove_prefix(length);
            continue;
        }
        const auto byte = static_cast<unsigned char>(text.front());
        if (byte >= 0x80) {
            append(std::string_view{"\\ufffd"});
        } else if (byte == '"' || byte == '\\') {
            append('\\');
            append(text.front());
        } else {
            append(std::string_view{"\\u00"});
            append(kHexDigits[byte >> 4U]);
            append(kHexDigits[byte & 15U]);
        }
        text.remove_prefix(1);
    }
    append('"');
}

void JsonBuffer::append_hex(std::span<const std::byte> bytes) {
    append('"');
    for (const std::byte byte : bytes) {
        append(kHexDigits[std::to_integer<std::size_t>(byte) >> 4U]);
        append(kHexDigits[std::to_integer<std::size_t>(byte) & 15U]);
    }
    append('"');
}

void JsonBuffer::append_fixed(double value) {
    if (!std::isfinite(value)) {
        append('0');
        return;
    }
    constexpr std::size_t kRoom = 340;
    char* to = reserve(kRoom);
    const auto written = std::to_chars(to, to + kRoom, value, std::chars_format::fixed, 3);
    size_ += static_cast<std::size_t>(written.ptr - to);
}

} // namespace tw::record
