// This test is a separate program, because it counts all allocations of the process.

#include "snapshot/delta.h"
#include "snapshot/history.h"
#include "snapshot/parts.h"
#include "tests/support/allocation_count.h"

#include <vector>

#include <doctest/doctest.h>

using namespace tw::snapshot;

namespace {

Snapshot snapshot_of_players(std::uint16_t count, std::int32_t step) {
    Snapshot snapshot;
    for (std::uint16_t id = 0; id < count; ++id) {
        std::vector<std::int32_t> data(22, step * id);
        snapshot.append({9, id}, data);
    }
    for (std::int32_t id = 0; id < step % 7; ++id) {
        snapshot.append({14, static_cast<std::uint16_t>(id)}, std::vector<std::int32_t>{step, id});
    }
    return snapshot;
}

/// The objects that a session needs for decoding.
struct DecodingState {
    PartAssembler parts;
    Delta delta;
    History history;

    bool receive(Tick tick, Tick base_tick, std::int32_t crc, std::span<const std::byte> body) {
        const auto size = static_cast<std::int32_t>(body.size());
        const std::int32_t num_parts = size / static_cast<std::int32_t>(kMaxPartSize) + 1;
        auto status = PartStatus::incomplete;
        for (std::int32_t part = 0; part < num_parts; ++part) {
            const auto left = body.subspan(static_cast<std::size_t>(part) * kMaxPartSize);
            status = parts.add({tick, base_tick, num_parts, part, crc,
                                left.first(std::min(left.size(), kMaxPartSize))});
        }
        if (status != PartStatus::complete ||
            !decode_delta(parts.assembled().body, delta, kAgreedSizes)) {
            return false;
        }
        const auto base = [&] { return history.find(base_tick).value_or(SnapshotView{}); };
        DeltaWarnings warnings;
        const auto built = apply_delta(base(), delta, history, warnings);
        return built && built->checksum() == crc && history.commit(tick, *built);
    }
};

} // namespace

TEST_CASE("decoding allocates nothing once it has warmed up") {
    struct Datagram {
        Tick tick;
        Tick base;
        std::int32_t crc;
        std::vector<std::byte> body;
    };

    std::vector<Datagram> stream;
    Snapshot last;
    for (Tick tick = 2; tick < 2500; tick += 2) {
        const Snapshot next = snapshot_of_players(64, tick / 2);
        stream.push_back({tick, tick == 2 ? kNoBase : tick - 2, next.view().checksum(),
                          encode_delta(last.view(), next.view(), kAgreedSizes)});
        last = next;
    }
    DecodingState session;
    std::size_t warm = 0;
    for (const auto& each : stream) {
        if (each.tick == 1200) {
            warm = tw::test::allocation_count();
        }
        const bool received = session.receive(each.tick, each.base, each.crc, each.body);
        REQUIRE(received);
    }
    CHECK(warm > 0);
    // REQUIRE itself allocates nothing on success.
    CHECK(tw::test::allocation_count() == warm);
}
