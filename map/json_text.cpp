#include "map/json_text.h"

#include "map/text.h"

#include <cmath>

#include <fmt/format.h>

namespace tw::map {

std::string json_quote(std::string_view text) {
    std::string out = "\"";
    while (!text.empty()) {
        const std::string_view before = text;
        const auto code_point = take_code_point(text);
        if (!code_point) {
            out += "\xef\xbf\xbd";
            text.remove_prefix(1);
        } else if (*code_point == '"' || *code_point == '\\') {
            out.push_back('\\');
            out.push_back(static_cast<char>(*code_point));
        } else if (*code_point < 0x20 || *code_point == 0x7f) {
            out += fmt::format("\\u{:04x}", static_cast<unsigned>(*code_point));
        } else {
            out += before.substr(0, before.size() - text.size());
        }
    }
    out.push_back('"');
    return out;
}

std::string json_number(double value) {
    return std::isfinite(value) ? fmt::format("{}", value) : "null";
}

} // namespace tw::map
