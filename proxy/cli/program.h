#pragma once

namespace tw::cli {

/// The whole program: reads the command line, does what it says, returns the exit code.
[[nodiscard]] int run_program(int argc, char** argv);

} // namespace tw::cli
