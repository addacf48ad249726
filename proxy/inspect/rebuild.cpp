#include "proxy/inspect/rebuild.h"

#include <algorithm>
#include <span>

namespace tw::inspect {

namespace {

/// Whether the base is there: it is written down then.
bool find_base(const snapshot::AssembledDelta& delta, const snapshot::History& history,
               snapshot::SnapshotView& base) {
    if (delta.delta_tick == snapshot::kNoBase) {
        base = {};
        return true;
    }
    const auto found = history.find(delta.delta_tick);
    if (found) {
        base = *found;
    }
    return found.has_value();
}

} // namespace

void rebuild(const snapshot::AssembledDelta& delta, const snapshot::AgreedSizes& sizes,
             snapshot::History& history, snapshot::Delta& decoded, Rebuilt& rebuilt,
             snapshot::SharedDeltas* shared) {
    rebuilt.warnings.count = 0;
    if (!find_base(delta, history, rebuilt.base)) {
        rebuilt.fate = DeltaFate::unknown_base;
        return;
    }
    const auto read = shared == nullptr ? snapshot::decode_delta(delta.body, decoded, sizes)
                                        : shared->decode(delta, decoded, sizes);
    if (!read) {
        rebuilt.fate = DeltaFate::undecodable;
        rebuilt.error = read.error();
        return;
    }
    // What is built lies behind the others already and is kept if its checksum is right.
    const auto built = snapshot::apply_delta(rebuilt.base, decoded, history, rebuilt.warnings);
    if (!built) {
        rebuilt.fate = DeltaFate::undecodable;
        rebuilt.error = built.error();
        return;
    }
    rebuilt.result = *built;
    rebuilt.crc = built->checksum();
    rebuilt.fate = rebuilt.crc == delta.crc ? DeltaFate::accepted : DeltaFate::mismatched;
}

bool are_same(const Rebuilt& rebuilt, const snapshot::Delta& delta) {
    for (const snapshot::DeltaUpdate& update : delta.updates) {
        const auto ints = std::span{delta.ints}.subspan(update.begin, update.size);
        if (std::any_of(ints.begin(), ints.end(), [](std::int32_t value) { return value != 0; })) {
            return false;
        }
    }
    return rebuilt.base == rebuilt.result;
}

} // namespace tw::inspect
