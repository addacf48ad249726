// Covers: proxy/sink/byte_source.cpp
#include "proxy/sink/byte_source.h"
#include "tests/support/program.h"

#include <array>
#include <string>
#include <string_view>

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <unistd.h>

using namespace tw;
using namespace tw::test;

TEST_CASE("the begin of a file is unpacked, and of a pipe nothing is taken") {
    const TemporaryFolder folder;
    const std::string file = folder.file("file");
    write_text(file, "some text\n");
    CHECK(sink::FileBegin{file, 4}.bytes() == "some");
    CHECK(sink::FileBegin{file, 40}.bytes() == "some text\n");
    CHECK(sink::FileBegin{folder.file("missing"), 4}.bytes().empty());
    CHECK(sink::FileBegin{folder.path(), 4}.bytes().empty());
    CHECK(sink::FileBegin{"/dev/null", 4}.bytes().empty());

    std::array<int, 2> pipe{};
    REQUIRE(::pipe(pipe.data()) == 0);
    constexpr std::string_view kLines = "first\nsecond\n";
    REQUIRE(::write(pipe[1], kLines.data(), kLines.size()) == 13);
    ::close(pipe[1]);
    const std::string name = fmt::format("/dev/fd/{}", pipe[0]);
    CHECK(sink::FileBegin{name, 7}.bytes() == "first\ns");
    CHECK(sink::FileBegin{name, 40}.bytes() == kLines);
    sink::LineReader lines{name};
    std::string_view line;
    REQUIRE(lines.next(line));
    CHECK(line == "first");
    ::close(pipe[0]);
}
