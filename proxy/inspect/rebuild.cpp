#include "proxy/inspect/rebuild.h"

#include <algorithm>
#include <span>

namespace tw::inspect {

namespace {

std::optional<snapshot::SnapshotView> base_of(const snapshot::AssembledDelta& delta,
                                              const snapshot::History& history) {
    return delta.delta_tick == snapshot::kNoBase ? snapshot::SnapshotView{}
                                                 : history.find(delta.delta_tick);
}

} // namespace

Rebuilt rebuild(const snapshot::AssembledDelta& delta, const snapshot::AgreedSizes& sizes,
                snapshot::History& history, snapshot::Delta& decoded) {
    Rebuilt rebuilt;
    auto base = base_of(delta, history);
    if (!base) {
        rebuilt.fate = DeltaFate::unknown_base;
        return rebuilt;
    }
    rebuilt.base = *base;
    if (const auto read = snapshot::decode_delta(delta.body, decoded, sizes); !read) {
        rebuilt.fate = DeltaFate::undecodable;
        rebuilt.error = read.error();
        return rebuilt;
    }
    // What is built lies behind the others already and is kept if its checksum is right. Making
    // room can move the base, or push it out.
    const auto room = history.reserve(snapshot::room_for(*base, decoded));
    base = base_of(delta, history);
    if (!base) {
        rebuilt.fate = DeltaFate::unknown_base;
        return rebuilt;
    }
    rebuilt.base = *base;
    const auto built = snapshot::apply_delta(*base, decoded, room, rebuilt.warnings);
    if (!built) {
        rebuilt.fate = DeltaFate::undecodable;
        rebuilt.error = built.error();
        return rebuilt;
    }
    rebuilt.result = *built;
    if (built->checksum() != delta.crc) {
        rebuilt.fate = DeltaFate::mismatched;
    }
    return rebuilt;
}

bool leaves_as_is(const Rebuilt& rebuilt, const snapshot::Delta& delta) {
    // Most deltas say by their first int that they do not.
    for (const snapshot::DeltaUpdate& update : delta.updates) {
        const auto ints = std::span{delta.ints}.subspan(update.begin, update.size);
        if (std::any_of(ints.begin(), ints.end(), [](std::int32_t value) { return value != 0; })) {
            return false;
        }
    }
    const snapshot::SnapshotView& base = rebuilt.base;
    const snapshot::SnapshotView& built = rebuilt.result;
    return std::ranges::equal(base.keys(), built.keys()) &&
           std::ranges::equal(base.ends(), built.ends()) &&
           std::ranges::equal(base.data(), built.data());
}

} // namespace tw::inspect
