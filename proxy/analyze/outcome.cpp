#include "proxy/analyze/outcome.h"

#include "proxy/record/terminal_text.h"
#include "proxy/sink/output.h"

#include <cstddef>
#include <functional>

namespace tw::analyze {

namespace {

/// Findings are printed together if the times of their records differ by less than this (ns).
constexpr record::Timestamp kPrintInterval = 1'000'000'000;

/// Escapes a text for XML. Replaces U+FFFE and U+FFFF, which XML forbids. The text must be UTF-8
/// without control characters (see escape_for_terminal).
std::string escape_xml(std::string_view text) {
    static constexpr std::array<std::pair<std::string_view, std::string_view>, 6> kEscapes{
        {{"&", "&amp;"},
         {"<", "&lt;"},
         {">", "&gt;"},
         {"\"", "&quot;"},
         {"\xef\xbf\xbe", "\xef\xbf\xbd"},
         {"\xef\xbf\xbf", "\xef\xbf\xbd"}}};
    std::string out;
    while (!text.empty()) {
        const auto* const found = std::ranges::find_if(
            kEscapes, [text](const auto& each) { return text.starts_with(each.first); });
        const bool is_plain = found == kEscapes.end();
        out += is_plain ? text.substr(0, 1) : found->second;
        text.remove_prefix(is_plain ? 1 : found->first.size());
    }
    return out;
}

std::uint64_t count_findings(const record::SessionStats& totals, record::Severity severity) {
    std::uint64_t count = 0;
    for (const record::FindingInfo& info : record::finding_table()) {
        if (info.severity == severity) {
            count += totals.findings[static_cast<std::size_t>(info.id)];
        }
    }
    return count;
}

} // namespace

void FindingPrinter::on_record(const record::Record& record) {
    if (const auto* const* finding = std::get_if<const record::FindingRecord*>(&record)) {
        const record::FindingId id = (*finding)->id;
        if (id != record::FindingId::demo_damaged && id != record::FindingId::demo_cut_short) {
            console_.add_finding(**finding);
        }
    } else {
        players_.on_record(record);
    }
    const record::Timestamp now =
        std::visit([](const auto* each) { return each->head.time; }, record);
    if (now - last_print_time_ >= kPrintInterval || last_print_time_ - now >= kPrintInterval) {
        last_print_time_ = now;
        print_lines(console_.take_finding_lines(now));
    }
}

void FindingPrinter::print_finding_summary(const sink::FindingLines::ExplainCommandMaker& explain) {
    print_lines(console_.take_finding_lines(last_print_time_, true));
    for (const std::string& line : console_.finding_table(explain)) {
        sink::print_text(out_, line + '\n');
    }
}

void FindingPrinter::print_lines(const std::vector<std::string>& lines) {
    for (const std::string& line : lines) {
        if (++num_printed_lines_ <= kMaxPrintedLines) {
            // The line is already safe for a terminal; its colours must not be escaped.
            fmt::print(out_, "{}\n",
                       sink::wrap_words(line, sink::columns_for_wrapping(::fileno(out_))));
        } else if (num_printed_lines_ == kMaxPrintedLines + 1) {
            sink::print_text(out_, "further findings are only in the table and the records\n");
        }
    }
}

bool Outcome::passed() const {
    return std::ranges::all_of(checks, [](const OutcomeCheck& check) { return check.passed; });
}

void add_expectation_checks(std::vector<OutcomeCheck>& checks,
                            std::span<const filter::Expectation> expectations,
                            std::string_view flag) {
    for (const filter::Expectation& expectation : expectations) {
        checks.push_back({.flag = std::string{flag},
                          .text = record::escape_for_terminal(expectation.text()),
                          .passed = expectation.is_met(),
                          .actual = expectation.unmet_reason()});
    }
}

Outcome make_outcome(std::vector<OutcomeCheck> checks, const record::SessionStats& totals,
                     std::uint32_t sessions, double seconds) {
    return {
        .checks = std::move(checks),
        .totals = fmt::format(
            "{}, {}, {} verified, {}, {}", record::count_with_noun(sessions, "session[s]"),
            record::count_with_noun(totals.snapshots, "snapshot[s]"), totals.verified,
            record::count_with_noun(count_findings(totals, record::Severity::warning),
                                    "warning[s]"),
            record::count_with_noun(count_findings(totals, record::Severity::error), "error[s]")),
        .seconds = seconds};
}

std::string outcome_text(const Outcome& outcome) {
    std::string out = fmt::format("{} after {:.1f} s: {}\n", outcome.passed() ? "PASSED" : "FAILED",
                                  outcome.seconds, outcome.totals);
    for (const OutcomeCheck& check : outcome.checks) {
        out += fmt::format("{} {} {}{}{}\n", check.passed ? "pass" : "FAIL", check.flag, check.text,
                           check.passed ? "" : ": ", check.actual);
    }
    return out;
}

std::string outcome_junit(const Outcome& outcome) {
    const auto failures = std::ranges::count_if(
        outcome.checks, [](const OutcomeCheck& check) { return !check.passed; });
    std::string out = fmt::format("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
                                  "<testsuite name=\"twscope\" tests=\"{}\" failures=\"{}\" "
                                  "errors=\"0\" skipped=\"0\" time=\"{:.3f}\">\n",
                                  outcome.checks.size(), failures, outcome.seconds);
    for (const OutcomeCheck& check : outcome.checks) {
        const auto name = std::min(check.flag.find_first_not_of('-'), check.flag.size());
        out += fmt::format(R"(  <testcase classname="twscope.{}" name="{}")",
                           escape_xml(check.flag.substr(name)), escape_xml(check.text));
        out += check.passed ? "/>\n"
                            : fmt::format(">\n    <failure message=\"{}\"/>\n  </testcase>\n",
                                          escape_xml(check.actual));
    }
    out += fmt::format("  <system-out>{}</system-out>\n</testsuite>\n", escape_xml(outcome.totals));
    return out;
}

tl::expected<FindingsToFailOn, std::string>
FindingsToFailOn::parse(const std::vector<std::string>& words) {
    FindingsToFailOn fail_on;
    for (const std::string& text : words) {
        const auto id = record::find_finding(text);
        const auto severity = record::parse_severity(text);
        if (!id && !severity) {
            return tl::unexpected{text};
        }
        FindingSelector word{.text = text};
        for (const record::FindingInfo& info : record::finding_table()) {
            word.selected[static_cast<std::size_t>(info.id)] =
                info.id == id || (severity && info.severity >= *severity);
        }
        fail_on.selectors_.push_back(std::move(word));
    }
    return fail_on;
}

std::array<bool, record::kFindingCount> FindingsToFailOn::selected_findings() const {
    std::array<bool, record::kFindingCount> all{};
    for (const FindingSelector& word : selectors_) {
        std::ranges::transform(all, word.selected, all.begin(), std::logical_or<>{});
    }
    return all;
}

std::vector<OutcomeCheck> FindingsToFailOn::make_checks(const record::SessionStats& totals,
                                                        std::string_view flag) const {
    std::vector<OutcomeCheck> checks;
    for (const FindingSelector& word : selectors_) {
        OutcomeCheck check{
            .flag = std::string{flag}, .text = word.text, .passed = true, .actual = {}};
        for (const record::FindingInfo& info : record::finding_table()) {
            const auto index = static_cast<std::size_t>(info.id);
            if (const std::uint64_t count = totals.findings[index];
                word.selected[index] && count != 0) {
                check.passed = false;
                check.actual +=
                    fmt::format("{}{} occurred {}", check.actual.empty() ? "" : ", ", info.name,
                                count == 1 ? "once" : fmt::format("{} times", count));
            }
        }
        checks.push_back(std::move(check));
    }
    return checks;
}

} // namespace tw::analyze
