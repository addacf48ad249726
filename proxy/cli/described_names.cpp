#include "proxy/cli/described_names.h"

#include <algorithm>
#include <charconv>
#include <system_error>

#include <boost/uuid/name_generator_md5.hpp>
#include <fmt/format.h>

namespace tw::cli {

namespace json = boost::json;

namespace {

/// e05ddaaa-c4e6-4cfb-b642-5d48e80c0029
constexpr snapshot::Uuid kNamespace{0xe0, 0x5d, 0xda, 0xaa, 0xc4, 0xe6, 0x4c, 0xfb,
                                    0xb6, 0x42, 0x5d, 0x48, 0xe8, 0x0c, 0x00, 0x29};

/// Longer names are not names.
constexpr std::size_t kMaxUuidName = 255;

/// A value's name is text, which records write as it is.
bool needs_no_escape(std::string_view text) {
    return std::none_of(text.begin(), text.end(), [](char c) {
        return c == '"' || c == '\\' || static_cast<unsigned char>(c) < ' ' || c == '\x7f';
    });
}

std::int64_t parse_value(const JsonReader& in, std::string_view text) {
    std::int64_t value = 0;
    const auto parsed = std::from_chars(text.data(), text.data() + text.size(), value);
    if (parsed.ec != std::errc{} || parsed.ptr != text.data() + text.size()) {
        in.fail(R"('names' maps numbers to strings: {"0": "red"})");
    }
    if (value < INT32_MIN || value > UINT32_MAX) {
        in.fail(fmt::format("'names': {} is not a number of 32 bits", value));
    }
    return value;
}

} // namespace

snapshot::Uuid uuid_of_name(std::string_view name) {
    boost::uuids::uuid space{};
    std::copy(kNamespace.begin(), kNamespace.end(), space.begin());
    const boost::uuids::uuid made =
        boost::uuids::name_generator_md5{space}(name.data(), name.size());
    snapshot::Uuid uuid{};
    std::copy(made.begin(), made.end(), uuid.begin());
    return uuid;
}

NamedUuid parse_uuid(const JsonReader& in, std::string_view key) {
    const std::string text = in.text(key);
    if (text.find('@') != std::string::npos) {
        if (text.size() > kMaxUuidName || !needs_no_escape(text)) {
            in.fail(fmt::format("'{}' is not the name of a UUID: at most {} bytes, without quotes, "
                                "backslashes and control characters",
                                key, kMaxUuidName));
        }
        return {.uuid = uuid_of_name(text), .name = text};
    }
    NamedUuid found;
    std::string digits = text;
    digits.erase(std::remove(digits.begin(), digits.end(), '-'), digits.end());
    bool good = digits.size() == 2 * found.uuid.size();
    for (std::size_t i = 0; good && i < found.uuid.size(); ++i) {
        const char* at = digits.data() + 2 * i;
        const auto parsed = std::from_chars(at, at + 2, found.uuid[i], 16);
        good = parsed.ec == std::errc{} && parsed.ptr == at + 2;
    }
    if (!good) {
        in.fail(fmt::format("'{}' is not a UUID (32 hexadecimal digits), nor the name of one, like "
                            "object@infclass",
                            text));
    }
    return found;
}

std::vector<std::pair<std::int64_t, std::string>> parse_value_names(const JsonReader& in) {
    std::vector<std::pair<std::int64_t, std::string>> names;
    const json::object* const members = in.object("names");
    for (const auto& member : *members) {
        const std::int64_t value = parse_value(in, {member.key().data(), member.key().size()});
        if (!member.value().is_string()) {
            in.fail(R"('names' maps numbers to strings: {"0": "red"})");
        }
        const std::string_view name{member.value().get_string()};
        if (!needs_no_escape(name)) {
            in.fail("'names' may not hold quotes, backslashes or control characters");
        }
        names.emplace_back(value, name);
    }
    return names;
}

} // namespace tw::cli
