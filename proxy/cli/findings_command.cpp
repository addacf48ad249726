#include "proxy/cli/commands.h"
#include "proxy/record/findings.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

namespace tw::cli {

namespace {

int print_findings() {
    for (const record::FindingInfo& info : record::finding_table()) {
        fmt::print("{} ({})\n    {}\n    {}\n", info.name, record::severity_name(info.severity),
                   info.sentence, info.cause);
    }
    return 0;
}

} // namespace

Action add_findings_command(CLI::App& app) {
    app.add_subcommand("findings", "List every finding twscope can report, with its usual cause");
    return print_findings;
}

} // namespace tw::cli
