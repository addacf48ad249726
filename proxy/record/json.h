#pragma once

#include "proxy/record/stats.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <boost/json.hpp>

/// Functions for the JSON of the web page and of reports. For the JSON of records, see
/// sink/json_lines.h, which is faster.
namespace tw::record {

/// Returns the value as one line of JSON in valid UTF-8. Numbers have at most three decimals and no
/// exponent.
[[nodiscard]] std::string json_text(const boost::json::value& value);

/// Returns the string under a key; empty if the key is missing or has another type of value.
[[nodiscard]] std::string_view text_of(const boost::json::object& object, std::string_view key);
/// Returns whether the key exists and its value is the boolean true.
[[nodiscard]] bool flag_of(const boost::json::object& object, std::string_view key);
/// Returns the integer under a key; nullopt if the key is missing or has another type of value.
[[nodiscard]] std::optional<std::int64_t> number_of(const boost::json::object& object,
                                                    std::string_view key);
/// Returns the object under a key; null if the key is missing or has another type of value.
[[nodiscard]] const boost::json::object* object_of(const boost::json::object& object,
                                                   std::string_view key);
/// Returns the object under a key; null if `object` is null or the key has no object.
[[nodiscard]] const boost::json::object* object_of(const boost::json::object* object,
                                                   std::string_view key);
/// Returns the array under a key; null if the key is missing or has another type of value.
[[nodiscard]] const boost::json::array* list_of(const boost::json::object& object,
                                                std::string_view key);

/// Returns the value in an optional or behind a pointer; JSON null if the optional is empty or the
/// pointer is null.
template <typename Value>
[[nodiscard]] boost::json::value value_or_null(const Value& value) {
    // NOLINTNEXTLINE(modernize-return-braced-init-list): braces would make an array
    return value ? boost::json::value(*value) : boost::json::value{};
}

[[nodiscard]] boost::json::object distribution_json(const Distribution& distribution);
/// Returns an object that maps the name of each kind of finding that occurred to its count.
[[nodiscard]] boost::json::object findings_json(const FindingCounts& counts);

/// Adds each distribution (minimum, mean, maximum) of `totals` to the JSON object under the
/// distribution's key. If the protocol limits the values, also adds the limit, for example as
/// "items_limit".
template <template <typename> class Totals>
void add_distributions(boost::json::object& object, const Totals<Distribution>& totals) {
    const auto cells = members_as_array<Totals>(totals);
    for (std::size_t i = 0; i < cells.size(); ++i) {
        const DistributionRow& row = distribution_rows<Totals>()[i];
        object.emplace(row.key, distribution_json(cells[i]));
        if (row.limit != 0) {
            object.emplace(std::string{row.key} + "_limit", row.limit);
        }
    }
}

/// The maximum nesting depth of lists and objects. A list or object at this depth must be empty.
/// Records are nested much less deeply.
inline constexpr unsigned kMaxJsonDepth = 32;

/// Returns whether the text is exactly one well-formed JSON object (RFC 8259) in valid UTF-8,
/// nested at most kMaxJsonDepth deep. The only whitespace allowed is spaces between tokens and
/// after the object. The check is fast enough for whole recordings.
[[nodiscard]] bool is_json_object(std::string_view text);

/// Returns whether the text contains control bytes (below 0x20). Records contain no control bytes,
/// because they are escaped in JSON strings.
[[nodiscard]] bool has_control_bytes(std::string_view text);

/// The end of a line that repeats an earlier record at the start of a segment (a file of a
/// recording). Records that are needed to read a segment are repeated in every segment.
inline constexpr std::string_view kRepeatedEnd = R"(,"again":true})";

[[nodiscard]] inline bool is_repeated_record(std::string_view line) {
    return line.ends_with(kRepeatedEnd);
}

/// Returns the line with which a later segment repeats the record `line`. `line` has no newline.
[[nodiscard]] inline std::string as_repeated_record(std::string_view line) {
    std::string text{line};
    return is_repeated_record(line) ? text : text.replace(text.size() - 1, 1, kRepeatedEnd);
}

} // namespace tw::record
