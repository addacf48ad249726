// Covers: proxy/wire/secrets.cpp
#include "proxy/wire/secrets.h"

#include <string>
#include <string_view>

#include <doctest/doctest.h>

namespace tw::wire::test {

using namespace std::string_view_literals;

namespace {

constexpr auto kRedacted = "*"sv;

std::string shown_chat(std::string_view line, const HarmlessCommands& shown = {}) {
    const std::size_t size = unredacted_prefix_size_of_chat(line, shown);
    REQUIRE(size <= line.size());
    return std::string{line.substr(0, size)} + (size < line.size() ? "*" : "");
}

} // namespace

TEST_CASE("at most the name of a chat command that may contain a secret is shown") {
    struct Row {
        std::string_view line;
        std::string_view shown;
    };

    const Row rows[] = {
        // commands of mods
        {"/pin 4711", "/pin *"},
        {"/login2 me hunter2", "/login2 *"},
        {"/register2 me hunter2 hunter2", "/register2 *"},
        {"/jail_code 1234", "/jail_code *"},
        {"/setemail me@example.org", "/setemail *"},
        {"/never_heard_of x", "/never_heard_of *"},
        {"\\login me hunter2", "\\login *"},
        {"!login me hunter2", "!login *"},
        // commands of DDNet
        {"/timeout abcdefgh", "/timeout *"},
        {"/TimeOut abcdefgh", "/TimeOut *"},
        {"/w tee hi", "/w *"},
        {"/whisper tee hi", "/whisper *"},
        {"/c hi", "/c *"},
        {"/converse hi", "/converse *"},
        {"/save code", "/save *"},
        {"/load code", "/load *"},
        {"/r hi", "/r *"},
        // white space, and several commands
        {"  /w tee hi", "  /w *"},
        {"/ w tee hi", "/ w *"},
        {"\t/w tee hi", "\t/w *"},
        {"\xC2\xA0/w tee hi", "\xC2\xA0/w *"},
        {"/w\ttee hi", "/w\t*"},
        {"/mc;timeout abc", "/mc*"},
        {"/pause; Login a b", "/pause; Login *"},
        {"/team 3;pin 4711", "/team 3;pin *"},
        {"/team;pin 4711", "/team;pin *"},
        {"/emote happy 5 ; /pin 4711", "/emote happy 5 ; *"},
        // a secret in place of a command name
        {"/pin4711", "/*"},
        {"/login:hunter2", "/*"},
        {"/l\xc3\xb6gin hunter2", "/*"},
        {"/4711", "/*"},
        {"/me\"x\" hunter2", "/*"},
        {"/abcdefghijklmnopqrstuvwxyz", "/*"},
        {"//w x", "/*"},
        // an abbreviation is not the command
        {"/tea 4711", "/tea *"},
        {"/teams 4711", "/teams *"},
    };
    for (const Row& row : rows) {
        CAPTURE(row.line);
        CHECK(shown_chat(row.line) == row.shown);
    }
}

TEST_CASE("chat and harmless commands are shown completely") {
    const std::string_view rows[] = {
        "hello",     "",
        "/",         "look: /timeout 4711",
        "w tee hi",  "/;;;",
        "/pause",    "/team 3",
        "/TEAM 3",   "/emote happy 5",
        "/top5 7",   "/w",
        "/pin",      "!",
        "!!",        "! nice shot",
        "!?",        "/spec tee",
        "/rank a b", "/map Gold Mine",
    };
    for (const std::string_view line : rows) {
        CAPTURE(line);
        CHECK(shown_chat(line) == line);
    }
    // Some servers also execute the text after a semicolon.
    CHECK(shown_chat("/me waves; and laughs") == "/me waves; and *");
}

TEST_CASE("an operator can show the arguments of named commands, or of all") {
    const CommandNames some{{"PIN", "/jail_code"}};
    const CommandNames all{{"all"}};
    const std::string_view lines[] = {"/pin 4711", "/Jail_Code 1", "/login me hunter2", "/pin4711"};
    const std::string_view shown_some[] = {"/pin 4711", "/Jail_Code 1", "/login *", "/*"};
    for (std::size_t i = 0; i < std::size(lines); ++i) {
        CAPTURE(lines[i]);
        CHECK(shown_chat(lines[i], {.named_by_operator = &some}) == shown_some[i]);
        CHECK(shown_chat(lines[i], {.named_by_operator = &all}) == lines[i]);
    }
}

TEST_CASE("a server's description of a command can show that it is harmless") {
    struct Row {
        std::string_view name, format, help;
        bool harmless;
    };

    const Row rows[] = {
        {"class", "s[class name]", "Choose your class", true},
        {"vote", "", "", true},
        {"mute", "s[player name] ?i[minutes]", "Mute a player", true},
        {"class", "s[class", "", false},
        {"class", "s", "the argument has no name", false},
        {"class", "si[minutes]", "", false},
        {"class", "s[]", "", false},
        {"login2", "s[name] s[again]", "", false},
        {"enter", "s[name] s[pass]", "", false},
        {"enter", "s[PIN]", "", false},
        {"enter", "?s[e-mail]", "", false},
        {"enter", "s[access token]", "", false},
        {"enter", "s[key]", "", false},
        {"enter", "s[x]", "Enter your password", false},
        {"pm", "s[player] r[line]", "", false},
        {"W", "s[player] r[line]", "", false},
        {"talk", "s[player] r[message]", "", false},
    };
    for (const Row& row : rows) {
        CAPTURE(row.name);
        CAPTURE(row.format);
        CHECK(is_described_harmless(row.name, row.format, row.help) == row.harmless);
    }
}

TEST_CASE("command names ignore case and are limited in number") {
    CommandNames names;
    names.add("Class");
    names.add("class");
    names.add("");
    names.add(std::string(CommandNames::kMaxNameSize + 1, 'x'));
    CHECK(names.contains("CLASS"));
    CHECK_FALSE(names.contains("clas"));
    CHECK_FALSE(names.contains("classes"));
    names.remove("CLASS");
    CHECK_FALSE(names.contains("class"));
    names.add("all"); // "all" is special only when an operator says it
    CHECK_FALSE(names.contains("pin"));
    for (std::size_t i = 0; i < 2 * CommandNames::kMaxNames; ++i) {
        names.add("command" + std::to_string(i));
    }
    CHECK(names.contains("command1"));
    CHECK_FALSE(names.contains("command" + std::to_string(2 * CommandNames::kMaxNames - 1)));
    CHECK(names.memory_bytes() < 64 * CommandNames::kMaxNames);
}

TEST_CASE("the arguments of 0.7 commands are shown or hidden by name") {
    const auto shown = [](std::string_view name, std::string_view arguments) {
        const std::size_t size = unredacted_prefix_size_of_arguments(name, arguments, {});
        return std::string{arguments.substr(0, size)} + (size < arguments.size() ? "*" : "");
    };
    CHECK(shown("pin", "4711") == kRedacted);
    CHECK(shown("pin", "") == "");
    CHECK(shown("pin", " ") == " ");
    CHECK(shown("team", "3") == "3");
    CHECK(shown("Team", "3;pin 4711") == "3;pin *");
    CHECK(shown("", "4711") == kRedacted);
    CHECK(shown("team pin", "4711") == kRedacted);
    CHECK(unredacted_prefix_size_of_command("pin 4711", {}) == 4);
    CHECK(unredacted_prefix_size_of_command("4711", {}) == 0);
}

TEST_CASE("a server's chat line to a player is shown up to a code") {
    struct Row {
        std::string_view line;
        std::string_view shown;
    };

    const Row rows[] = {
        {"Your password is hunter2", "Your password is *"},
        {"PIN: 4711", "PIN:*"},
        {"[account] code = 4711", "[account] code =*"},
        {"e-mail 'me@example.org' set", "e-mail '*"},
        {"Password changed to hunter2", "Password changed to *"},
        {"You can load it with '/load a b c'", "You can load it with '/load*"},
        {"[\u2192 you] psst", "*"},
        {" \u2190 me: psst", "*"},
        {"You are on team 3: go", "You are on team 3: go"},
        {"spin: it", "spin: it"},
        {"Wrong password", "Wrong password"},
        {"codes: none", "codes: none"},
        {"", ""},
    };
    for (const Row& row : rows) {
        CAPTURE(row.line);
        const std::size_t size = unredacted_prefix_size_of_server_chat(row.line);
        REQUIRE(size <= row.line.size());
        CHECK(std::string{row.line.substr(0, size)} + (size < row.line.size() ? "*" : "") ==
              row.shown);
    }
}

} // namespace tw::wire::test
