#include "proxy/admin/query.h"

#include <algorithm>
#include <cstddef>

namespace tw::admin {

std::optional<std::string_view> value_in(std::string_view query, std::string_view name) {
    while (!query.empty()) {
        const std::string_view pair = query.substr(0, query.find('&'));
        query.remove_prefix(std::min(pair.size() + 1, query.size()));
        if (pair.starts_with(name) && pair.substr(name.size(), 1) == "=") {
            return pair.substr(name.size() + 1);
        }
    }
    return std::nullopt;
}

std::optional<std::string> text_in(std::string_view query, std::string_view name) {
    const auto value = value_in(query, name);
    if (!value) {
        return std::nullopt;
    }
    constexpr std::size_t kEscape = 3; // "%20"
    constexpr int kHex = 16;
    std::string text;
    for (std::size_t i = 0; i < value->size(); ++i) {
        if ((*value)[i] != '%') {
            text += (*value)[i] == '+' ? ' ' : (*value)[i];
            continue;
        }
        const std::string_view digits = value->substr(i + 1, 2);
        unsigned byte = 0;
        const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), byte, kHex);
        if (digits.size() != 2 || read.ec != std::errc{} ||
            read.ptr != digits.data() + digits.size()) {
            return std::nullopt;
        }
        text += static_cast<char>(byte);
        i += kEscape - 1;
    }
    return text;
}

} // namespace tw::admin
