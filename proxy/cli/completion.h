#pragma once

#include <string>

namespace CLI {
class App;
} // namespace CLI

namespace tw::cli {

/// A script that lets bash complete commands, flags and the words a flag can be.
[[nodiscard]] std::string bash_completion(const CLI::App& app);

} // namespace tw::cli
