#pragma once

#include "proxy/record/stats.h"

#include <string>
#include <string_view>

#include <boost/json.hpp>

/// Writes JSON for the web page and for reports, where speed does not matter. For records, see
/// sink/json_lines.h.
namespace tw::record {

/// Returns the value as JSON on one line, which is always valid UTF-8. Numbers have at most three
/// decimals and no exponent.
[[nodiscard]] std::string json_text(const boost::json::value& value);

[[nodiscard]] boost::json::object spread_json(const Spread& spread);
/// Returns the number of findings of each kind that occurred, under the name of the kind.
[[nodiscard]] boost::json::object findings_json(const FindingCounts& counts);

/// Adds each spread of the totals to the object, under the spread's key. If the spread has a limit, adds
/// this too, for example as "items_limit".
template <template <typename> class Totals>
void add_spreads(boost::json::object& object, const Totals<Spread>& totals) {
    const auto cells = cells_of<Totals>(totals);
    for (std::size_t i = 0; i < cells.size(); ++i) {
        const SpreadRow& row = spreads_of<Totals>()[i];
        object.emplace(row.key, spread_json(cells[i]));
        if (row.limit != 0) {
            object.emplace(std::string{row.key} + "_limit", row.limit);
        }
    }
}

/// The greatest nesting of lists and objects, several times that of any record. A list or object with
/// elements may be nested one level less.
inline constexpr unsigned kMaxJsonDepth = 32;

/// Returns whether the text is exactly one well-formed JSON object (RFC 8259) in valid UTF-8, nested
/// within kMaxJsonDepth. Spaces are allowed between its tokens and after the object; other whitespace
/// is not. Fast enough to check every byte of a recording.
[[nodiscard]] bool is_json_object(std::string_view text);

/// Returns whether the text contains control bytes (below 0x20). Records contain none, because they are
/// escaped in strings.
[[nodiscard]] bool has_control_bytes(std::string_view text);

} // namespace tw::record
