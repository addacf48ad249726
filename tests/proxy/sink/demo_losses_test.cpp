#include "proxy/sink/demo_losses.h"

#include <string>
#include <vector>

#include <doctest/doctest.h>

using namespace tw::sink;

TEST_CASE("each kind of loss has its sentence, and no loss has none") {
    CHECK(sentences_of(DemoLosses{}).empty());
    CHECK(sentences_of(WorldDemoLosses{.demos = {.late = 1}}).empty());
    DemoLosses losses{.snapshots = 1, .late = 2, .messages = 3, .mapless = 4};
    losses.merge({.late = 5, .single = 6});
    CHECK(sentences_of(losses) ==
          std::vector<std::string>{
              "left out 7 snapshots that arrived after a newer one",
              "left out 1 snapshots and 3 messages: too large, or the disk was too slow",
              "4 sessions have no demo: their map is unknown",
              "6 sessions have no demo: they have only one snapshot of a map"});
    CHECK(sentences_of(WorldDemoLosses{.items = 1, .ticks = 2, .worlds = 3, .messages = 4}) ==
          std::vector<std::string>{
              "left out 1 items in 2 ticks: more than a snapshot holds, no id left for their "
              "players, or unknown to the demo's protocol",
              "left out 3 worlds: too many servers at once",
              "left out 4 messages: no id left for their players, or too many at once"});
}
