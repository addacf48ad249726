#include "proxy/commands.h"
#include "proxy/inspect/findings.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

namespace tw {

namespace {

int print_findings() {
    for (const inspect::FindingInfo& info : inspect::finding_table()) {
        fmt::print("{} ({})\n    {}\n    {}\n", info.name, inspect::severity_name(info.severity),
                   info.sentence, info.cause);
    }
    return 0;
}

} // namespace

Action add_findings_command(CLI::App& app) {
    app.add_subcommand("findings",
                       "List everything twscope can find to be off, and why it happens");
    return print_findings;
}

} // namespace tw
