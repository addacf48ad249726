#include "proxy/report/fail_on.h"

#include <algorithm>
#include <functional>
#include <utility>

#include <fmt/format.h>

namespace tw::report {

tl::expected<FailOn, std::string> FailOn::parse(const std::vector<std::string>& words) {
    FailOn fail_on;
    for (const std::string& text : words) {
        const auto id = record::find_finding(text);
        const auto severity = record::find_severity(text);
        if (!id && !severity) {
            return tl::unexpected{text};
        }
        Word word{.text = text};
        for (const record::FindingInfo& info : record::finding_table()) {
            word.fails[static_cast<std::size_t>(info.id)] =
                info.id == id || (severity && info.severity >= *severity);
        }
        fail_on.words_.push_back(std::move(word));
    }
    return fail_on;
}

std::array<bool, record::kFindingCount> FailOn::findings() const {
    std::array<bool, record::kFindingCount> all{};
    for (const Word& word : words_) {
        std::transform(all.begin(), all.end(), word.fails.begin(), all.begin(),
                       std::logical_or<>{});
    }
    return all;
}

std::vector<Check> FailOn::checks(const record::SessionStats& totals,
                                  std::string_view asked_by) const {
    std::vector<Check> checks;
    for (const Word& word : words_) {
        Check check{
            .asked_by = std::string{asked_by}, .text = word.text, .passed = true, .instead = {}};
        for (const record::FindingInfo& info : record::finding_table()) {
            const auto index = static_cast<std::size_t>(info.id);
            if (const std::uint64_t count = totals.findings[index];
                word.fails[index] && count != 0) {
                check.passed = false;
                check.instead +=
                    fmt::format("{}{} occurred {}", check.instead.empty() ? "" : ", ", info.name,
                                count == 1 ? "once" : fmt::format("{} times", count));
            }
        }
        checks.push_back(std::move(check));
    }
    return checks;
}

} // namespace tw::report
