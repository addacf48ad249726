// This test is built with a copy of stats.h that declares one more counter, `scratched` (see
// CMakeLists.txt).

#include "proxy/analyze/stats_report.h"
#include "proxy/filter/keys.h"
#include "proxy/record/schema.h"
#include "proxy/sink/json_lines.h"
#include "tests/proxy/record/records_page.h"
#include "tests/support/program.h"

#include <string>

#include <doctest/doctest.h>

using namespace tw;

namespace {

class NumberCollector final : public filter::ValueVisitor {
  public:
    bool receive_value(const filter::Value& value) override {
        number = value.number;
        return true;
    }

    std::variant<std::monostate, std::int64_t, double> number;
};

} // namespace

TEST_CASE("one line declares a counter for JSON, filters, stats and merging") {
    record::SessionStats stats;
    stats.scratched = 7;
    const record::SummaryRecord summary{.stats = &stats};

    CHECK(
        test::contains(sink::json_line(&summary), R"("verified":0,"scratched":7,"mismatched":0)"));

    const auto key = filter::find_key(filter::KeyScope::record, "snapshots.scratched").value();
    CHECK(key.kind == filter::KeyKind::number);
    filter::FormatBuffer buffer;
    NumberCollector taken;
    REQUIRE(filter::visit_record(key, &summary, {buffer, false}, taken));
    CHECK(taken.number == decltype(taken.number){std::int64_t{7}});

    const record::ByteLedger ledger;
    const analyze::StatsReport report{.captures = {}, .totals = &stats, .ledger = &ledger};
    CHECK(test::contains(analyze::stats_json(report), R"("scratched":7)"));

    record::SessionStats sum = stats;
    sum.merge(stats);
    CHECK(sum.scratched == 14);
}

TEST_CASE("a counter that RECORDS.md lacks is reported") {
    const std::string page = test::read_text(TW_RECORDS_PAGE);
    REQUIRE(!page.empty());
    const auto complaints = test::page_complaints(page);
    REQUIRE(complaints.size() == 1);
    CHECK(test::contains(complaints.front(), "`scratched`"));
}
