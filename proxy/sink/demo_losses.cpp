#include "proxy/sink/demo_losses.h"

#include <fmt/format.h>

namespace tw::sink {

std::vector<std::string> sentences_of(const DemoLosses& losses) {
    std::vector<std::string> sentences;
    if (losses.late != 0) {
        sentences.push_back(
            fmt::format("left out {} snapshots that arrived after a newer one", losses.late));
    }
    if (losses.snapshots + losses.messages != 0) {
        sentences.push_back(fmt::format(
            "left out {} snapshots and {} messages: too large, or the disk was too slow",
            losses.snapshots, losses.messages));
    }
    if (losses.mapless != 0) {
        sentences.push_back(
            fmt::format("{} sessions have no demo: their map is unknown", losses.mapless));
    }
    if (losses.single != 0) {
        sentences.push_back(fmt::format(
            "{} sessions have no demo: they have only one snapshot of a map", losses.single));
    }
    return sentences;
}

std::vector<std::string> sentences_of(const WorldDemoLosses& losses) {
    std::vector<std::string> sentences;
    if (losses.items != 0) {
        sentences.push_back(
            fmt::format("left out {} items in {} ticks: more than a snapshot holds, no id left for "
                        "their players, or unknown to the demo's protocol",
                        losses.items, losses.ticks));
    }
    if (losses.worlds != 0) {
        sentences.push_back(
            fmt::format("left out {} worlds: too many servers at once", losses.worlds));
    }
    if (losses.messages != 0) {
        sentences.push_back(
            fmt::format("left out {} messages: no id left for their players, or too many at once",
                        losses.messages));
    }
    return sentences;
}

} // namespace tw::sink
