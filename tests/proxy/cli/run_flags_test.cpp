// What live runs refuse before they begin, each by one line that says what to do.

#include "tests/proxy/cli/program_runs.h"

#include <string>
#include <string_view>

#include <doctest/doctest.h>

using namespace tw::test;

namespace {

/// A run whose ports are the system's choice; it ends by itself where it is not refused.
Arguments run_with(const Arguments& more) {
    Arguments arguments{"proxy",       "-s", "127.0.0.1:1", "-l",
                        "127.0.0.1:0", "-q", "--duration",  "100ms"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
}

struct Row {
    Arguments arguments;
    std::string_view what;
};

} // namespace

TEST_CASE("what needs the inspection that is switched off is refused") {
    const Row rows[] = {
        {{"--expect", "snapshot"}, "--expect and --fail-on need"},
        {{"--fail-on", "error"}, "--expect and --fail-on need"},
        {{"--resync"}, "--resync needs"},
    };
    for (const Row& row : rows) {
        CAPTURE(row.what);
        Arguments arguments = run_with(row.arguments);
        arguments.emplace_back("--no-inspect");
        check_refused(arguments, row.what);
    }
    CHECK(twscope(run_with({"--no-inspect"})).status == 0);
}
