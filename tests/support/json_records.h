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

/// Returns the JSON lines of the records, parsed.
[[nodiscard]] inline std::vector<boost::json::value>
write_json(const std::vector<record::Record>& records, const sink::JsonOptions& options = {}) {
    sink::TextOutput output;
    sink::JsonLines json{options, output};
    for (const record::Record& record : records) {
        json.on_record(record);
    }
    json.flush();
    return parse_lines(output.text);
}

} // namespace tw::test
