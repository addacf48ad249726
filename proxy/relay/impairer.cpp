#include "proxy/relay/impairer.h"

#include <algorithm>

namespace tw::relay {

namespace {

std::array<Line, 2> lines_of(const Impairment& impairment, std::uint32_t session) noexcept {
    return {Line{impairment.directions[0], line_key(impairment.seed, session, 0)},
            Line{impairment.directions[1], line_key(impairment.seed, session, 1)}};
}

} // namespace

SessionLines::SessionLines(const Impairment& impairment, std::uint32_t number) noexcept
    : session{number}, lines{lines_of(impairment, number)} {}

void SessionLines::begin(const Impairment& impairment, std::uint32_t number) noexcept {
    session = number;
    lines = lines_of(impairment, number);
}

void Impairer::accept(void* owner, SessionLines& session, Direction direction,
                      std::span<const std::byte> bytes, Time now) {
    const auto index = static_cast<std::size_t>(direction);
    FateTotals<Counter>& fates = (*fates_)[index];
    SessionLines::Held& held = session.held[index];
    fates.datagrams.add(1);
    const Fate fate = session.lines[index].next(now, bytes.size());
    if (fate.outcome != Fate::Outcome::pass) {
        (fate.outcome == Fate::Outcome::lost ? fates.lost : fates.rate_dropped).add(1);
        return;
    }
    // Only one is held at a time: the next one is what it waits for.
    const bool is_held = held.order != 0 && slots_[held.slot].order == held.order;
    const bool hold = fate.reorder && !is_held;
    const Time leaves = hold ? fate.leaves + kMaxHold : fate.leaves;
    const auto slot = push(owner, session, direction, bytes, leaves);
    if (!slot) {
        fates.queue_full.add(1);
        return;
    }
    if (fate.duplicate) {
        const bool fits = push(owner, session, direction, bytes, fate.leaves).has_value();
        (fits ? fates.duplicated : fates.queue_full).add(1);
    }
    if (hold) {
        fates.reordered.add(1);
        held = {*slot, slots_[*slot].order, leaves};
    } else if (is_held) {
        let_overtaken_leave(held, fate.leaves);
    }
}

std::optional<std::size_t> Impairer::push(void* owner, SessionLines& session, Direction direction,
                                          std::span<const std::byte> bytes, Time leaves) {
    if (waiting() >= kMaxDatagrams || bytes_ + bytes.size() > kMaxBytes) {
        return std::nullopt;
    }
    if (free_.empty()) {
        slots_.emplace_back();
        if (free_.capacity() < slots_.size()) {
            free_.reserve(2 * slots_.size()); // each is given back without asking for memory
        }
        free_.push_back(slots_.size() - 1);
    }
    const std::size_t index = free_.back();
    free_.pop_back();
    Slot& slot = slots_[index];
    slot.owner = owner;
    slot.session = &session;
    slot.direction = direction;
    slot.bytes.assign(bytes.begin(), bytes.end());
    enter(index, leaves); // the last that takes memory
    bytes_ += bytes.size();
    ++session.waiting;
    return index;
}

void Impairer::enter(std::size_t slot, Time leaves) {
    slots_[slot].order = ++last_order_;
    heap_.push_back({leaves, last_order_, slot});
    std::push_heap(heap_.begin(), heap_.end(), Later{});
}

/// It leaves right behind the one that overtook it, unless its time was up before.
void Impairer::let_overtaken_leave(SessionLines::Held& held, Time leaves) {
    if (leaves < held.leaves) {
        enter(held.slot, leaves); // the old entry counts no more
    }
    held = {};
}

void Impairer::drop_stale() noexcept {
    while (!heap_.empty() && slots_[heap_.front().slot].order != heap_.front().order) {
        std::pop_heap(heap_.begin(), heap_.end(), Later{});
        heap_.pop_back();
    }
}

std::optional<Impairer::Time> Impairer::next() noexcept {
    drop_stale();
    return heap_.empty() ? std::nullopt : std::optional{heap_.front().leaves};
}

std::optional<std::size_t> Impairer::pop(Time now) noexcept {
    const auto first = next();
    if (!first || *first > now) {
        return std::nullopt;
    }
    const std::size_t slot = heap_.front().slot;
    std::pop_heap(heap_.begin(), heap_.end(), Later{});
    heap_.pop_back();
    return slot;
}

void Impairer::give_back(std::size_t slot) noexcept {
    Slot& empty = slots_[slot];
    bytes_ -= empty.bytes.size();
    --empty.session->waiting;
    empty.order = 0;
    if (empty.bytes.capacity() > kKeptBytes) {
        empty.bytes = {};
    }
    free_.push_back(slot);
}

} // namespace tw::relay
