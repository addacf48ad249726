#include "snapshot/parts.h"

#include <algorithm>

namespace tw::snapshot {

namespace {

bool is_valid_part(const Part& part) {
    return part.num_parts >= 1 && part.num_parts <= kMaxParts && part.part >= 0 &&
           part.part < part.num_parts && part.data.size() <= kMaxPartSize &&
           (part.part == part.num_parts - 1 || part.data.size() == kMaxPartSize);
}

} // namespace

bool PartAssembler::Slot::agrees_with(const Part& part) const {
    return num_parts == part.num_parts && crc == part.crc && delta_tick == part.delta_tick;
}

bool PartAssembler::Slot::contains_same_part(const Part& part) const {
    const auto index = static_cast<std::size_t>(part.part);
    const bool is_last = part.part == num_parts - 1;
    return received[index] && (!is_last || last_part_size == part.data.size()) &&
           std::equal(part.data.begin(), part.data.end(),
                      body.begin() + static_cast<std::ptrdiff_t>(index * kMaxPartSize));
}

void PartAssembler::Slot::restart(const Part& part) {
    state = State::open;
    tick = part.tick;
    delta_tick = part.delta_tick;
    crc = part.crc;
    num_parts = part.num_parts;
    last_part_size = 0;
    received.reset();
    marked.reset();
    body.clear();
}

void PartAssembler::Slot::insert(const Part& part) {
    const auto index = static_cast<std::size_t>(part.part);
    const std::size_t begin = index * kMaxPartSize;
    if (body.size() < begin + part.data.size()) {
        body.resize(begin + part.data.size());
    }
    std::copy(part.data.begin(), part.data.end(),
              body.begin() + static_cast<std::ptrdiff_t>(begin));
    received.set(index);
    marked.set(index, part.marked);
    if (part.part == num_parts - 1) {
        last_part_size = part.data.size();
    }
}

Part PartAssembler::Slot::part(std::size_t index) const {
    const bool is_last = index + 1 == static_cast<std::size_t>(num_parts);
    return {.tick = tick,
            .delta_tick = delta_tick,
            .num_parts = num_parts,
            .part = static_cast<std::int32_t>(index),
            .crc = crc,
            .data = std::span{body}.subspan(index * kMaxPartSize,
                                            is_last ? last_part_size : kMaxPartSize),
            .marked = marked[index]};
}

bool PartAssembler::is_too_old(Tick tick) const {
    return newest_ && std::int64_t{*newest_} - tick > kMaxPartAge;
}

void PartAssembler::abandon(Slot& slot) {
    if (slot.state == Slot::State::open) {
        std::size_t missing = 0;
        while (slot.received[missing]) {
            ++missing; // the loop ends, because at least one part of an open slot is missing
        }
        lost_[num_lost_++] = {.tick = slot.tick,
                              .delta_tick = slot.delta_tick,
                              .num_parts = slot.num_parts,
                              .num_received = static_cast<std::int32_t>(slot.received.count()),
                              .first_missing = static_cast<std::int32_t>(missing)};
    }
    slot.state = Slot::State::unused;
}

void PartAssembler::abandon_old_slots() {
    for (Slot& slot : slots_) {
        if (slot.state != Slot::State::unused && is_too_old(slot.tick)) {
            abandon(slot);
        }
    }
}

PartAssembler::Slot* PartAssembler::find_slot(Tick tick) {
    for (Slot& slot : slots_) {
        if (slot.state != Slot::State::unused && slot.tick == tick) {
            return &slot;
        }
    }
    return nullptr;
}

// Returns the first available slot of these: an unused slot, the slot of the oldest complete tick,
// the slot of the oldest incomplete tick. Returns null if all incomplete ticks are newer than
// `tick` and no other slot is available.
PartAssembler::Slot* PartAssembler::choose_slot_for(Tick tick) {
    Slot* best = nullptr;
    const auto rank = [](const Slot& slot) {
        return slot.state == Slot::State::unused ? 0 : slot.state == Slot::State::complete ? 1 : 2;
    };
    for (Slot& slot : slots_) {
        if (best == nullptr || rank(slot) < rank(*best) ||
            (rank(slot) == rank(*best) && slot.tick < best->tick)) {
            best = &slot;
        }
    }
    if (best->state == Slot::State::open && best->tick > tick) {
        return nullptr;
    }
    abandon(*best);
    return best;
}

PartStatus PartAssembler::add_single(const Part& part) {
    Slot* const slot = find_slot(part.tick);
    if (slot != nullptr) {
        abandon(*slot);
    }
    assembled_ = {.tick = part.tick,
                  .delta_tick = part.delta_tick,
                  .crc = part.crc,
                  .num_parts = 1,
                  .body = part.data,
                  .marked = part.marked ? 1U : 0U,
                  .contradicts_earlier_parts = slot != nullptr};
    return PartStatus::complete;
}

PartStatus PartAssembler::finish_delta(const Slot& slot) {
    const std::size_t size =
        static_cast<std::size_t>(slot.num_parts - 1) * kMaxPartSize + slot.last_part_size;
    assembled_ = {.tick = slot.tick,
                  .delta_tick = slot.delta_tick,
                  .crc = slot.crc,
                  .num_parts = slot.num_parts,
                  .body = std::span{slot.body}.first(size),
                  .marked = slot.marked};
    return PartStatus::complete;
}

PartStatus PartAssembler::add(const Part& part) {
    num_lost_ = 0;
    if (!is_valid_part(part)) {
        return PartStatus::out_of_range;
    }
    if (is_too_old(part.tick)) {
        return PartStatus::too_old;
    }
    if (!newest_ || part.tick > *newest_) {
        newest_ = part.tick;
        abandon_old_slots();
    }
    if (part.num_parts == 1) {
        return add_single(part);
    }
    auto status = PartStatus::incomplete;
    Slot* slot = find_slot(part.tick);
    if (slot == nullptr) {
        slot = choose_slot_for(part.tick);
        if (slot == nullptr) {
            return PartStatus::too_old;
        }
        slot->restart(part);
    } else if (slot->agrees_with(part) && slot->contains_same_part(part)) {
        return PartStatus::duplicate;
    } else if (!slot->agrees_with(part) || slot->received[static_cast<std::size_t>(part.part)]) {
        abandon(*slot);
        slot->restart(part);
        status = PartStatus::inconsistent;
    }
    slot->insert(part);
    if (slot->received.count() < static_cast<std::size_t>(slot->num_parts)) {
        return status;
    }
    slot->state = Slot::State::complete;
    return finish_delta(*slot);
}

std::span<const LostDelta> PartAssembler::reset() {
    num_lost_ = 0;
    for (Slot& slot : slots_) {
        abandon(slot);
    }
    newest_.reset();
    assembled_ = {};
    return lost();
}

std::size_t PartAssembler::memory_bytes() const {
    std::size_t bytes = 0;
    for (const Slot& slot : slots_) {
        bytes += slot.body.capacity();
    }
    return bytes;
}

} // namespace tw::snapshot
