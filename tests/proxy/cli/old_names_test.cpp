#include "proxy/cli/commands.h"
#include "tests/proxy/cli/program_runs.h"

#include <doctest/doctest.h>

using namespace tw::test;

namespace {

/// Writes a capture of a short game. Returns its path.
std::string save_short_game(const TemporaryFolder& folder) {
    const std::string capture = save_game(folder.file("game.pcap"), tee_at(100, 80));
    return capture;
}

} // namespace

TEST_CASE("the arguments of an old command are replaced by those of the new command") {
    struct Row {
        Arguments old;
        Arguments now;
        std::string_view said; ///< the expected message; empty if the name is not old
    };

    const Row rows[] = {
        {{"twscope"}, {"twscope"}, ""},
        {{"twscope", "decode", "stats"}, {"twscope", "decode", "stats"}, ""},
        {{"twscope", "stats", "a", "--json"},
         {"twscope", "decode", "--stats", "a", "--json"},
         "'stats' is now 'decode --stats'"},
        {{"twscope", "stats", "-o", "a"},
         {"twscope", "decode", "--stats", "-o", "a"},
         "'stats' is now 'decode --stats'"},
        {{"twscope", "sizes", "a", "-o", "b", "-ob", "--output", "c", "--output=c"},
         {"twscope", "decode", "--sizes", "a", "--write-objects", "b", "--write-objects=b",
          "--write-objects", "c", "--write-objects=c"},
         "'sizes' is now 'decode --sizes'"},
        {{"twscope", "sizes", "-o", "-"},
         {"twscope", "decode", "--sizes", "--write-objects", "-"},
         "'sizes' is now 'decode --sizes'"},
        {{"twscope", "findings"}, {"twscope", "explain"}, "'findings' is now 'explain'"},
        {{"twscope", "findings", "inspect.gap"},
         {"twscope", "explain", "inspect.gap"},
         "'findings' is now 'explain'"},
    };
    for (const Row& row : rows) {
        Arguments arguments = row.old;
        CAPTURE(row.said);
        CHECK(tw::cli::replace_old_command(arguments) == row.said);
        CHECK(arguments == row.now);
    }
}

TEST_CASE("old commands work like their replacements, and print the new name in one line") {
    const TemporaryFolder folder;
    const std::string capture = save_short_game(folder);

    struct Row {
        Arguments old;
        Arguments now;
    };

    const Row rows[] = {
        {{"stats", capture}, {"decode", "--stats", capture}},
        {{"stats", capture, "--json"}, {"decode", "--stats", capture, "--json"}},
        {{"sizes", capture}, {"decode", "--sizes", capture}},
        {{"sizes", capture, "-o", "-"}, {"decode", "--sizes", capture, "--write-objects", "-"}},
        {{"findings", "--json"}, {"explain", "--json"}},
        {{"help", "stats"}, {"decode", "--help"}},
    };
    for (const Row& row : rows) {
        CAPTURE(row.old.front());
        const ProgramResult old = twscope(row.old);
        const ProgramResult now = twscope(row.now);
        CHECK(old.status == 0);
        CHECK(old.out == now.out);
        CHECK(old.out.size() > 2);
        CHECK(old.err.starts_with("twscope: '"));
        CHECK(old.err.substr(old.err.find('\n') + 1) == now.err);
    }
}

TEST_CASE("old flags work from the command line, a variable and a file, and name their replacement "
          "once") {
    const TemporaryFolder folder;
    const std::string capture = save_short_game(folder);
    const std::string config = folder.write("c.conf", "raw = true\n");
    const std::string now = twscope({"decode", capture, "-o", "-", "--items", "raw"}).out;
    CHECK(contains(now, R"("data":[)"));
    CHECK_FALSE(contains(twscope({"decode", capture, "-o", "-"}).out, R"("data":[)"));
    for (const std::string& how :
         {std::string{"$twscope decode --raw "}, std::string{"TWSCOPE_RAW=1 $twscope decode "},
          "$twscope decode --config " + config + ' '}) {
        CAPTURE(how);
        const ProgramResult old = run_in_shell(how + capture + " -o -");
        CHECK(old.status == 0);
        CHECK(old.err == "twscope: --raw is now --items raw\n");
        CHECK(old.out == now);
    }
    const ProgramResult all = twscope({"decode", capture, "-o", "-", "--items", "all", "--raw"});
    CHECK(all.out == twscope({"decode", capture, "-o", "-", "--items", "all,raw"}).out);

    CHECK(twscope({"proxy", "-s", "127.0.0.1:1", "-o", "-", "--raw", "--check-config"}).err ==
          "twscope: --raw is now --items raw\n");

    // The relay and its observer read the same flags; only one of them reports old ones.
    const ProgramResult live =
        run_in_shell("$twscope proxy -s 127.0.0.1:1 -l 127.0.0.1:0 --duration 1ms "
                     "--raw --nats-name a --nats nats://127.0.0.1:1");
    CHECK(live.status == 3); // no bus listens there, so the records are not published
    for (const std::string_view said : {"--raw is now --items raw\n", "--nats is now --bus\n",
                                        "--nats-name is now --bus-name\n"}) {
        CAPTURE(said);
        const std::size_t at = live.err.find(said);
        CHECK(at != std::string::npos);
        CHECK(live.err.find(said, at + 1) == std::string::npos);
    }
}

TEST_CASE("old names are neither in help nor in completions") {
    const auto commands = tw::cli::make_commands();
    const std::string bash = tw::cli::bash_completion(commands);
    const std::string fish = tw::cli::fish_completion(commands);
    const std::string help = twscope({"--help"}).out;
    for (const std::string command : {"stats", "sizes", "findings", "extcap"}) {
        CAPTURE(command);
        CHECK_FALSE(contains(help, "\n  " + command + ' '));
    }
    std::size_t old = 0;
    for (const auto& command : commands) {
        const std::string own = twscope({command->name, "--help"}).out;
        for (const tw::cli::Flag& flag : command->flags) {
            if (flag.replacement.empty()) {
                continue;
            }
            CAPTURE(flag.dashed_name());
            ++old;
            CHECK_FALSE(contains(own, "  " + flag.dashed_name() + ' '));
            CHECK_FALSE(contains(own, "  " + flag.dashed_name() + '\n'));
            CHECK_FALSE(contains(bash, command->name + "\\ " + flag.dashed_name() + ')'));
            CHECK_FALSE(contains(fish, command->name + "' -l " + flag.name + ' '));
        }
    }
    CHECK(old > 10);
}
