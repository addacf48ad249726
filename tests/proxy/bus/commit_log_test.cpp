#include "proxy/bus/commit_log.h"

#include <string_view>

#include <doctest/doctest.h>

using namespace tw::bus;

namespace {

constexpr std::int64_t kBefore = 1'795'277'730'000'000'000;
constexpr std::int64_t kNow = kBefore + 1;

} // namespace

TEST_CASE("a commit names its batch, when the stream was made, and the places of its records") {
    CommitEntry commit{.batch = "s.c.id", .created = kNow};
    CHECK(commit_text(commit) == "s.c.id 1795277730000000001 ");
    CHECK(read_commit(commit_text(commit)) == commit);
    commit.places.insert(3, 5);
    commit.places.insert(9);
    CHECK(commit_text(commit) == "s.c.id 1795277730000000001 3-5,9");
    CHECK(read_commit(commit_text(commit)) == commit);
}

TEST_CASE("what is no commit is none") {
    for (const std::string_view text : {"", " ", "id", "id 3-5", "id x 3", "id 1 x", "id 1 5-3",
                                        " 1 3", "id 99999999999999999999 1", "id 1 3 4", "id  1"}) {
        CAPTURE(text);
        CHECK_FALSE(read_commit(text));
    }
}

TEST_CASE("what was written down of a stream says nothing of one made anew under its name") {
    CommittedPlaces committed{kNow, "wanted"};
    committed.add_entry(
        commit_text({.batch = "old", .created = kBefore, .places = *NumberSet::read("1-1000")}));
    CHECK_FALSE(committed.contains(1));
    CHECK_FALSE(committed.contains(1000));
    committed.add_entry(
        commit_text({.batch = "new", .created = kNow, .places = *NumberSet::read("2-3")}));
    CHECK_FALSE(committed.contains(1));
    CHECK(committed.contains(2));
    committed.forget_before(3);
    CHECK_FALSE(committed.contains(2));
    CHECK(committed.contains(3));
    CHECK_FALSE(committed.found());
    // A batch counts, whatever became of the stream since.
    committed.add_entry(commit_text({.batch = "wanted", .created = kBefore}));
    CHECK(committed.found());
}
