#pragma once

#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

/// The log about twscope itself, written by spdlog. Its headers are expensive to compile, so only
/// log.cpp and the file that opens the log include them.
namespace tw::log {

enum class Level : int { debug = 1, info, warn, error }; ///< values as in spdlog

void write_line(Level level, std::string_view line);

/// Hides lines below the level. `name`: as spdlog names levels.
void set_level(const std::string& name);

template <typename... Values>
void debug(fmt::format_string<Values...> line, Values&&... values) {
    write_line(Level::debug, fmt::format(line, std::forward<Values>(values)...));
}

template <typename... Values>
void info(fmt::format_string<Values...> line, Values&&... values) {
    write_line(Level::info, fmt::format(line, std::forward<Values>(values)...));
}

template <typename... Values>
void warn(fmt::format_string<Values...> line, Values&&... values) {
    write_line(Level::warn, fmt::format(line, std::forward<Values>(values)...));
}

template <typename... Values>
void error(fmt::format_string<Values...> line, Values&&... values) {
    write_line(Level::error, fmt::format(line, std::forward<Values>(values)...));
}

} // namespace tw::log
