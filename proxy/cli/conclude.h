#pragma once

#include "proxy/report/outcome.h"

#include <string>

namespace tw::cli {

/// To be called before a long run: a summary that cannot be written afterwards is no use then.
/// Errors: UsageError.
void check_summary_file(const std::string& file);

/// Prints to standard error what failed, and writes the summary to `file` (JUnit when it ends with
/// .xml; empty: none). Returns the exit code.
[[nodiscard]] int conclude(const report::Outcome& outcome, const std::string& file);

} // namespace tw::cli
