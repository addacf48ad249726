#include "proxy/report/totals_text.h"

#include "proxy/record/findings.h"

#include <string_view>
#include <utility>

#include <fmt/format.h>

namespace tw::report {

std::string totals_text(const std::vector<std::string>& captures,
                        const record::SessionStats& totals, std::uint32_t sessions) {
    std::string text = fmt::format("{}: {} {}, {} datagrams\n", fmt::join(captures, ", "), sessions,
                                   sessions == 1 ? "session" : "sessions",
                                   totals.directions[0].datagrams + totals.directions[1].datagrams);
    text += fmt::format("snapshots: {}, {} verified", totals.snapshots, totals.verified);
    const std::pair<std::string_view, std::uint64_t> failures[] = {
        {"with a wrong checksum", totals.mismatched},
        {"undecodable", totals.undecodable},
        {"on an unknown base", totals.unknown_base},
        {"incomplete", totals.incomplete},
        {"repeated", totals.repeated},
    };
    for (const auto& [what, count] : failures) {
        if (count != 0) {
            text += fmt::format(", {} {}", count, what);
        }
    }
    text += '\n';
    for (const record::FindingInfo& info : record::finding_table()) {
        if (const auto count = totals.findings[static_cast<std::size_t>(info.id)]; count != 0) {
            text += fmt::format("{:7} {:30} {:6}  {}\n", record::severity_name(info.severity),
                                info.name, count, info.sentence);
        }
    }
    return text;
}

} // namespace tw::report
