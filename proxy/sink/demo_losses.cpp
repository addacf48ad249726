#include "proxy/sink/demo_losses.h"

#include <initializer_list>
#include <string_view>

#include <fmt/format.h>

namespace tw::sink {

namespace {

/// A kind of loss, and what is said of it: `{}` stands for how many there are, and in how many ticks.
struct LossSentence {
    std::uint64_t count = 0;
    std::string_view sentence;
    std::uint64_t ticks = 0;
};

std::vector<std::string> sentences_of(std::initializer_list<LossSentence> rows) {
    std::vector<std::string> sentences;
    for (const LossSentence& row : rows) {
        if (row.count != 0) {
            sentences.push_back(fmt::format(fmt::runtime(row.sentence), row.count, row.ticks));
        }
    }
    return sentences;
}

} // namespace

std::vector<std::string> sentences_of(const DemoLosses& losses) {
    return sentences_of({
        {losses.late, "left out {} snapshots that arrived after a newer one"},
        {losses.large_snapshots, "left out {} snapshots: too large for a demo"},
        {losses.snapshots - losses.large_snapshots,
         "left out {} snapshots: the disk was full or too slow"},
        {losses.large_messages, "left out {} messages: too large for a demo"},
        {losses.messages - losses.large_messages,
         "left out {} messages: too many before the first snapshot"},
        {losses.mapless, "{} sessions have no demo: their map is unknown"},
        {losses.single, "{} sessions have no demo: they have only one snapshot of a map"},
    });
}

std::vector<std::string> sentences_of(const WorldDemoLosses& losses) {
    return sentences_of({
        {losses.items_over_limit, "left out {} items in {} ticks: more than a snapshot holds",
         losses.ticks_over_limit},
        {losses.items_without_id, "left out {} items in {} ticks: no id left for their players",
         losses.ticks_without_id},
        {losses.worlds, "left out {} worlds: too many servers at once"},
        {losses.messages_without_id, "left out {} messages: no id left for their players"},
        {losses.messages_over_limit, "left out {} messages: too many at once"},
    });
}

} // namespace tw::sink
