#include "proxy/cli/command_line.h"

int main(int argc, char** argv) {
    return tw::cli::run_program(argc, argv);
}
