// Errors that a live run reports before its start, each in one line that says what to do.

#include "tests/proxy/cli/program_runs.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <set>
#include <sstream>

#include <doctest/doctest.h>

using namespace tw::test;

namespace {

/// A run on ports chosen by the system, which ends by itself if its flags are valid.
Arguments live_run_arguments(const Arguments& more) {
    return join_arguments(
        {"proxy", "-s", "127.0.0.1:1", "-l", "127.0.0.1:0", "-q", "--duration", "100ms"}, more);
}

void check_run_usage_errors(const std::vector<InvalidArguments>& rows) {
    check_usage_errors(live_run_arguments({}), rows);
}

} // namespace

TEST_CASE("flags that need inspection are rejected if it is switched off") {
    check_usage_errors(live_run_arguments({"--no-inspect"}),
                       {{{"--expect", "snapshot"}, "--expect needs"},
                        {{"--fail-on", "error"}, "--fail-on needs"},
                        {{"--resync"}, "--resync needs"},
                        {{"--output", "never.jsonl"}, "--output needs"},
                        {{"--bus", "nats://127.0.0.1:1"}, "--bus needs"}});
    CHECK(twscope(live_run_arguments({"--no-inspect"})).status == 0);
}

TEST_CASE("a filter that only messages can match is rejected if messages are left out") {
    check_usage_errors(
        live_run_arguments({"--no-messages", "-o", "-"}),
        {{{"--filter", "message"}, "--filter 'message' matches only messages"},
         {{"--filter", "fields.message ~ gg and name == sv_chat"}, "leave one of them out"}});
    CHECK(twscope(live_run_arguments({"--filter", "not message", "--no-messages", "-o", "-"}))
              .status == 0);
    CHECK(twscope(live_run_arguments({"--filter", "message", "-o", "-"})).status == 0);
}

TEST_CASE("a file that contains other data than records is not written to") {
    const TemporaryFolder folder;
    const std::string notes = folder.write("notes.txt", "dear diary, with no end of line");
    const std::string config = folder.write("c.conf", "max-sessions = 5\nquiet = true");
    const std::string token = folder.write("token", "abcdefghijklmnopqrstuv");
    check_run_usage_errors({
        {{"-o", notes}, "contains something other than records"},
        {{"-o", folder.file("new.jsonl.gz")}, "compresses with zstd only; name it "},
        {{"--show-secrets", "-w", folder.file("new.pcapng.xz")}, "new.pcapng.zst"},
        {{"--config", config, "-o", config}, "is also an input"},
        {{"--config", config, "--summary", config, "--expect", "always ok"}, "is also an input"},
        {{"--http", "0", "--http-token-file", token, "-o", token}, "is also an input"},
        {{"--bus", "nats://127.0.0.1:1", "--bus-file", token, "-o", token}, "is also an input"},
    });
    CHECK(read_text(notes) == "dear diary, with no end of line");
    CHECK(read_text(config) == "max-sessions = 5\nquiet = true");
    CHECK(read_text(token) == "abcdefghijklmnopqrstuv");
    CHECK(twscope(live_run_arguments({"-o", "/dev/null"})).status == 0);
}

