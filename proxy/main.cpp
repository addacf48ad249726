#include "proxy/cli/commands.h"

int main(int argc, char** argv) {
    return tw::cli::run_program(argc, argv);
}
