#include "proxy/cli/json_reader.h"

#include "proxy/cli/settings.h"

#include <algorithm>

#include <fmt/format.h>

namespace tw::cli {

namespace json = boost::json;

namespace {

/// Records write names as they are.
bool is_name(std::string_view text) {
    return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
               c == '_';
    });
}

} // namespace

void JsonReader::fail(std::string_view what) const {
    throw UsageError{fmt::format("{}: {}", where_, what)};
}

void JsonReader::allow(std::initializer_list<std::string_view> keys) const {
    for (const auto& member : *object_) {
        const std::string_view key{member.key().data(), member.key().size()};
        if (std::find(keys.begin(), keys.end(), key) == keys.end()) {
            fail(fmt::format("unknown key '{}'; known keys are {}", key, fmt::join(keys, ", ")));
        }
    }
}

std::string JsonReader::text(std::string_view key) const {
    const json::value* found = value(key);
    if (found == nullptr || !found->is_string() || found->get_string().empty()) {
        fail(fmt::format("'{}' must be a string", key));
    }
    return std::string{found->get_string().c_str()};
}

std::string JsonReader::name(std::string_view key) const {
    std::string name = text(key);
    if (!is_name({object_->at(key).get_string()})) {
        fail(fmt::format("'{}' may hold only letters, digits and '_'", key));
    }
    return name;
}

std::string JsonReader::word(std::string_view key,
                             std::initializer_list<std::string_view> words) const {
    if (!has(key)) {
        return std::string{*words.begin()};
    }
    std::string word = text(key);
    if (std::find(words.begin(), words.end(), word) == words.end()) {
        fail(fmt::format("'{}' must be one of {}", key, fmt::join(words, ", ")));
    }
    return word;
}

std::int64_t JsonReader::number(std::string_view key, std::int64_t min, std::int64_t max,
                                std::int64_t fallback) const {
    const json::value* found = value(key);
    if (found == nullptr) {
        return fallback;
    }
    if (!found->is_int64() || found->get_int64() < min || found->get_int64() > max) {
        fail(fmt::format("'{}' must be a number from {} to {}", key, min, max));
    }
    return found->get_int64();
}

bool JsonReader::flag(std::string_view key) const {
    const json::value* found = value(key);
    if (found != nullptr && !found->is_bool()) {
        fail(fmt::format("'{}' must be true or false", key));
    }
    return found != nullptr && found->get_bool();
}

const json::array* JsonReader::array(std::string_view key) const {
    const json::value* found = value(key);
    if (found != nullptr && !found->is_array()) {
        fail(fmt::format("'{}' must be a list", key));
    }
    return found == nullptr ? nullptr : &found->get_array();
}

const json::object* JsonReader::object(std::string_view key) const {
    const json::value* found = value(key);
    if (found != nullptr && !found->is_object()) {
        fail(fmt::format("'{}' must be an object", key));
    }
    return found == nullptr ? nullptr : &found->get_object();
}

JsonReader JsonReader::element(std::string_view key, std::string_view what,
                               std::size_t index) const {
    const json::value& found = array(key)->at(index);
    if (!found.is_object()) {
        fail(fmt::format("'{}' must be a list of objects", key));
    }
    return {fmt::format("{}, {} {}", where_, what, index), found.get_object()};
}

} // namespace tw::cli
