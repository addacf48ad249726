// Covers: proxy/bus/spool_folder.cpp
#include "proxy/bus/spool_folder.h"

#include <string>
#include <string_view>

#include <doctest/doctest.h>

using namespace tw::bus;

namespace {

constexpr std::string_view kRun = "019ab000-1111-7222-8333-444455556666";

} // namespace

TEST_CASE("a state is read back as it was written, and its length does not change") {
    const SpoolState states[] = {
        {.settled = 0, .place = {}, .server = "one", .stream = "games"},
        {.settled = UINT64_MAX, .place = UINT64_MAX, .server = "one", .stream = "games"},
        {.settled = 7, .place = 0, .server = "two", .stream = "plays"}};
    for (const SpoolState& state : states) {
        const std::string text = spool_state_text(state);
        CAPTURE(text);
        CHECK(text.size() == spool_state_text(states[0]).size());
        CHECK(read_spool_state(text) == state);
    }
}

TEST_CASE("what waits for one stream goes to no other, but where none is named") {
    const auto old =
        read_spool_state("settled=00000000000000000001 place=-------------------- server=one\n");
    REQUIRE(old);
    CHECK(old->is_for("games"));
    const auto named = read_spool_state(
        "settled=00000000000000000001 place=-------------------- server=one stream=games\n");
    REQUIRE(named);
    CHECK(named->server == "one");
    CHECK(named->is_for("games"));
    CHECK_FALSE(named->is_for("plays"));
}

TEST_CASE("a text that is no state, or a part of one, is none") {
    const std::string whole =
        spool_state_text({.settled = 1, .place = 2, .server = "one", .stream = "games"});
    for (std::size_t size = 0; size < whole.size(); ++size) {
        CAPTURE(size);
        CHECK_FALSE(read_spool_state(whole.substr(0, size)));
    }
    CHECK_FALSE(
        read_spool_state("settled=99999999999999999999 place=-------------------- server=a\n"));
    CHECK_FALSE(
        read_spool_state("settled=00000000000000000001 place=-------------------- server=a.*\n"));
    CHECK_FALSE(read_spool_state(whole + "more\n"));
    CHECK_FALSE(read_spool_state(
        "settled=00000000000000000001 place=-------------------- server=a stream=b c\n"));
}

TEST_CASE("names of files tell run and first line; others are not touched") {
    const std::string name = spool_file_name(kRun, 12);
    CHECK(name == "019ab000-1111-7222-8333-444455556666-00000000000000000012.jsonl");
    CHECK(read_spool_file_name(name) == SpoolFile{.run = std::string{kRun}, .first = 12});
    CHECK(run_of_state_name(spool_state_name(kRun)) == kRun);
    for (const std::string_view other :
         {"", "game.jsonl", "019ab000-1111-7222-8333-444455556666.jsonl",
          "019ab000-1111-7222-8333-444455556666-0000000000000000001x.jsonl",
          "019ab000-1111-7222-8333-444455556666-00000000000000000000.jsonl",
          "019ab000-1111-7222-8333-444455556666-00000000000000000012.jsonl.zst",
          "../ab000-1111-7222-8333-444455556666-00000000000000000012.jsonl"}) {
        CAPTURE(other);
        CHECK_FALSE(read_spool_file_name(other));
        CHECK_FALSE(run_of_state_name(other));
    }
}
