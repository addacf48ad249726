#include "proxy/cli/replay_text.h"

#include <array>
#include <string_view>
#include <utility>

#include <fmt/format.h>

namespace tw::cli {

namespace {

std::string clients_text(const replay::ReplayResult& result) {
    using replay::Ending;
    constexpr std::array<std::pair<Ending, std::string_view>, 6> kEndings{{
        {Ending::finished, "played to the end"},
        {Ending::interrupted, "interrupted"},
        {Ending::unanswered, "got no answer"},
        {Ending::refused, "refused"},
        {Ending::closed, "disconnected by the server"},
        {Ending::silent, "timed out"},
    }};
    std::string text =
        fmt::format("clients: {}, {} entered the game", result.clients, result.entered);
    for (const auto& [ending, what] : kEndings) {
        if (const std::size_t count = result.ended(ending); count != 0) {
            text += fmt::format(", {} {}", count, what);
        }
    }
    return text + '\n';
}

} // namespace

std::string replay_text(const replay::ReplayResult& result, std::uint64_t withheld) {
    const replay::ClientTally& tally = result.tally;
    const auto& totals = result.totals;
    std::string text = clients_text(result);
    text += fmt::format("sent: {} inputs, {} messages in {:.1f} s; {} chunks resent, {} inputs "
                        "skipped, {} messages withheld\n",
                        tally.inputs, tally.messages, result.seconds, result.resent, tally.skipped,
                        withheld);
    text += fmt::format("received: {} snapshots, {} verified, {} with a wrong checksum, {} "
                        "undecodable, {} on an unknown base\n",
                        totals.snapshots, totals.verified, totals.mismatched, totals.undecodable,
                        totals.unknown_base);
    text +=
        fmt::format("lost: {} snapshots missing, {} incomplete, {} of {} pings\n", totals.missed,
                    totals.incomplete, tally.pings - tally.round_trip_us.count, tally.pings);
    if (tally.round_trip_us.count != 0) {
        constexpr double kThousand = 1000;
        text += fmt::format("round trip: {:.2f} ms on average, {:.2f} to {:.2f}\n",
                            tally.round_trip_us.mean() / kThousand,
                            static_cast<double>(tally.round_trip_us.min) / kThousand,
                            static_cast<double>(tally.round_trip_us.max) / kThousand);
    }
    return text;
}

} // namespace tw::cli
