#include "proxy/cli/command_line.h"
#include "proxy/cli/manual.h"
#include "tests/support/program.h"

#include <string>
#include <string_view>

#include <doctest/doctest.h>

namespace {

bool holds(const std::string& text, std::string_view part) {
    return text.find(part) != std::string::npos;
}

} // namespace

TEST_CASE("the manual page names every command, every flag and what flags are for") {
    const tw::cli::CommandLine line;
    const std::string page = tw::cli::manual_page(line.app, "1.2.3");
    CHECK(page.starts_with(".TH TWSCOPE 1"));
    for (const CLI::App* command : line.app.get_subcommands([](const CLI::App*) { return true; })) {
        CAPTURE(command->get_name());
        CHECK(holds(page, ".B twscope " + command->get_name() + '\n'));
        for (const CLI::Option* option : command->get_options()) {
            std::string name = option->get_name(option->get_lnames().empty());
            for (std::size_t at = 0; (at = name.find('-', at)) != std::string::npos; at += 2) {
                name.insert(at, "\\");
            }
            CAPTURE(name);
            CHECK(holds(page, name));
        }
    }
    CHECK(holds(page, "\\fB\\-o\\fR, \\fB\\-\\-output\\fR \\fIFILE\\fR\n"));
    CHECK(holds(page, "\\fB\\-\\-items\\fR \\fInone|changed|all\\fR\n"));
    CHECK(holds(page, "(default: 127.0.0.1:8303)"));
}

TEST_CASE("no line of the manual page is taken for a request that it is not") {
    CLI::App app{"text\n.so /etc/passwd\n'br\n  back\\slash", "twscope"};
    app.add_subcommand("x", ".TH is no request");
    const std::string page = tw::cli::manual_page(app, "1");
    CHECK(holds(page, "\n\\&.so /etc/passwd\n"));
    CHECK(holds(page, "\n\\&'br\n"));
    CHECK(holds(page, "back\\eslash\n"));
    CHECK(holds(page, "\n\\&.TH is no request"));
}

TEST_CASE("bash completes commands, flags and the words a flag can be") {
    struct Row {
        std::string_view words; ///< "twscope proxy --it": the last is the one under the cursor
        std::string_view current;
        std::string_view before;
        std::string_view completed;
    };

    const Row rows[] = {
        {"twscope d", "d", "twscope", "decode"},
        {"twscope proxy --ite", "--ite", "proxy", "--items"},
        {"twscope proxy --items ''", "", "--items", "none changed all"},
        {"twscope proxy --items c", "c", "--items", "changed"},
        {"twscope decode --fail", "--fail", "decode", "--fail-on"},
        {"twscope map --idle", "--idle", "map", ""},
    };
    const tw::cli::CommandLine line;
    const tw::test::TemporaryFolder folder;
    tw::test::write_text(folder.file("completion"), tw::cli::bash_completion(line.app));
    for (const Row& row : rows) {
        CAPTURE(row.words);
        const auto done = tw::test::run_program(
            "/bin/bash",
            {"-c",
             "source \"$0\" && COMP_WORDS=(" + std::string{row.words} +
                 ") && COMP_CWORD=$((${#COMP_WORDS[@]} - 1)) ; _twscope twscope \"$1\" \"$2\" "
                 "; echo \"${COMPREPLY[*]}\"",
             folder.file("completion"), std::string{row.current}, std::string{row.before}});
        CHECK(done.err.empty());
        CHECK(done.out == std::string{row.completed} + '\n');
    }
}
