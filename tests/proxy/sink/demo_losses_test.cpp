// Covers: proxy/sink/demo_sink.cpp
#include "proxy/sink/demo_sink.h"

#include <string>
#include <vector>

#include <doctest/doctest.h>

using namespace tw::sink;

TEST_CASE("each kind of loss has its sentence, and no loss has none") {
    CHECK(sentences_of(DemoLosses{}).empty());
    CHECK(sentences_of(WorldDemoLosses{.demos = {.late = 1}}).empty());
    DemoLosses losses{.snapshots = 9,
                      .large_snapshots = 1,
                      .late = 2,
                      .messages = 3,
                      .large_messages = 1,
                      .mapless = 4};
    losses.merge({.snapshots = 1, .large_snapshots = 1, .late = 5, .single = 6});
    CHECK(
        sentences_of(losses) ==
        std::vector<std::string>{"left out 7 snapshots that arrived after a newer one",
                                 "left out 2 snapshots: too large for a demo",
                                 "left out 8 snapshots: the disk was full or too slow",
                                 "left out 1 message: too large for a demo",
                                 "left out 2 messages: too many before the first snapshot",
                                 "4 sessions have no demo: their map is unknown",
                                 "6 sessions have no demo: they have only one snapshot of a map"});
    CHECK(sentences_of(WorldDemoLosses{.items_over_limit = 1,
                                       .ticks_over_limit = 1,
                                       .items_without_id = 3,
                                       .ticks_without_id = 4,
                                       .worlds = 5,
                                       .messages_without_id = 6,
                                       .messages_over_limit = 7}) ==
          std::vector<std::string>{"left out 1 item in 1 tick: more than a snapshot holds",
                                   "left out 3 items in 4 ticks: no id left for their players",
                                   "left out 5 worlds: too many servers at once",
                                   "left out 6 messages: no id left for their players",
                                   "left out 7 messages: too many at once"});
}
