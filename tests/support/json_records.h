#pragma once

#include "proxy/sink/json_lines.h"

#include <string>
#include <string_view>
#include <vector>

#include <boost/json.hpp>

namespace tw::test {

/// Parses every line. A line that is not a JSON object in valid UTF-8 becomes null.
[[nodiscard]] inline std::vector<boost::json::value> parse_lines(std::string_view text) {
    std::vector<boost::json::value> lines;
    while (!text.empty()) {
        const std::size_t end = text.find('\n');
        const std::string_view line = text.substr(0, end);
        text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
        boost::json::error_code error;
        lines.push_back(boost::json::parse({line.data(), line.size()}, error));
        if (error || end == std::string_view::npos || !lines.back().is_object()) {
            lines.back() = nullptr;
        }
    }
    return lines;
}

/// Returns the JSON line of a record, parsed; null if it is not one valid line.
[[nodiscard]] inline boost::json::value write_json(const record::Record& record,
                                                   const sink::JsonOptions& options = {}) {
    const auto lines = parse_lines(sink::json_line(record, options));
    return lines.size() == 1 ? lines.front() : boost::json::value{};
}

/// Returns the keys of an object, each followed by a space.
[[nodiscard]] inline std::string keys_of(const boost::json::value& object) {
    std::string keys;
    for (const auto& member : object.as_object()) {
        keys += std::string{member.key()} + ' ';
    }
    return keys;
}

} // namespace tw::test
