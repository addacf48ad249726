#pragma once

#include "proxy/record/stats.h"

#include <string>
#include <utility>

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

} // namespace tw::record
