#include "tests/bench/relay/session_script.h"

#include "proxy/wire/packet.h"
#include "tests/bench/server_datagrams.h"
#include "tests/support/captured_traffic.h"

#include <algorithm>
#include <array>
#include <map>

namespace tw::bench {

namespace {

std::size_t count_complete_snapshots(std::span<const std::byte> datagram,
                                     snapshot::PartAssembler& parts) {
    wire::PacketScratch scratch;
    const auto packet = wire::decode_packet(datagram, wire::Protocol::six, scratch);
    std::size_t count = 0;
    if (packet && packet->kind == wire::PacketKind::chunks) {
        for_each_delta(
            wire::ChunkReader{packet->payload, packet->num_chunks, wire::Dialect::six}, parts,
            [&](const snapshot::AssembledDelta&) { ++count; },
            [&](snapshot::Tick, snapshot::Tick) { ++count; });
    }
    return count;
}

/// Whether the datagram can be left out, because it contains nothing that would be resent.
bool can_be_left_out(std::span<const std::byte> datagram) {
    wire::PacketScratch scratch;
    const auto packet = wire::decode_packet(datagram, wire::Protocol::six, scratch);
    if (!packet || packet->kind != wire::PacketKind::chunks) {
        return false;
    }
    wire::ChunkReader chunks{packet->payload, packet->num_chunks, wire::Dialect::six};
    while (const auto chunk = chunks.next()) {
        if (chunk->vital) {
            return false;
        }
    }
    return true;
}

/// Returns the step in which the client leaves.
Step make_close_step(const Script& script, std::size_t heard) {
    const auto last = std::find_if(script.rbegin(), script.rend(), [](const Step& step) {
        return step.direction == wire::Direction::c2s;
    });
    constexpr std::array kClose{std::byte{0x10}, std::byte{0}, std::byte{0}, std::byte{4}};
    Step step{.at = script.back().at, .heard = heard, .bytes = {kClose.begin(), kClose.end()}};
    if (last != script.rend() && last->bytes.size() >= wire::kTokenSize) {
        // Every datagram of DDNet ends with the token.
        step.bytes.insert(step.bytes.end(), last->bytes.end() - wire::kTokenSize,
                          last->bytes.end());
    }
    return step;
}

} // namespace

std::vector<Script> read_scripts(const std::string& capture, unsigned inputs) {
    std::map<std::uint64_t, Script> found;
    std::map<std::uint64_t, std::array<std::size_t, 2>> counts;
    std::map<std::uint64_t, std::int64_t> begins;
    std::map<std::uint64_t, snapshot::PartAssembler> parts;
    std::map<std::uint64_t, unsigned> seen;
    for (test::TrafficDatagram& each : test::read_traffic(capture)) {
        const bool s2c = each.direction == wire::Direction::s2c;
        auto& count = counts[each.session];
        const std::int64_t begin = begins.try_emplace(each.session, each.time).first->second;
        if (!s2c && each.time - begin > kHandshake && seen[each.session]++ % inputs != 0 &&
            can_be_left_out(each.bytes)) {
            continue;
        }
        ++count[s2c ? 1 : 0];
        found[each.session].push_back(
            {.at = each.time - begin,
             .direction = each.direction,
             .heard = count[s2c ? 0 : 1],
             .snapshots = s2c ? count_complete_snapshots(each.bytes, parts[each.session]) : 0,
             .bytes = std::move(each.bytes)});
    }
    std::vector<Script> scripts;
    for (auto& [session, script] : found) {
        script.push_back(make_close_step(script, counts[session][1]));
        scripts.push_back(std::move(script));
    }
    return scripts;
}

} // namespace tw::bench
