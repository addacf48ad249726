#include "proxy/sink/console.h"
#include "proxy/sink/output.h"
#include "tests/support/text.h"

#include <algorithm>
#include <array>
#include <cstdlib>

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

namespace tw::sink {

using test::contains;

TEST_CASE("a status line is truncated to the terminal's width and resets its colours") {
    struct Row {
        std::string_view line;
        std::size_t columns;
        std::string_view cut;
    };

    const Row rows[] = {
        {"", 0, ""},
        {"ann", 3, "ann"},
        {"ann", 2, "an"},
        {"\u00e4nn", 2, "\u00e4n"},    // the first character has two bytes and takes one column
        {"\u540d\u524d", 3, "\u540d"}, // each character takes two columns
        {"\033[32mann\033[0m", 3, "\033[32mann\033[0m"},
        {"\033[32mann\033[0m", 2, "\033[32man\033[0m"},
        {"\033[32ma\033[0mnn", 2, "\033[32ma\033[0mn"},
        {"a\033", 9, "a\033"}, // an incomplete colour code is not read past its end
        {"a\xff\x80", 1, "a"},
    };
    for (const Row& row : rows) {
        CAPTURE(row.line);
        CAPTURE(row.columns);
        CHECK(cut_to_columns(row.line, row.columns) == row.cut);
    }
}

TEST_CASE("a line is wrapped between words, except in a command at its end") {
    struct Row {
        std::string_view line;
        std::size_t columns;
        std::string_view wrapped;
    };

    const Row rows[] = {
        {"", 0, ""},
        {"a line", 6, "a line"},
        {"a line", 5, "a\n    line"},
        {"one two three", 11, "one two\n    three"},
        {"an unbreakable", 3, "an\n    unbreakable"}, // a long word is not divided
        {"\033[31mone two\033[0m", 7, "\033[31mone two\033[0m"},
        {"read: twscope records a", 8, "read:\n    twscope records a"},
        {"  twscope records a", 8, "  twscope records a"},
        {"restart twscope now", std::string::npos, "restart twscope now"},
    };
    for (const Row& row : rows) {
        CAPTURE(row.line);
        CAPTURE(row.columns);
        CHECK(tw::sink::wrap_words(row.line, row.columns) == row.wrapped);
    }
}

TEST_CASE("a finding is shown once, with its player") {
    Console console{{}};
    const record::FindingRecord finding{.head = {.session = 1},
                                        .id = record::FindingId::snapshot_crc_mismatch};
    console.set_tee(1, {.name = "ann", .place = "(1,2) air", .state = {}});
    ConsoleSink sink{console};
    sink.on_record(record::Record{&finding});
    const auto lines = console.take_finding_lines(0);
    REQUIRE(lines.size() == 1);
    CHECK(contains(lines[0], "error snapshot.crc_mismatch: session 1 (ann). "));
    CHECK(contains(console.take_status_line(0, 1, {}, 200), "1 error |"));
    CHECK(console.take_finding_lines(0).empty());
}

TEST_CASE("the status names problems in place of the absence of warnings") {
    struct Row {
        std::uint32_t warnings;
        StatusNotes notes;
        std::size_t columns;
        std::string_view end;
    };

    const Row rows[] = {
        {0, {}, 200, "snapshots/s, no warnings"},
        {0, {.recording = "recording to a"}, 200, "snapshots/s, no warnings | recording to a"},
        {0, {.problem = "a problem"}, 200, "snapshots/s, a problem"},
        {2, {.problem = "a problem"}, 200, "snapshots/s, 2 warnings, a problem"},
        {0, {"a problem", "recording to a"}, 200, "snapshots/s, a problem | recording to a"},
        {0, {"a problem", "recording to a"}, 46, "snapshots/s, a problem"},
    };
    for (const Row& row : rows) {
        CAPTURE(row.end);
        Console console{{}};
        for (std::uint32_t i = 0; i < row.warnings; ++i) {
            const record::FindingRecord finding{.head = {.session = 1},
                                                .id = record::FindingId::inspect_gap};
            console.add_finding(finding);
        }
        CHECK(console.take_status_line(0, 1, row.notes, row.columns).ends_with(row.end));
    }
}

TEST_CASE("the status counts errors and warnings, and not what is harmless") {
    Console console{{}};
    const auto report = [&console](record::FindingId id) {
        const record::FindingRecord finding{.head = {.session = 1}, .id = id};
        console.add_finding(finding);
        return console.take_status_line(0, 1, {}, 200);
    };
    CHECK(report(record::FindingId::session_resync).ends_with("snapshots/s, no warnings"));
    CHECK(report(record::FindingId::inspect_gap).ends_with("snapshots/s, 1 warning"));
    CHECK(report(record::FindingId::snapshot_crc_mismatch).ends_with("1 error, 1 warning"));
    CHECK(report(record::FindingId::inspect_gap).ends_with("1 error, 2 warnings"));
}

TEST_CASE("the status shows players, verified snapshots and the recording") {
    struct Row {
        std::uint64_t snapshots;
        std::uint64_t verified;
        std::string_view says;
    };

    const Row rows[] = {
        {0, 0,
         "1 player, 1 joining, 0 snapshots/s, no warnings | recording to a | ann (1,2) air | "
         "session 2 connecting"},
        {100, 100, "50 snapshots/s, 100% verified, "},
        {100'000, 99'999, "50000 snapshots/s, 99.9% verified, "},
        {10, 0, "5 snapshots/s, 0.0% verified, "},
        {2, 2, "1 snapshot/s, 100% verified, "},
    };
    for (const Row& row : rows) {
        CAPTURE(row.says);
        Console console{{}};
        console.set_tee(1, {.name = "ann", .place = "(1,2) air", .state = {}});
        console.set_tee(2, {.name = {}, .place = {}, .state = "connecting"});
        console.count_snapshots(row.snapshots, row.verified);
        CHECK(contains(console.take_status_line(0, 2, {.recording = "recording to a"}, 200),
                       row.says));
    }
}

TEST_CASE(
    "the status leaves out what has no space: places, players, the recording's path, the time") {
    Console console{{}};
    console.set_tee(1, {.name = "ann", .place = "(1,2)", .state = {}});
    console.set_tee(2, {.name = "bob", .place = "(3,4)", .state = {}});
    const auto status = [&console](std::size_t columns) {
        return console.take_status_line(0, 1, {.recording = "recording 3.0 MiB to a/"}, columns);
    };
    CHECK(status(97).ends_with("warnings | recording 3.0 MiB to a/ | ann (1,2) | bob (3,4)"));
    CHECK(status(86).ends_with("warnings | recording 3.0 MiB to a/ | ann | bob"));
    CHECK(status(79).ends_with("warnings | recording 3.0 MiB to a/"));
    CHECK(status(71).ends_with(" 2 players, 0 snapshots/s, no warnings | recording 3.0 MiB"));
    CHECK(status(62) == "2 players, 0 snapshots/s, no warnings | recording 3.0 MiB");
    CHECK(status(56).ends_with(" 2 players, 0 snapshots/s, no warnings"));
}

TEST_CASE("players for whom the status has no space are counted") {
    struct Row {
        std::size_t columns;
        std::string_view end;
    };

    const Row rows[] = {
        {200, "warnings | p0 (1,2) | p1 (1,2) | p2 (1,2) | p3 (1,2)"},
        {91, "warnings | p0 (1,2) | p1 (1,2) | p2 (1,2) | p3 (1,2)"},
        {89, "warnings | p0 | p1 | p2 | p3"}, // places are left out before players are
        {66, "warnings | p0 | p1 | p2 | p3"},
        {65, "warnings | p0 | and 3 more"},
        {61, "no warnings"},
        {48, "no warnings"},
        {29, "4 players, 0 snapsho"},
    };
    Console console{{}};
    for (std::uint32_t tee = 0; tee < 4; ++tee) {
        console.set_tee(tee, {.name = "p" + std::to_string(tee), .place = "(1,2)", .state = {}});
    }
    for (const Row& row : rows) {
        CAPTURE(row.columns);
        const std::string status = console.take_status_line(0, 1, {}, row.columns);
        CHECK(status.size() <= row.columns);
        CHECK(status.substr(status.size() - std::min(status.size(), row.end.size())) == row.end);
    }
}

} // namespace tw::sink

