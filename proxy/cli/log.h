#pragma once

#include "proxy/sink/prompt_stream.h"

#include <string>

namespace tw::cli {

/// Where the log goes, for the life of the process: standard error, without waiting for its reader.
[[nodiscard]] sink::PromptStream& log_stream();

/// Makes spdlog write there, in colours on a terminal. `level`: as spdlog names them.
void open_log(const std::string& level);

} // namespace tw::cli
