#pragma once

#include "proxy/sink/console.h"

#include <functional>
#include <string>

namespace tw::cli {

/// Where the log goes, for the life of the process: standard error, without waiting for its reader.
[[nodiscard]] sink::PromptStream& log_stream();

/// Makes spdlog write there, in colours on a terminal. `level`: as spdlog names them.
void open_log(const std::string& level);

/// Does `work` in a process of its own that stays when this one ends; `work` calls what it is handed
/// once it has started. Returns 0 then, or `work`'s value when it ended before.
/// Errors: throws std::system_error. Precondition: this process has one thread.
[[nodiscard]] int
in_background(const std::function<int(const std::function<void()>& started)>& work);

} // namespace tw::cli
