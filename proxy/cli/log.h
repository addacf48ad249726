#pragma once

#include "proxy/sink/console.h"

#include <functional>
#include <string>

namespace tw::cli {

/// The stream for the log: standard error, written without waiting for its reader. Exists until the
/// process ends.
[[nodiscard]] sink::PromptStream& log_stream();

/// Makes spdlog write to log_stream(), coloured as set_colors() says. `level`: an spdlog level name.
void open_log(const std::string& level);

/// Makes the log coloured or not, and opens it again with the same level.
/// Precondition: this process has one thread.
void set_colors(sink::Colors colors);

/// Runs `work` in a new process that continues after this one ends. `work` calls its argument once
/// it has started. Returns 0 then, or the result of `work` if it ended before.
/// Errors: throws std::system_error.
/// Precondition: this process has one thread.
[[nodiscard]] int
in_background(const std::function<int(const std::function<void()>& started)>& work);

} // namespace tw::cli
