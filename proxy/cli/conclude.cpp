#include "proxy/cli/conclude.h"

#include "proxy/cli/commands.h"
#include "proxy/cli/settings.h"

#include <cstdio>
#include <fstream>

#include <fmt/format.h>

namespace tw::cli {

void check_summary_file(const std::string& file) {
    if (!file.empty() && !std::ofstream{file, std::ios::binary | std::ios::app}) {
        throw UsageError{fmt::format(
            "--summary {}: cannot be written; name a file in a folder that exists and may be "
            "written",
            file)};
    }
}

int conclude(const report::Outcome& outcome, const std::string& file) {
    for (const report::Check& check : outcome.checks) {
        if (!check.passed) {
            fmt::print(stderr, "twscope: --{} {}: {}\n", check.kind, check.text, check.instead);
        }
    }
    if (!file.empty()) {
        std::ofstream out{file, std::ios::binary};
        out << (file.ends_with(".xml") ? outcome_junit(outcome) : outcome_text(outcome));
        out.close();
        if (!out) {
            fmt::print(stderr, "twscope: --summary {}: cannot be written\n", file);
            return kExitFailed;
        }
    }
    return outcome.passed() ? 0 : kExitFinding;
}

} // namespace tw::cli
