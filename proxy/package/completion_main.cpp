// Writes the completion for bash when twscope is built.
#include "proxy/cli/command_line.h"

#include <fmt/format.h>

int main() {
    const tw::cli::CommandLine line;
    fmt::print("{}", tw::cli::bash_completion(line.app));
}
