// Covers: proxy/cli/command_line.cpp
#include "proxy/cli/command_line.h"
#include "proxy/cli/help.h"
#include "tests/support/program.h"

#include <string>
#include <string_view>

#include <CLI/CLI.hpp>
#include <doctest/doctest.h>

namespace {

bool holds(const std::string& text, std::string_view part) {
    return text.find(part) != std::string::npos;
}

std::string page(const std::string& name) {
    return tw::test::read_text(TW_MANUAL "/" + name + ".1");
}

} // namespace

TEST_CASE("the manual has a page for each command with every flag and its purpose") {
    const tw::cli::CommandLine line;
    const std::string main_page = page("twscope");
    CHECK(holds(main_page, ".TH TWSCOPE \"1\""));
    for (const CLI::App* command :
         line.program.app().get_subcommands([](const CLI::App*) { return true; })) {
        CAPTURE(command->get_name());
        CHECK(holds(main_page, "\\fBtwscope-" + command->get_name() + "\\fR(1)"));
        const std::string own_page = page("twscope-" + command->get_name());
        CHECK(holds(own_page, "\ntwscope-" + command->get_name() + " \\- "));
        for (const CLI::Option* option : command->get_options([](const CLI::Option* each) {
                 return tw::cli::replacement_of_flag(*each).empty();
             })) {
            std::string name = option->get_name(option->get_lnames().empty());
            for (std::size_t at = 0; (at = name.find('-', at)) != std::string::npos; at += 2) {
                name.insert(at, "\\");
            }
            CAPTURE(name);
            CHECK(holds(own_page, name));
        }
    }
    const std::string proxy_page = page("twscope-proxy");
    CHECK(holds(proxy_page, "\n\\fB\\-o\\fR, \\fB\\-\\-output\\fR FILE\n"));
    CHECK(holds(proxy_page, "\n\\fB\\-\\-items\\fR none|changed|all|raw\n"));
    CHECK(holds(proxy_page, "(default: 127.0.0.1:8303)"));
}
