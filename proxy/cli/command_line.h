#pragma once

#include "proxy/cli/commands.h"

#include <memory>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>

namespace tw::cli {

/// The program's command line: every command with its flags, and what it does.
struct CommandLine {
    explicit CommandLine(const Invocation& invocation = {});

    CLI::App app;
    std::vector<std::pair<CLI::App*, Action>> actions;
};

} // namespace tw::cli
