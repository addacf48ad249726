#include "proxy/cli/line_checks.h"

#include "proxy/filter/line_record.h"
#include "proxy/record/findings.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <variant>

namespace tw::cli {

namespace {

/// The first value under a key.
struct FirstValue {
    std::string text;
    std::int64_t number = 0;
};

class Taking final : public filter::ValueVisitor {
  public:
    explicit Taking(FirstValue& first) : first_{&first} {}

    bool take(const filter::Value& value) override {
        first_->text = value.text;
        if (const auto* const integer = std::get_if<std::int64_t>(&value.number)) {
            first_->number = *integer;
        }
        return true;
    }

  private:
    FirstValue* first_;
};

FirstValue value_of(std::string_view line, std::string_view key) {
    FirstValue first;
    Taking taking{first};
    filter::visit_line(line, key, taking);
    return first;
}

} // namespace

void LineChecks::look_at(std::string_view line) {
    for (filter::Expectation& expectation : expectations_) {
        expectation.look_at_line(line);
    }
    count(line);
}

void LineChecks::count(std::string_view line) {
    const auto head = filter::read_head(line);
    if (!head) {
        return;
    }
    if (head->type == "finding") {
        if (const auto finding = record::find_finding(value_of(line, "id").text)) {
            const std::int64_t more = value_of(line, "left_out").number;
            totals_.findings[static_cast<std::size_t>(*finding)] +=
                1 + static_cast<std::uint64_t>(std::max<std::int64_t>(more, 0));
        }
    } else if (head->type == "session") {
        sessions_ += value_of(line, "event").text == "established" ? 1U : 0U;
    } else if (head->type == "snapshot") {
        ++totals_.snapshots;
        totals_.verified += value_of(line, "ok").number != 0 ? 1U : 0U;
    }
}

report::Outcome LineChecks::outcome(const report::FailOn& fail_on, double seconds) const {
    auto checks = fail_on.checks(totals_, "--fail-on");
    std::vector<filter::ExpectationResult> results;
    for (const filter::Expectation& expectation : expectations_) {
        results.push_back({.text = std::string{expectation.text()},
                           .met = expectation.met(),
                           .instead = expectation.instead()});
    }
    report::add_checks(checks, std::move(results), "--expect");
    return report::outcome_of(std::move(checks), totals_, sessions_, seconds);
}

} // namespace tw::cli
