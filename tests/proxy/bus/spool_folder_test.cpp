#include "proxy/bus/spool_folder.h"

#include <string>
#include <string_view>

#include <doctest/doctest.h>

using namespace tw::bus;

namespace {

constexpr std::string_view kRun = "019ab000-1111-7222-8333-444455556666";

} // namespace

TEST_CASE("reading a state reverses writing it, and its length never changes") {
    const SpoolState states[] = {
        {.settled = 0, .sequence = {}, .server = "one", .stream = "games"},
        {.settled = UINT64_MAX, .sequence = UINT64_MAX, .server = "one", .stream = "games"},
        {.settled = 7, .sequence = 0, .server = "two", .stream = "plays"}};
    for (const SpoolState& state : states) {
        const std::string text = spool_state_text(state);
        CAPTURE(text);
        CHECK(text.size() == spool_state_text(states[0]).size());
        CHECK(read_spool_state(text) == state);
    }
}

TEST_CASE("waiting lines belong to the stream in the state, or to any stream if it names none") {
    const auto old =
        read_spool_state("settled=00000000000000000001 place=-------------------- server=one\n");
    REQUIRE(old);
    CHECK(old->belongs_to_stream("games"));
    const auto named = read_spool_state(
        "settled=00000000000000000001 place=-------------------- server=one stream=games\n");
    REQUIRE(named);
    CHECK(named->server == "one");
    CHECK(named->belongs_to_stream("games"));
    CHECK_FALSE(named->belongs_to_stream("plays"));
}

TEST_CASE("an invalid or incomplete state is rejected") {
    const std::string whole =
        spool_state_text({.settled = 1, .sequence = 2, .server = "one", .stream = "games"});
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

TEST_CASE("the name of a spool file contains run and first line; other names are rejected") {
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