using tw::sink::BoundedWaitStream;
using tw::sink::Colors;

namespace {

struct TestPipe {
    TestPipe() { REQUIRE(::pipe(ends.data()) == 0); }

    ~TestPipe() {
        ::close(ends[0]);
        ::close(ends[1]);
    }

    TestPipe(const TestPipe&) = delete;
    TestPipe& operator=(const TestPipe&) = delete;

    [[nodiscard]] std::string read() const {
        std::string text(1U << 20U, '\0');
        text.resize(static_cast<std::size_t>(::read(ends[0], text.data(), text.size())));
        return text;
    }

    std::array<int, 2> ends{};
};

} // namespace

TEST_CASE("a reader gets each line as it is printed") {
    const TestPipe pipe;
    const BoundedWaitStream stream{pipe.ends[1]};
    CHECK_FALSE(stream.is_terminal());
    std::fprintf(stream.file(), "one %d\n", 1);
    CHECK(pipe.read() == "one 1\n");
    std::fputs("half", stream.file());
    std::fflush(stream.file());
    CHECK(pipe.read() == "half");
    CHECK(stream.dropped_bytes() == 0);
}

TEST_CASE("a stalled reader causes no wait, and dropped bytes are counted") {
    const TestPipe pipe;
    const BoundedWaitStream stream{pipe.ends[1]};
    const std::string line(999, 'x');
    std::size_t printed = 0;
    for (int i = 0; i < 1000; ++i) {
        std::fprintf(stream.file(), "%s\n", line.c_str());
        printed += line.size() + 1;
    }
    CHECK(stream.dropped_bytes() > 0);
    CHECK(pipe.read().size() + stream.dropped_bytes() == printed);
    std::fputs("later\n", stream.file());
    CHECK(pipe.read() == "later\n");
}

