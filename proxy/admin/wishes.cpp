#include "proxy/admin/wishes.h"

#include <limits>

#include <boost/json.hpp>
#include <fmt/format.h>

namespace tw::admin {

namespace json = boost::json;

namespace {

constexpr std::size_t kMaxNesting = 4;
constexpr std::int64_t kMaxPace = 50;

tl::unexpected<std::string> expected(std::string_view key, std::string_view what) {
    return tl::unexpected{fmt::format("\"{}\": expected {}", key, what)};
}

tl::expected<void, std::string> read_watch(const json::value& value, Wishes& wishes) {
    if (value.is_null()) {
        wishes.watch = Wishes::kNothing;
    } else if (value.is_string() && value.get_string() == "all") {
        wishes.watch = 0;
    } else if (value.is_int64() && value.get_int64() > 0 &&
               value.get_int64() < std::int64_t{Wishes::kNothing}) {
        wishes.watch = static_cast<std::uint32_t>(value.get_int64());
    } else {
        return expected("watch", "the number of a session, \"all\" or null");
    }
    return {};
}

tl::expected<void, std::string> read_log(const json::value& value, Wishes& wishes) {
    if (!value.is_null() && !value.is_string()) {
        return expected("log", "a filter or null");
    }
    wishes.log_on = value.is_string();
    wishes.log = value.is_string() ? std::string{value.get_string()} : std::string{};
    return {};
}

tl::expected<void, std::string> read_key(std::string_view key, const json::value& value,
                                         Wishes& wishes) {
    if (key == "watch") {
        return read_watch(value, wishes);
    }
    if (key == "log") {
        return read_log(value, wishes);
    }
    if (key == "pace") {
        if (!value.is_int64() || value.get_int64() < 1 || value.get_int64() > kMaxPace) {
            return expected(key, "1 to 50 frames a second");
        }
        wishes.pace = static_cast<int>(value.get_int64());
        return {};
    }
    if (key != "bytes" && key != "again") {
        return tl::unexpected{std::string{"keys are watch, pace, log, bytes, again"}};
    }
    if (!value.is_bool()) {
        return expected(key, "true or false");
    }
    if (key == "bytes") {
        wishes.bytes = value.get_bool();
    } else {
        wishes.again = value.get_bool();
    }
    return {};
}

} // namespace

tl::expected<Wishes, std::string> read_wishes(std::string_view text) {
    json::error_code error;
    json::parse_options options;
    options.max_depth = kMaxNesting;
    const json::value value = json::parse({text.data(), text.size()}, error, {}, options);
    if (error || !value.is_object()) {
        return tl::unexpected{std::string{"expected a JSON object"}};
    }
    Wishes wishes;
    for (const auto& member : value.get_object()) {
        const auto read =
            read_key({member.key().data(), member.key().size()}, member.value(), wishes);
        if (!read) {
            return tl::unexpected{read.error()};
        }
    }
    return wishes;
}

} // namespace tw::admin
