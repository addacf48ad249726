#pragma once

#include <string>

namespace CLI {
class App;
} // namespace CLI

namespace tw::cli {

/// The manual page (man 1), made of the command line's own help.
[[nodiscard]] std::string manual_page(const CLI::App& app, const std::string& version);

/// A script that lets bash complete commands, flags and the words a flag can be.
[[nodiscard]] std::string bash_completion(const CLI::App& app);

} // namespace tw::cli
