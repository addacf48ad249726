// Covers: proxy/filter/json_scan.cpp
#include "proxy/filter/json_scan.h"

#include <array>
#include <cstddef>
#include <random>
#include <string>
#include <string_view>

#include <doctest/doctest.h>

using namespace tw::filter;

namespace {

/// Text that is all brackets, quotes, backslashes and what may stand between them: seldom JSON.
std::string noise(std::mt19937& random, std::size_t size) {
    constexpr std::string_view kLetters = R"({[]}{[]}{[]}""\,: a1)";
    std::string text(size, ' ');
    for (char& each : text) {
        each = kLetters[random() % kLetters.size()];
    }
    return text;
}

// NOLINTNEXTLINE(misc-no-recursion): no deeper than `depth`
std::string random_json(std::mt19937& random, int depth) {
    constexpr std::array<std::string_view, 6> kScalars{
        "1",           "-2.5",
        "true",        R"("}]\\")",
        R"("a\"b{[")", R"("long enough to reach into the bytes that come after these")"};
    if (depth == 0 || random() % 4 == 0) {
        return std::string{kScalars[random() % kScalars.size()]};
    }
    const bool list = random() % 2 == 0;
    std::string text{list ? '[' : '{'};
    for (auto left = random() % 5; left != 0; --left) {
        text += list ? "" : R"("k": )";
        text += random_json(random, depth - 1) + (left == 1 ? "" : ", ");
    }
    return text + (list ? ']' : '}');
}

/// All that is in a text, each with how deep.
// NOLINTNEXTLINE(misc-no-recursion): no deeper than the text is long
void tell(const JsonText& text, int depth, std::string& told) {
    told += std::to_string(depth) + ' ' + std::string{text.text} + '\n';
    JsonWalk walk{text};
    while (walk.next()) {
        told += std::string{walk.key()} + ": ";
        tell(walk.json(), depth + 1, told);
    }
    told += walk.whole() ? "" : "broken\n";
}

void check_same(const std::string& text, JsonBrackets& brackets) {
    CAPTURE(text);
    const auto slow = first_value(text);
    const auto fast = brackets.read(text);
    REQUIRE(fast == slow);
    if (!fast) {
        return;
    }
    CHECK(fast->data() == slow->data());
    std::string told_slowly;
    std::string told;
    tell(*slow, 0, told_slowly);
    tell({*fast, brackets}, 0, told);
    CHECK(told == told_slowly);
}

} // namespace

TEST_CASE("brackets found in one pass are those that are found one by one, whatever the text is") {
    std::mt19937 random{19}; // NOLINT(cert-msc32-c,cert-msc51-cpp): the same every time
    JsonBrackets brackets;
    std::size_t closed = 0;
    for (int round = 0; round < 20'000; ++round) {
        const std::string text = (round % 2 == 0 ? '[' : '{') + noise(random, random() % 300);
        check_same(text, brackets);
        closed += brackets.read(text) ? 1U : 0U;
    }
    CHECK(closed > 1'000);
    for (int round = 0; round < 2'000; ++round) {
        std::string text = '[' + random_json(random, 6) + "] behind";
        check_same(text, brackets);
        text[random() % text.size()] = R"("\[{)"[random() % 4];
        text.front() = '[';
        check_same(text, brackets);
        check_same(text.substr(0, 1 + random() % text.size()), brackets);
    }
}

TEST_CASE("escapes count where blocks of bytes meet") {
    JsonBrackets brackets;
    for (std::size_t spaces = 50; spaces < 140; ++spaces) {
        for (const std::string_view tail :
             {R"("a\"]")", R"("a\\")", R"("\\\"]\\")", R"("]")", R"(\"]")"}) {
            check_same('[' + std::string(spaces, ' ') + std::string{tail} + "]]", brackets);
        }
    }
}

TEST_CASE("what has too many brackets is read without") {
    JsonBrackets brackets;
    const std::size_t half = JsonBrackets::kMaxPairs;
    const std::string deep = std::string(half, '[') + std::string(half, ']');
    CHECK(brackets.read(deep)->size() == deep.size());
    const std::string line = R"({"items":[)" + deep + "]}";
    CHECK_FALSE(brackets.read(std::string_view{line}.substr(9)));
    CHECK(find_member(line, "items", brackets)->text.size() == deep.size() + 2);
    CHECK_FALSE(find_member(std::string_view{line}.substr(0, line.size() - 2), "items", brackets));
    CHECK_FALSE(find_member(R"({"a":[1)", "a", brackets));
    CHECK(find_member(R"({"a":"[","b":[1]})", "a", brackets)->text == R"("[")");
}
