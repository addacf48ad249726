#include "proxy/sink/flight_ring.h"

#include <algorithm>
#include <cstring>

namespace tw::sink {

namespace {

constexpr std::size_t kAlignment = 16;

constexpr std::uint64_t rounded(std::uint64_t size) {
    return (size + kAlignment - 1) / kAlignment * kAlignment;
}

} // namespace

FlightRing::FlightRing(std::size_t bytes)
    : capacity_{std::max(bytes, kAlignment) / kAlignment * kAlignment},
      bytes_{new std::byte[capacity_]} {}

FlightRing::Head FlightRing::head_at(Place place) const {
    Head head;
    std::memcpy(&head, bytes_.get() + place % capacity_, sizeof head);
    return head;
}

void FlightRing::put(Place place, const Head& head) {
    std::memcpy(bytes_.get() + place % capacity_, &head, sizeof head);
}

std::uint64_t FlightRing::length(Place place, const Head& head) const {
    return head.size == kFiller ? capacity_ - place % capacity_ : sizeof head + rounded(head.size);
}

void FlightRing::drop_oldest() {
    const Head head = head_at(begin_);
    dropped_ += head.size == kFiller ? 0 : 1;
    begin_ += length(begin_, head);
}

void FlightRing::make_room(Place until) {
    while (begin_ != end_ && until - begin_ > capacity_) {
        drop_oldest();
    }
}

bool FlightRing::push(std::uint32_t session, record::Timestamp time,
                      std::span<const std::byte> block) {
    const std::uint64_t need = sizeof(Head) + rounded(block.size());
    if (need > capacity_) {
        return false;
    }
    const std::uint64_t left = capacity_ - end_ % capacity_;
    if (left < need) { // blocks lie in one piece
        make_room(end_ + left);
        put(end_, {.size = kFiller});
        end_ += left;
    }
    make_room(end_ + need);
    put(end_, {.size = static_cast<std::uint32_t>(block.size()), .session = session, .time = time});
    std::copy(block.begin(), block.end(), bytes_.get() + end_ % capacity_ + sizeof(Head));
    end_ += need;
    ++pushed_;
    return true;
}

void FlightRing::forget_before(record::Timestamp time) {
    while (begin_ != end_) {
        const Head head = head_at(begin_);
        if (head.size != kFiller && head.time >= time) {
            return;
        }
        drop_oldest();
    }
}

std::optional<FlightRing::Block> FlightRing::at(Place place) const {
    for (place = std::max(place, begin_); place < end_;) {
        const Head head = head_at(place);
        const Place next = place + length(place, head);
        if (head.size != kFiller) {
            return Block{.session = head.session,
                         .time = head.time,
                         .bytes = {bytes_.get() + place % capacity_ + sizeof head, head.size},
                         .next = next};
        }
        place = next;
    }
    return std::nullopt;
}

bool FlightRing::holds(std::uint32_t session) const {
    auto block = at(begin_);
    while (block && block->session != session) {
        block = at(block->next);
    }
    return block.has_value();
}

} // namespace tw::sink
