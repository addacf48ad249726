#include "proxy/cli/program.h"

int main(int argc, char** argv) {
    return tw::cli::run_program(argc, argv);
}
