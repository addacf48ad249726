#include "proxy/admin/bytes_json.h"

#include "proxy/record/json.h"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace tw::admin {

namespace {

/// The most costly ones.
constexpr std::size_t kMaxRows = 64;

} // namespace

std::string bytes_json(const std::vector<std::vector<record::LedgerRow>>& ledgers) {
    record::Ledger all;
    for (const auto& rows : ledgers) {
        for (const record::LedgerRow& row : rows) {
            all.charge(row.direction, row.group, record::BytePart::whole, row.name, row.total);
        }
    }
    boost::json::array lines;
    for (const wire::Direction direction : {wire::Direction::c2s, wire::Direction::s2c}) {
        auto rows = all.rows(direction);
        rows.resize(std::min(rows.size(), kMaxRows));
        for (const record::LedgerRow& row : rows) {
            lines.push_back(boost::json::array{direction == wire::Direction::c2s ? "c2s" : "s2c",
                                               record::byte_group_name(row.group), row.name,
                                               row.total.bits, row.total.count});
        }
    }
    return record::json_text(boost::json::object{{"k", "bytes"}, {"rows", std::move(lines)}});
}

} // namespace tw::admin
