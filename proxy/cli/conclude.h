#pragma once

#include "proxy/report/outcome.h"
#include "proxy/sink/file_output.h"

#include <optional>

namespace tw::cli {

/// Prints to standard error what failed, and writes the summary to its file where there is one
/// (as JUnit when its name ends with .xml). Returns the exit code.
[[nodiscard]] int conclude(const report::Outcome& outcome, std::optional<sink::FileOutput>& file);

} // namespace tw::cli