TEST_CASE("an error in a configuration is reported with its line") {
    struct Line {
        std::string_view text;
        std::string_view what; ///< a part of the expected error; empty if there is none
    };

    const Line lines[] = {
        {"no-inspect", "c.conf, line 1: 'no-inspect' needs a value: no-inspect = true"},
        {"quiet = true\n\n  no-inspect  # only forward\n", ", line 3: 'no-inspect' needs a value"},
        {"quiet = true\r\nno-inspect\r\n", ", line 2: 'no-inspect' needs a value"},
        {"[proxy]\nno-inspect\n", ", line 2: 'no-inspect' needs"},
        {"output\n", ", line 1: 'output' needs a value: output = ..."},
        {{"quiet = true\n\0\n", 15}, "c.conf: is no configuration file: contains a NUL byte"},
        {"nonsense\n", ", line 1: expected 'flag-name = value', not 'nonsense'"},
        {"server 1.2.3.4:8303\n", ", line 1: expected 'flag-name = value', not 'server 1.2.3.4"},
        {"q\n", ", line 1: expected 'flag-name = value', not 'q'"},
        {"no-inspect = maybe\n", ", line 1: --no-inspect: expected true or false, not 'maybe'"},
        {"fail-on = [snapshot.crc_mismatch,\n  map.not_found]\nquiet\n", ", line 3: 'quiet' needs"},
        {"raw = []\n", ", line 1: 'raw' needs a value: raw = true"},
        {"max-sessions = [ ]\n", ", line 1: 'max-sessions' needs a value: max-sessions = ..."},
        {"fail-on = \",\"\n", ", line 1: 'fail-on' needs a value"},
        {"show-secrets =\n", ", line 1: 'show-secrets' needs a value: show-secrets = true"},
        {"\nshow-secrets = # which\n", ", line 2: 'show-secrets' needs a value"},
        {"show-secrets = \"\"\n", ", line 1: 'show-secrets' needs a value: show-secrets = true"},
        {"show-secrets = {}\n", ", line 1: --show-secrets: expected true or false"},
        {"pseudonyms = ''\n", ", line 1: 'pseudonyms' needs a value: pseudonyms = ..."},
        {"maps = [\"/\", \"\"]\n", ", line 1: 'maps' needs a value"},
        {"output =\n", ", line 1: 'output' needs a value: output = ..."},
        {"quiet = true\n\npseudonyms = \"my\n", ", line 3: the quotes are not closed"},
        {"pseudonyms = \"my'secret # 1\n", ", line 1: the quotes are not closed"},
        {"fail-on = [\"a]\n", ", line 1: the quotes are not closed"},
        {"output = -\nfilter = \"name == '#'  and\"  # odd", "--filter 'name == '#'  and'"},
        {"output = -\nfilter = 'name == \"#\"  and' # odd", "--filter 'name == \"#\"  and'"},
        {"output = -\nfilter = \"name == \\\"#\\\" and\" # odd", R"(--filter 'name == "#" and')"},
        {"expect = [\"tick > 1\", \"a # b\"] # odd", "--expect 'a # b'"},
        {"expect = [\"tick > 1\", # odd\n\"a # b\"]", "--expect 'a # b'"},
        {"expect = [ok, ok\n", ", line 1: the list has no ']'"},
        {"summary = /no/such/file#1\nexpect = ok", "--summary /no/such/file:"},
        {"summary = /no/it's/file # 1\nexpect = ok", "--summary /no/it's/file:"},
        {"keep = 1h,2GiB", "--keep deletes segments"}, // one value, as no bracket begins a list
        {"nonsense = true\n", "unknown key 'nonsense' (keys are"},
        {"kepp = \"10GiB\"\n", "unknown key 'kepp'; did you mean keep? (keys are"},
        {"config = c.conf\n", "unknown key 'config' (keys are"},
        {"[page]\nhttp = 1\n", "without dashes, and not in sections such as [x])"},
        {"\xEF\xBB\xBFno-inspect = true\n", ""},
        {"\xEF\xBB\xBFno-inspect\n", ", line 1: 'no-inspect' needs a value"},
        {"", ""},
        {"# no-inspect\n; quiet\n\n[proxy]\nno-inspect = true\n", ""},
        {"fail-on = [snapshot.crc_mismatch, # and\n  map.not_found]\n", ""},
        {"fail-on = [snapshot.crc_mismatch, # and\n  # \"or\n  map.not_found # too\n]\n", ""},
        {"[proxy] # it's \"mine\nquiet = true # nobody's \"fault\n; don't \"\n", ""},
    };
    const TemporaryFolder folder;
    const std::string config = folder.file("c.conf");
    for (const Line& line : lines) {
        CAPTURE(line.text);
        write_text(config, std::string{line.text});
        const Arguments run = live_run_arguments({"--config", config});
        if (line.what.empty()) {
            CHECK(twscope(run).status == 0);
        } else {
            check_usage_error(run, line.what);
        }
    }
}

TEST_CASE("an error about a flag names the variable or file that has set it") {
    const TemporaryFolder folder;
    const std::string config = folder.write("c.conf", "listen = nowhere\n");
    for (const std::string check : {"", " --check-config"}) {
        CAPTURE(check);
        const std::string run = "$twscope proxy -s 127.0.0.1:1" + check;
        const std::string what = "twscope: --listen nowhere: expected HOST:PORT";
        const ProgramResult by_file = run_in_shell(run + " --config " + config);
        CHECK(by_file.err.starts_with(what));
        CHECK(by_file.err.ends_with(" (set by " + config + ")\n"));
        const ProgramResult by_variable = run_in_shell("TWSCOPE_LISTEN=nowhere " + run);
        CHECK(by_variable.err.starts_with(what));
        CHECK(by_variable.err.ends_with(" (set by TWSCOPE_LISTEN)\n"));
        const ProgramResult by_flag = run_in_shell(run + " -l nowhere");
        CHECK(by_flag.err.starts_with(what));
        CHECK_FALSE(contains(by_flag.err, "set by"));
    }
    const ProgramResult other = run_in_shell("TWSCOPE_WHERE='id = x' $twscope records /dev/null");
    CHECK(other.err.ends_with("--columns t,tick,items.player (set by TWSCOPE_WHERE)\n"));
}

TEST_CASE("an empty value, or a variable of an unknown flag, is rejected") {
    struct Variable {
        const char* name;
        const char* value;
        std::string_view what; ///< a part of the expected error; empty if there is none
    };

    const Variable variables[] = {
        {"TWSCOPE_SHOW_SECRETS", "", "TWSCOPE_SHOW_SECRETS: is empty; unset it"},
        {"TWSCOPE_PSEUDONYMS", "", "TWSCOPE_PSEUDONYMS: is empty; unset it"},
        {"TWSCOPE_FAIL_ON", ",", "TWSCOPE_FAIL_ON: is empty"},
        {"TWSCOPE_RAW", "false", ""},
        {"TWSCOPE_PSEUDONYM", "secret", "did you mean TWSCOPE_PSEUDONYMS?"},
        {"TWSCOPE_", "1", "TWSCOPE_: no flag has this variable"},
        {"TWSCOPE_INTERFACE", "eth0", ""}, // a flag of tap
        {"TWSCOPE_SERVICE_HOST", "10.0.0.1", ""},
        {"TWSCOPE_PORT_8303_UDP", "udp://10.0.0.1:8303", ""},
    };
    for (const Variable& variable : variables) {
        CAPTURE(variable.name);
        ::setenv(variable.name, variable.value, 1); // NOLINT(concurrency-mt-unsafe): one thread
        if (variable.what.empty()) {
            CHECK(twscope(live_run_arguments({})).status == 0);
        } else {
            check_usage_error(live_run_arguments({}), variable.what);
        }
        ::unsetenv(variable.name); // NOLINT(concurrency-mt-unsafe): one thread
    }
    check_usage_error(live_run_arguments({"--pseudonyms", ""}), "--pseudonyms");
}

TEST_CASE("times that are out of range or invalid are rejected") {
    const TemporaryFolder folder;
    check_run_usage_errors({
        {{"--rotate", "106752d", "-o", folder.path() + "/"}, "at most 100 years"},
        {{"--keep", "36526d", "-o", folder.path() + "/"}, "at most 100 years"},
        {{"--show-secrets", "--flight", "999999d,1GiB", folder.path()}, "at most 100 years"},
        {{"--min-free", "1h", "-o", folder.path() + "/"}, "expected a size"},
        {{"--min-free", "1GiB"}, "--min-free needs --output or --write"},
        {{"--message-limit", "1h"}, "expected a size"},
        {{"--bus", "nats://127.0.0.1:1", "--bus-limits", "1000000h"}, "at most 100 years"},
        {{"--idle-timeout", "nan(1)"}, "nan(1): expected a time"},
        {{"--start-timeout", "nan(1)"}, "nan(1): expected a time"},
    });
    CHECK(twscope(live_run_arguments({"--rotate", "36525d", "-o", folder.path() + "/"})).status ==
          0);
}

TEST_CASE("--check-config names every wrong limit of a recording, once") {
    const TemporaryFolder folder;
    const ProgramResult done = twscope(
        live_run_arguments({"--check-config", "-o", folder.path() + "/", "--rotate", "1 hour",
                            "--keep", "10G", "--min-free", "3", "--message-limit", "5min"}));
    CHECK(done.status == 2);
    CHECK(done.err == "twscope: --rotate 1 hour: expected a time (s, min, h, d), a size (KiB, MiB, "
                      "GiB, TiB), or both, for example 1h,512MiB\n"
                      "twscope: --keep 10G: did you mean 10GiB?\n"
                      "twscope: --min-free 3: expected a size (KiB, MiB, GiB, TiB), for example "
                      "10GiB\n"
                      "twscope: --message-limit 5min: expected a size (KiB, MiB, GiB, TiB), for "
                      "example 1MiB, or 'none'\n");
}

TEST_CASE("a server for which clients would share an address is an error of the check, too") {
    const std::string why = "twscope: the server 192.0.2.7:8304 is not on 127.0.0.0/8, so all "
                            "clients would share one address there: ";
    const Arguments check{"proxy", "-s", "192.0.2.7:8304", "--check-config"};
    const ProgramResult done = twscope(check);
    CHECK(done.status == 2);
    CHECK(done.err.starts_with(why));
    CHECK(contains(done.err, "; use --client-address transparent, or accept this with "));
    CHECK(twscope(check, {"--insecure-shared"}).status == 0);
    CHECK(twscope({"proxy", "-s", "game.example.org:8304", "--check-config"}).status == 0);
}

TEST_CASE("a --keep for which the disk has no room is a warning") {
    const TemporaryFolder folder;
    const std::string records = folder.file("new") + "/";
    const auto checked = [&](const Arguments& more) {
        const ProgramResult done =
            twscope(live_run_arguments({"--check-config", "-o", records}), more);
        CHECK(done.status == 0);
        return done.out;
    };
    const std::string begin = "\nwarning: --keep 900000TiB: the disk of " + records + " has ";
    const std::string out = checked({"--keep", "900000TiB"});
    CAPTURE(out);
    CHECK(contains(out, begin));
    CHECK(contains(out, " free, and the recording already has 0.0 KiB; keep less, or add "
                        "--min-free 1GiB: it deletes the oldest segments"));
    CHECK(contains(checked({"--keep", "900000TiB", "--min-free", "1KiB"}),
                   "; to leave 1KiB free, segments are deleted earlier\n"));
    const std::string less = "\nwarning: --min-free 900000TiB: the disk of " + records + " has ";
    for (const Arguments& keep : {Arguments{}, Arguments{"--keep", "30d"}}) {
        const std::string full = checked(join_arguments({"--min-free", "900000TiB"}, keep));
        CHECK(contains(full, less));
        CHECK(contains(full, " free, less than that: nothing is recorded until there is room\n"));
    }
    CHECK_FALSE(contains(checked({"--keep", "1KiB"}), "warning"));
    CHECK_FALSE(contains(checked({"--keep", "30d"}), "warning"));
    CHECK(contains(twscope(live_run_arguments({"-o", records, "--keep", "900000TiB"})).err,
                   " warning --keep 900000TiB: the disk of " + records + " has "));
}

TEST_CASE("addresses and files that cannot be opened are rejected with the reason") {
    const TemporaryFolder folder;
    check_run_usage_errors({
        {{"--objects", folder.path()}, "Is a directory; name a file with"},
        {{"--http", "99999"}, "--http 99999: expected a port up to 65535"},
        {{"--http", "page"}, "--http page: expected a port up to 65535"},
        {{"--http", "80x"}, "--http 80x: expected a port up to 65535"},
        {{"--http-host", "scope.example.org"}, "--http-host has no effect without --http"},
        {{"--http-open-reading"}, "--http-open-reading has no effect without --http"},
        {{"--http-token-file", "token"}, "--http-token-file has no effect without --http"},
        {{"--config", "/dev/zero"}, "/dev/zero: is no configuration file: longer than 65536"},
        {{"-l", "127.0.0.1:8303", "-l", "127.0.0.1:8303"}, "overlap; leave one of them out"},
        {{"-o", "game", "--keep", "1h"}, "--output game is a file: write game/ for a folder, or"},
        {{"-o", "-", "--keep", "1h"}, "segments; name a folder with --output or --write, or"},
    });
}

TEST_CASE(
    "missing rights to write to a folder or to listen on a port are reported before the start") {
    const TemporaryFolder folder;
    const std::string locked = folder.file("locked");
    std::filesystem::create_directory(locked);
    std::filesystem::permissions(locked, std::filesystem::perms::owner_read |
                                             std::filesystem::perms::owner_exec);
    const auto run_without_rights = [](const std::string& flags) {
        return run_in_shell(
                   "$(test $(id -u) != 0 || echo setpriv --bounding-set=-all) $twscope proxy "
                   "-s 127.0.0.1:2 --duration 1ms " +
                   flags)
            .err;
    };
    const std::string where = " write to " + locked + ", or name another place\n";
    for (const std::string path : {"/", "/game.jsonl", "/new/"}) {
        CAPTURE(path);
        const std::string flags = "--check-config -o " + locked + path;
        CHECK(contains(run_without_rights(flags), ": Permission denied; let user "));
        CHECK(contains(run_without_rights(flags), where));
    }
    if (read_text("/proc/sys/net/ipv4/ip_unprivileged_port_start") == "1024\n") {
        const std::string why = ":1: Permission denied (ports below 1024 need root)\n";
        CHECK(contains(run_without_rights("-l 127.0.0.1:1"), why));
        CHECK(contains(run_without_rights("-l 127.0.0.1:0 --http 1"), why));
    }
}

TEST_CASE("--check-config describes the run and starts nothing") {
    const TemporaryFolder folder;
    const std::string config = folder.file("c.conf");
    const std::string output = folder.file("game.jsonl");
    write_text(config, "output = \"" + output + "\"\nmax-sessions = 5\n" +
                           "http = \"9000\"\nhttp = \"9001\"\n");
    const ProgramResult done =
        run_in_shell("TWSCOPE_HTTP=9303 TWSCOPE_PSEUDONYMS=hush $twscope proxy -s 127.0.0.1:8304 "
                     "--check-config --config " +
                     config);
    CHECK(done.status == 0);
    CHECK(done.err.empty());
    CHECK(done.out.starts_with("listening on 127.0.0.1:8303 (this machine only), forwarding to "
                               "127.0.0.1:8304\n"
                               "at most 2 sessions per address (except loopback), 5 in all\n"
                               "recording records with pseudonyms to " +
                               output + ", with no size limit (--keep sets one for a folder), "));
    CHECK(contains(done.out, " free now\n"
                             "client addresses: pseudonyms\n"
                             "warning: --pseudonyms: a secret shorter than 16 characters can be "
                             "guessed, and the addresses with it\n"
                             "live page on 9303 (this machine only)\n"
                             "from command line: config, server\n"
                             "from environment: pseudonyms, http\n"
                             "from " +
                                 config + ": "));
    CHECK(done.out.find("max-sessions", done.out.find(config)) != std::string::npos);
    CHECK(done.out.ends_with("from " + config + ", but overridden: http\n"));
    CHECK_FALSE(contains(done.out, "hush"));
    CHECK_FALSE(std::filesystem::exists(output));
    const std::string records = folder.file("records/"); // the run creates the folder
    const Arguments check{"proxy", "-s", "127.0.0.1:1", "--check-config"};
    const ProgramResult limited = // a relative path is shown as an absolute one
        run_in_shell("cd " + folder.path() + " && $twscope proxy -s 127.0.0.1:1 --check-config " +
                     "-o ./records/ --keep 1GiB --min-free 2GiB");
    CHECK(contains(limited.out,
                   "recording records to " + records +
                       " in segments, keeping 1GiB and always the last hour, leaving 2GiB free, "));
    CHECK(contains(limited.out, " free now\nclient addresses: recorded as they are\n"));
    CHECK_FALSE(std::filesystem::exists(records));
    CHECK(twscope({"tap", "-i", "eth0", "--check-config"}).out ==
          "observing eth0, servers by what they send\n"
          "not recording (use -o FILE)\n"
          "no live page (--http 9303 serves one)\n"
          "from command line: interface\n");
    CHECK(twscope({"proxy", "-s", "a=127.0.0.1:1", "-l", ":2", "-s", "b=127.0.0.1:3", "-l", ":4",
                   "--check-config"})
              .out.starts_with(
                  "listening on :2, forwarding to a=127.0.0.1:1\n"
                  "listening on :4, forwarding to b=127.0.0.1:3\n"
                  "at most 64 sessions per address (except loopback), 1024 per server\n"));
    CHECK(contains(twscope(check, {"--max-per-address", "0"}).out,
                   "\nat most 1024 sessions in all\n"));
}

TEST_CASE(
    "--check-config finds the same errors in the server's address and state folder as the run") {
    const TemporaryFolder folder;

    for (const Arguments& check : {Arguments{}, {"--check-config"}}) {
        check_usage_errors(
            join_arguments({"proxy", "--duration", "1ms", "--state", folder.path()}, check),
            {{{"-s", "127.0.0.1:2", "-l", "127.0.0.1:2"},
              "--listen 127.0.0.1:2 is the server's own address; listen on this machine's public"},
             {{"-s", "127.0.0.1:2", "-l", "0.0.0.0:2"},
              "--listen 0.0.0.0:2 includes 127.0.0.1:2, where the server is; listen on"},
             {{"-s", "a=127.0.0.1:2", "-s", "b=127.0.0.1:3", "-l", "127.0.0.1:3", "-l",
               "127.0.0.1:4"},
              "--listen 127.0.0.1:3 is the server's own address"}});
    }
    for (const char* const server : {"192.0.2.1:2", "127.0.0.1:3"}) { // elsewhere; another port
        CHECK(twscope(
                  {"proxy", "-s", server, "-l", "0.0.0.0:2", "--insecure-shared", "--check-config"})
                  .status == 0);
    }

    const auto check_state = [&](const std::string& output, const std::string& state) {
        return run_in_shell("cd " + folder.path() +
                            " && $twscope proxy -s 127.0.0.1:1 -l 127.0.0.1:0 " +
                            "--check-config -o " + output + " --state " + state);
    };
    CHECK(check_state("new/sub/", "new").status == 0); // the run creates both
    CHECK(check_state("new/sub/", "new/state/").status == 0);
    CHECK(check_state("new/sub/", "new/sub/state").status == 0);
    CHECK(check_state("new/sub/", "other").status == 2);
    CHECK(check_state("new/sub/more/", "new").status == 2);
    CHECK(contains(check_state("game.jsonl", "/proc/state/twscope").out,
                   "cannot write to /proc/state/twscope: bans do not outlast the run, and no other "
                   "twscope can take over from it (see --state)\n"));
    CHECK_FALSE(contains(check_state("game.jsonl", "new").out, "cannot write"));
    CHECK(std::filesystem::is_empty(folder.path() + "/")); // nothing was created
    const ProgramResult homeless = run_in_shell("unset HOME XDG_STATE_HOME STATE_DIRECTORY; "
                                                "$twscope proxy -s 127.0.0.1:1 --check-config");
    CHECK(contains(homeless.err, "HOME is not set"));
}

TEST_CASE("--check-config reports an empty server or interface once") {
    for (const std::string line : {"TWSCOPE_SERVER= $twscope proxy --check-config",
                                   "TWSCOPE_INTERFACE= $twscope tap --check-config"}) {
        CAPTURE(line);
        const ProgramResult done = run_in_shell(line);
        CHECK(done.status == 2);
        CHECK(done.err == "twscope: " + line.substr(0, line.find('=')) +
                              ": is empty; unset it, or set it to a value\n");
    }
}

TEST_CASE("--check-config reports no errors that only follow from another error") {
    const TemporaryFolder folder;
    const std::string config = folder.file("c.conf");
    const std::string prefix = "twscope: --config " + config;
    write_text(config, "keep =\nserver = \"127.0.0.1:1\"\noutptu = \"x\"\nreset\n");
    const ProgramResult done = twscope({"proxy", "--check-config", "--config", config});
    CHECK(done.status == 2);
    CHECK(contains(done.err, prefix + ", line 1: 'keep' needs a value: "));
    CHECK(contains(done.err, prefix + ", line 4: expected 'flag-name = value', not 'reset'\n"));
    CHECK(contains(done.err, prefix + ", line 3: unknown key 'outptu'; did you mean output?"));
    CHECK(std::ranges::count(done.err, '\n') == 3); // no line says that the server is missing
    write_text(config, "server = \"127.0.0.1:1\n");
    CHECK(
        twscope({"proxy", "--check-config", "--config", config}).err ==
        prefix + ", line 1: the quotes are not closed\n" +
            "twscope: there may be more errors: the configuration file was not read to its end\n");
    // A folder that cannot take files is an error, too.
    check_usage_error(
        {"proxy", "-s", "127.0.0.1:1", "--check-config", "-o", "/proc/records/", "--keep", "1GiB"},
        "--output /proc/records: ");
}

TEST_CASE("--check-config names every error, once, and ends with 2") {
    const TemporaryFolder folder;
    const std::string config =
        folder.write("c.conf", "max-sessons = 5\nitems = \"some\"\nfilter = \"tock == 5\"\n");
    const std::string notes = folder.write("notes.jsonl", "dear diary");
    const ProgramResult done = run_in_shell(
        "TWSCOPE_PSEUDONYM=secret TWSCOPE_KEEP= TWSCOPE_THREADS=none $twscope proxy --check-config "
        "--resync --no-inspect -o " +
        notes + " -w " + folder.file("no/such.pcapng") + " --config " + config);
    CHECK(done.status == 2);
    CHECK(done.out.empty());
    CAPTURE(done.err);
    const std::string_view wanted[] = {
        "TWSCOPE_PSEUDONYM: no flag has this variable",
        "TWSCOPE_KEEP: is empty",
        "TWSCOPE_THREADS: ",
        "unknown key 'max-sessons'",
        "--items some",
        "tock",
        "--write ",
        "--output, --write, --resync need inspection",
        "proxy needs a game server",
        "contains something other than records",
        "such.pcapng: No such file or directory",
    };
    for (const std::string_view each : wanted) {
        CAPTURE(each);
        const std::size_t at = done.err.find(each);
        CHECK(at != std::string::npos);
    }
    std::istringstream lines{done.err};
    std::set<std::string> said;
    for (std::string line; std::getline(lines, line);) {
        CAPTURE(line);
        CHECK(said.insert(line).second);
    }
    CHECK(said.size() >= std::size(wanted));
    CHECK(read_text(notes) == "dear diary");
    check_usage_error({"proxy", "-s", "127.0.0.1:1", "--check-config", "--treads", "4"},
                      "--treads");
}

TEST_CASE("--check-config names every wrong flag, and each wrong value of a flag") {
    struct Row {
        Arguments arguments;
        std::vector<std::string_view> errors; ///< the start of each line after "twscope: "
    };

    const Row rows[] = {
        {{"proxy", "-s", "nowhere", "-l", "1", "-l", "host:1", "--impair", "loss=x", "--impair",
          "delay=y"},
         {"--server nowhere: ", "--listen 1: ", "--listen host:1: ", "--impair loss=x: ",
          "--impair delay=y: "}},
        {{"proxy", "-s", "a=127.0.0.1:1", "-s", "a=127.0.0.1:2", "-s", "c=127.0.0.1:3", "-l", ":4",
          "-l", ":5", "-l", ":3", "--treads", "4"},
         {"proxy has no --treads", "--server a: two servers", "--listen 0.0.0.0:3 includes "}},
        {{"proxy", "--threads", "none", "--items", "some", "-o", "-", "-s", "127.0.0.1:1",
          "--keep"},
         {"--keep: needs a value", "--items some: ", "--threads none: "}},
        {{"proxy", "-s", "127.0.0.1:1", "--maps", "/no/a", "--maps", "/no/b", "--fail-on", "x,y",
          "--expect", "tock == 1", "--expect", "tuck == 1", "--http", "a", "--http", "b"},
         {"--fail-on x: ", "--fail-on y: ", "--maps /no/a: ", "--maps /no/b: ",
          "--expect 'tock == 1': ", "--expect 'tuck == 1': ", "--http a: ", "--http b: "}},
        {{"proxy", "-s", "127.0.0.1:1", "--bus", "here", "--bus-name", "a b", "--bus-limits", "7",
          "--spool", ",1GiB", "--http", "1", "--http-token-file", "/no/token"},
         {"--bus-name a b: ", "--bus-limits 7: ", "--spool ,1GiB: ", "--bus here: ",
          "--http-token-file "}},
        {{"proxy", "-s", "127.0.0.1:1", "--no-inspect", "-o", "x.jsonl", "--resync"},
         {"--output, --resync need inspection; drop --no-inspect"}},
        {{"proxy", "-s", "127.0.0.1:1", "--demo-version", "4", "--sync", "1s"},
         {"--demo-version has no effect", "--sync has no effect"}},
        {{"tap", "--server", "a", "--server", "b"},
         {"tap needs an interface", "--server a: ", "--server b: "}},
    };
    for (const Row& row : rows) {
        const ProgramResult done = twscope(row.arguments, {"--check-config"});
        CAPTURE(done.err);
        CHECK(done.status == 2);
        std::string_view rest{done.err};
        for (const std::string_view error : row.errors) {
            CAPTURE(error);
            const std::string start = "twscope: " + std::string{error};
            CHECK(rest.starts_with(start));
            rest.remove_prefix(std::min(rest.find('\n'), rest.size() - 1) + 1);
        }
        CHECK(rest.empty());
    }
}
