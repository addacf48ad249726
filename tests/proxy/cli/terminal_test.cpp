// Output for terminals: colours, status lines, wrapped help.
// Covers: proxy/cli/log.cpp, proxy/cli/settings.cpp
#include "proxy/cli/commands.h"
#include "proxy/store/retention.h"
#include "tests/proxy/cli/program_runs.h"
#include "tests/support/program.h"

#include <csignal>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/udp.hpp>
#include <doctest/doctest.h>

using namespace tw::test;

namespace {

using Udp = boost::asio::ip::udp;

} // namespace

TEST_CASE("every command has --color, and it decides the colours of the log") {
    for (const auto& command : tw::cli::make_commands()) {
        CAPTURE(command->name);
        CHECK(command->find_flag("--color") != nullptr);
    }
    const TemporaryFolder folder;
    const std::string config = folder.write("c.conf", "color = \"always\"\n");

    struct Row {
        std::string variables;
        std::string flags;
        bool colored;
    };

    const Row rows[] = {
        {"", "", false}, // standard error is a file
        {"", "--color always", true},
        {"NO_COLOR=1", "--color always", true},
        {"TWSCOPE_COLOR=always", "", true},
        {"TWSCOPE_COLOR=always", "--color never", false},
        {"", "--config " + config, true},
        {"TWSCOPE_COLOR=auto", "--config " + config, false},
    };
    for (const Row& row : rows) {
        CAPTURE(row.variables);
        CAPTURE(row.flags);
        const ProgramResult done =
            run_in_shell(row.variables +
                         " \"$twscope\" proxy -s 127.0.0.1:1 -l 127.0.0.1:0 -q "
                         "--duration 1ms " +
                         row.flags);
        CHECK(done.status == 0);
        CHECK(contains(done.err, "stopping"));
        CHECK((contains(done.err, "\033[")) == row.colored);
    }
    check_usage_error({"explain", "--color", "sometimes"}, "--color");
}

TEST_CASE("log lines have the date in a file, but not in the journal, which adds the date itself") {
    const std::string run = " $twscope proxy -s 127.0.0.1:1 -l 127.0.0.1:0 -q --duration 1ms";
    const auto has_shape = [](const std::string& text, std::string_view shape) {
        return tw::store::matches_pattern(text.substr(0, shape.size()), shape);
    };
    CHECK(has_shape(run_in_shell("TZ=UTC" + run).err, "dddd-dd-ddTdd:dd:dd+dd:dd "));
    const std::string journal = "JOURNAL_STREAM=$(stat -L -c %d:%i /proc/self/fd/2)";
    CHECK(has_shape(run_in_shell(journal + run).err, "dd:dd:dd "));
    CHECK(has_shape(run_in_shell("JOURNAL_STREAM=1:2" + run).err, "dddd-dd-dd"));
}

TEST_CASE("a run starts with three lines: the forwarding, the recording and the page") {
    const TemporaryFolder folder;
    boost::asio::io_context io;
    const Udp::socket server{io, {boost::asio::ip::address_v4::loopback(), 0}};
    const std::string where = "127.0.0.1:" + std::to_string(server.local_endpoint().port());
    const auto lines_of = [&](const std::string& flags) {
        const ProgramResult done =
            run_in_shell("XDG_STATE_HOME=" + folder.path() + " $twscope proxy -s " + where +
                         " -l 127.0.0.1:0 --http 0 -q --duration 200ms " + flags);
        CHECK(done.status == 0);
        return done.err;
    };
    const std::string records = folder.file("game.jsonl");
    const std::string all = lines_of("-o " + records);
    CHECK(contains(all, " KiB; read it with: twscope records '" + records + "'\n"));
    const std::string start = all.substr(0, all.find("stopping: "));
    CAPTURE(start);
    CHECK(std::count(start.begin(), start.end(), '\n') == 3);
    CHECK(contains(start, "listening on 127.0.0.1:"));
    CHECK(contains(
        start, " (this machine only), forwarding to " + where +
                   "; the server sees each client with its own 127.x.y.z address (the server is on "
                   "loopback)\n"));
    CHECK(contains(start, "recording records to " + records + ", with no size limit "));
    CHECK(contains(start, " free now\n"));
    CHECK(contains(start, "live page on port "));
    CHECK(contains(lines_of(""), "not recording (use -o FILE)\n"));
    CHECK_FALSE(contains(lines_of("-o /dev/null"), "read it with"));
    CHECK(contains(lines_of("-o " + folder.file("r/")),
                   "; read it with: twscope records '" + folder.file("r") + "'\n"));
    CHECK(contains(lines_of("--log-level debug"), "confined by: "));
    CHECK(
        contains(lines_of("--state /proc/none"),
                 "/ (without the token, which needs a writable state folder, it is read-only)\n"));
    const ProgramResult early =
        run_in_shell("XDG_STATE_HOME=" + folder.path() +
                     " $twscope proxy -s 127.0.0.1:1 -l 127.0.0.1:0 --duration 1ms");
    CHECK(contains(early.err, "nothing listens on 127.0.0.1:1 yet"));
}

TEST_CASE("without a terminal, findings are shown and counted, but no status line is printed") {
    constexpr std::chrono::seconds kTimeout{20};
    const TemporaryFolder folder;
    boost::asio::io_context io;
    const Udp::endpoint anywhere{boost::asio::ip::address_v4::loopback(), 0};
    Udp::socket server{io, anywhere};
    Udp::socket client{io, anywhere};
    Program proxy{TW_TWSCOPE,
                  {"proxy", "-s", "127.0.0.1:" + std::to_string(server.local_endpoint().port()),
                   "-l", "127.0.0.1:0", "--no-admission"},
                  folder.path()};
    const std::uint16_t port = await_listening_port(proxy);
    for (int i = 0; i < 5; ++i) {
        client.send_to(boost::asio::buffer("x", 1), {anywhere.address(), port});
        char byte = 0;
        server.receive(boost::asio::buffer(&byte, 1));
    }
    const auto shown = [&] { return read_text(folder.file("out")); };
    REQUIRE(becomes_true_within(kTimeout, [&] { return contains(shown(), "packet.too_short"); }));
    proxy.send_signal(SIGTERM);
    const ProgramResult done = proxy.finish();
    CAPTURE(done.out);
    CHECK(done.status == 0);
    CHECK(contains(done.out, " warning packet.too_short: session 1"));
    CHECK(tw::store::matches_pattern(done.out.substr(0, 19), "dddd-dd-ddTdd:dd:dd"));
    CHECK(contains(done.out, "+4 like this"));
    CHECK_FALSE(contains(done.out, "snapshots/s"));
    CHECK(contains(done.out, "\npacket.too_short                      5  "));
}
