#include "proxy/record/json.h"

#include "proxy/record/terminal_text.h"
#include "proxy/wire/text.h"

#include <cmath>
#include <span>

#include <fmt/format.h>

namespace tw::record {

namespace json = boost::json;

namespace {

void append_string(std::string_view text, std::string& out) {
    append_terminal_json(json::serialize(wire::sanitize_string(std::as_bytes(std::span{text}), 0)),
                         out);
}

// NOLINTBEGIN(misc-no-recursion): only this program makes the values, and it nests them a few levels deep

void append(const json::value& value, std::string& out);

void append(const json::object& object, std::string& out) {
    out += '{';
    for (const auto& [key, value] : object) {
        out += out.back() == '{' ? "" : ",";
        append_string(key, out);
        out += ':';
        append(value, out);
    }
    out += '}';
}

void append(const json::array& array, std::string& out) {
    out += '[';
    for (const json::value& value : array) {
        out += out.back() == '[' ? "" : ",";
        append(value, out);
    }
    out += ']';
}

void append(const json::value& value, std::string& out) {
    if (value.is_object()) {
        append(value.get_object(), out);
    } else if (value.is_array()) {
        append(value.get_array(), out);
    } else if (value.is_string()) {
        append_string(value.get_string(), out);
    } else if (value.is_double()) {
        const double number = value.get_double();
        out += std::isfinite(number) ? fmt::format("{:.3f}", number) : "0";
    } else {
        out += json::serialize(value);
    }
}

// NOLINTEND(misc-no-recursion)

} // namespace

std::string json_text(const json::value& value) {
    std::string text;
    append(value, text);
    return text;
}

json::object spread_json(const Spread& spread) {
    json::object object{{"count", spread.count}};
    if (spread.count != 0) {
        object.emplace("min", spread.min);
        object.emplace("mean", spread.mean());
        object.emplace("max", spread.max);
    }
    return object;
}

json::object findings_json(const FindingCounts& counts) {
    json::object object;
    for (const FindingInfo& info : finding_table()) {
        if (const auto count = counts[static_cast<std::size_t>(info.id)]; count != 0) {
            object.emplace(info.name, count);
        }
    }
    return object;
}

} // namespace tw::record
