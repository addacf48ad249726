#pragma once

#include "proxy/sink/console.h"

#include <functional>
#include <string>

namespace tw::cli {

/// Returns the stream for the log: standard error, to which writing never blocks. It exists until
/// the process ends.
[[nodiscard]] sink::BoundedWaitStream& log_stream();

/// Makes spdlog write to log_stream(), coloured as set_log_colors() says. Lines begin with the
/// time; in a file or pipe, with date and time. `level`: an spdlog level name.
void open_log(const std::string& level);

/// Makes the log coloured or not, and opens it again with the same level.
/// Precondition: this process has one thread.
void set_log_colors(sink::Colors colors);

/// Runs `work` in a new process, which continues after this one has ended. Returns 0 when `work`
/// calls `started`, or the result of `work` if it returns before that.
/// Errors: throws std::system_error. Precondition: this process has one thread.
[[nodiscard]] int
run_in_background(const std::function<int(const std::function<void()>& started)>& work);

} // namespace tw::cli