TEST_CASE("writing to a closed descriptor only drops lines") {
    BoundedWaitStream stream{-1};
    std::fputs("lost\n", stream.file());
    CHECK(stream.dropped_bytes() == 5);
}

TEST_CASE("a terminal is coloured and redrawn unless its user or its kind forbids that") {
    struct Row {
        const char* term;
        const char* no_color; ///< value of NO_COLOR; null: not set
        Colors colors;
        bool colored_terminal;
        bool colored_pipe;
        bool can_redraw;
    };

    const Row rows[] = {
        {"xterm", nullptr, Colors::automatic, true, false, true},
        {"xterm", "", Colors::automatic, true, false,
         true}, // by no-color.org, an empty variable has no effect
        {"xterm", "1", Colors::automatic, false, false, true},
        {"xterm", nullptr, Colors::never, false, false, true},
        {"xterm", "1", Colors::always, true, true, true}, // the flag overrides NO_COLOR
        {"dumb", nullptr, Colors::automatic, false, false, false},
        {"dumb", nullptr, Colors::always, true, true, false},
    };
    const int master = ::posix_openpt(O_RDWR | O_NOCTTY);
    REQUIRE(master >= 0);
    REQUIRE(::grantpt(master) == 0);
    REQUIRE(::unlockpt(master) == 0);
    const int terminal = ::open(::ptsname(master), O_RDWR | O_NOCTTY);
    REQUIRE(terminal >= 0);
    const TestPipe pipe;
    for (const Row& row : rows) {
        CAPTURE(row.term);
        CAPTURE(row.no_color);
        ::setenv("TERM", row.term, 1);
        row.no_color == nullptr ? ::unsetenv("NO_COLOR") : ::setenv("NO_COLOR", row.no_color, 1);
        BoundedWaitStream stream{terminal};
        BoundedWaitStream piped{pipe.ends[1]};
        stream.set_colors(row.colors);
        piped.set_colors(row.colors);
        CHECK(stream.is_terminal());
        CHECK_FALSE(stream.log_lines_need_dates());
        CHECK(piped.log_lines_need_dates());
        CHECK(stream.is_colored() == row.colored_terminal);
        CHECK(stream.can_redraw() == row.can_redraw);
        CHECK(piped.is_colored() == row.colored_pipe);
        CHECK_FALSE(piped.can_redraw());
    }
    ::unsetenv("NO_COLOR");
    ::close(terminal);
    ::close(master);
}

TEST_CASE("lines for users are broken between words, but only on a terminal") {
    ::unsetenv("COLUMNS");
    const winsize size{.ws_row = 30, .ws_col = 10, .ws_xpixel = 0, .ws_ypixel = 0};
    const int master = ::posix_openpt(O_RDWR | O_NOCTTY);
    REQUIRE(::grantpt(master) == 0);
    REQUIRE(::unlockpt(master) == 0);
    REQUIRE(::ioctl(master, TIOCSWINSZ, &size) == 0);
    const TestPipe pipe;
    const auto printed = [](int write_end, int read_end) {
        std::FILE* const stream = ::fdopen(::dup(write_end), "w");
        tw::sink::print_wrapped(stream, "one two three\nfour\n");
        std::fclose(stream);
        std::array<char, 100> text{};
        const ssize_t bytes = ::read(read_end, text.data(), text.size());
        return std::string{text.data(), static_cast<std::size_t>(std::max<ssize_t>(bytes, 0))};
    };
    const int terminal = ::open(::ptsname(master), O_RDWR | O_NOCTTY);
    CHECK(printed(terminal, master) == "one two\r\n    three\r\nfour\r\n");
    CHECK(printed(pipe.ends[1], pipe.ends[0]) == "one two three\nfour\n");
    ::close(terminal);
    ::close(master);
}

TEST_CASE("the width is what COLUMNS says, at most the terminal's, or 80") {
    struct Row {
        const char* columns;
        std::size_t width;
        std::size_t width_on_terminal; ///< on one of 100 columns
    };

    const winsize size{.ws_row = 30, .ws_col = 100, .ws_xpixel = 0, .ws_ypixel = 0};
    const int master = ::posix_openpt(O_RDWR | O_NOCTTY);
    REQUIRE(::ioctl(master, TIOCSWINSZ, &size) == 0);
    for (const Row& row : {Row{"120", 120, 100},
                           {"60", 60, 60},
                           {"", 80, 100},
                           {"0", 80, 100},
                           {"-3", 80, 100},
                           {"wide", 80, 100}}) {
        CAPTURE(row.columns);
        ::setenv("COLUMNS", row.columns, 1);
        CHECK(tw::sink::terminal_columns(-1) == row.width);
        CHECK(tw::sink::terminal_columns(master) == row.width_on_terminal);
    }
    ::unsetenv("COLUMNS");
    ::close(master);
}
