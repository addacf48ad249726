// Covers: proxy/sink/console.cpp
#include "proxy/sink/console.h"

#include <array>
#include <cstdlib>
#include <string>

#include <doctest/doctest.h>
#include <fcntl.h>
#include <unistd.h>

using tw::sink::BoundedWaitStream;
using tw::sink::Colors;

namespace {

struct Pipe {
    Pipe() { REQUIRE(::pipe(ends.data()) == 0); }

    ~Pipe() {
        ::close(ends[0]);
        ::close(ends[1]);
    }

    Pipe(const Pipe&) = delete;
    Pipe& operator=(const Pipe&) = delete;

    [[nodiscard]] std::string read() const {
        std::string text(1U << 20U, '\0');
        text.resize(static_cast<std::size_t>(::read(ends[0], text.data(), text.size())));
        return text;
    }

    std::array<int, 2> ends{};
};

} // namespace

TEST_CASE("a reader gets each line as it is printed") {
    const Pipe pipe;
    const BoundedWaitStream stream{pipe.ends[1]};
    CHECK_FALSE(stream.is_terminal());
    std::fprintf(stream.file(), "one %d\n", 1);
    CHECK(pipe.read() == "one 1\n");
    std::fputs("half", stream.file());
    std::fflush(stream.file());
    CHECK(pipe.read() == "half");
    CHECK(stream.dropped_bytes() == 0);
}

TEST_CASE("a reader that stalls is not waited for: what it does not take is counted") {
    const Pipe pipe;
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

TEST_CASE("a closed descriptor costs lines and nothing else") {
    BoundedWaitStream stream{-1};
    std::fputs("lost\n", stream.file());
    CHECK(stream.dropped_bytes() == 5);
}

TEST_CASE("a terminal is coloured and redrawn unless its user or its kind forbids that") {
    struct Row {
        const char* term;
        const char* no_color; ///< null: not set
        Colors colors;
        bool colored_terminal;
        bool colored_pipe;
        bool can_redraw;
    };

    const Row rows[] = {
        {"xterm", nullptr, Colors::automatic, true, false, true},
        {"xterm", "", Colors::automatic, true, false, true}, // no-color.org: an empty one is none
        {"xterm", "1", Colors::automatic, false, false, true},
        {"xterm", nullptr, Colors::never, false, false, true},
        {"xterm", "1", Colors::always, true, true, true}, // the flag wins
        {"dumb", nullptr, Colors::automatic, false, false, false},
        {"dumb", nullptr, Colors::always, true, true, false},
    };
    const int master = ::posix_openpt(O_RDWR | O_NOCTTY);
    REQUIRE(master >= 0);
    REQUIRE(::grantpt(master) == 0);
    REQUIRE(::unlockpt(master) == 0);
    const int terminal = ::open(::ptsname(master), O_RDWR | O_NOCTTY);
    REQUIRE(terminal >= 0);
    const Pipe pipe;
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
        CHECK(stream.is_colored() == row.colored_terminal);
        CHECK(stream.can_redraw() == row.can_redraw);
        CHECK(piped.is_colored() == row.colored_pipe);
        CHECK_FALSE(piped.can_redraw());
    }
    ::unsetenv("NO_COLOR");
    ::close(terminal);
    ::close(master);
}

TEST_CASE("the width is what COLUMNS says, else what the terminal says, else 80") {
    struct Row {
        const char* columns;
        std::size_t width;
    };

    for (const Row& row : {Row{"120", 120}, {"", 80}, {"0", 80}, {"-3", 80}, {"wide", 80}}) {
        CAPTURE(row.columns);
        ::setenv("COLUMNS", row.columns, 1);
        CHECK(tw::sink::terminal_columns(-1) == row.width);
    }
    ::unsetenv("COLUMNS");
}
