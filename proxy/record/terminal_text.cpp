#include "proxy/record/terminal_text.h"

#include "proxy/wire/text.h"

#include <array>
#include <span>

#include <fmt/format.h>

namespace tw::record {

namespace {

/// Appends `text` to `out` with its terminal controls escaped. Characters in `kept` are not
/// escaped. Characters in `doubled` are written twice.
void append_escaped(std::string_view text, std::string_view kept, std::string_view doubled,
                    std::string& out) {
    while (!text.empty()) {
        const auto next = wire::decode_code_point(std::as_bytes(std::span{text}));
        const std::string_view bytes = text.substr(0, next.size);
        if (!next.valid) {
            out += "\\ufffd";
        } else if (is_terminal_control(next.value) && kept.find(bytes) == std::string_view::npos) {
            out += fmt::format("\\u{:04x}", next.value);
        } else {
            out += bytes;
            out += doubled.find(bytes) == std::string_view::npos ? std::string_view{} : bytes;
        }
        text.remove_prefix(next.size);
    }
}

/// Returns whether the text contains only printable ASCII. The loop has no branches and collects
/// its result in a byte, so that compilers use vector instructions.
bool is_printable(std::string_view text) {
    unsigned char odd = 0;
    for (const char character : text) {
        odd |= static_cast<unsigned char>(character - ' ') < 0x7F - ' ' ? 0 : 1;
    }
    return odd == 0;
}

} // namespace

std::string escape_for_terminal(std::string_view text) {
    std::string out;
    // Backslashes are doubled because escapes begin with a backslash.
    append_escaped(text, {}, "\\", out);
    return out;
}

std::string escape_lines_for_terminal(std::string_view text) {
    std::string out;
    append_escaped(text, "\n\t", {}, out);
    return out;
}

void append_terminal_json(std::string_view json, std::string& out) {
    constexpr std::size_t kPiece = 256; // number of bytes checked at once
    while (!json.empty()) {
        // A piece must not end inside a UTF-8 sequence.
        std::size_t size = std::min(json.size(), kPiece);
        while (size < json.size() && (static_cast<unsigned char>(json[size]) & 0xC0U) == 0x80) {
            ++size;
        }
        const std::string_view piece = json.substr(0, size);
        if (is_printable(piece)) {
            out += piece;
        } else {
            append_escaped(piece, {}, {}, out);
        }
        json.remove_prefix(size);
    }
}

std::string choose_plural(std::uint64_t count, std::string_view text) {
    std::string out;
    for (;;) {
        const std::size_t open = text.find('[');
        const std::size_t close = text.find(']', open);
        out += text.substr(0, open);
        if (open == std::string_view::npos || close == std::string_view::npos) {
            return out;
        }
        const std::string_view forms = text.substr(open + 1, close - open - 1);
        const std::size_t bar = forms.find('|');
        const std::string_view one = bar == std::string_view::npos ? "" : forms.substr(0, bar);
        out += count == 1 ? one : forms.substr(bar == std::string_view::npos ? 0 : bar + 1);
        text.remove_prefix(close + 1);
    }
}

std::string count_with_noun(std::uint64_t count, std::string_view noun) {
    return std::to_string(count) + ' ' + choose_plural(count, noun);
}

std::string size_text(std::uint64_t bytes) {
    constexpr double kStep = 1024;
    constexpr std::array<std::string_view, 4> kUnits{"KiB", "MiB", "GiB", "TiB"};
    double size = static_cast<double>(bytes) / kStep;
    std::size_t unit = 0;
    for (; size >= kStep && unit + 1 < kUnits.size(); ++unit) {
        size /= kStep;
    }
    return fmt::format("{:.1f} {}", size, kUnits.at(unit));
}

} // namespace tw::record
