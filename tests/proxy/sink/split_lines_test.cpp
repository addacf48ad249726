#include "proxy/sink/split_lines.h"

#include <algorithm>

#include <doctest/doctest.h>
#include <fmt/format.h>

namespace tw::sink {
namespace {

constexpr std::size_t kLimit = 200;

/// Returns the lines of a split record, without newlines; empty if the record is not split.
std::vector<std::string> split_record(std::string_view line, std::size_t limit = kLimit) {
    JsonBuffer out;
    const bool done = split_line(line, limit, out);
    std::vector<std::string> lines;
    for (std::string_view rest = out.view(); !rest.empty();) {
        const std::size_t end = rest.find('\n');
        lines.emplace_back(rest.substr(0, end));
        rest.remove_prefix(end + 1);
    }
    CHECK(done != lines.empty());
    return lines;
}

/// Returns the lines that a LineJoiner gives.
std::vector<std::string> join_lines(const std::vector<std::string>& lines) {
    std::vector<std::string> records;
    const LineJoiner::LineHandler use = [&](std::string_view line) { records.emplace_back(line); };
    LineJoiner joiner;
    for (const std::string& line : lines) {
        joiner.add_line(line, use);
    }
    joiner.flush_incomplete_record(use);
    return records;
}

std::string snapshot_line(std::size_t items, std::string_view text = "x", int tick = 7) {
    std::string line = fmt::format(R"({{"type":"snapshot","tick":{},"full":true,"items":[)", tick);
    for (std::size_t i = 0; i < items; ++i) {
        line +=
            fmt::format(R"({}{{"id":{},"a":[{},{{"b":"{}"}}]}})", i == 0 ? "" : ",", i, i, text);
    }
    return line + R"(],"removed":[[9,1],[9,2]],"x":"end"})";
}

} // namespace

TEST_CASE("a long record is split into lines within the limit, and joining restores it") {
    struct Row {
        std::string_view name;
        std::string line;
    };

    std::string removed = R"({"tick":7,"items":[],"removed":[)";
    for (int i = 0; i < 100; ++i) {
        removed += fmt::format("{}[9,{}]", i == 0 ? "" : ",", i);
    }
    const Row rows[] = {
        {"items", snapshot_line(20)},
        {"brackets and quotes in text", snapshot_line(20, R"(]}\"\\,[{)")},
        {"text like the mark", snapshot_line(20, R"(,\"line\":1,\"lines\":2})")},
        {"removed", removed + "]}"},
        {"three arrays", removed + R"(],"renumbered":[[1,2,3],[4,5,6],[7,8,9]]})"},
        {"no items", removed.substr(0, 10) + "\"removed\":[" + removed.substr(32) + "]}"},
    };
    for (const Row& row : rows) {
        CAPTURE(row.name);
        const auto lines = split_record(row.line);
        CHECK(lines.size() > 2);
        for (std::size_t i = 0; i < lines.size(); ++i) {
            CHECK(lines[i].size() < kLimit);
            CHECK(
                lines[i].ends_with(fmt::format(R"(,"line":{},"lines":{}}})", i + 1, lines.size())));
            CHECK((lines[i].find("full") == std::string::npos) ==
                  (i > 0 || row.line.find("full") == std::string::npos));
        }
        CHECK(join_lines(lines) == std::vector<std::string>{row.line});
    }
}

TEST_CASE("an item that is too long gets a separate line") {
    const std::string line = snapshot_line(3, std::string(200, 'x'));
    const auto lines = split_record(line);
    CHECK(lines.size() == 4); // the last line contains the removed items
    CHECK(join_lines(lines) == std::vector<std::string>{line});
}

TEST_CASE("lines that are short or cannot be split are unchanged") {
    const std::string line = snapshot_line(20);
    CHECK(split_record(line, line.size() + 1).empty());
    CHECK(split_record(line, line.size()).size() == 2);
    const std::string text(200, 'x');
    for (const std::string& each :
         {R"({"type":"message","text":")" + text + "\"}", R"({"items":[{"text":")" + text + "\"}]}",
          R"({"items":{"a":")" + text + "\"}}", "{\"items\":[1,2,3],\"" + text,
          "{\"items\":[1,2" + text + "}", "[" + text + "]", text,
          "{\"items\":[[1],[2]]]" + text + "}", "{" + text + "}"}) {
        CAPTURE(each);
        CHECK(split_record(each).empty());
        CHECK(join_lines({each}) == std::vector<std::string>{each});
    }
}

TEST_CASE("lines of an incomplete record are passed on unchanged") {
    const auto one = split_record(snapshot_line(20));
    const auto other = split_record(snapshot_line(20, "x", 8));
    REQUIRE(one.size() == other.size());
    REQUIRE(one.size() > 2);
    using Lines = std::vector<std::string>;
    Lines reversed = one;
    std::ranges::reverse(reversed);
    Lines mixed = one;
    mixed[1] = other[1];
    const auto numbered = [](int line, int lines) {
        return fmt::format(R"({{"a":1,"line":{},"lines":{}}})", line, lines);
    };
    const Lines rows[] = {
        {one[0]},
        {one[1]},
        {one[0], "{}"},
        {one[0], one[2]},
        {one[0], one[0], one[1]},
        {one[0], other[2]},
        reversed,
        mixed,
        {numbered(1, 1)},
        {numbered(2, 2), numbered(1, 2)},
        {numbered(0, 2), numbered(3, 2)},
        {R"({"line":1,"lines":2})", R"({"line":2,"lines":2})"},
        {R"(torn,"line":1,"lines":2})", R"({"a":1,"line":2,"lines":2})"},
        {R"({"a":1,"line":1,"lines":2})", R"({"a":[1,"line":2,"lines":2})"},
        {R"({"a":1,"line":1,"lines":99999999999})", R"({"a":1,"line":-1,"lines":2})"},
        {"", "}", ",\"line\":", ",\"line\":1,\"lines\":2", ",\"line\":1"},
    };
    for (const Lines& row : rows) {
        CAPTURE(row.front());
        CHECK(join_lines(row) == row);
    }
    // The next line is passed on at once.
    Lines next{one[0]};
    next.insert(next.end(), other.begin(), other.end());
    CHECK(join_lines(next) == Lines{one[0], snapshot_line(20, "x", 8)});
}

TEST_CASE("lines of a record that is longer than the longest accepted line are not joined") {
    const std::string big(std::size_t{5} << 20U, 'x');
    std::vector<std::string> lines;
    for (int i = 1; i <= 5; ++i) {
        lines.push_back(fmt::format(R"({{"a":"{}","line":{},"lines":5}})", big, i));
    }
    CHECK(join_lines(lines) == lines);
}

} // namespace tw::sink
