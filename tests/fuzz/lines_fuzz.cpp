#include "proxy/analyze/records_check.h"
#include "proxy/filter/json_line.h"
#include "proxy/filter/line_record.h"
#include "tests/fuzz/demand.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

/// Every line can be filtered, converted to a table's row, and checked. Values found must lie within the
/// line.
namespace {

using tw::fuzz::demand;

constexpr std::array<std::string_view, 8> kFilters{
    "severity >= warning",
    "items.at.tile.x > 3 or t < 2026",
    "any(items: character and names.weapon == gun)",
    "count(items: at.game == finish) != 0",
    "findings.snapshot.crc_mismatch == 0",
    "fields.clients.name ~ a",
    "not (session == 1 and ok)",
    "c2s.jitter_us.mean > 0.5 or names.player_flags == chatting"};

void check_line(std::string_view line) {
    for (const std::string_view text : kFilters) {
        const auto filter = tw::filter::Filter::parse(text);
        demand(filter.has_value());
        static_cast<void>(tw::filter::matches_line(*filter, line));
    }
    if (const auto head = tw::filter::read_line_head(line)) {
        demand(head->time.data() >= line.data() &&
               head->type.data() + head->type.size() <= line.data() + line.size());
    }
    tw::filter::JsonLine json{line};
    for (const std::string_view key : {"t", "a.b", "items", "fields.message", ""}) {
        const auto value = json.object().find_scalar_text(key);
        demand(!value || (!value->empty() && value->data() >= line.data() &&
                          value->data() + value->size() <= line.data() + line.size()));
    }
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    std::string_view text{reinterpret_cast<const char*>(data), size};
    tw::analyze::RecordsCheck check;
    check.begin_file("lines");
    tw::analyze::RecordsCsvWriter table{{"t", "tick", "fields.message"}};
    tw::analyze::RecordsCsvWriter items{
        {"t", "items.player", "items.at.tile.x", "items.names.weapon"}};
    auto where = tw::filter::LineFilter::parse("removed or player ~ a or tick > 5", {},
                                               tw::filter::KeyScope::item_row);
    tw::analyze::RecordsCsvWriter chosen{{"t", "items.type", "items.data", "items.removed"},
                                         {.where = *std::move(where)}};
    std::string rows;
    while (!text.empty()) {
        const std::string_view line = text.substr(0, text.find('\n'));
        text.remove_prefix(std::min(text.size(), line.size() + 1));
        check_line(line);
        table.append_rows(line, rows);
        items.append_rows(line, rows);
        chosen.append_rows(line, rows);
        check.on_line(line, tw::filter::read_line_head(line));
    }
    demand(rows.empty() || rows.ends_with("\r\n"));
    demand(!check.report_text().empty());
    return 0;
}
