// Covers: proxy/sink/console.cpp
#include "proxy/sink/console.h"

#include <array>
#include <string>

#include <doctest/doctest.h>
#include <unistd.h>

using tw::sink::PromptStream;

namespace {

struct Pipe {
    Pipe() { REQUIRE(::pipe(ends.data()) == 0); }

    ~Pipe() {
        ::close(ends[0]);
        ::close(ends[1]);
    }

    Pipe(const Pipe&) = delete;
    Pipe& operator=(const Pipe&) = delete;
    Pipe(Pipe&&) = delete;
    Pipe& operator=(Pipe&&) = delete;

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
    const PromptStream stream{pipe.ends[1]};
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
    const PromptStream stream{pipe.ends[1]};
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
    PromptStream stream{-1};
    std::fputs("lost\n", stream.file());
    CHECK(stream.dropped_bytes() == 5);
}
