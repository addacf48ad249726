// Writes the manual page and the completion when twscope is built.
#include "proxy/cli/command_line.h"
#include "proxy/cli/manual.h"

#include <cstdio>
#include <string_view>

#include <fmt/format.h>

int main(int argc, char** argv) {
    const tw::cli::CommandLine line;
    const std::string_view what = argc == 2 ? argv[1] : "";
    if (what == "man") {
        fmt::print("{}", tw::cli::manual_page(line.app, TWSCOPE_VERSION));
    } else if (what == "bash") {
        fmt::print("{}", tw::cli::bash_completion(line.app));
    } else {
        fmt::print(stderr, "usage: twscope_manual man|bash\n");
        return 2;
    }
}
