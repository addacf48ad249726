#include "proxy/sink/json_buffer.h"

#include "proxy/record/terminal_text.h"
#include "proxy/wire/text.h"

#include <charconv>
#include <cmath>

namespace tw::sink {

namespace {

constexpr std::string_view kHexDigits = "0123456789abcdef";

/// Appends a character as a JSON escape. `value`: at most U+FFFF.
void append_escape(std::uint32_t value, JsonBuffer& out) {
    out.append(std::string_view{"\\u"});
    for (const unsigned shift : {12U, 8U, 4U, 0U}) {
        out.append(kHexDigits[(value >> shift) & 15U]);
    }
}

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
    if (const auto small = static_cast<std::int32_t>(value); small == value) {
        return append_int(small);
    }
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

void JsonBuffer::append_key(std::string_view name) {
    constexpr std::size_t kMarks = 4; // comma, quotes and colon
    const char last = back();
    char* to = reserve(name.size() + kMarks);
    *to = ',';
    to += last == '{' || last == '[' ? 0 : 1;
    *to++ = '"';
    to = std::copy(name.begin(), name.end(), to);
    *to++ = '"';
    *to++ = ':';
    set_end(to);
}

void JsonBuffer::append_string(std::string_view text) {
    if (needs_no_escape(text)) [[likely]] {
        char* const to = reserve(text.size() + 2);
        *to = '"';
        set_end(std::copy(text.begin(), text.end(), to + 1));
        text_[size_++] = '"';
        return;
    }
    append('"');
    while (!text.empty()) {
        const auto byte = static_cast<unsigned char>(text.front());
        const auto code_point = wire::decode_code_point(std::as_bytes(std::span{text}));
        if (!code_point.valid) {
            append(std::string_view{"\\ufffd"});
        } else if (record::is_terminal_control(code_point.value)) {
            append_escape(code_point.value, *this);
        } else if (byte == '"' || byte == '\\') {
            append('\\');
            append(text.front());
        } else {
            append(text.substr(0, code_point.size));
        }
        text.remove_prefix(code_point.size);
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

void JsonBuffer::append_three_decimals(double value) {
    if (!std::isfinite(value)) {
        append('0');
        return;
    }
    constexpr std::size_t kRoom = 340;
    char* to = reserve(kRoom);
    const auto written = std::to_chars(to, to + kRoom, value, std::chars_format::fixed, 3);
    size_ += static_cast<std::size_t>(written.ptr - to);
}

} // namespace tw::sink
