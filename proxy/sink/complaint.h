#pragma once

#include "proxy/record/terminal_text.h"

#include <cstdio>
#include <string>
#include <utility>

#include <fmt/format.h>

namespace tw::sink {

/// For people: what a terminal may obey, in names of files and of what peers say, is escaped. What
/// cannot be written is lost, and nothing else: there is nobody left to tell.
inline void say(std::FILE* stream, const std::string& text) {
    static_cast<void>(std::fputs(record::terminal_lines(text).c_str(), stream));
}

/// Says on standard error, on a line of its own, what went wrong.
template <typename... Arguments>
void complain(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
    say(stderr, "twscope: " + fmt::format(format, std::forward<Arguments>(arguments)...) + '\n');
}

} // namespace tw::sink
