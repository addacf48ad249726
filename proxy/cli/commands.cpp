#include "proxy/cli/commands.h"

#include "proxy/sink/output.h"

#include <system_error>

namespace tw::cli {

int report_result(const analyze::Outcome& outcome, std::optional<sink::FileOutput>& file) {
    if (file) {
        file->write(file->path().ends_with(".xml") ? outcome_junit(outcome)
                                                   : outcome_text(outcome));
    }
    for (const analyze::Check& check : outcome.checks) {
        if (!check.passed) {
            sink::print_error("{} {}: {}", check.asked_by, check.text, check.instead);
        }
    }
    if (file && file->failed()) {
        sink::print_error("--summary {}: {}", file->path(),
                          std::generic_category().message(file->error()));
        return kExitFailed;
    }
    return outcome.passed() ? 0 : kExitFinding;
}

} // namespace tw::cli
