#include "proxy/analyze/json_text.h"

#include "proxy/sink/json_buffer.h"
#include "proxy/wire/text.h"

#include <cmath>
#include <span>

#include <boost/json.hpp>
#include <fmt/format.h>

namespace tw::analyze {

namespace {

namespace json = boost::json;

std::string_view standard_view(json::string_view text) {
    return {text.data(), text.size()};
}

// NOLINTBEGIN(misc-no-recursion): only this program makes the values, and it nests them a few levels deep
void append(sink::JsonBuffer& out, const json::value& value);

void append(sink::JsonBuffer& out, const json::array& array) {
    std::string_view before;
    out.append('[');
    for (const json::value& element : array) {
        out.append(before);
        append(out, element);
        before = ", ";
    }
    out.append(']');
}

void append(sink::JsonBuffer& out, const json::object& object) {
    std::string_view before;
    out.append('{');
    for (const auto& member : object) {
        out.append(before);
        out.append_string(standard_view(member.key()));
        out.append(std::string_view{": "});
        append(out, member.value());
        before = ", ";
    }
    out.append('}');
}

void append(sink::JsonBuffer& out, const json::value& value) {
    switch (value.kind()) {
    case json::kind::object:
        return append(out, value.get_object());
    case json::kind::array:
        return append(out, value.get_array());
    case json::kind::string:
        return out.append_string(standard_view(value.get_string()));
    case json::kind::int64:
        return out.append_int(value.get_int64());
    case json::kind::uint64:
        return out.append(std::string_view{fmt::to_string(value.get_uint64())});
    case json::kind::double_:
        return out.append(std::string_view{
            std::isfinite(value.get_double()) ? fmt::to_string(value.get_double()) : "null"});
    case json::kind::bool_:
        return out.append(std::string_view{value.get_bool() ? "true" : "false"});
    case json::kind::null:
        return out.append(std::string_view{"null"});
    }
}

// NOLINTEND(misc-no-recursion)

} // namespace

std::string utf8_text(std::string_view text) {
    std::string out;
    while (!text.empty()) {
        const auto next = wire::decode_code_point(std::as_bytes(std::span{text}));
        out += next.valid ? text.substr(0, next.size) : "\xef\xbf\xbd";
        text.remove_prefix(next.size);
    }
    return out;
}

std::string json_text(const json::value& value) {
    sink::JsonBuffer out;
    append(out, value);
    return std::string{out.view()};
}

std::string_view text_of(const json::object& object, std::string_view key) {
    const json::value* value = object.if_contains(key);
    return value != nullptr && value->is_string() ? std::string_view{value->get_string()}
                                                  : std::string_view{};
}

bool flag_of(const json::object& object, std::string_view key) {
    const json::value* value = object.if_contains(key);
    return value != nullptr && value->is_bool() && value->get_bool();
}

std::optional<std::int64_t> number_of(const json::object& object, std::string_view key) {
    const json::value* value = object.if_contains(key);
    return value != nullptr && value->is_int64() ? std::optional{value->get_int64()} : std::nullopt;
}

const json::object* object_of(const json::object& object, std::string_view key) {
    const json::value* value = object.if_contains(key);
    return value == nullptr ? nullptr : value->if_object();
}

const json::object* object_of(const json::object* object, std::string_view key) {
    return object == nullptr ? nullptr : object_of(*object, key);
}

const json::array* list_of(const json::object& object, std::string_view key) {
    const json::value* value = object.if_contains(key);
    return value == nullptr ? nullptr : value->if_array();
}

} // namespace tw::analyze
