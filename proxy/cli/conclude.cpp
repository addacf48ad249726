#include "proxy/cli/conclude.h"

#include "proxy/cli/commands.h"

#include <cstdio>
#include <system_error>

#include <fmt/format.h>

namespace tw::cli {

int conclude(const report::Outcome& outcome, std::optional<sink::FileOutput>& file) {
    for (const report::Check& check : outcome.checks) {
        if (!check.passed) {
            fmt::print(stderr, "twscope: {} {}: {}\n", check.asked_by, check.text, check.instead);
        }
    }
    if (file) {
        file->write(file->path().ends_with(".xml") ? outcome_junit(outcome)
                                                   : outcome_text(outcome));
        if (file->failed()) {
            fmt::print(stderr, "twscope: --summary {}: {}\n", file->path(),
                       std::generic_category().message(file->error()));
            return kExitFailed;
        }
    }
    return outcome.passed() ? 0 : kExitFinding;
}

} // namespace tw::cli
