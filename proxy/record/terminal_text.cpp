#include "proxy/record/terminal_text.h"

#include "proxy/wire/utf8.h"

#include <cstdint>
#include <span>

#include <fmt/format.h>

namespace tw::record {

namespace {

/// Whether a terminal may obey it: the control characters of both halves of ISO 6429 (U+009B begins
/// a sequence as escape and bracket do), line separators, and what turns the direction of writing.
bool is_harmful(std::uint32_t code_point) {
    return code_point < 0x20 || (code_point >= 0x7f && code_point < 0xa0) || code_point == 0x200e ||
           code_point == 0x200f || (code_point >= 0x2028 && code_point <= 0x202e) ||
           (code_point >= 0x2066 && code_point <= 0x2069);
}

} // namespace

std::string terminal_text(std::string_view text) {
    std::string out;
    while (!text.empty()) {
        const auto next = wire::decode_code_point(std::as_bytes(std::span{text}));
        if (!next.valid) {
            out += "\\ufffd";
        } else if (next.value == '\\') {
            out += "\\\\"; // what looks like an escape here is one
        } else if (is_harmful(next.value)) {
            out += fmt::format("\\u{:04x}", next.value);
        } else {
            out += text.substr(0, next.size);
        }
        text.remove_prefix(next.size);
    }
    return out;
}

} // namespace tw::record
